// Runs one scenario.
#pragma once

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

struct run_options {
  bool explained = false;  ///< keep all iterations of inference runs and the facts of their parts
  bool traced = true;      ///< keep what traces and explanations of serving show; results do not depend on it
  bool simulate = true;    ///< false: compute `closed` runs as the longest path through the plan, which is equally
                           ///< exact and faster
};

/// Plans, simulates and measures a scenario. If the scenario cannot run (memory, layout), returns a result with
/// status `infeasible`, its reasons and memory, and an empty plan. Throws input_error if the stack lacks something
/// the scenario needs, internal_error on a defect.
run_record run_scenario(const scenario& s, const run_options& options = {});

}  // namespace nvlsim
