#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain_latency.hpp"
#include "analysis/time_slices.hpp"
#include "nvlsim/diagnostics.hpp"
#include "nvlsim/explanation.hpp"
#include "nvlsim/training_metrics.hpp"

namespace nvlsim {
namespace {

std::optional<double> number_at(const value& section, std::string_view key) {
  const value* v = section.find(key);
  if (!v) return std::nullopt;
  if (const double* d = v->number()) return *d;
  if (const std::int64_t* i = v->integer()) return static_cast<double>(*i);
  return std::nullopt;
}

/// A metric name without its statistic, and the statistic.
std::pair<std::string, std::string> split_statistic(std::string_view metric) {
  const std::size_t dot = metric.find('.');
  if (dot == std::string_view::npos) return {std::string(metric), {}};
  return {std::string(metric.substr(0, dot)), std::string(metric.substr(dot + 1))};
}

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
    const auto slices = slices_of(run_.work, run_.times, mean_over_gpus(run_.work), true);
    tree("by phase", by_phase(slices, what));
    tree("by bound", by_bound(slices, what));
    tree("critical path", by_phase(critical_path(run_.work, run_.times), what));
    uses(slices);
  }
  void uses(const std::vector<time_slice>& slices) {
    out_.kernels = uses_of_time(slices, false, makespan());
    std::vector<time_slice> with_hidden = slices;
    for (time_slice& s : side_slices(run_.work)) with_hidden.push_back(std::move(s));
    out_.transfers = uses_of_time(with_hidden, true, makespan());
  }

  template <class Keep>
  void share_of_time(const std::string& what, Keep keep) {
    out_.apart = what;
    auto slices = slices_of(run_.work, run_.times, mean_over_gpus(run_.work), true);
    std::erase_if(slices, [&](const time_slice& s) { return !keep(s); });
    tree("by kind", by_kind(slices, what));
    tree("by bound", by_bound(slices, what));
    uses(slices);
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
      return share_of_time("waiting_for_stages_s", [](const time_slice& s) { return s.kind == work_kind::idle; });
    }
    if (m == "exposed_communication_s")
      return share_of_time(m, [](const time_slice& s) {
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
    const double run = makespan(), gpus = static_cast<double>(w.gpus());
    const double output = metric("output_tokens_per_s") * run;
    const auto rate = [&](const char* what, double amount, bool per_gpu) {
      times(what, amount);
      if (per_gpu) over("gpus", gpus);
      over("makespan_s", run);
      time("makespan_s");
    };
    if (m == "makespan_s") return time(m);
    if (m == "output_tokens_per_s") return rate("output_tokens", output, false);
    if (m == "output_tokens_per_s_per_gpu") return rate("output_tokens", output, true);
    if (m == "total_tokens_per_s") return rate("total_tokens", metric("total_tokens_per_s") * run, false);
    if (m == "total_tokens_per_s_per_gpu") return rate("total_tokens", metric("total_tokens_per_s") * run, true);
    if (m == "requests_per_s") return rate("requests", metric(m) * run, false);
    if (m == "energy_per_million_tokens_J") {
      times("energy_J", all_energy());
      over("million_output_tokens", output / 1e6);
      return energy("energy_J");
    }
    if (m == "cost_per_million_tokens_usd") {
      price("makespan_s", run, gpus);
      over("million_output_tokens", output / 1e6);
      return time("makespan_s");
    }
    if (m == "power_W_per_gpu") {
      times("gpus_J", number_at(r_.energy, "gpus_J").value_or(0));
      over("gpus", gpus);
      over("makespan_s", run);
      return time("makespan_s");
    }
    if (m == "memory_peak_bytes") return memory();
    if (m == "gpus") {
      for (const auto& [n, x] :
           {std::pair{"tp", w.tp}, {"pp", w.pp}, {"attention_dp", w.attention_dp}, {"replicas", w.replicas}})
        times(n, static_cast<double>(x));
      return;
    }
    if (m == "output_tokens_per_s_per_user") {
      over("tpot_s.mean", 1 / metric(m));
      return latency("tpot_s", "mean");
    }
    const auto [name, statistic] = split_statistic(m);
    if (is_latency(name)) return latency(name, statistic);
    unknown();
  }

  void latency(const std::string& name, const std::string& statistic) {
    const value* d = r_.metrics.find(name);
    const auto wanted = d ? number_at(*d, statistic) : std::nullopt;
    if (!wanted || !run_.served) return;
    const latency_parts parts = parts_of_latency(*run_.served, run_.work, run_.times, name, statistic, *wanted);
    out_.apart = fmt::format("{}.{}", name, statistic);
    tree("by phase", by_phase(parts.slices, out_.apart));
    tree("by bound", by_bound(parts.slices, out_.apart));
    if (!parts.note.empty()) out_.notes.push_back(parts.note);
    uses(parts.slices);
    for (auto* table : {&out_.kernels, &out_.transfers})
      for (time_use& u : *table) u.share *= makespan() / *wanted;
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

  void unknown() { out_.notes.push_back("this version does not take this metric apart"); }

  const scenario& s_;
  const run_record& run_;
  const result& r_;
  explanation& out_;
};

/// What a metric that is null lacks.
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

std::string why_unexplained(const scenario& s) {
  const auto* w = std::get_if<inference_workload>(&s.workload);
  if (!w) return {};
  if (needs_clock(*w))
    return "a load served on a clock is not taken apart yet (arrivals, traces, sessions, objectives, routers, swapping, "
           "lengths by a distribution, warm-up); `run` gives its breakdown and requests";
  if (w->pooled())
    return "workers that prefill and others that decode are not taken apart yet; `run` gives their breakdown";
  return {};
}

explanation explain(const scenario& s, const run_record& run, std::string_view metric) {
  const result& r = run.outcome;
  if (std::string why = why_unexplained(s); !why.empty())
    throw input_error({{"", "", fmt::format("{}: {}", s.name, why), ""}});
  auto [name, statistic] = split_statistic(metric);
  const value* v = r.metrics.find(name);
  const bool distribution = v && v->members();
  if (distribution && statistic.empty()) statistic = "mean";
  if (!v || (distribution ? !v->find(statistic) : !statistic.empty()))
    throw input_error(
        {{"", "", fmt::format("{} has no metric \"{}\"", r.name, metric), nearest(name, explained_metrics(r))}});
  explanation out;
  out.scenario = r.name;
  out.metric = distribution ? fmt::format("{}.{}", name, statistic) : name;
  out.amount = distribution ? number_at(*v, statistic) : number_at(r.metrics, name);
  if (out.amount) explainer(s, run, out).explain(out.metric);
  else out.notes.push_back(why_nothing(s, r, name));
  return out;
}

}  // namespace nvlsim
