// What a loop of rollouts and updates did.
#pragma once

#include <cstdint>
#include <optional>

#include "nvlsim/analysis/job_energy.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/post_training/phases.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Means over the measured steps.
struct post_training_metrics {
  seconds step_time;
  seconds wait, logprobs, update, transfer, change, driver;  ///< add up to the step
  std::int64_t gpus = 0, rollout_gpus = 0, training_gpus = 0;
  double tokens = 0, response_tokens = 0, samples = 0;   ///< of a step
  double generated_tokens = 0;                           ///< of a step, with those that are dropped
  double rollout_busy = 0, training_busy = 0;            ///< shares of the step
  double mean_staleness = 0, longest_staleness = 0;      ///< updates
  double dropped_fraction = 0, recomputed_fraction = 0;  ///< of generated tokens
  double tail_fraction = 0;        ///< share of a batch's generation after 90 % of its samples have ended
  seconds nine_tenths, all_ended;  ///< from a batch's first start to the end of 90 % of its samples; of all
  double length_p50 = 0, length_p99 = 0, length_max = 0;
  bytes rollout_memory, training_memory;
  job_energy energy;
  std::optional<dollars> cost;
};
post_training_metrics measure_post_training(const platform& p, const post_training_run& run);

struct explanation;  // nvlsim/analysis/explanation.hpp
/// Takes the step apart by phase, and says where the parts of other metrics are.
void explain_loop(explanation& out, const result& r);

/// Fills memory, metrics, breakdown, energy, cost, bands and notes, and the plan and timeline that traces show.
/// Only memory if the loop cannot run.
void add_post_training_sections(run_record& out, const platform& p, const post_training_workload& w,
                                const post_training_run& run);

}  // namespace nvlsim
