#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain_latency.hpp"
#include "analysis/lane_time.hpp"
#include "analysis/time_slices.hpp"
#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/training_metrics.hpp"
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

/// Whether the slice is a wait for a transfer between pipeline stages, which is part of the step's idle time.
bool waits_for_stage(const time_slice& s) { return s.kind == work_kind::pp && s.phase == waiting_phase; }

class explainer {
 public:
  explainer(const scenario& s, const run_record& run, explanation& out)
      : s_(s), run_(run), r_(run.outcome), out_(out) {}

  void explain(const std::string& metric) {
    if (const auto* t = std::get_if<training_workload>(&s_.workload)) training(*t, metric);
    else if (const auto* i = std::get_if<inference_workload>(&s_.workload)) inference(*i, metric);
    else collective(std::get<collective_workload>(s_.workload), metric);
  }

 private:
  double metric(std::string_view key) const { return number_at(r_.metrics, key).value_or(0); }
  double makespan() const { return run_.times.makespan.base(); }
  void times(std::string name, double amount) { out_.factors.push_back({std::move(name), amount, 1}); }
  void over(std::string name, double amount) { out_.factors.push_back({std::move(name), amount, -1}); }
  void tree(std::string title, cause whole) { out_.trees.push_back({std::move(title), std::move(whole)}); }

  void time(const std::string& what) {
    out_.apart = what;
    const auto slices = slices_of_gpus(run_.work, run_.times);
    tree("by phase", by_phase(slices, what));
    tree("by bound", by_bound(slices, what));
    tree("critical path", by_phase(critical_path(run_.work, run_.times), what));
    uses(slices, makespan());
  }
  void uses(const std::vector<time_slice>& slices, double whole_s) {
    out_.kernels = uses_of_time(slices, false, whole_s);
    std::vector<time_slice> with_hidden = slices;
    for (time_slice& s : side_slices(run_.work)) with_hidden.push_back(std::move(s));
    out_.transfers = uses_of_time(with_hidden, true, whole_s);
  }

  bool on_clock() const { return run_.counted.has_value(); }
  /// The time in which requests count: the whole run unless the load has a warm-up or a tail.
  std::pair<double, double> counted() const { return run_.counted.value_or(std::pair{0.0, makespan()}); }

  /// Decomposes the time of a served load's replicas, then of its p50 and p99 requests.
  void time_of_lanes(const std::string& what, double from, double to) {
    if (!on_clock() && !run_.served->pools) {
      time(what);
    } else {
      out_.apart = what;
      const auto slices = slices_of_lanes(run_.work, run_.times, from, to);
      tree("by phase", by_phase(slices, what));
      tree("by bound", by_bound(slices, what));
      if (!on_clock()) tree("critical path", by_phase(critical_path(run_.work, run_.times), what));
      uses(slices, to - from);
    }
    for (const char* statistic : {"p50", "p99"})
      if (const auto wanted = number_at(*r_.metrics.find("e2e_s"), statistic))
        tree("by stage",
             by_stage(parts_of_latency(run_, "e2e_s", statistic, *wanted), fmt::format("e2e_s.{}", statistic)));
  }

  template <class Keep>
  void share_of_time(const std::string& what, Keep keep) {
    out_.apart = what;
    auto slices = slices_of_gpus(run_.work, run_.times);
    std::erase_if(slices, [&](const time_slice& s) { return !keep(s); });
    tree("by kind", by_kind(slices, what));
    tree("by bound", by_bound(slices, what));
    uses(slices, makespan());
  }

  void sum_of(const std::string& what, const value& section, std::initializer_list<std::string_view> keys) {
    out_.apart = what;
    cause whole{what, 0, {}, {}};
    for (const std::string_view k : keys)
      if (const auto x = number_at(section, k)) {
        whole.amount += *x;
        whole.parts.push_back({std::string(k), *x, {}});
      }
    tree("by consumer", std::move(whole));
  }
  void energy(const std::string& what) {
    sum_of(what, r_.energy, {"gpus_J", "cpus_J", "trays_and_switches_J", "supply_losses_J"});
  }
  double all_energy() const {
    double sum = 0;
    for (const char* k : {"gpus_J", "cpus_J", "trays_and_switches_J", "supply_losses_J"})
      sum += number_at(r_.energy, k).value_or(0);
    return sum;
  }

  void memory() {
    out_.apart = "memory_peak_bytes";
    cause whole{out_.apart, 0, {}, {}};
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

  void training(const training_workload& w, const std::string& m) {
    const double step = makespan(), gpus = static_cast<double>(w.par.gpus());
    const double tokens = static_cast<double>(w.global_batch_size * w.seq_length);
    const auto per_step = [&](const char* what, double amount) {
      times(what, amount);
      over("step_time_s", step);
      time("step_time_s");
    };
    if (m == "step_time_s") return time(m);
    if (m == "tokens_per_s") return per_step("tokens_per_step", tokens);
    if (m == "tokens_per_s_per_gpu") return over("gpus", gpus), per_step("tokens_per_step", tokens);
    if (m == "model_tflops_per_gpu" || m == "model_tflops_per_gpu_full_attention") {
      times("model_tflop_per_step", model_flops_per_step(s_.model, w, m == "model_tflops_per_gpu") / 1e12);
      over("gpus", gpus);
      over("step_time_s", step);
      return time("step_time_s");
    }
    if (m == "mfu") {
      times("model_flop_per_step", model_flops_per_step(s_.model, w, true));
      over("dense_peak_flop_per_s", s_.platform.gpu.dense_peak(w.gemm_precision).value_or(flop_rate{}).base());
      over("gpus", gpus);
      over("step_time_s", step);
      return time("step_time_s");
    }
    if (m == "bubble_fraction") {
      times("waiting_for_stages_s", metric(m) * step);
      over("step_time_s", step);
      return share_of_time("waiting_for_stages_s",
                           [](const time_slice& s) { return s.kind == work_kind::idle || waits_for_stage(s); });
    }
    if (m == "exposed_communication_s")
      return share_of_time(m, [](const time_slice& s) {
        if (waits_for_stage(s)) return false;  // counted as bubble
        return s.kind == work_kind::tp || s.kind == work_kind::cp || s.kind == work_kind::ep ||
               s.kind == work_kind::pp || s.kind == work_kind::dp;
      });
    if (m == "power_W_per_gpu") {
      times("gpus_J", metric("power_W_per_gpu") * step);
      over("step_time_s", step);
      return time("step_time_s");
    }
    if (m == "memory_peak_bytes") return memory();
    if (m == "energy_per_step_J") return energy(m);
    if (m == "cost_per_step_usd") return price("step_time_s", step, gpus), time("step_time_s");
    if (m == "time_to_train_s") {
      times("steps", w.token_budget.value_or(0) / tokens);
      times("step_time_s", step);
      return time("step_time_s");
    }
    if (m == "steps_to_train") {
      times("token_budget", w.token_budget.value_or(0));
      return over("tokens_per_step", tokens);
    }
    if (m == "energy_to_train_J") {
      times("steps", w.token_budget.value_or(0) / tokens);
      times("energy_per_step_J", metric("energy_per_step_J"));
      return energy("energy_per_step_J");
    }
    if (m == "cost_to_train_usd") {
      times("steps", w.token_budget.value_or(0) / tokens);
      price("step_time_s", step, gpus);
      return time("step_time_s");
    }
    if (m == "gpus") {
      for (const auto& [n, x] : {std::pair{"tp", w.par.tp}, {"pp", w.par.pp}, {"cp", w.par.cp}, {"dp", w.par.dp}})
        times(n, static_cast<double>(x));
      return;
    }
    unknown();
  }

  void price(std::string run, double seconds_of_run, double gpus) {
    times("price_usd_per_gpu_hour", s_.platform.price.per_gpu.value_or(dollar_rate{}).base() * 3600);
    times("gpus", gpus);
    times(std::move(run), seconds_of_run);
    over("seconds_per_hour", 3600);
  }

  void inference(const inference_workload& w, const std::string& m) {
    const auto [begin, end] = counted();
    const double run = end - begin, gpus = static_cast<double>(w.gpus());
    const bool is_rate =
        m.find("tokens_per_s") != std::string::npos || m.find("requests_per_s") != std::string::npos;
    const auto arrivals = run_.counted_arrivals.value_or(std::pair{begin, end});
    const double arriving = arrivals.second - arrivals.first;
    const bool of_arrivals = m == "offered_requests_per_s";
    if (is_rate && m != "output_tokens_per_s_per_user" && !((of_arrivals ? arriving : run) > 0)) {
      out_.notes.push_back(fmt::format("no time passes between the first and the last counted {}",
                                       of_arrivals ? "arrival" : "completion"));
      return;
    }
    const char* const span = run < makespan() ? "counted_time_s" : "makespan_s";
    const auto rate = [&, begin = begin, end = end](const char* what, bool per_gpu) {
      times(what, metric(m) * run * (per_gpu ? gpus : 1));
      if (per_gpu) over("gpus", gpus);
      over(span, run);
      time_of_lanes(span, begin, end);
    };
    if (m == "makespan_s") return time_of_lanes(m, 0, makespan());
    if (m == "output_tokens_per_s") return rate("output_tokens", false);
    if (m == "output_tokens_per_s_per_gpu") return rate("output_tokens", true);
    if (m == "total_tokens_per_s") return rate("total_tokens", false);
    if (m == "total_tokens_per_s_per_gpu") return rate("total_tokens", true);
    if (m == "requests_per_s") return rate("requests", false);
    if (of_arrivals) return times("arrivals", metric(m) * arriving), over("arrival_time_s", arriving);
    if (m == "goodput_requests_per_s")
      return times("requests_per_s", metric("requests_per_s")),
             times("slo_attained_fraction", metric("slo_attained_fraction"));
    if (m == "slo_attained_fraction")
      return times("requests_within_limits", metric(m) * metric("measured_requests")),
             over("measured_requests", metric("measured_requests"));
    if (m == "requests_in_flight") return in_flight();
    if (m == "energy_per_million_tokens_J") {
      times("energy_J", all_energy());
      over("million_output_tokens", all_energy() / metric(m));
      return energy("energy_J");
    }
    if (m == "cost_per_million_tokens_usd") {
      const double usd_per_s = s_.platform.price.per_gpu.value_or(dollar_rate{}).base() * gpus;
      price("makespan_s", makespan(), gpus);
      over("million_output_tokens", usd_per_s * makespan() / metric(m));
      return time_of_lanes("makespan_s", 0, makespan());
    }
    if (m == "power_W_per_gpu") {
      times("gpus_J", number_at(r_.energy, "gpus_J").value_or(0));
      over("gpus", gpus);
      over("makespan_s", makespan());
      return time_of_lanes("makespan_s", 0, makespan());
    }
    if (m == "memory_peak_bytes") return memory();
    if (m == "gpus") {
      for (const auto& [n, x] :
           {std::pair{"tp", w.tp}, {"pp", w.pp}, {"attention_dp", w.attention_dp}, {"replicas", w.replicas}})
        if (!w.prefill_pool) times(n, static_cast<double>(x));
      if (w.prefill_pool) out_.notes.emplace_back("GPUs of both pools");
      return;
    }
    if (m == "output_tokens_per_s_per_user") {
      over("tpot_s.mean", 1 / metric(m));
      return latency("tpot_s", "mean");
    }
    if (m == "kv_cache_used_fraction" || m == "prefix_cache_hit_fraction" || m == "measured_requests" ||
        m == "preemptions" || m == "recomputed_tokens") {
      out_.notes.emplace_back("counted during the run, so it has no time breakdown");
      return;
    }
    const auto [name, statistic] = split_statistic(m);
    if (is_latency(name)) return latency(name, statistic);
    unknown();
  }

  /// Little's law: requests in the system = requests per second * time in the system.
  void in_flight() {
    const double rate = metric("requests_per_s");
    times("requests_per_s", rate);
    times("time_in_system_s", metric("requests_in_flight") / rate);
    out_.notes.emplace_back("explain e2e_s.mean to see where that time goes");
  }

  void latency(const std::string& name, const std::string& statistic) {
    const value* d = r_.metrics.find(name);
    const auto wanted = d ? number_at(*d, statistic) : std::nullopt;
    if (!wanted || (run_.requests.empty() && !run_.served)) return;
    stages_of(fmt::format("{}.{}", name, statistic), parts_of_latency(run_, name, statistic, *wanted), *wanted);
  }

  void stages_of(const std::string& what, const latency_parts& parts, double wanted) {
    out_.apart = what;
    const std::vector<time_slice> slices = parts.slices();
    tree("by stage", by_stage(parts, what));
    tree("by phase", by_phase(slices, what));
    tree("by bound", by_bound(slices, what));
    if (!parts.note.empty()) out_.notes.push_back(parts.note);
    out_.kernels = uses_of_time(slices, false, wanted);
    out_.transfers = uses_of_time(slices, true, wanted);
  }

  void collective(const collective_workload& w, const std::string& m) {
    if (m == "time_s") return time(m);
    if (m == "algbw_Bps" || m == "busbw_Bps") {
      times("size_bytes", w.size.base());
      if (m == "busbw_Bps") times("bus_factor", bus_factor(w.operation, static_cast<int>(w.gpus)));
      over("time_s", makespan());
      return time("time_s");
    }
    if (m == "gpus") return;
    unknown();
  }

  void unknown() { out_.notes.push_back("this version has no breakdown of this metric"); }

  const scenario& s_;
  const run_record& run_;
  const result& r_;
  explanation& out_;
};

/// Says why a metric is null.
std::string why_nothing(const scenario& s, const result& r, const std::string& metric) {
  if (metric.starts_with("cost")) return "no value: " + s.platform.price.note;
  if (metric == "mfu")
    return fmt::format("no value: {} has no tensor-core peak in that precision", s.platform.gpu.name);
  if (metric.starts_with("goodput")) return "no value: the scenario states no service-level objective";
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
  for (const char* m : {"step_time_s", "output_tokens_per_s", "time_s"})
    if (r.metrics.find(m)) return m;
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
  out.metric = distribution ? fmt::format("{}.{}", name, statistic) : name;
  out.amount = distribution ? number_at(*v, statistic) : number_at(r.metrics, name);
  if (out.amount) explainer(s, run, out).explain(out.metric);
  else out.notes.push_back(why_nothing(s, r, name));
  return out;
}

}  // namespace nvlsim
