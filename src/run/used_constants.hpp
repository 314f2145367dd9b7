// Constants of platform and stack that a run used.
#pragma once

#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Constants that the metrics of a run depend on, in file order. The run needs facts (`run_options::explained`).
std::vector<input_constant> used_constants(const scenario& s, const run_record& run);

}  // namespace nvlsim
