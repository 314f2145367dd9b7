// Running one scenario from start to result.
#pragma once

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

struct run_options {
  bool explained = false;  ///< what inference runs did is kept whole, with the facts of its parts
  bool engine =
      true;  ///< false: `closed` runs take the longest path through the plan, which is as exact and quicker
};

/// Plans, simulates and measures a scenario. A scenario that cannot run (memory, layout) gives a result of status
/// `infeasible` with its reasons and memory, and an empty plan. Throws input_error when the stack lacks what the
/// scenario needs, internal_error for a defect.
run_record run_scenario(const scenario& s, const run_options& options = {});

}  // namespace nvlsim
