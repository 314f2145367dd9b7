// Sections and picture of the result of a loop of rollouts and updates.
#pragma once

#include "nvlsim/analysis/post_training_metrics.hpp"
#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

/// Fills memory, metrics, breakdown, energy, cost, bands and notes, and the plan and timeline that traces show.
/// Only memory if the loop cannot run.
void add_post_training_sections(run_record& out, const platform& p, const post_training_workload& w,
                                const post_training_run& run);

}  // namespace nvlsim
