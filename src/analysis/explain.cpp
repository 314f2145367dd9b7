#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

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
    if (m.name == "gpus" && served && served->prefill_pool) return gpus_by_pool(*served);
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
  struct part_taker {
    std::string_view name;
    taker take;
  };
  static std::span<const part_taker> takers();
  static const part_taker* find_taker(std::string_view name) {
    for (const part_taker& t : takers())
      if (t.name == name) return &t;
    return nullptr;
  }
  static bool has_parts(std::string_view name) { return find_taker(name) || is_latency(stem_of(name)); }
  static std::string_view stem_of(std::string_view name) { return name.substr(0, name.find('.')); }

  void take_apart(const std::string& name) {
    if (const part_taker* t = find_taker(name)) return (this->*t->take)(name);
    if (is_latency(stem_of(name))) return latency(name);
    out_.notes.emplace_back("counted directly: it has no factors and no parts");
  }

  /// Where all time counts, that is the makespan.
  std::string shown_name(std::string_view name) const {
    return name == "counted_time_s" && counted_.whole ? "makespan_s" : std::string(name);
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
    for (const char* statistic : {"p50", "p99"})
      if (const auto wanted = number_at(*r_.metrics.find("e2e_s"), statistic))
        tree("by stage",
             by_stage(parts_of_latency(run_, "e2e_s", statistic, *wanted), fmt::format("e2e_s.{}", statistic)));
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

  void gpus_by_pool(const inference_workload& w) {
    const double all = w.gpus(), decode = static_cast<double>(w.gpus_per_replica()) * w.replicas;
    out_.taken_apart = "gpus";
    tree("by pool", {"gpus", all, {}, {{"prefill", all - decode, {}}, {"decode", decode, {}}}});
  }

  /// Little's law: requests in the system are those that come in a second, times the time that each stays.
  void time_in_system(const std::string&) { out_.notes.emplace_back("what that time is spent on: e2e_s.mean"); }

  /// "ttft_s.p99".
  void latency(const std::string& what) {
    const auto [name, statistic] = split_statistic(what);
    const value* d = r_.metrics.find(name);
    const auto wanted = d ? number_at(*d, statistic) : std::nullopt;
    if (!wanted || run_.requests.empty()) return;
    const latency_parts parts = parts_of_latency(run_, name, statistic, *wanted);
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

/// Metrics and factors that have parts, beside latencies.
std::span<const explainer::part_taker> explainer::takers() {
  static constexpr part_taker all[] = {{"step_time_s", &explainer::time},
                                       {"time_s", &explainer::time},
                                       {"makespan_s", &explainer::whole_time},
                                       {"counted_time_s", &explainer::counted_time},
                                       {"waiting_for_stages_s", &explainer::bubble},
                                       {"exposed_communication_s", &explainer::communication},
                                       {"energy_per_step_J", &explainer::energy},
                                       {"energy_J", &explainer::energy},
                                       {"memory_peak_bytes", &explainer::memory},
                                       {"time_in_system_s", &explainer::time_in_system}};
  return all;
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

metric_kind kind_of(const scenario& s) {
  if (std::holds_alternative<training_workload>(s.workload)) return metric_kind::training;
  if (std::holds_alternative<shared_workload>(s.workload)) return metric_kind::jobs;
  if (std::holds_alternative<operation_case>(s.workload)) return metric_kind::operation;
  if (std::holds_alternative<post_training_case>(s.workload)) return metric_kind::post_training;
  return std::holds_alternative<inference_workload>(s.workload) ? metric_kind::inference : metric_kind::collective;
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
  const auto& m = *find_metric(kind_of(s), name);
  if (m.name != "gpus" && kind_of(s) == metric_kind::jobs)
    out.notes.emplace_back(
        "breakdown.jobs of the result has each job beside others and alone; what a job spends its "
        "time on is explained from a scenario of its own");
  else if (out.amount && m.name != "gpus" && kind_of(s) == metric_kind::post_training) explain_loop(out, r);
  else if (out.amount && r.breakdown.find("gpu_time") &&
           (m.needs == metric_needs::training_job || m.needs == metric_needs::nothing))
    explain_operation(out, r);
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
