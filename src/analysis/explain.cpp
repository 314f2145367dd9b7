#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain_latency.hpp"
#include "analysis/metric_amounts.hpp"
#include "analysis/time_slices.hpp"
#include "analysis/worker_time.hpp"
#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/link_use.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/analysis/post_training_metrics.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

std::optional<double> number_at(const value& section, std::string_view key) {
  const value* v = section.find(key);
  if (!v) return std::nullopt;
  if (const double* d = v->number()) return *d;
  if (const std::int64_t* i = v->integer()) return static_cast<double>(*i);
  return std::nullopt;
}

/// Splits "ttft_s.p99" into metric name and statistic.
std::pair<std::string, std::string> split_statistic(std::string_view metric) {
  const std::size_t dot = metric.find('.');
  if (dot == std::string_view::npos) return {std::string(metric), {}};
  return {std::string(metric.substr(0, dot)), std::string(metric.substr(dot + 1))};
}

bool is_bubble(const time_slice& s) { return s.kind == part_kind::idle; }
bool is_exposed_communication(const time_slice& s) { return is_communication(s.kind); }

class explainer {
 public:
  explainer(const scenario& s, const run_record& run, explanation& out)
      : s_(s), run_(run), r_(run.outcome), out_(out), counted_(counted_span_of(run)) {}

  /// Fills the factors of a metric by its formula, and takes the metric, or the first factor that has parts,
  /// apart.
  void explain(const metric& m, const std::string& name) {
    const metric_amounts amounts = amounts_of(s_, run_);
    const auto* served = std::get_if<inference_workload>(&s_.workload);
    if (m.parts == metric_parts::pools && served && served->prefill_pool) return by_pool(m, *served);
    const std::vector<formula_term> terms = terms_of(m.formula);
    for (const formula_term& t : terms)
      if (t.power < 0 && !(amounts.at(std::string(t.name)) > 0)) return no_time(t.name);
    for (const formula_term& t : terms)
      out_.factors.push_back({shown_name(t.name), amounts.at(std::string(t.name)), t.power});
    if (terms.empty()) return take_apart(name);
    for (const formula_term& t : terms)
      if (has_parts(t.name)) return take_apart(std::string(t.name));
  }

 private:
  using taker = void (explainer::*)(const std::string&);
  /// What takes a metric with these parts apart; null for latencies and for what has no parts.
  static taker taker_of(metric_parts p);
  /// The same of a factor that is no metric.
  static taker taker_of_factor(std::string_view name);

  /// The parts of a metric, or of the distribution that it is a statistic of.
  metric_parts parts_of(std::string_view name) const {
    const metric* m = find_metric(metric_kind_of(s_), name);
    return m ? m->parts : metric_parts::none;
  }
  bool has_parts(std::string_view name) const {
    const metric_parts p = parts_of(name);
    return taker_of(p) || taker_of_factor(name) || is_latency(p);
  }

  void take_apart(const std::string& name) {
    const metric_parts p = parts_of(name);
    if (is_latency(p)) return latency(name, p);
    if (const taker take = taker_of(p) ? taker_of(p) : taker_of_factor(name)) return (this->*take)(name);
    out_.notes.emplace_back("counted directly: it has no factors and no parts");
  }

  /// Where all time counts, that is the makespan.
  std::string shown_name(std::string_view name) const {
    if (name != "counted_time_s" || !counted_.whole) return std::string(name);
    return std::string(metric_with(metric_kind::inference, metric_parts::worker_time).name);
  }
  void no_time(std::string_view divisor) {
    out_.notes.push_back(divisor == "arrival_time_s" || divisor == "counted_time_s"
                             ? fmt::format("no time passes between the first and the last {} that counts",
                                           divisor == "arrival_time_s" ? "arrival" : "end")
                             : fmt::format("{} is 0", divisor));
  }

  double makespan() const { return run_.times.makespan.base(); }
  void tree(std::string title, cause whole) { out_.trees.push_back({std::move(title), std::move(whole)}); }

  void time(const std::string& what) {
    out_.taken_apart = what;
    const auto slices = slices_of_gpus(run_.planned, run_.times);
    tree("by phase", by_phase(slices, what));
    tree("by bound", by_resource(slices, what));
    tree("critical path", by_phase(critical_path(run_.planned, run_.times), what));
    uses(slices, makespan());
  }
  void uses(const std::vector<time_slice>& slices, double whole_s) {
    out_.kernels = uses_of_time(slices, false, whole_s);
    std::vector<time_slice> with_hidden = slices;
    for (time_slice& s : side_slices(run_.planned)) with_hidden.push_back(std::move(s));
    out_.transfers = uses_of_time(with_hidden, true, whole_s);
  }

  void counted_time(const std::string& what) { time_of_workers(shown_name(what), counted_.from, counted_.to); }
  void whole_time(const std::string& what) { time_of_workers(what, 0, makespan()); }
  /// Time of the workers of a served load, then of its median request and of one in a hundred.
  void time_of_workers(const std::string& what, double from, double to) {
    out_.taken_apart = what;
    const auto slices = slices_of_workers(run_.planned, run_.times, from, to);
    tree("by phase", by_phase(slices, what));
    tree("by bound", by_resource(slices, what));
    uses(slices, to - from);
    const std::string_view whole = metric_with(metric_kind::inference, metric_parts::request_time).name;
    for (const char* statistic : {"p50", "p99"})
      if (const auto wanted = number_at(*r_.metrics.find(whole), statistic))
        tree("by stage", by_stage(parts_of_latency(run_, metric_parts::request_time, statistic, *wanted),
                                  fmt::format("{}.{}", whole, statistic)));
  }

  void bubble(const std::string& what) { share_of_time(what, is_bubble); }
  void communication(const std::string& what) { share_of_time(what, is_exposed_communication); }
  void share_of_time(const std::string& what, bool (*keep)(const time_slice&)) {
    out_.taken_apart = what;
    auto slices = slices_of_gpus(run_.planned, run_.times);
    std::erase_if(slices, [&](const time_slice& s) { return !keep(s); });
    tree("by kind", by_kind(slices, what));
    tree("by bound", by_resource(slices, what));
    uses(slices, makespan());
  }

  void energy(const std::string& what) {
    out_.taken_apart = what;
    cause whole{what, 0, {}, {}};
    for (const char* consumer : {"gpus_J", "cpus_J", "trays_and_switches_J", "supply_losses_J"})
      if (const auto x = number_at(r_.energy, consumer)) {
        whole.amount += *x;
        whole.parts.push_back({consumer, *x, {}});
      }
    tree("by consumer", std::move(whole));
  }

  void memory(const std::string& what) {
    out_.taken_apart = what;
    cause whole{what, 0, {}, {}};
    if (const value* items = r_.memory.find("items"); items && items->items())
      for (const value& i : *items->items()) {
        const double size = number_at(i, "bytes").value_or(0);
        const value* reason = i.find("reason");
        whole.amount += size;
        whole.parts.push_back(
            {*i.find("name")->string(), size, reason && reason->string() ? *reason->string() : ""});
      }
    tree("by use", std::move(whole));
  }

  void by_pool(const metric& m, const inference_workload& w) {
    const double all = w.gpus(), decode = static_cast<double>(w.gpus_per_replica()) * w.replicas;
    out_.taken_apart = m.name;
    tree("by pool", {std::string(m.name), all, {}, {{"prefill", all - decode, {}}, {"decode", decode, {}}}});
  }

  /// Little's law: requests in the system are those that come in a second, times the time that each stays.
  void time_in_system(const std::string&) {
    out_.notes.push_back(fmt::format("what that time is spent on: {}.mean",
                                     metric_with(metric_kind::inference, metric_parts::request_time).name));
  }

  /// "ttft_s.p99".
  void latency(const std::string& what, metric_parts of) {
    const auto [name, statistic] = split_statistic(what);
    const value* d = r_.metrics.find(name);
    const auto wanted = d ? number_at(*d, statistic) : std::nullopt;
    if (!wanted || run_.requests.empty()) return;
    const latency_parts parts = parts_of_latency(run_, of, statistic, *wanted);
    out_.taken_apart = what;
    const std::vector<time_slice> slices = parts.slices();
    tree("by stage", by_stage(parts, what));
    tree("by phase", by_phase(slices, what));
    tree("by bound", by_resource(slices, what));
    if (!parts.note.empty()) out_.notes.push_back(parts.note);
    out_.kernels = uses_of_time(slices, false, *wanted);
    out_.transfers = uses_of_time(slices, true, *wanted);
  }

  const scenario& s_;
  const run_record& run_;
  const result& r_;
  explanation& out_;
  counted_span counted_;
};

explainer::taker explainer::taker_of(metric_parts p) {
  switch (p) {
    case metric_parts::gpu_time:
      return &explainer::time;
    case metric_parts::worker_time:
      return &explainer::whole_time;
    case metric_parts::communication:
      return &explainer::communication;
    case metric_parts::energy:
      return &explainer::energy;
    case metric_parts::memory:
      return &explainer::memory;
    case metric_parts::requests_in_system:
      return &explainer::time_in_system;
    default:
      return nullptr;
  }
}

explainer::taker explainer::taker_of_factor(std::string_view name) {
  if (name == "counted_time_s") return &explainer::counted_time;
  if (name == "waiting_for_stages_s") return &explainer::bubble;
  if (name == "energy_J") return &explainer::energy;
  return nullptr;
}

/// What a metric that is null lacks.
std::string why_nothing(const scenario& s, const result& r, const metric& m) {
  const bool list_price = m.null_when.find("price") != std::string_view::npos;
  if (m.unit == metric_unit::usd && list_price && !s.platform.price.per_gpu)
    return "no value: " + s.platform.price.note;
  if (!m.null_when.empty()) return fmt::format("no value: {}", m.null_when);
  return fmt::format("no value in this result{}{}", r.reasons.empty() ? "" : ": ",
                     r.reasons.empty() ? "" : r.reasons.front());
}

}  // namespace

std::vector<std::string> explained_metrics(const result& r) {
  std::vector<std::string> out;
  for (const auto& [key, v] : *r.metrics.members()) out.push_back(key);
  return out;
}

std::string main_metric(const result& r) {
  for (const metric_kind k : metric_kinds)
    if (const std::string_view first = metrics_of(k).front().name; r.metrics.find(first))
      return std::string(first);
  return {};
}

namespace {

/// Suggests the metric that was probably meant, or lists all of them.
[[noreturn]] void refuse_metric(const result& r, std::string_view metric) {
  const auto [name, statistic] = split_statistic(metric);
  const std::vector<std::string> known = explained_metrics(r);
  std::string meant = nearest(name, known);
  if (meant.empty() && name.size() > 1)  // a name without its unit
    for (const std::string& k : known)
      if (meant.empty() && k.starts_with(name)) meant = k;
  if (const value* v = r.metrics.find(meant); v && v->members() && metric.find('.') != std::string_view::npos) {
    std::vector<std::string> statistics;
    for (const auto& [key, x] : *v->members()) statistics.push_back(key);
    const std::string other = nearest(statistic, statistics);
    meant += '.' + (other.empty() ? std::string("p50") : other);
  }
  std::string what = metric.empty() ? std::string("the metric name is empty")
                                    : fmt::format("{} has no metric {}", r.name, in_quotes(metric));
  if (meant.empty() || meant == metric) {
    what += fmt::format("; it has {}", fmt::join(known, ", "));
    meant.clear();
  }
  throw input_error({{"", "", std::move(what), std::move(meant)}});
}

}  // namespace

explanation explain(const scenario& s, const run_record& run, std::string_view metric) {
  const result& r = run.outcome;
  auto [name, statistic] = split_statistic(metric);
  const value* v = r.metrics.find(name);
  const bool distribution = v && v->members();
  if (distribution && statistic.empty()) statistic = "mean";
  if (!v || metric.ends_with('.') || (distribution ? !v->find(statistic) : !statistic.empty()))
    refuse_metric(r, metric);
  explanation out;
  out.scenario = r.name;
  out.domain_link = domain_link(s.platform);
  out.metric = distribution ? fmt::format("{}.{}", name, statistic) : name;
  out.amount = distribution ? number_at(*v, statistic) : number_at(r.metrics, name);
  const metric_kind kind = metric_kind_of(s);
  const auto& m = *find_metric(kind, name);
  const bool counts_gpus = m.parts == metric_parts::pools;
  if (!counts_gpus && kind == metric_kind::jobs)
    out.notes.emplace_back(
        "breakdown.jobs of the result has each job beside others and alone; what a job spends its "
        "time on is explained from a scenario of its own");
  else if (out.amount && !counts_gpus && kind == metric_kind::post_training) explain_loop(out, r);
  else if (out.amount && r.breakdown.find("gpu_time") &&
           (m.needs == metric_needs::training_job || m.needs == metric_needs::nothing))
    explain_operation(out, r);
  else if (out.amount && m.needs == metric_needs::queue) explain_operation(out, r);
  else if (out.amount && m.needs == metric_needs::facility)
    out.notes.emplace_back(
        "energy.facility and cost.facility of the result have the powers, limits and prices that it follows from");
  else if (out.amount && m.needs == metric_needs::fleet)
    out.notes.emplace_back(
        "breakdown.fleet of the result has it by service, and breakdown.replica_curves what a replica achieves by "
        "load");
  else if (out.amount) explainer(s, run, out).explain(m, out.metric);
  else out.notes.push_back(why_nothing(s, r, m));
  return out;
}

}  // namespace nvlsim
