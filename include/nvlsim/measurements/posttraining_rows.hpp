// Turns rows of posttraining.csv into loops of rollouts and updates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/validate.hpp"
#include "nvlsim/post_training/phases.hpp"

namespace nvlsim {

/// A row's inputs.
struct post_training_row {
  platform hardware;
  const stack *rollout_stack = nullptr, *training_stack = nullptr;
  const model* net = nullptr;
  inference_workload rollout;
  training_workload training;
  post_training_workload loop;
  std::string notes;  ///< what was assumed
  /// Runs with one mean response, which nobody states; empty where the table states it.
  std::string unknown_lengths;

  post_training_parts parts() const {
    return {hardware, *rollout_stack, *net, rollout, *training_stack, *net, training};
  }
};

/// Reads a row with a step time. Missing values take the documented defaults, listed in `notes`. Throws cell_error
/// or input_error. [docs/post-training.md#validation]
post_training_row read_post_training_row(const csv_row& row, input_cache& inputs);

/// A phase with a published time: "step_s", "gen_s", "logp_ref_s" or "train_s".
struct compared_phase {
  std::string_view metric;
  double published = 0, simulated = 0;  ///< s, mean of steps
};
/// The step and the phases that the row states. Requires a run without reasons.
std::vector<compared_phase> compare_phases(const csv_row& row, const post_training_run& run);

/// Why a row is not to be compared; empty if it is.
std::string post_training_exclusion(const csv_row& row);

}  // namespace nvlsim
