// Which constants of platform and stack a run made use of.
#pragma once

#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The constants that the metrics of a run depend on, in the order of the files. The run needs facts
/// (`run_options::explained`).
std::vector<input_constant> used_constants(const scenario& s, const run_record& run);

}  // namespace nvlsim
