// Formats search results as JSON, CSV and text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/output/text.hpp"
#include "output/lists.hpp"
#include "output/plan_lines.hpp"

namespace nvlsim {
namespace {

value object_of(const std::vector<std::string>& names, const std::vector<value>& values) {
  value out{value::object{}};
  for (std::size_t i = 0; i < names.size(); ++i) out.set(names[i], values[i]);
  return out;
}

value numbers_of(const std::vector<std::string>& names, const std::vector<std::optional<double>>& values) {
  value out{value::object{}};
  for (std::size_t i = 0; i < names.size(); ++i) out.set(names[i], values[i] ? value{*values[i]} : value{});
  return out;
}

value layout_json(const search_result& r, const found_layout& l) {
  value out{value::object{}};
  out.set("layout", object_of(r.parameters, l.parameters));
  value sets{value::object{}};
  for (const auto& [pointer, v] : r.everywhere) sets.set(pointer, v);
  for (std::size_t i = 0; i < r.pointers.size(); ++i) sets.set(r.pointers[i], l.parameters[i]);
  out.set("set", std::move(sets));
  out.set("metrics", numbers_of(r.metrics, l.metrics));
  return out;
}

std::string parameter_text(const value& v) {
  if (const auto* items = v.items()) {
    std::string out;
    for (const value& x : *items) out += (out.empty() ? "" : "+") + parameter_text(x);
    return out;
  }
  return output::scaled("", v);
}

/// An abbreviated value for tables.
std::string short_text(const value& v) {
  const std::string text = parameter_text(v);
  if (text == "distributed_optimizer") return "optimizer";
  return text;
}

double layout_metric(const search_result& r, const found_layout& l, std::string_view name) {
  const auto at = std::find(r.metrics.begin(), r.metrics.end(), name);
  return l.metrics[static_cast<std::size_t>(at - r.metrics.begin())].value_or(0);
}

/// Breaks a name at underscores into lines of at most `columns` if possible: "micro_batch_size" gives "micro_",
/// "batch_" and "size".
std::vector<std::string> broken_name(const std::string& name, std::size_t columns) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size() - 1) + 1;
    const std::string word = name.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + word.size() > columns) lines.emplace_back();
    lines.back() += word;
    at = end;
  }
  return lines;
}

/// Adds column headings, in one line if they fit, else wrapped to the column widths.
void add_heads(std::vector<std::vector<std::string>>& rows, const std::vector<std::string>& names) {
  constexpr std::size_t narrow = 8;
  std::vector<std::vector<std::string>> heads;
  std::vector<std::size_t> cells(names.size(), narrow);
  std::size_t lines = 1, line = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const auto& row : rows) cells[i] = std::max(cells[i], output::width(row[i]));
    line += 2 + std::max(cells[i], names[i].size());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    heads.push_back(broken_name(names[i], line <= output::table_columns ? names[i].size() : cells[i]));
    lines = std::max(lines, heads.back().size());
  }
  std::vector<std::vector<std::string>> above(lines);
  for (const auto& head : heads)
    for (std::size_t i = 0; i < lines; ++i)
      above[i].push_back(i + head.size() < lines ? "" : head[i + head.size() - lines]);
  rows.insert(rows.begin(), above.begin(), above.end());
}

/// A table of the parameters that differ between layouts, followed by the common ones.
std::string table_of(const search_result& r, const std::vector<found_layout>& layouts) {
  std::vector<bool> varies(r.parameters.size());
  for (std::size_t p = 0; p < varies.size(); ++p)
    varies[p] = std::any_of(layouts.begin(), layouts.end(), [&](const found_layout& l) {
      return !(l.parameters[p] == layouts.front().parameters[p]);
    });
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> names = {""};
  names.insert(names.end(), r.front_metrics.begin(), r.front_metrics.end());
  for (std::size_t p = 0; p < varies.size(); ++p)
    if (varies[p]) names.push_back(r.parameters[p]);
  for (const found_layout& l : layouts) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(fmt::format("{}", rows.size()));
    for (const std::string& m : r.front_metrics)
      row.push_back(output::scaled(m.substr(0, m.find('.')), layout_metric(r, l, m)));
    for (std::size_t p = 0; p < varies.size(); ++p)
      if (varies[p]) row.push_back(short_text(l.parameters[p]));
  }
  add_heads(rows, names);
  std::string out = output::grid(rows, 2), same;
  for (std::size_t p = 0; p < varies.size(); ++p)
    if (!varies[p])
      same += fmt::format("{}{} {}", same.empty() ? "" : ", ", r.parameters[p],
                          parameter_text(layouts.front().parameters[p]));
  if (!same.empty())
    for (const std::string& line : output::wrapped("all: " + same, output::table_columns - 2))
      out += "  " + line + "\n";
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> settings_of(const search_result& r, const found_layout& l) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto set = [&](const std::string& pointer, const value& v) {
    std::string text = v.string() ? *v.string() : to_json(v, 0);
    while (text.ends_with('\n')) text.pop_back();
    out.emplace_back(pointer, std::move(text));
  };
  for (const auto& [pointer, v] : r.everywhere) set(pointer, v);
  for (std::size_t i = 0; i < r.pointers.size(); ++i) set(r.pointers[i], l.parameters[i]);
  return out;
}

value search_json(const search_result& r, const std::string& command) {
  value out{value::object{}};
  out.set("schema", "nvlsim.search/1");
  out.set("scenario", r.scenario);
  out.set("gpus", r.gpus);
  out.set("objective", r.objective);
  out.set("smaller_is_better", r.smaller_is_better);
  out.set("candidates", r.candidates);
  out.set("evaluated", r.evaluated);
  out.set("found", r.found);
  out.set("bound", r.bound ? value{*r.bound} : value{});
  out.set("pruned", output::list_of(r.pruned, [](const pruned_layouts& p) {
            return value{value::object{{"reason", p.reason}, {"count", p.count}, {"example", p.example}}};
          }));
  const auto layout = [&](const found_layout& l) { return layout_json(r, l); };
  out.set("best", output::list_of(r.best, layout));
  if (!command.empty()) {
    std::string line = command;
    std::replace(line.begin(), line.end(), '\n', ' ');
    out.set("command", std::move(line));
  }
  out.set("front_metrics", output::list_of(r.front_metrics));
  out.set("front", output::list_of(r.front, layout));
  out.set("simulation", value{value::object{{"wall_s", r.wall_s}}});
  return out;
}

std::string search_csv(const search_result& r) {
  std::string out = "rank,on_front";
  for (const std::string& p : r.parameters) out += ',' + p;
  for (const std::string& m : r.metrics) out += ',' + m;
  out += '\n';
  const auto same = [](const found_layout& a, const found_layout& b) { return a.parameters == b.parameters; };
  const auto row = [&](const found_layout& l, const std::string& rank, bool on_front) {
    out += rank + (on_front ? ",true" : ",false");
    for (const value& v : l.parameters) out += ',' + parameter_text(v);
    for (const auto& m : l.metrics) out += ',' + (m ? output::number_text(*m) : std::string());
    out += '\n';
  };
  for (std::size_t i = 0; i < r.best.size(); ++i)
    row(r.best[i], std::to_string(i + 1),
        std::any_of(r.front.begin(), r.front.end(), [&](const auto& f) { return same(f, r.best[i]); }));
  for (const found_layout& f : r.front)
    if (std::none_of(r.best.begin(), r.best.end(), [&](const auto& b) { return same(f, b); })) row(f, "", true);
  return out;
}

/// How far the best may be from layouts that were not tried.
static std::string bound_text(const search_result& r) {
  const double best = layout_metric(r, r.best.front(), r.objective);
  if (!r.bound || *r.bound == best) return {};
  return fmt::format("\nno layout has {} {} than {}; the best is within {:.2g} % of that\n",
                     r.smaller_is_better ? "a lower" : "a higher", r.objective,
                     output::scaled(r.objective, *r.bound), 100 * std::abs(best / *r.bound - 1));
}

std::string search_text(const search_result& r, const std::string& command) {
  std::string out =
      fmt::format("{} on {} GPUs\n{} layouts, {} evaluated, {} found, in {:.2f} s\n",
                  output::one_line(r.scenario, 60), r.gpus, r.candidates, r.evaluated, r.found, r.wall_s);
  if (!r.pruned.empty()) out += "\nleft out\n";
  for (const pruned_layouts& p : r.pruned) {
    const auto lines = output::wrapped(reason_of(p), output::table_columns - 14);
    out += fmt::format("{:>10}  {}\n", p.count, lines.empty() ? "" : lines.front());
    for (std::size_t i = 1; i < lines.size(); ++i) out += fmt::format("{:>10}  {}\n", "", lines[i]);
  }
  if (r.best.empty()) return out;
  out += bound_text(r);
  out += fmt::format("\nbest by {}, {} first\n", r.objective, r.smaller_is_better ? "smallest" : "largest") +
         table_of(r, r.best);
  constexpr std::size_t max_shown = 20;
  std::vector<found_layout> front(
      r.front.begin(), r.front.begin() + static_cast<std::ptrdiff_t>(std::min(max_shown, r.front.size())));
  out += '\n';
  for (const std::string& line :
       output::wrapped(fmt::format("front: no layout is better in {}", fmt::join(r.front_metrics, " and ")),
                       output::table_columns))
    out += line + '\n';
  out += table_of(r, front);
  if (front.size() < r.front.size())
    out += fmt::format("  and {} more in the JSON result\n", r.front.size() - front.size());
  if (command.empty()) return out;
  out += "\nto run the best layout\n  ";
  for (const char c : command) out += c == '\n' ? std::string(" \\\n    ") : std::string(1, c);
  return out + "\n";
}

}  // namespace nvlsim
