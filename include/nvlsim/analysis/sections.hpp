// Sections of a result.
#pragma once

#include <string>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/plan/memory.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/serving.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

value memory_section(const memory_report& m);
/// Why a training step does not fit, with what takes the memory, and whether that is closer than is known.
std::string too_large(const memory_report& m);

/// Fills metrics, breakdown, energy, cost and bands of a training step; `band` is where 90 % of steps lie.
void add_training_sections(result& r, const platform& p, const model& m, const training_workload& w,
                           const plan& work, const timeline& times, const memory_report& memory, step_band band);
/// The same of an inference run.
void add_inference_sections(result& r, const platform& p, const inference_workload& w, const inference_run& run,
                            const timeline& times);
/// The same of a run with a clock, and its status when it is saturated.
void add_serving_sections(result& r, const platform& p, const inference_workload& w, const serving_run& run);
/// Metrics and breakdown of a collective that took `time`.
void add_collective_sections(result& r, const collective_workload& w, const collective_run& run, seconds time);

}  // namespace nvlsim
