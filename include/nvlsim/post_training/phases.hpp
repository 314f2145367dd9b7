// Times of a loop's phases, from simulations of serving and training. [docs/post-training.md#phases]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvlsim/plan/memory.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// The parts that generate and train. They must outlive this struct.
struct post_training_parts {
  const platform& hardware;
  const stack& rollout_stack;
  const model& rollout_model;
  const inference_workload& rollout;
  const stack& training_stack;
  const model& training_model;
  const training_workload& training;
};

/// A finished loop, with the figures that results need.
struct post_training_run {
  std::vector<std::string> reasons;  ///< why it cannot run; empty if it can
  std::vector<std::string> notes;
  loop_record record;
  std::int64_t rollout_gpus = 0, training_gpus = 0;
  std::int64_t workers = 1;  ///< rollout engines
  bool colocated = true;
  transfer_time transfer;
  memory_report rollout_memory, training_memory;
  bytes moved_to_cpu;  ///< per GPU and switch between rollout and training
  bytes visitors;      ///< weights per GPU of models that visit the trainer's GPUs, else in CPU memory
  seconds to_training, to_rollout;
  double tokens_per_micro_batch = 0, fill = 1;  ///< mean over updates
  std::int64_t micro_batches = 0;               ///< per update on the fullest rank, mean
  double updates = 0;                           ///< of the policy, per step
  double critic_share = 0, copy_share = 0;      ///< of the time of updates; the rest is the policy's
  joules rollout_energy, training_energy;       ///< of working GPUs, in the measured steps
  seconds training_computes;                    ///< time in the measured steps that `training_energy` covers
  std::int64_t gpus() const { return colocated ? rollout_gpus : rollout_gpus + training_gpus; }
};

/// Simulates the phases and runs the loop.
post_training_run run_loop(const post_training_parts& parts, const post_training_workload& w,
                           const loop_player& play = play_by_queue);

/// Time in which new weights reach the engines. The parts' layouts need not fit.
transfer_time weight_transfer_time(const post_training_parts& parts, const post_training_workload& w);

/// Time of forward passes alone: `micro_batches` micro-batches through all pipeline stages.
seconds forward_time(const plan& step, std::int64_t micro_batches_planned, std::int64_t micro_batches);

}  // namespace nvlsim
