#include "nvlsim/planner/next_dollar.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/search/highest_load.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

/// Knobs of hardware only: no constant that was fitted to measurements. A knob that divides is a latency.
struct knob_row {
  const char* name;
  std::array<const char*, 2> pointers;
  bool smaller = false;
  const char* silent = "";  ///< why the step may not show
};
constexpr knob_row knob_rows[] = {
    {"tensor_peaks", {"/gpu/peaks", ""}, false, ""},
    {"hbm_bandwidth", {"/gpu/hbm_bandwidth", "/gpu/hbm_stream"}, false, ""},
    {"hbm_capacity",
     {"/gpu/hbm_usable", "/gpu/hbm_nominal"},
     false,
     "the layout is unchanged; plan training or plan serving finds one that uses the memory"},
    {"gpu_power", {"/gpu/tdp", ""}, false, ""},
    {"nvlink_bandwidth", {"/gpu/nvlink", ""}, false, ""},
    {"c2c_bandwidth", {"/gpu/c2c", ""}, false, "nothing moves between CPU and GPU"},
    {"nic_bandwidth", {"/fabric/nic_bandwidth", ""}, false, "no traffic leaves the domain"},
    {"fabric_latency", {"/fabric/latency", ""}, true, "no traffic leaves the domain"},
    {"leaf_port_bandwidth", {"/fabric/leaf/port_bandwidth", ""}, false, "leaf ports are not the bottleneck"},
    {"nvme_read", {"/vm/nvme_read", ""}, false, "nothing is read from disks"},
};

/// The texts of numbers at and below a pointer.
void list_numbers(const value& v, const std::string& pointer,
                  std::vector<std::pair<std::string, std::string>>& out) {
  if (const value* inner = v.find("value")) return list_numbers(*inner, pointer, out);
  if (const auto* members = v.members()) {
    for (const auto& [key, child] : *members) {
      if (key == "source" || key == "kind" || key == "note" || key == "energy" || key == "sparse") continue;
      list_numbers(child, pointer_to(pointer, key), out);
    }
    return;
  }
  if (v.string() && !scaled_text(*v.string(), 2).empty()) out.emplace_back(pointer, *v.string());
}

struct watched_metric {
  double amount = 0;
  bool smaller = true;
};

bool finds_load(const scenario& s) {
  const auto* w = std::get_if<inference_workload>(&s.workload);
  return w && w->load == load_kind::open_loop && w->objective.any();
}

constexpr const char* load_metric = "requests_per_s";

std::string main_metric(const scenario& s) {
  return finds_load(s) ? load_metric : std::string(metrics_of(metric_kind_of(s)).front().name);
}

std::optional<double> measured(const scenario& s, const std::string& metric, const plan_watch& watch) {
  if (finds_load(s) && metric == load_metric) {
    const highest_load h = find_highest_load(s, {}, watch.stop);
    return h.found && !h.stopped ? std::optional(h.load) : std::nullopt;
  }
  const result r = run_scenario(s, {.simulate = false}).outcome;
  if (r.status == run_status::infeasible || r.status == run_status::error) return std::nullopt;
  std::string pointer = fmt::format("/{}", metric);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  const value* v = r.metrics.at_pointer(pointer);
  double x = 0;
  if (!v || !output::as_double(*v, x)) return std::nullopt;
  return x;
}

bool smaller_is_better(const std::string& metric) {
  const nvlsim::metric* m = find_metric(metric.substr(0, metric.find('.')));
  if (!m) {
    std::vector<std::string> names;
    for (const metric_kind k : {metric_kind::training, metric_kind::inference})
      for (const nvlsim::metric& each : metrics_of(k)) names.emplace_back(each.name);
    throw input_error({{"--objective", "", fmt::format("unknown metric \"{}\"", metric), nearest(metric, names)}});
  }
  if (m->direction == better::neither)
    throw input_error(
        {{"--objective",
          "",
          fmt::format("\"{}\" cannot be ranked, because neither larger nor smaller is better", metric),
          {}}});
  return m->direction == better::smaller;
}

void check_costs(const std::map<std::string, double>& costs) {
  const std::vector<std::string> names = knob_names();
  diagnostics problems;
  for (const auto& [name, usd] : costs)
    if (std::find(names.begin(), names.end(), name) == names.end())
      problems.add("--cost", "", fmt::format("\"{}\" is none of {}", name, fmt::join(names, ", ")),
                   nearest(name, names));
  problems.throw_if_any();
}

/// The knob as it would be, with the overrides that make it so.
hardware_knob turned(const knob_row& row, const scenario& s, double step, std::vector<override_option>& sets) {
  hardware_knob out;
  out.name = row.name;
  for (const char* below : row.pointers) {
    const value* v = *below ? s.inputs.at_pointer(std::string("/platform") + below) : nullptr;
    std::vector<std::pair<std::string, std::string>> numbers;
    if (v) list_numbers(*v, std::string("/platform") + below, numbers);
    for (const auto& [pointer, text] : numbers) {
      const double factor = row.smaller ? 1 / (1 + step) : 1 + step;
      sets.push_back({pointer, scaled_text(text, factor)});
      out.pointers.push_back(pointer);
      if (out.from.empty()) out.from = text, out.to = sets.back().text;
    }
  }
  return out;
}

double rank_of(const hardware_knob& k, bool by_cost) {
  if (!k.gain) return -HUGE_VAL;
  if (!by_cost) return *k.gain;
  return k.cost_usd && *k.cost_usd > 0 ? *k.gain / *k.cost_usd : -1 + std::min(0.0, *k.gain);
}

}  // namespace

std::vector<std::string> knob_names() {
  std::vector<std::string> out;
  for (const knob_row& row : knob_rows) out.emplace_back(row.name);
  return out;
}

next_dollar_plan plan_next_dollar(const next_dollar_question& q, const plan_watch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  const scenario base = read_base(q.base);
  if (!std::holds_alternative<training_workload>(base.workload) &&
      !std::holds_alternative<inference_workload>(base.workload))
    throw input_error(
        {{base.file, "/workload/kind", "plan next-dollar needs a training or serving scenario", {}}});
  check_costs(q.costs);
  next_dollar_plan out;
  out.scenario = base.name;
  out.step = q.step;
  out.metric = q.metric.empty() ? main_metric(base) : q.metric;
  out.smaller_is_better = smaller_is_better(out.metric);
  const std::optional<double> now = measured(base, out.metric, watch);
  if (!now)
    throw input_error({{base.file, "", fmt::format("the scenario does not run, or has no {}", out.metric), {}}});
  out.value = *now;
  std::vector<hardware_knob> knobs(std::size(knob_rows));
  std::mutex reporting;
  std::int64_t done = 0;
  in_parallel(knobs.size(), [&](std::size_t i) {
    std::vector<override_option> sets;
    knobs[i] = turned(knob_rows[i], base, q.step, sets);
    if (sets.empty() || watch.stopped()) {
      knobs[i].why = sets.empty() ? "the platform does not state it" : "interrupted";
      return;
    }
    plan_base changed = q.base;
    for (override_option& o : sets) changed.overrides.push_back(std::move(o));
    try {
      if (const auto then = measured(read_base(changed), out.metric, watch))
        knobs[i].gain = out.smaller_is_better ? out.value / *then - 1 : *then / out.value - 1;
    } catch (const input_error& e) {
      knobs[i].why = e.problems().front().what;
    }
    if (!knobs[i].gain && knobs[i].why.empty() && watch.stopped()) knobs[i].why = "interrupted";
    if (knobs[i].gain && std::abs(*knobs[i].gain) < 1e-9) knobs[i].why = knob_rows[i].silent;
    const std::lock_guard lock(reporting);
    if (watch.report) watch.report("parts of the hardware", ++done, static_cast<std::int64_t>(knobs.size()));
  });
  for (hardware_knob& k : knobs)
    if (const auto at = q.costs.find(k.name); at != q.costs.end()) k.cost_usd = at->second;
  const bool by_cost = !q.costs.empty();
  std::stable_sort(knobs.begin(), knobs.end(), [&](const hardware_knob& a, const hardware_knob& b) {
    return rank_of(a, by_cost) > rank_of(b, by_cost);
  });
  out.knobs = std::move(knobs);
  out.interrupted = watch.stopped();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace nvlsim
