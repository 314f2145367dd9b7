// Runs a loop of rollouts and updates.
#pragma once

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Prices the phases of the loop, plays it, with actors if `simulate`, and measures.
void run_post_training(run_record& out, const scenario& s, const post_training_case& c, bool simulate);

}  // namespace nvlsim
