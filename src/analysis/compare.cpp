#include "nvlsim/analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/units/units.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim::analysis {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/// The dimension of a unit as text in files, and the number of its base units in one.
struct unit_scale {
  dimension dims;
  double base;
};

std::optional<unit_scale> scale_of(metric_unit u) {
  switch (u) {
    case metric_unit::second:
      return unit_scale{seconds::dim_type::value, 1};
    case metric_unit::byte:
      return unit_scale{bytes::dim_type::value, 1};
    case metric_unit::bytes_per_s:
      return unit_scale{bandwidth::dim_type::value, 1};
    case metric_unit::tflops:
      return unit_scale{flop_rate::dim_type::value, 1e12};
    case metric_unit::watt:
      return unit_scale{watts::dim_type::value, 1};
    case metric_unit::joule:
      return unit_scale{joules::dim_type::value, 1};
    case metric_unit::usd:
      return unit_scale{dollars::dim_type::value, 1};
    default:
      return std::nullopt;
  }
}

/// A number with a unit in the unit of a metric. Empty if the unit is not one of it.
std::optional<double> in_unit_of(const nvlsim::metric& m, double x, std::string_view unit) {
  if (unit == name(m.unit)) return x;
  const auto scale = scale_of(m.unit);
  const parsed_quantity q =
      scale ? parse_quantity(fmt::format("{:.17g} {}", x, unit), scale->dims) : parsed_quantity{0, "no unit"};
  if (!q.ok()) return std::nullopt;
  return q.base / scale->base;
}

/// ", such as GB": how the unit may be written.
std::string examples_of(metric_unit u) {
  switch (u) {
    case metric_unit::second:
      return ", such as ms, s, h or d";
    case metric_unit::byte:
      return ", such as GB or GiB";
    case metric_unit::watt:
      return ", such as W or kW";
    case metric_unit::joule:
      return ", such as J or kWh";
    case metric_unit::fraction:
    case metric_unit::count:
      return ", which has none";
    default:
      return fmt::format(", such as {}", name(u));
  }
}

/// The metric that a wrong name stands for; "memory" for "memory_peak_bytes". Empty if none is near.
std::string metric_like(const std::string& wrong) {
  std::vector<std::string> names;
  for (const metric_kind k : metric_kinds)
    for (const nvlsim::metric& m : metrics_of(k)) names.emplace_back(m.name);
  const auto longer =
      std::find_if(names.begin(), names.end(), [&](const std::string& n) { return n.starts_with(wrong + "_"); });
  return longer != names.end() ? *longer : nearest(wrong, names);
}

/// Parses a rule and reports its first error.
class gate_parser {
 public:
  gate_parser(std::string_view text, diagnostics& problems, std::string_view option)
      : text_(text), problems_(problems), option_(option) {}

  gate parse() {
    gate g;
    g.text = std::string(text_);
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    g.metric = std::string(text_.substr(begin, at_ - begin));
    if (g.metric.empty()) return fail("a metric, such as step_time_s"), g;
    blanks();
    if (!comparison_sign(g.op)) return fail("one of > >= < <="), g;
    blanks();
    if (!number(g.threshold)) return fail("a number, such as +2%"), g;
    blanks();
    g.relative = take('%');
    if (g.relative) g.threshold /= 100;
    else if (at_ < text_.size() && !unit(g)) return g;
    blanks();
    if (at_ < text_.size()) fail("the end of the rule");
    return g;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }
  bool comparison_sign(relation& op) {
    if (take('>')) op = take('=') ? relation::at_least : relation::more;
    else if (take('<')) op = take('=') ? relation::at_most : relation::less;
    else return false;
    return true;
  }
  bool number(double& out) {
    std::size_t digits = at_;
    const bool plus = digits < text_.size() && text_[digits] == '+';
    if (plus) ++digits;
    if (plus && digits < text_.size() && text_[digits] == '-') return false;
    const char* end = text_.data() + text_.size();
    const auto [stop, status] = std::from_chars(text_.data() + digits, end, out);
    if (status != std::errc() || !std::isfinite(out)) return false;
    at_ = static_cast<std::size_t>(stop - text_.data());
    return true;
  }
  /// Takes the unit of the number, if the metric has units. False after a wrong one.
  bool unit(gate& g) {
    std::string_view text = text_.substr(at_);
    while (text.ends_with(' ')) text.remove_suffix(1);
    const nvlsim::metric* m = nvlsim::find_metric(g.metric);
    if (text.empty() || !(std::isalpha(static_cast<unsigned char>(text.front())))) return true;
    if (!m) return known(g.metric);
    const auto x = in_unit_of(*m, g.threshold, text);
    if (!x) return fail(fmt::format("a unit of {}{}", g.metric, examples_of(m->unit))), false;
    g.threshold = *x;
    at_ = text_.size();
    return true;
  }
  /// A name that is none of a metric but near one is told as that, not as a unit too many.
  bool known(const std::string& metric) {
    const std::string hint = metric_like(metric);
    if (hint.empty()) return true;
    problems_.add(std::string(option_), "", fmt::format("\"{}\": unknown metric \"{}\"", text_, metric), hint);
    return false;
  }
  void fail(std::string_view expected) {
    const std::string found = at_ < text_.size() ? fmt::format("\"{}\"", text_.substr(at_)) : "the end";
    problems_.add(std::string(option_), "",
                  fmt::format("\"{}\", column {}: expected {}, found {}", text_, at_ + 1, expected, found));
  }

  std::string_view text_;
  diagnostics& problems_;
  std::string_view option_;
  std::size_t at_ = 0;
};

std::optional<double> number_of(const value* v) {
  if (v && v->number()) return *v->number();
  if (v && v->integer()) return static_cast<double>(*v->integer());
  return std::nullopt;
}

/// Names of all metrics. Members of a distribution are written "ttft_s.p99".
void add_names(const value& metrics, std::vector<std::string>& names) {
  const auto add = [&](std::string n) {
    if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(std::move(n));
  };
  for (const auto& [key, v] : *metrics.members()) {
    if (!v.members()) add(key);
    else
      for (const auto& member : *v.members()) add(key + '.' + member.first);
  }
}

/// Finds a metric by its name; if there is none, a member of a distribution ("ttft_s.p99").
const value* find_metric(const value& metrics, std::string_view name) {
  if (const value* v = metrics.find(name)) return v;
  const std::size_t dot = name.find('.');
  const value* v = dot == std::string_view::npos ? nullptr : metrics.find(name.substr(0, dot));
  return v ? v->find(name.substr(dot + 1)) : nullptr;
}

std::optional<double> change_of(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  if (*a == *b) return 0.0;
  const double change = (*b - *a) / std::abs(*a);
  if (!std::isfinite(100 * change)) return std::nullopt;  // as a percentage
  return change;
}

metric_change change_of(const std::string& scenario, const std::string& metric, const result& a, const result& b) {
  metric_change out{scenario, metric, number_of(find_metric(a.metrics, metric)),
                    number_of(find_metric(b.metrics, metric)), std::nullopt};
  out.change = change_of(out.a, out.b);
  return out;
}

bool holds(relation op, double x, double threshold) {
  switch (op) {
    case relation::more:
      return x > threshold;
    case relation::at_least:
      return x >= threshold;
    case relation::less:
      return x < threshold;
    case relation::at_most:
      return x <= threshold;
  }
  return false;
}

/// Says why a side has no number for a metric.
std::string missing(std::string_view side, const result& r, const std::string& metric) {
  if (r.status == run_status::infeasible || r.status == run_status::error)
    return fmt::format("{} is {}: {}", side, name(r.status), fmt::join(r.reasons, "; "));
  const value* v = find_metric(r.metrics, metric);
  if (v && v->is_null()) return fmt::format("{} is null in {}", metric, side);
  if (v && v->members()) return fmt::format("{} is a distribution in {}: name one of its members", metric, side);
  for (const metric_kind k : metric_kinds)
    if (const nvlsim::metric* m = find_metric(k, metric))
      return fmt::format("{} is not in {}: it is a metric of {}", metric, side, scenarios_with(k, *m));
  std::vector<std::string> names;
  add_names(r.metrics, names);
  std::string hint = nearest(metric, names);
  if (hint.empty()) hint = metric_like(metric);  // of another kind of scenario
  return fmt::format("{} is not in {}{}", metric, side,
                     hint.empty() ? "" : fmt::format("; did you mean {}?", hint));
}

gate_outcome judge(const gate& g, const std::string& scenario, const result& a, const result& b) {
  gate_outcome out{g, change_of(scenario, g.metric, a, b), true, {}};
  const metric_change& on = out.on;
  if (!on.b) out.reason = missing("B", b, g.metric);
  else if (!g.relative)
    out.failed = holds(g.op, *on.b, g.threshold), out.reason = "B is " + with_unit(g.metric, *on.b);
  else if (!on.a) out.reason = missing("A", a, g.metric);
  else if (!on.change) out.reason = fmt::format("{} is 0 in A, so a relative change is undefined", g.metric);
  else {
    out.failed = holds(g.op, *on.change, g.threshold);
    out.reason = fmt::format("changed by {:+.2f} %, from {} to {}", *on.change * 100, with_unit(g.metric, *on.a),
                             with_unit(g.metric, *on.b));
  }
  return out;
}

struct pairing {
  std::string scenario;
  const result* a;
  const result* b;

  bool has(std::string_view metric) const {
    return find_metric(a->metrics, metric) || find_metric(b->metrics, metric);
  }
  static bool ran(const result& r) { return r.status == run_status::ok || r.status == run_status::saturated; }
  bool none_ran() const { return !ran(*a) && !ran(*b); }
  bool same_name() const { return a->name == b->name; }
  std::vector<std::string> reasons() const {
    std::vector<std::string> out;
    for (const auto& [side, r] : {std::pair{"A", a}, {"B", b}})
      if (!ran(*r))
        for (const std::string& why : r->reasons) out.push_back(fmt::format("{}: {}", side, why));
    return out;
  }
};

const result* find_named(std::span<const result> results, const std::string& name) {
  const auto it = std::find_if(results.begin(), results.end(), [&](const result& r) { return r.name == name; });
  return it == results.end() ? nullptr : &*it;
}

void check_names(std::string_view side, std::span<const result> results, diagnostics& problems) {
  for (std::size_t i = 0; i < results.size(); ++i)
    if (find_named(results, results[i].name) != &results[i])
      problems.add(std::string(side), "", fmt::format("two results have the name \"{}\"", results[i].name));
}

std::vector<pairing> pair_up(std::span<const result> a, std::span<const result> b, comparison& out) {
  if (a.size() == 1 && b.size() == 1) {
    const std::string& from = a[0].name;
    const std::string& to = b[0].name;
    return {{from == to ? from : fmt::format("{} -> {}", from, to), &a[0], &b[0]}};
  }
  std::vector<pairing> pairs;
  for (const result& r : a) {
    if (const result* other = find_named(b, r.name)) pairs.push_back({r.name, &r, other});
    else out.only_in_a.push_back(r.name);
  }
  for (const result& r : b)
    if (!find_named(a, r.name)) out.only_in_b.push_back(r.name);
  return pairs;
}

/// The gates that hold what A has against what B has.
class vanishing {
 public:
  explicit vanishing(std::span<const std::string> allowed) : allowed_(allowed) {}

  void add(comparison& out, const std::string& gone) const {
    if (!may(gone)) fail(out, {gone, "", {}, {}, {}}, "the scenario is in A and not in B");
  }
  /// Every metric of a pair that has a number in A and none in B; a distribution once.
  void add(comparison& out, const pairing& p) const {
    if (!p.same_name() || !p.ran(*p.a) || !p.ran(*p.b)) return;
    std::string last;
    for (const metric_change& m : out.rows) {
      const std::string whole = m.metric.substr(0, m.metric.find('.'));
      if (m.scenario != p.scenario || !m.a || m.b || whole == last || may(p.scenario) || may(whole) ||
          may(m.metric))
        continue;
      last = whole;
      fail(out, m, fmt::format("{} is {} in A and B has none", m.metric, with_unit(m.metric, *m.a)));
    }
  }

 private:
  bool may(const std::string& name) const {
    return std::any_of(allowed_.begin(), allowed_.end(), [&](const auto& n) { return n == name || n == "*"; });
  }
  static void fail(comparison& out, metric_change on, std::string why) {
    gate rule;
    rule.text = nothing_vanishes;
    rule.metric = on.metric;
    out.gates.push_back({std::move(rule), std::move(on), true, std::move(why)});
  }

  std::span<const std::string> allowed_;
};

std::string version_of(const result& r) {
  const value* v = r.simulation.members() ? r.simulation.find("version") : nullptr;
  return v && v->string() ? *v->string() : std::string();
}

/// Says that A was made from other inputs or by another version, although nothing got worse.
void add_remarks(comparison& out, std::span<const pairing> pairs, bool gated) {
  for (const pairing& p : pairs) {
    const std::string a = version_of(*p.a), b = version_of(*p.b);
    if (a == b || a.empty() || b.empty()) continue;
    out.remarks.push_back(fmt::format("A was made by nvlsim {}, B by {}", a, b));
    break;
  }
  const auto stale = [](const scenario_pair& s) { return !s.inputs.empty(); };
  const bool like = std::all_of(pairs.begin(), pairs.end(), [](const pairing& p) { return p.same_name(); });
  const auto others = std::count_if(out.scenarios.begin(), out.scenarios.end(), stale);
  if (gated && like && others > 0 && out.passed())
    out.remarks.push_back(fmt::format(
        "the baseline A is stale: {} of {} scenarios have other inputs in B; no gate failed, so renew it", others,
        pairs.size()));
}

}  // namespace

std::string with_unit(const std::string& metric, double x) {
  const nvlsim::metric* m = nvlsim::find_metric(metric);
  const std::string_view unit = m && m->unit != metric_unit::fraction ? name(m->unit) : std::string_view();
  return fmt::format("{:.6g}{}{}", x, unit.empty() ? "" : " ", unit);
}

gate parse_gate(std::string_view text, diagnostics& problems, std::string_view option) {
  return gate_parser(text, problems, option).parse();
}

bool holds(const gate& g, double x) { return holds(g.op, x, g.threshold); }

std::vector<gate> parse_gates(std::span<const std::string> texts) {
  diagnostics problems;
  std::vector<gate> out;
  for (const std::string& t : texts) out.push_back(parse_gate(t, problems));
  problems.throw_if_any();
  return out;
}

bool comparison::passed() const {
  return std::none_of(gates.begin(), gates.end(), [](const gate_outcome& g) { return g.failed; });
}

comparison compare(std::span<const result> a, std::span<const result> b, std::span<const gate> gates,
                   std::span<const std::string> may_vanish) {
  diagnostics problems;
  check_names("A", a, problems);
  check_names("B", b, problems);
  problems.throw_if_any();
  comparison out;
  const std::vector<pairing> pairs = pair_up(a, b, out);
  for (const pairing& p : pairs) {
    out.scenarios.push_back(
        {p.scenario, p.a->status, p.b->status, changed_inputs(p.a->inputs, p.b->inputs), p.reasons()});
    std::vector<std::string> names;
    add_names(p.a->metrics, names);
    add_names(p.b->metrics, names);
    for (const std::string& n : names) out.rows.push_back(change_of(p.scenario, n, *p.a, *p.b));
  }
  for (const gate& g : gates) {
    const bool known = std::any_of(pairs.begin(), pairs.end(), [&](const pairing& p) { return p.has(g.metric); });
    const bool ran = std::any_of(pairs.begin(), pairs.end(), [](const pairing& p) { return !p.none_ran(); });
    if (!known && ran) {
      const pairing& like =
          *std::find_if(pairs.begin(), pairs.end(), [](const pairing& p) { return !p.none_ran(); });
      out.gates.push_back(judge(g, "", *like.a, *like.b));
      continue;
    }
    for (const pairing& p : pairs)
      if (p.has(g.metric) || p.none_ran()) out.gates.push_back(judge(g, p.scenario, *p.a, *p.b));
    if (pairs.empty())
      out.gates.push_back({g, {"", g.metric, {}, {}, {}}, true, "A and B have no scenario in common"});
  }
  if (!gates.empty()) {
    const vanishing v(may_vanish);
    for (const std::string& gone : out.only_in_a) v.add(out, gone);
    for (const pairing& p : pairs) v.add(out, p);
  }
  add_remarks(out, pairs, !gates.empty());
  return out;
}

}  // namespace nvlsim::analysis
