#include "nvlsim/analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim::analysis {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
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
  if (!std::isfinite(change)) return std::nullopt;
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
  const std::string hint = nearest(metric, names);
  return fmt::format("{} is not in {}{}", metric, side,
                     hint.empty() ? "" : fmt::format("; did you mean {}?", hint));
}

gate_outcome judge(const gate& g, const std::string& scenario, const result& a, const result& b) {
  gate_outcome out{g, change_of(scenario, g.metric, a, b), true, {}};
  const metric_change& on = out.on;
  if (!on.b) out.reason = missing("B", b, g.metric);
  else if (!g.relative)
    out.failed = holds(g.op, *on.b, g.threshold), out.reason = fmt::format("B is {:.6g}", *on.b);
  else if (!on.a) out.reason = missing("A", a, g.metric);
  else if (!on.change) out.reason = fmt::format("{} is 0 in A, so a relative change is undefined", g.metric);
  else {
    out.failed = holds(g.op, *on.change, g.threshold);
    out.reason = fmt::format("changed by {:+.2f} %, from {:.6g} to {:.6g}", *on.change * 100, *on.a, *on.b);
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

}  // namespace

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

comparison compare(std::span<const result> a, std::span<const result> b, std::span<const gate> gates) {
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
    for (const pairing& p : pairs)
      if (p.has(g.metric) || !known || p.none_ran()) out.gates.push_back(judge(g, p.scenario, *p.a, *p.b));
    if (pairs.empty())
      out.gates.push_back({g, {"", g.metric, {}, {}, {}}, true, "A and B have no scenario in common"});
  }
  return out;
}

}  // namespace nvlsim::analysis
