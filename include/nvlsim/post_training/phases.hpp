// Prices of the phases of a loop, from the simulations of serving and training. [docs/post-training.md#phases]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvlsim/plan/memory.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// Who generates and who trains. All must outlive it.
struct post_training_parts {
  const platform& hardware;
  const stack& rollout_stack;
  const model& rollout_model;
  const inference_workload& rollout;
  const stack& training_stack;
  const model& training_model;
  const training_workload& training;
};

/// A loop that ran, with what results need.
struct post_training_run {
  std::vector<std::string> reasons;  ///< why it cannot run; empty when it can
  std::vector<std::string> notes;
  loop_record record;
  std::int64_t rollout_gpus = 0, training_gpus = 0;
  std::int64_t workers = 1;  ///< rollout engines
  bool colocated = true;
  transfer_time transfer;
  memory_report rollout_memory, training_memory;
  bytes moved_to_cpu;  ///< of one GPU: what leaves it in a change
  seconds to_training, to_rollout;
  double tokens_per_micro_batch = 0, fill = 1;  ///< of updates, mean
  std::int64_t micro_batches = 0;               ///< of an update, on the fullest rank, mean
  joules rollout_energy, training_energy;       ///< of GPUs while they work, of the measured steps
  std::int64_t gpus() const { return colocated ? rollout_gpus : rollout_gpus + training_gpus; }
};

/// Prices the phases and plays the loop.
post_training_run run_loop(const post_training_parts& parts, const post_training_workload& w,
                           const loop_player& play = play_by_queue);

/// The forward pass alone of `micro_batches` through all stages, in the order of a pipeline.
seconds forward_time(const plan& step, std::int64_t micro_batches_planned, std::int64_t micro_batches);

}  // namespace nvlsim
