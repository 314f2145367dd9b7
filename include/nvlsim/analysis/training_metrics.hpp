// Metrics of a training step, computed from its timeline.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "nvlsim/analysis/job_energy.hpp"
#include "nvlsim/facility/site_figures.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/training/step_cache.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// Time of one class's step by what its compute stream did or waited for. The parts add up to the step time.
struct stage_breakdown {
  std::array<seconds, part_kinds>
      busy{};                     ///< by part_kind; includes waits inside operations (exposed collectives)
  seconds waiting_pipeline;       ///< idle, waiting for another stage to compute: the bubble
  seconds waiting_sends;          ///< idle, while what it needs was being sent from stage to stage
  seconds waiting_collectives;    ///< idle, while a stage that it depends on waited for its own collectives
  seconds waiting_data_parallel;  ///< idle, waiting for gradients or parameters
  joules energy;                  ///< of one GPU
};

/// One breakdown per class, in class order.
std::vector<stage_breakdown> stage_breakdowns(const plan& planned, const timeline& times, const gpu_spec& gpu);

struct training_metrics {
  seconds step_time;
  double tokens_per_step = 0;
  double model_flops_causal = 0, model_flops_full = 0;  ///< per step, all GPUs
  std::int64_t gpus = 0;
  std::optional<double> mfu;      ///< empty when the GPU has no tensor-core peak in the GEMM precision
  double bubble_fraction = 0;     ///< share of the step spent waiting for stages to compute, mean over GPUs
  seconds exposed_communication;  ///< waits for communication, own or of other stages; mean over GPUs
  stage_breakdown mean;           ///< over GPUs
  job_energy energy;
  std::optional<dollars> cost;
  std::optional<double> token_budget;  ///< of the whole training run
  bytes memory_peak;                   ///< of the fullest GPU; left to who knows the memory report
  std::optional<site_figures> site;    ///< of a step; left to who knows the facility
};
training_metrics measure_training(const platform& p, const model& m, const training_workload& w,
                                  const plan& planned, const timeline& times);

/// As measure_training, from the makespan alone: waits are not told apart, so that `bubble_fraction`,
/// `exposed_communication` and the waits of `mean` stay zero.
training_metrics measure_training_totals(const platform& p, const model& m, const training_workload& w,
                                         const step_cost& step);

/// FLOPs of one step as Megatron-Bridge counts them: LoRA has no weight gradient of frozen layers.
double model_flops_per_step(const model& m, const training_workload& w, bool causal);

}  // namespace nvlsim
