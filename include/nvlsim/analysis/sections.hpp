// Builds the sections of a result.
#pragma once

#include <string>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/facility/site_figures.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/plan/memory.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/serving.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

value memory_section(const memory_report& m);
/// Says why a training step does not fit: what takes the memory, and whether the excess is within the error of the
/// estimate.
std::string too_large(const memory_report& m);
/// What is said of a layout whose memory is nearer to the usable bytes than the error of the estimate.
std::string tight_fit(const memory_report& m);

/// The site of a step.
struct site_of_step {
  const facility_spec& facility;
  power_figures power;
};
/// A training step that ran.
struct finished_step {
  const platform& hardware;
  const model& net;
  const training_workload& workload;
  const plan& planned;
  const timeline& times;
  const memory_report& memory;
  const site_of_step* site = nullptr;  ///< if the scenario describes it
};
/// Fills metrics, breakdown, energy, cost and bands for a training step. `band` is the 90 % band of the step time.
void add_training_sections(result& r, const finished_step& s, step_band band);
/// What an inference run achieved and took.
served_metrics measure_served(const platform& p, const inference_workload& w, const serving_run& run,
                              const facility_spec* site);
/// Puts the memory of `run` in place of that of the equal run that `m` is of.
void use_memory_of(served_metrics& m, const serving_run& run);
/// Fills the same sections for an inference run. Sets the status if the server is saturated.
void add_inference_sections(result& r, const platform& p, const inference_workload& w, const serving_run& run,
                            const facility_spec* site = nullptr);
/// Fills metrics and breakdown for a collective that took `time`.
void add_collective_sections(result& r, const collective_workload& w, const collective_run& run, seconds time);

}  // namespace nvlsim
