#include "nvlsim/analysis/post_training_metrics.hpp"

#include <algorithm>

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {
namespace {

using measured = post_training_metrics;

double gpus(const measured& p) { return static_cast<double>(p.gpus); }

constexpr measured_metric<measured> post_training_rows[] = {
    {{.name = "step_time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of one step, from its start to the end of the last GPU."},
     [](const measured& p) -> metric_value { return p.step_time.base(); }},
    {{.name = "generation_wait_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the step in which the trainer waits for samples: all of generation and rewards where "
                 "pools take turns."},
     [](const measured& p) -> metric_value { return p.wait.base(); }},
    {{.name = "logprobs_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the step for log-probabilities of the old policy and the reference, and values."},
     [](const measured& p) -> metric_value { return p.logprobs.base(); }},
    {{.name = "update_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the step for updates of weights."},
     [](const measured& p) -> metric_value { return p.update.base(); }},
    {{.name = "remainder_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "The rest of the step: transfer of weights, changes between rollout and training, host work."},
     [](const measured& p) -> metric_value { return (p.transfer + p.change + p.driver).base(); }},
    {{.name = "weight_transfer_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the remainder: new weights on their way to the rollout engines."},
     [](const measured& p) -> metric_value { return p.transfer.base(); }},
    {{.name = "tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of trained samples, prompts and responses, per second."},
     [](const measured& p) -> metric_value { return p.tokens / p.step_time.base(); }},
    {{.name = "tokens_per_s_per_gpu",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of trained samples, prompts and responses, per second and GPU."},
     [](const measured& p) -> metric_value { return p.tokens / p.step_time.base() / gpus(p); }},
    {{.name = "samples_per_s",
      .unit = metric_unit::requests_per_s,
      .direction = better::larger,
      .meaning = "Trained samples per second."},
     [](const measured& p) -> metric_value { return p.samples / p.step_time.base(); }},
    {{.name = "generated_tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens that the rollout pool generates per second, with those that are dropped."},
     [](const measured& p) -> metric_value { return p.generated_tokens / p.step_time.base(); }},
    {{.name = "rollout_idle_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the step in which a rollout engine runs no iteration, mean over engines."},
     [](const measured& p) -> metric_value { return 1 - p.rollout_busy; }},
    {{.name = "training_idle_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the step in which the trainer waits for samples."},
     [](const measured& p) -> metric_value { return 1 - p.training_busy; }},
    {{.name = "mean_staleness",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Updates between the start of a sample and its own update, mean over trained samples."},
     [](const measured& p) -> metric_value { return p.mean_staleness; }},
    {{.name = "longest_staleness",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "The most updates between the start of a sample and its own update."},
     [](const measured& p) -> metric_value { return p.longest_staleness; }},
    {{.name = "dropped_token_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning =
          "Share of generated tokens that are not trained: tails that are cut, prompts that teach nothing."},
     [](const measured& p) -> metric_value { return p.dropped_fraction; }},
    {{.name = "tail_time_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of a batch's generation after 90 % of its samples have ended."},
     [](const measured& p) -> metric_value { return p.tail_fraction; }},
    {{.name = "response_tokens_mean",
      .unit = metric_unit::count,
      .meaning = "Tokens of a response, mean over trained samples."},
     [](const measured& p) -> metric_value { return p.response_tokens / std::max(1.0, p.samples); }},
    {{.name = "response_tokens_p99", .unit = metric_unit::count, .meaning = "The same, 99th percentile."},
     [](const measured& p) -> metric_value { return p.length_p99; }},
    {{.name = "rollout_memory_peak_bytes",
      .unit = metric_unit::byte,
      .direction = better::smaller,
      .meaning = "Memory of a rollout GPU while it generates."},
     [](const measured& p) -> metric_value { return p.rollout_memory.base(); }},
    {{.name = "memory_peak_bytes",
      .unit = metric_unit::byte,
      .direction = better::smaller,
      .meaning = "Memory of the fullest GPU."},
     [](const measured& p) -> metric_value { return std::max(p.rollout_memory, p.training_memory).base(); }},
    {{.name = "energy_per_step_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of all racks in use during a step, supply losses included."},
     [](const measured& p) -> metric_value { return p.energy.total().base(); }},
    {{.name = "cost_per_step_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Price of all GPUs for the time of a step.",
      .null_when = "no price is known"},
     [](const measured& p) -> metric_value { return p.cost ? metric_value(p.cost->base()) : metric_value(); }},
    {{.name = "gpus", .unit = metric_unit::count, .direction = better::neither, .meaning = "GPUs of the loop."},
     [](const measured& p) -> metric_value { return p.gpus; }},
};

}  // namespace

std::span<const measured_metric<post_training_metrics>> post_training_table() { return post_training_rows; }
bool applies(const metric& m, const post_training_metrics&) { return m.needs == metric_needs::nothing; }

post_training_metrics measure_post_training(const platform& p, const post_training_run& run) {
  post_training_metrics out;
  const loop_record& r = run.record;
  const double n = static_cast<double>(r.steps.size());
  const auto mean = [&](auto of) {
    double sum = 0;
    for (const step_record& s : r.steps) sum += of(s);
    return sum / n;
  };
  const auto time = [&](double step_record::*part) {
    return seconds::from_base(mean([part](const step_record& s) { return s.*part; }));
  };
  out.step_time = seconds::from_base(r.measured_s / n);
  out.wait = time(&step_record::wait_s);
  out.logprobs = time(&step_record::logprobs_s);
  out.update = time(&step_record::update_s);
  out.transfer = time(&step_record::transfer_s);
  out.change = time(&step_record::change_s);
  out.driver = time(&step_record::driver_s);
  out.gpus = run.gpus();
  out.rollout_gpus = run.rollout_gpus;
  out.training_gpus = run.training_gpus;
  out.tokens = mean([](const step_record& s) { return s.tokens; });
  out.response_tokens = mean([](const step_record& s) { return s.response_tokens; });
  out.samples = mean([](const step_record& s) { return static_cast<double>(s.samples); });
  out.generated_tokens = r.generated_tokens / n;
  out.rollout_busy = std::min(1.0, r.rollout_busy_s / (r.measured_s * static_cast<double>(run.workers)));
  out.training_busy = r.trainer_busy_s / r.measured_s;
  out.mean_staleness = mean([](const step_record& s) { return s.staleness; });
  out.longest_staleness = r.stale_samples.empty() ? 0 : static_cast<double>(r.stale_samples.size() - 1);
  const double all = static_cast<double>(r.all_steps) / n;  // with those before the measured ones
  const double generated = std::max(1.0, r.generated_tokens * all);
  out.dropped_fraction = std::min(1.0, r.dropped_tokens / generated);
  out.recomputed_fraction = r.recomputed_tokens / generated;
  out.tail_fraction = mean([](const step_record& s) { return s.all_s > 0 ? 1 - s.nine_tenths_s / s.all_s : 0; });
  out.length_p50 = mean([](const step_record& s) { return s.length_p50; });
  out.length_p99 = mean([](const step_record& s) { return s.length_p99; });
  out.length_max = mean([](const step_record& s) { return s.length_max; });
  out.rollout_memory = run.rollout_memory.peak;
  out.training_memory = run.training_memory.peak;
  // GPUs that wait draw idle power.
  const auto idle = [&](std::int64_t gpus, double share) {
    return p.gpu.idle_power * (static_cast<double>(gpus) * share) * out.step_time;
  };
  joules used = (run.rollout_energy + run.training_energy) / n;
  if (run.colocated)
    used += idle(out.gpus,
                 std::max(0.0, out.training_busy - (out.logprobs + out.update).base() / out.step_time.base()));
  else used += idle(out.rollout_gpus, 1 - out.rollout_busy) + idle(out.training_gpus, 1 - out.training_busy);
  out.energy = energy_of_job(p, used, out.gpus, out.step_time);
  if (p.price.per_gpu) out.cost = *p.price.per_gpu * (static_cast<double>(out.gpus) * out.step_time);
  return out;
}

}  // namespace nvlsim
