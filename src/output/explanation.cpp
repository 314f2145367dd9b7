// Formats explanations as JSON and text. [docs/explain.md]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "output/lists.hpp"

namespace nvlsim {
namespace {

using output::table_columns;

// ---- JSON

value optional_number(const std::optional<double>& x) { return x ? value{*x} : value{}; }

value cause_value(const cause& c) {
  value out{value::object{{"name", c.name}, {"amount", c.amount}}};
  if (!c.note.empty()) out.set("note", c.note);
  if (c.parts.empty()) return out;
  out.set("parts", output::list_of(c.parts, cause_value));
  return out;
}

value use_value(const time_use& u) {
  value out{value::object{{"name", u.name}, {"phase", u.phase}, {"shape", u.shape}, {"bound", name(u.limit)}}};
  out.set("calls", u.calls);
  out.set("time_s", u.time_s);
  out.set("share", u.share);
  const std::string unit = u.limit == resource::tensor_cores ? "FLOP_per_s" : "Bps";
  out.set("rate_" + unit, u.rate);
  out.set("ceiling_" + unit, u.ceiling > 0 ? value{u.ceiling} : value{});
  if (u.table_rate) out.set("table_rate_FLOP_per_s", *u.table_rate);
  out.set("work_flop", u.work_flop);
  out.set("moved_bytes", u.moved_bytes);
  return out;
}

value constant_value(const input_constant& c) {
  return value{value::object{
      {"pointer", c.pointer}, {"value", c.text}, {"kind", c.kind}, {"source", c.source}, {"from", c.from}}};
}

// ---- text

/// The part of a metric name that ends with the unit.
std::string_view unit_key(std::string_view metric) { return metric.substr(0, metric.find('.')); }

/// Factors that are counted, by the end of their name: the first that matches decides.
struct counted_factor {
  std::string_view suffix, unit;
  double in = 1;  ///< units
};
constexpr std::array counted_factors = {
    counted_factor{"million_output_tokens", "tokens", 1e6},
    counted_factor{"tokens", "tokens"},
    counted_factor{"tokens_per_step", "tokens"},
    counted_factor{"token_budget", "tokens"},
    counted_factor{"_tflop_per_step", "FLOP", 1e12},
    counted_factor{"_tflop_per_step_full_attention", "FLOP", 1e12},
    counted_factor{"_flop_per_step", "FLOP"},
    counted_factor{"_flop_per_s", "FLOP/s"},
    counted_factor{"requests", ""},
    counted_factor{"requests_within_limits", ""},
    counted_factor{"arrivals_after_first", ""},
    counted_factor{"steps", ""},
    counted_factor{"gpus", ""},
    counted_factor{"price_usd_per_gpu_hour", "USD/h"},
};

std::string factor_text(const factor& f) {
  for (const counted_factor& c : counted_factors)
    if (f.name.ends_with(c.suffix)) return output::counted(f.amount * c.in, c.unit);
  return output::scaled(unit_key(f.name), f.amount);
}

constexpr double min_share = 0.004;  // fraction of the whole; smaller parts are summed in one line
constexpr std::size_t name_columns = 30, amount_columns = 10, share_columns = 9;
constexpr std::size_t note_columns = table_columns - name_columns - amount_columns - share_columns - 2;

/// A rate and its ceiling: "6.25 of 8 TB/s, 78 %".
std::string rate_of(double x, double ceiling, std::string_view unit) {
  constexpr std::array<std::string_view, 7> prefixes = {"", "k", "M", "G", "T", "P", "E"};
  double scale = 1;
  std::size_t i = 0;
  for (; i + 1 < prefixes.size() && std::max(x, ceiling) >= 1000 * scale; ++i) scale *= 1000;
  if (!(ceiling > 0)) return fmt::format("{:.3g} {}{}", x / scale, prefixes[i], unit);
  return fmt::format("{:.3g} of {:.3g} {}{}, {:.0f} %", x / scale, ceiling / scale, prefixes[i], unit,
                     100 * x / ceiling);
}

struct tree_printer {
  std::string_view key;
  double whole;
  bool long_notes;  ///< wrap long notes; else omit them, because the table of kernels shows them
  std::string out = {};

  void line(std::size_t depth, const std::string& text, double amount, const std::string& note) {
    const std::string label = output::one_line(std::string(2 + 2 * depth, ' ') + text, name_columns);
    out += fmt::format("{}{}{:7.1f} %", output::padded_right(label, name_columns),
                       output::padded_left(output::scaled(key, amount), amount_columns),
                       whole != 0 ? 100 * amount / whole : 0);
    std::string_view indent = "  ";
    const std::string further(table_columns - note_columns, ' ');
    if (long_notes || output::width(note) <= note_columns)
      for (const std::string& words : output::wrapped(note, note_columns)) {
        out += fmt::format("{}{}{}", indent == further ? "\n" : "", indent, words);
        indent = further;
      }
    out += '\n';
  }
  void print(const cause& c, std::size_t depth, std::size_t max) {
    double small = 0;
    std::size_t count = 0;
    const cause* only = nullptr;
    for (const cause& p : c.parts) {
      if (std::abs(p.amount) < min_share * std::abs(whole)) {
        small += p.amount;
        ++count;
        only = &p;
        continue;
      }
      line(depth, p.name, p.amount, p.note);
      if (depth < max) print(p, depth + 1, max);
    }
    if (count == 1) line(depth, only->name, small, only->note);
    else if (count > 1) line(depth, fmt::format("{} smaller", count), small, {});
  }
};

std::string tree_text(const cause_tree& t, std::string_view key) {
  tree_printer p{key, t.whole.amount, t.title == "by use"};
  p.print(t.whole, 0, t.title == "by phase" ? 2 : t.title == "critical path" ? 0 : 1);
  return fmt::format("\n{} {}\n{}", t.whole.name, t.title, p.out);
}

/// A resource as text calls it.
const std::string& called(const explanation& e, const std::string& what) {
  static const std::string nvlink(name(resource::nvlink));
  return what == nvlink ? e.domain_link : what;
}

/// A tree whose causes are resources, as text calls them.
cause called(const explanation& e, cause c) {
  c.name = called(e, c.name);
  for (cause& part : c.parts) part = called(e, std::move(part));
  return c;
}

std::string uses_text(const explanation& e, std::string_view title, const std::vector<time_use>& uses,
                      std::size_t max) {
  if (uses.empty()) return {};
  std::string out = fmt::format("\n{}\n", title);
  for (std::size_t i = 0; i < std::min(max, uses.size()); ++i) {
    const time_use& u = uses[i];
    const std::string label = output::one_line(fmt::format("{}, {}", u.name, u.phase), name_columns - 1);
    std::string line = fmt::format(
        "  {}{:5.1f} %  {:<12}  {}", output::padded_right(label, name_columns - 1), 100 * u.share,
        called(e, std::string(name(u.limit))),
        u.rate > 0 ? rate_of(u.rate, u.ceiling, u.limit == resource::tensor_cores ? "FLOP/s" : "B/s") : "");
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
    std::string detail = u.calls > 0 ? output::counted(u.calls, "") + (u.calls == 1 ? " call" : " calls")
                                     : "";  // waits have no calls
    if (!u.shape.empty()) detail += (detail.empty() ? "" : " of ") + u.shape;
    if (u.table_rate)
      detail += fmt::format("; kernel table {}, here {:+.0f} %", rate_of(*u.table_rate, 0, "FLOP/s"),
                            100 * (u.rate / *u.table_rate - 1));
    for (const std::string& more : output::wrapped(detail, table_columns - 6)) out += "      " + more + '\n';
  }
  if (uses.size() > max) out += fmt::format("  {} more in the JSON\n", uses.size() - max);
  return out;
}

/// Splits "/platform/gpu/hbm_bandwidth" into "/gpu" and "hbm_bandwidth", and "/jobs/0/stack/inference/reserve"
/// into
/// "/jobs/0/stack/inference" and "reserve": of parts the pointer is whole.
std::pair<std::string, std::string> place_of(const std::string& pointer) {
  const bool of_whole = pointer.starts_with("/platform/") || pointer.starts_with("/stack/");
  const std::size_t first = of_whole ? pointer.find('/', 1) : 0, last = pointer.rfind('/');
  return {pointer.substr(first, last - first), pointer.substr(last + 1)};
}

bool not_binding(const explanation& e, const std::string& pointer) {
  return e.not_binding && std::binary_search(e.not_binding->begin(), e.not_binding->end(), pointer);
}

std::string constants_text(const explanation& e) {
  const std::vector<input_constant>& constants = e.constants;
  std::vector<std::string> files, sources;
  const auto index = [](std::vector<std::string>& all, const std::string& s) {
    const auto at = std::find(all.begin(), all.end(), s);
    const auto i = static_cast<std::size_t>(at - all.begin());
    if (at == all.end()) all.push_back(s);
    return i + 1;
  };
  for (const input_constant& c : constants) index(files, c.from);
  std::string out;
  for (const std::string& f : files) {
    out += fmt::format("\nconstants of {}\n", f);
    std::string group;
    for (const input_constant& c : constants) {
      if (c.from != f) continue;
      const auto [parent, member] = place_of(c.pointer);
      if (parent != group) out += fmt::format("  {}\n", parent);
      group = parent;
      out += fmt::format("    {}{}  {:<8}  [{}]{}\n", output::padded_right(member, 28),
                         output::padded_left(c.text, 17), c.kind, index(sources, c.source),
                         not_binding(e, c.pointer) ? "  not binding" : "");
    }
  }
  if (!sources.empty()) out += "\nsources\n";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::string mark = fmt::format("  {:>4} ", fmt::format("[{}]", i + 1));
    for (const std::string& line : output::wrapped(sources[i], table_columns - mark.size())) {
      out += mark + line + '\n';
      mark.assign(mark.size(), ' ');
    }
  }
  return out;
}

std::string bullets(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string out = fmt::format("\n{}\n", title);
  for (const std::string& text : lines) {
    std::string mark = "  - ";
    for (const std::string& line : output::wrapped(text, table_columns - 4)) {
      out += mark + line + '\n';
      mark = "    ";
    }
  }
  return out;
}

constexpr double min_effect = 5e-4;  // relative change of the metric; constants with less effect are only counted

std::string change_text(const std::optional<double>& x) { return x ? output::percent_change(*x) : "refused"; }

std::string sensitivity_text(const explanation& e) {
  if (e.sensitivities.empty()) return {};
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("change of {}", e.metric), "value", "-10 %", "+10 %"}};
  std::size_t small = 0;
  for (const sensitivity& s : e.sensitivities) {
    if (std::max(std::abs(s.less.value_or(0)), std::abs(s.more.value_or(0))) < min_effect) ++small;
    else
      rows.push_back(
          {output::one_line(s.what.pointer, 46), s.what.text, change_text(s.less), change_text(s.more)});
  }
  std::string out = "\nsensitivity\n" + output::grid(rows, 2);
  if (small > 0) out += fmt::format("  {} more have little effect; see the JSON\n", small);
  if (e.turning_points.empty())
    return out + "\nno constant changes the bottleneck between 0.25 and 4 times its value\n";
  out += "\nwhere the bottleneck changes\n";
  for (const turning_point& t : e.turning_points)
    for (const std::string& line :
         output::wrapped(fmt::format("{}  at {:.3g} x {}: {} instead of {}", t.what.pointer, t.factor, t.what.text,
                                     called(e, t.to), called(e, t.from)),
                         table_columns - 4))
      out += (line.starts_with('/') ? "  " : "    ") + line + '\n';
  return out;
}

}  // namespace

value to_value(const explanation& e) {
  value out{value::object{{"schema", "nvlsim.explanation/1"}, {"scenario", e.scenario}, {"metric", e.metric}}};
  out.set("value", optional_number(e.amount));
  out.set("band", e.band ? value{value::array{value{e.band->first}, value{e.band->second}}} : value{});
  out.set("band_reasons", output::list_of(e.band_reasons));
  out.set("factors", output::list_of(e.factors, [](const factor& f) {
            return value{value::object{{"name", f.name}, {"amount", f.amount}, {"power", f.power}}};
          }));
  out.set("apart", e.taken_apart.empty() ? value{} : value{e.taken_apart});
  out.set("trees", output::list_of(e.trees, [](const cause_tree& t) {
            return value{value::object{{"title", t.title}, {"whole", cause_value(t.whole)}}};
          }));
  out.set("kernels", output::list_of(e.kernels, use_value));
  out.set("transfers", output::list_of(e.transfers, use_value));
  out.set("notes", output::list_of(e.notes));
  out.set("assumptions", output::list_of(e.assumptions));
  out.set("defaults", value{value::object(e.defaults)});
  out.set("constants", output::list_of(e.constants, [&](const input_constant& c) {
            value row = constant_value(c);
            if (e.not_binding) row.set("binding", !not_binding(e, c.pointer));
            return row;
          }));
  if (e.sensitivities.empty() && e.turning_points.empty()) return out;
  out.set("sensitivities", output::list_of(e.sensitivities, [](const sensitivity& s) {
            value row = constant_value(s.what);
            row.set("change_at_minus_10_percent", optional_number(s.less));
            row.set("change_at_plus_10_percent", optional_number(s.more));
            return row;
          }));
  out.set("turning_points", output::list_of(e.turning_points, [](const turning_point& t) {
            value row = constant_value(t.what);
            row.set("factor", t.factor);
            row.set("from_bound", t.from);
            row.set("to_bound", t.to);
            return row;
          }));
  return out;
}

std::string explanation_table(const explanation& e) {
  const std::string_view key = unit_key(e.metric);
  const std::string name = output::one_line(e.scenario, table_columns - 36);
  std::string out = e.metric.empty() ? fmt::format("{}: cannot run\n", name)
                                     : fmt::format("{}: {} = {}\n", name, e.metric,
                                                   e.amount ? output::scaled(key, *e.amount) : "nothing");
  for (const factor& f : e.factors)
    out += fmt::format("  {} {:<28} {}\n", f.power < 0 ? '/' : 'x', f.name, factor_text(f));
  if (e.band)
    out += fmt::format("  90 % band: {} .. {}\n", output::scaled(key, e.band->first),
                       output::scaled(key, e.band->second));
  out += bullets("band", e.band_reasons);
  const std::string_view apart = unit_key(e.taken_apart);
  for (const cause_tree& t : e.trees) out += tree_text({t.title, called(e, t.whole)}, apart);
  out += uses_text(e, "kernels that take the most time", e.kernels, 10);
  out += uses_text(e, "transfers that take the most time", e.transfers, 6);
  out += sensitivity_text(e);
  std::vector<std::string> assumed = e.notes;
  assumed.insert(assumed.end(), e.assumptions.begin(), e.assumptions.end());
  out += bullets("notes", assumed);
  if (!e.defaults.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [pointer, v] : e.defaults) {
      std::string text = to_json(v, 0);
      if (v.string()) text = *v.string();
      rows.push_back({pointer, output::one_line(text, 40)});
    }
    out += "\nassumed by default\n" + output::grid(rows, 2);
  }
  return out + constants_text(e);
}

}  // namespace nvlsim
