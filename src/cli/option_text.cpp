#include "cli/option_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units_text.hpp"
#include "nvlsim/units/version.hpp"

namespace nvlsim::cli {
namespace {

constexpr std::size_t columns = output::table_columns;

/// Parsed CLI11 type text: "TEXT:{table,json}", "UINT:INT in [0 - 10]", "DIR".
struct type_text {
  std::string type, set, low, high;
};

type_text parse_type(const std::string& text) {
  type_text out;
  const std::size_t colon = text.find(':');
  out.type = text.substr(0, colon);
  const std::size_t open = text.find('{'), range = text.find(" in [");
  if (open != std::string::npos) out.set = text.substr(open + 1, text.find('}') - open - 1);
  if (range != std::string::npos) {
    const std::size_t from = range + 5, dash = text.find(" - ", from);
    out.low = text.substr(from, dash - from);
    out.high = text.substr(dash + 3, text.find(']', dash) - dash - 3);
  }
  return out;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from < list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    out.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return out;
}

std::string metavar_of(const type_text& t, const std::vector<std::string>& choices, const CLI::Option& o) {
  if (!choices.empty() && fmt::format("{}", fmt::join(choices, "|")).size() <= 40)
    return fmt::format("{}", fmt::join(choices, "|"));
  if (t.type == "UINT" || t.type == "INT" || t.type == "FLOAT") return "N";
  if (t.type != "TEXT" && !t.type.empty()) return t.type;
  std::string name = o.get_lnames().empty() ? "VALUE" : o.get_lnames().front();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

bool hidden(const CLI::Option& o) { return o.get_group().empty(); }

/// Formats a heading and its description, wrapped in a column that starts at `at`.
std::string entry(const std::string& heading, const std::string& description, std::size_t at) {
  std::string out = "  " + heading;
  const auto lines = output::wrapped(description, columns - at);
  if (lines.empty()) return out + '\n';
  out += heading.size() + 4 > at ? "\n" + std::string(at, ' ') : std::string(at - 2 - heading.size(), ' ');
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? std::string(at, ' ') : "") + lines[i] + '\n';
  return out;
}

std::string entries(std::string_view title, const std::vector<std::pair<std::string, std::string>>& all) {
  if (all.empty()) return {};
  std::size_t widest = 0;
  for (const auto& [heading, description] : all) widest = std::max(widest, heading.size());
  std::string out = fmt::format("\n{}\n", title);
  for (const auto& [heading, description] : all)
    out += entry(heading, description, std::min<std::size_t>(widest + 4, 26));
  return out;
}

/// Escapes text for roff: hyphens stay hyphens and no line is taken as a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += std::string("\\&") + c;
    else out += c;
  }
  return out;
}

std::string manual_name(const CLI::App& command) {
  std::string out = full_name(command);
  std::replace(out.begin(), out.end(), ' ', '-');
  return out;
}

std::string manual_entries(std::string_view title, const std::vector<std::pair<std::string, std::string>>& all) {
  std::string out = all.empty() ? "" : fmt::format(".SH {}\n", title);
  for (const auto& [heading, description] : all)
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(heading), roff(description));
  return out;
}

struct parts {
  std::vector<std::pair<std::string, std::string>> arguments, options, commands;
};

parts parts_of(const CLI::App& command) {
  parts out;
  for (const option_text& o : options_of(command))
    (o.positional ? out.arguments : out.options).emplace_back(o.heading(), o.description);
  for (const CLI::App* c : commands_under(command)) out.commands.emplace_back(c->get_name(), c->get_description());
  return out;
}

}  // namespace

std::string option_text::heading() const {
  std::string out = fmt::format("{}", fmt::join(names, ", "));
  if (!metavar.empty() && !positional) out += ' ' + metavar;
  return out;
}

option_text describe(const CLI::Option& o) {
  option_text out;
  const type_text type = parse_type(o.get_type_name());
  out.positional = o.get_positional();
  if (out.positional) out.names = {o.get_name(true, false)};
  for (const std::string& n : o.get_snames()) out.names.push_back('-' + n);
  for (const std::string& n : o.get_lnames()) out.names.push_back("--" + n);
  const bool takes_value = o.get_expected_max() > 0 && o.get_type_size() != 0;
  out.choices = split(type.set);
  if (takes_value) out.metavar = metavar_of(type, out.choices, o);
  out.required = o.get_required();
  out.several = o.get_expected_max() >= CLI::detail::expected_max_vector_size;
  out.description = o.get_description();
  if (!out.choices.empty() && (out.positional || out.metavar.find('|') == std::string::npos))
    out.description += fmt::format(": {}", fmt::join(out.choices, ", "));
  if (!type.low.empty() && type.high.size() <= 4)
    out.description += fmt::format(" ({} to {})", type.low, type.high);
  if (!o.get_default_str().empty()) out.description += fmt::format(" [{}]", o.get_default_str());
  return out;
}

std::vector<option_text> options_of(const CLI::App& command) {
  std::vector<option_text> out;
  for (const bool positional : {true, false})
    for (const CLI::Option* o : command.get_options())
      if (!hidden(*o) && o->get_positional() == positional) out.push_back(describe(*o));
  return out;
}

std::vector<const CLI::App*> commands_under(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); });
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? full_name(*parent) + ' ' + command.get_name() : command.get_name();
}

std::string usage_of(const CLI::App& command) {
  std::string out = full_name(command);
  if (!commands_under(command).empty()) return out + " COMMAND ...";
  out += " [OPTIONS]";
  for (const option_text& o : options_of(command)) {
    if (!o.positional && o.required) out += fmt::format(" {} {}", o.names.back(), o.metavar);
    if (!o.positional) continue;
    const std::string name = o.names.front() + (o.several ? "..." : "");
    out += o.required ? ' ' + name : " [" + name + ']';
  }
  return out;
}

std::string help_page(const CLI::App& command) {
  std::string out;
  for (const std::string& line : output::wrapped(command.get_description(), columns)) out += line + '\n';
  const auto usage = output::wrapped("usage: " + usage_of(command), columns - 7);
  out += fmt::format("\n{}\n", fmt::join(usage, "\n       "));
  const parts p = parts_of(command);
  out += entries("commands", p.commands) + entries("arguments", p.arguments) + entries("options", p.options);
  if (!command.get_footer().empty()) out += '\n' + command.get_footer() + '\n';
  return out;
}

// [groff_man(7)]
std::string manual_page(const CLI::App& command) {
  const std::string name = manual_name(command);
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::string out = fmt::format(".TH {} 1 \"\" \"nvlsim {}\" \"User commands\"\n", roff(title), version);
  const std::string& about = command.get_description();
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(about.substr(0, about.find(':'))));
  out += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR\n.SH DESCRIPTION\n{}.\n", roff(usage_of(command)), roff(about));
  const parts p = parts_of(command);
  out += manual_entries("COMMANDS", p.commands) + manual_entries("ARGUMENTS", p.arguments) +
         manual_entries("OPTIONS", p.options);
  const std::string examples = command.get_footer().substr(0, command.get_footer().find("\n\n"));
  if (const std::size_t colon = examples.find(":\n"); colon != std::string::npos)
    out += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(examples.substr(colon + 2)));
  out +=
      ".SH EXIT STATUS\n0 ok, 1 a gate failed, 2 bad usage or input, 3 infeasible, 4 file error, 70 internal "
      "error, 130 interrupted.\n"
      ".SH ENVIRONMENT\n.TP\n\\fBNVLSIM_DATA\\fR\nThe folder with the shipped platforms and scenarios, if it is "
      "not beside the program.\n";
  std::vector<std::string> related;
  if (command.get_parent()) related.push_back(manual_name(*command.get_parent()));
  for (const CLI::App* c : commands_under(command)) related.push_back(manual_name(*c));
  if (related.empty()) return out;
  out += ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < related.size(); ++i)
    out += fmt::format(".BR {} (1){}\n", roff(related[i]), i + 1 < related.size() ? "," : "");
  return out;
}

namespace {

/// Says what is wrong with a number in a range, or "".
template <class T>
std::string out_of_range(const std::string& text, T min, T max, std::string_view kind) {
  T x{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), x);
  const bool read = !text.empty() && end == text.data() + text.size();
  if (!read || (status != std::errc() && status != std::errc::result_out_of_range) ||
      std::isnan(static_cast<double>(x)))
    return fmt::format("{} is not a {}", in_quotes(text), kind);
  if (status == std::errc::result_out_of_range) return fmt::format("{} is not between {} and {}", text, min, max);
  if (x < min) return fmt::format("{} is less than {}", text, min);
  return x > max ? fmt::format("{} is more than {}", text, max) : "";
}

/// Formats a range as CLI::Range does, for `parse_type`.
std::string range_text(std::string_view type, const std::string& min, const std::string& max) {
  return fmt::format("{} in [{} - {}]", type, min, max);
}

}  // namespace

CLI::Validator number_from(double min, double max) {
  return {[=](std::string& text) { return out_of_range(text, min, max, "number"); },
          range_text("FLOAT", fmt::format("{}", min), fmt::format("{}", max))};
}

CLI::Validator whole_from(std::int64_t min, std::int64_t max) {
  return {[=](std::string& text) { return out_of_range(text, min, max, "whole number"); },
          range_text("INT", fmt::format("{}", min), fmt::format("{}", max))};
}

void add_format(CLI::App* c, std::string& format, std::vector<std::string> names) {
  c->add_option("--format", format, "What to print on stdout")
      ->check(CLI::IsMember(std::move(names)))
      ->capture_default_str();
}

}  // namespace nvlsim::cli
