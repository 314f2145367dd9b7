#include "planner/training_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/search/search.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t kept = 6;     // layouts of the first stage that are told
constexpr std::size_t refined = 2;  // of those, around how many all choices are tried
constexpr std::int64_t long_sequence = 16'384;
constexpr std::int64_t even_batch = 16;  // a moved batch is a multiple of this times the odd part of the GPUs
constexpr double max_moved = 0.125;      // share of the batch by which it may move
constexpr double minutes = 60;

double number_at(const value& v, std::string_view pointer) {
  double x = 0;
  const value* at = v.at_pointer(pointer);
  return at && output::as_double(*at, x) ? x : 0;
}

/// The batch nearest to the scenario's that the GPUs divide in many ways.
std::int64_t moved_batch(std::int64_t batch, std::int64_t gpus) {
  std::int64_t odd = gpus;
  while (odd % 2 == 0) odd /= 2;
  for (std::int64_t even = even_batch * 64; even >= 1; even /= 2) {
    const std::int64_t unit = odd * even;
    const std::int64_t times = std::max<std::int64_t>(1, (batch + unit / 2) / unit);
    if (std::abs(static_cast<double>(times * unit - batch)) <= max_moved * static_cast<double>(batch))
      return times * unit;
  }
  return batch;
}

std::string text_of(const value& v) {
  if (v.string()) return *v.string();
  if (v.integer()) return std::to_string(*v.integer());
  if (v.boolean()) return *v.boolean() ? "on" : "off";
  std::string out;
  if (v.items())
    for (const value& x : *v.items()) out += (out.empty() ? "" : "+") + text_of(x);
  return out;
}

/// The modules that are cheap to compute again, as one word of the search.
std::string cheap_recompute(const scenario& s) {
  const auto has = [&](auto what) { return std::any_of(s.model.layers.begin(), s.model.layers.end(), what); };
  if (!has_routed_experts(s.model)) return "core_attn";
  return has([](const layer_spec& l) { return l.attention == attention_kind::mla; })
             ? "layernorm+moe_act+mla_up_proj"
             : "layernorm+moe_act";
}

std::vector<search_restriction> usual_choices(const scenario& s) {
  const auto& w = std::get<training_workload>(s.workload);
  std::vector<std::string> cp = {"1", "2"};
  if (w.seq_length >= long_sequence) cp = {"1", "2", "4", "8", "16"};
  std::vector<search_restriction> out = {{"tp", {"1", "2", "4", "8"}},
                                         {"cp", cp},
                                         {"etp", {"1"}},
                                         {"schedule", {"1f1b", "interleaved", "zb_v", "dualpipe"}},
                                         {"sequence_parallel", {"true"}},
                                         {"micro_batch_size", {"1", "2", "4"}},
                                         {"data_parallel_sharding", {"distributed_optimizer"}},
                                         {"recompute", {"none", cheap_recompute(s), "full"}},
                                         {"offload_layers", {"0"}}};
  if (!w.split.given()) {
    out.push_back({"num_layers_in_first_pipeline_stage", {"0"}});
    out.push_back({"num_layers_in_last_pipeline_stage", {"0"}});
  }
  return out;
}

/// The layout's own values of these parameters.
std::vector<search_restriction> as_in(const search_result& r, const found_layout& l,
                                      const std::vector<std::string>& names) {
  std::vector<search_restriction> out = {{"sequence_parallel", {"true"}}};
  for (std::size_t i = 0; i < r.parameters.size(); ++i)
    if (std::find(names.begin(), names.end(), r.parameters[i]) != names.end())
      out.push_back({r.parameters[i], {text_of(l.parameters[i])}});
  return out;
}

const std::vector<std::string> division = {"tp", "pp", "cp", "dp", "ep", "etp"};

/// What memory holds: all choices, for this division of the ranks and these schedules.
std::vector<search_restriction> other_memory(const search_result& r, const found_layout& l) {
  std::vector<std::string> names = division;
  names.insert(names.end(), {"vp", "schedule", "micro_batch_size", "num_layers_in_first_pipeline_stage",
                             "num_layers_in_last_pipeline_stage"});
  return as_in(r, l, names);
}

/// Schedules, stages and micro-batches: all choices, for this division of the ranks and what memory holds.
std::vector<search_restriction> other_schedules(const search_result& r, const found_layout& l) {
  std::vector<std::string> names = division;
  names.insert(names.end(), {"data_parallel_sharding", "recompute", "offload_layers"});
  return as_in(r, l, names);
}

/// Only what is not the usual.
std::string layout_of(const search_result& r, const found_layout& l) {
  const auto tp = std::find(r.parameters.begin(), r.parameters.end(), "tp");
  const bool splits_tensors =
      tp != r.parameters.end() && l.parameters[static_cast<std::size_t>(tp - r.parameters.begin())] != value{1};
  std::string out;
  for (std::size_t i = 0; i < r.parameters.size(); ++i) {
    const std::string text = text_of(l.parameters[i]);
    if (r.parameters[i] == "sequence_parallel" && text == "off" && !splits_tensors) continue;
    if (text == "1" || text == "0" || text == "none" || text == "1f1b" || text == "interleaved" || text == "on" ||
        text == "distributed_optimizer")
      continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : " ", r.parameters[i], text);
  }
  return out.empty() ? "one GPU" : out;
}

double step_of(const search_result& r, const found_layout& l) {
  const auto at = std::find(r.metrics.begin(), r.metrics.end(),
                            metric_with(metric_kind::training, search_use::objective).name);
  return at == r.metrics.end() ? 0 : l.metrics[static_cast<std::size_t>(at - r.metrics.begin())].value_or(0);
}

search_options options_for(const training_place& at, std::vector<search_restriction> only, const plan_watch& watch,
                           const char* stage) {
  search_options o;
  o.gpus = at.gpus;
  o.objective = metric_with(metric_kind::training, search_use::objective).name;
  o.restrictions = std::move(only);
  o.top = kept;
  o.jobs = static_cast<int>(processors());
  if (watch.report)
    o.report = [&watch, stage](std::int64_t done, std::int64_t all) { watch.report(stage, done, all); };
  o.stop = watch.stop;
  return o;
}

std::vector<std::pair<std::string, value>> members_of(const search_result& r, const found_layout& l) {
  std::vector<std::pair<std::string, value>> out = r.everywhere;
  for (std::size_t i = 0; i < r.pointers.size(); ++i) out.emplace_back(r.pointers[i], l.parameters[i]);
  return out;
}

planned_training finished(const plan_base& base, const search_result& r, const found_layout& l) {
  planned_training out;
  out.gpus = r.gpus;
  out.layout = layout_of(r, l);
  out.text = with_members(base.text, members_of(r, l));
  const scenario s = read_base({out.text, base.overrides, base.data});
  const auto& w = std::get<training_workload>(s.workload);
  out.racks = s.platform.racks;
  out.gpus_per_rack = w.place.gpus_per_domain;
  out.global_batch_size = w.global_batch_size;
  out.outcome = run_scenario(s, {.simulate = false}).outcome;
  const value& m = out.outcome.metrics;
  out.step_time_s = number_at(m, "/step_time_s");
  out.tokens_per_s = number_at(m, "/tokens_per_s");
  out.mfu = number_at(m, "/mfu");
  out.bubble = number_at(m, "/bubble_fraction");
  out.exposed_s = number_at(m, "/exposed_communication_s");
  return out;
}

void add_losers(found_training& out, const search_result& r, double best_s) {
  for (const found_layout& l : r.best) {
    const double step = step_of(r, l);
    const std::string layout = layout_of(r, l);
    if (layout == out.best->layout) continue;
    out.lost.push_back({layout, fmt::format("{:.4g} s a step, {:.1f} % more", step, 100 * (step / best_s - 1))});
  }
}

plan_base placed(const plan_base& base, const training_place& at, bool flexible) {
  plan_base here = base;
  std::vector<std::pair<std::string, value>> more;
  if (at.per_rack > 0) more.emplace_back("/placement/gpus_per_rack", at.per_rack);
  if (flexible) {
    const auto batch = static_cast<std::int64_t>(number_at(base.text, "/workload/global_batch_size"));
    more.emplace_back("/workload/global_batch_size", moved_batch(batch, at.gpus));
  }
  here.text = with_members(here.text, more);
  return here;
}

}  // namespace

std::optional<closest_training> min_memory(const plan_base& base, const training_place& at, bool flexible,
                                           const plan_watch& watch) {
  plan_base here = placed(base, at, flexible);
  const double usable = read_base(here).platform.gpu.hbm_usable.read().base();
  for (const char* pointer : {"/platform/gpu/hbm_nominal", "/platform/gpu/hbm_usable"})
    here.overrides.push_back({pointer, "100 TB"});
  const scenario s = read_base(here);
  search_options o = options_for(at, usual_choices(s), watch, "layouts by memory");
  o.objective = metric_with(metric_kind::training, metric_parts::memory).name;
  o.top = 1;
  const search_result r = search_layouts(s, o);
  if (r.best.empty()) return std::nullopt;
  const auto metric = std::find(r.metrics.begin(), r.metrics.end(), o.objective);
  if (metric == r.metrics.end()) return std::nullopt;
  const found_layout& l = r.best.front();
  const auto needed = l.metrics[static_cast<std::size_t>(metric - r.metrics.begin())];
  return closest_training{at.gpus, layout_of(r, l), needed.value_or(0), usable};
}

found_training best_training(const plan_base& base, const training_place& at, bool flexible,
                             const plan_watch& watch) {
  const plan_base here = placed(base, at, flexible);
  const scenario s = read_base(here);
  const search_result first = search_layouts(s, options_for(at, usual_choices(s), watch, "usual layouts"));
  found_training out;
  out.evaluated = first.evaluated;
  out.candidates = first.candidates;
  out.pruned = first.pruned;
  if (first.best.empty()) return out;
  std::vector<search_result> all = {first};
  const auto refine = [&](const std::vector<search_restriction>& only) {
    if (watch.stopped()) return;
    search_result r = search_layouts(s, options_for(at, only, watch, "choices around the best"));
    out.evaluated += r.evaluated;
    out.candidates += r.candidates;
    if (!r.best.empty()) all.push_back(std::move(r));
  };
  for (std::size_t i = 0; i < std::min(refined, first.best.size()); ++i) {
    const std::size_t before = all.size();
    refine(other_memory(first, first.best[i]));
    if (all.size() == before) continue;
    const search_result memory = all.back();
    refine(other_schedules(memory, memory.best.front()));
  }
  const search_result* best = nullptr;
  for (const search_result& r : all)
    if (!r.best.empty() && (!best || step_of(r, r.best.front()) < step_of(*best, best->best.front()))) best = &r;
  out.best = finished(here, *best, best->best.front());
  add_losers(out, first, out.best->step_time_s);
  return out;
}

std::vector<training_place> places_of(const scenario& s, std::int64_t gpus) {
  const std::int64_t domain = std::max(1, s.platform.gpus_per_rack());
  const std::int64_t segment = std::clamp<std::int64_t>(default_segment(s.platform, gpus), 1, domain);
  std::vector<training_place> out;
  if (gpus % segment == 0 || gpus <= domain) out.push_back({gpus, gpus <= domain ? 0 : segment});
  if (segment != domain && gpus % domain == 0 && gpus > domain) out.push_back({gpus, domain});
  if (out.empty()) out.push_back({gpus, 0});
  return out;
}

found_training best_of_places(const plan_base& base, const scenario& s, std::int64_t gpus, bool flexible,
                              const plan_watch& watch) {
  found_training out;
  for (const training_place& at : places_of(s, gpus)) {
    found_training here = best_training(base, at, flexible, watch);
    const std::int64_t evaluated = out.evaluated + here.evaluated, candidates = out.candidates + here.candidates;
    if (!out.best || (here.best && here.best->step_time_s < out.best->step_time_s)) out = std::move(here);
    out.evaluated = evaluated;
    out.candidates = candidates;
  }
  return out;
}

}  // namespace nvlsim
