#include "nvlsim/analysis/post_training_sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/sections.hpp"

namespace nvlsim {
namespace {

/// Workers that a trace shows.
constexpr std::size_t workers_shown = 64;

value phases_of(const post_training_metrics& m) {
  return value::object{{"generation_wait_s", m.wait.base()},   {"logprobs_s", m.logprobs.base()},
                       {"update_s", m.update.base()},          {"weight_transfer_s", m.transfer.base()},
                       {"change_of_phase_s", m.change.base()}, {"driver_s", m.driver.base()}};
}

value steps_of(const loop_record& r) {
  value out{value::array{}};
  for (const step_record& s : r.steps)
    out.items()->push_back(value::object{{"step_time_s", s.step_s()},
                                         {"generation_wait_s", s.wait_s},
                                         {"logprobs_s", s.logprobs_s},
                                         {"update_s", s.update_s},
                                         {"remainder_s", s.remainder_s()},
                                         {"tokens", s.tokens},
                                         {"mean_staleness", s.staleness}});
  return out;
}

value staleness_of(const loop_record& r) {
  value out{value::array{}};
  double all = 0;
  for (const std::int64_t n : r.stale_samples) all += static_cast<double>(n);
  for (const std::int64_t n : r.stale_samples) out.items()->push_back(static_cast<double>(n) / std::max(1.0, all));
  return out;
}

value breakdown_of(const post_training_workload& w, const post_training_metrics& m, const post_training_run& run) {
  value out{value::object{}};
  out.set("phases", phases_of(m));
  out.set("steps", steps_of(run.record));
  out.set("staleness_shares", staleness_of(run.record));
  out.set("pools", value::object{{"rollout_gpus", m.rollout_gpus},
                                 {"training_gpus", m.training_gpus},
                                 {"colocated", run.colocated},
                                 {"rollout_engines", run.workers}});
  out.set("response_tokens", value::object{{"p50", m.length_p50},
                                           {"p99", m.length_p99},
                                           {"max", m.length_max},
                                           {"cut_share", share_cut(w.loop.response)}});
  out.set("updates", value::object{{"micro_batches", run.micro_batches},
                                   {"tokens_per_micro_batch", run.tokens_per_micro_batch},
                                   {"fill", run.fill}});
  out.set("weight_transfer", value::object{{"wire_s", run.transfer.wire.base()},
                                           {"tensors_s", run.transfer.tensors.base()},
                                           {"requantise_s", run.transfer.requantise.base()},
                                           {"fixed_s", run.transfer.fixed.base()}});
  out.set("preemptions", run.record.preempted);
  out.set("dropped_prompts", run.record.dropped_prompts);
  return out;
}

/// The loop as a plan that has been run: a class for the trainer and one for each engine.
void add_picture(run_record& out, const post_training_run& run) {
  const std::size_t workers = static_cast<std::size_t>(run.workers);
  const std::size_t shown = std::min(workers, workers_shown);
  const std::int64_t each = run.rollout_gpus / std::max<std::int64_t>(1, run.workers);
  plan& p = out.planned;
  p.classes.push_back({"trainer", run.training_gpus, {{stream_kind::compute, {}}}});
  for (std::size_t w = 0; w < shown; ++w)
    p.classes.push_back({fmt::format("rollout engine {}", w), each, {{stream_kind::compute, {}}}});
  out.times.spans.resize(p.classes.size());
  for (auto& s : out.times.spans) s.resize(1);
  std::map<std::string, std::int32_t> templates;
  std::vector<loop_span> spans = run.record.spans;
  std::stable_sort(spans.begin(), spans.end(),
                   [](const loop_span& a, const loop_span& b) { return a.begin_s < b.begin_s; });
  for (const loop_span& s : spans) {
    const bool trains = s.actor >= workers;
    if (!trains && s.actor >= shown) continue;
    const std::size_t at = trains ? 0 : s.actor + 1;
    const auto [known, fresh] = templates.try_emplace(s.name, 0);
    if (fresh) {
      operation_template t;
      t.name = s.name;
      t.parts.push_back(
          {trains ? part_kind::gemm : part_kind::decode, s.name, seconds::from_base(s.end_s - s.begin_s), 1, {}});
      known->second = p.add_template(std::move(t));
    }
    p.append(p.classes[at].streams[0], known->second, {});
    out.times.spans[at][0].push_back({s.begin_s, s.end_s});
    out.times.makespan = std::max(out.times.makespan, seconds::from_base(s.end_s));
  }
  out.times.activities = run.record.decisions;
}

void add_notes(result& r, const post_training_workload& w, const post_training_metrics& m,
               const post_training_run& run) {
  const auto percent = [](double x) { return 100 * x; };
  if (run.colocated) r.notes.push_back(fmt::format("rollouts and training take turns on {} GPUs", m.gpus));
  else
    r.notes.push_back(fmt::format(
        "{} GPUs generate, idle {:.0f} % of the step; {} GPUs train, waiting {:.0f} % of it: {}", m.rollout_gpus,
        percent(1 - m.rollout_busy), m.training_gpus, percent(1 - m.training_busy),
        m.rollout_busy > m.training_busy ? "rollouts are the bottleneck" : "training is the bottleneck"));
  if (m.tail_fraction > 0.25)
    r.notes.push_back(fmt::format("the last 10 % of a batch's samples take {:.0f} % of its generation",
                                  percent(m.tail_fraction)));
  if (run.record.preempted > 0)
    r.notes.push_back(fmt::format("{} samples lost their cache for lack of memory and were computed again",
                                  run.record.preempted));
  if (run.fill < 0.8)
    r.notes.push_back(
        fmt::format("{:.0f} % of the tokens of micro-batches are filled; packing {}, {} sequences "
                    "of an update",
                    percent(run.fill), packing_names[static_cast<std::size_t>(w.packing)], w.mini_batch));
  if (w.algorithm == post_training_algorithm::ppo)
    r.notes.push_back("the critic is taken to have the policy's shape and layout");
  if (w.algorithm == post_training_algorithm::distillation)
    r.notes.push_back("the teacher is taken to have the policy's shape and layout");
}

}  // namespace

void add_post_training_sections(run_record& out, const platform& p, const post_training_workload& w,
                                const post_training_run& run) {
  result& r = out.outcome;
  if (!run.rollout_memory.items.empty()) {
    r.memory.set("rollout", memory_section(run.rollout_memory));
    r.memory.set("training", memory_section(run.training_memory));
    r.memory.set("moved_to_cpu_bytes", run.moved_to_cpu.base());
  }
  if (!run.reasons.empty()) return;
  const post_training_metrics m = measure_post_training(p, run);
  set_metrics(r.metrics, m);
  r.breakdown = breakdown_of(w, m, run);
  r.energy.set("gpus_J", m.energy.gpus.base());
  r.energy.set("cpus_J", m.energy.cpus.base());
  r.energy.set("trays_and_switches_J", m.energy.trays_and_switches.base());
  r.energy.set("supply_losses_J", m.energy.supply_losses.base());
  if (const double e = w.costs.error_90; e > 0) {
    const auto band = [&](const char* name, double x) {
      const double low = x / (1 + e), high = x * (1 + e);
      r.bands.set(name, value::array{value{low}, value{high}});
    };
    band("step_time_s", m.step_time.base());
    band("tokens_per_s_per_gpu", m.tokens / m.step_time.base() / static_cast<double>(m.gpus));
    if (m.cost) band("cost_per_step_usd", m.cost->base());
  }
  add_notes(r, w, m, run);
  add_picture(out, run);
}

}  // namespace nvlsim
