// Results that no machine can have.
#pragma once

#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

/// Adds a note, before the others, for each metric with a value that cannot be: MFU above 1, times below zero or
/// above a hundred years. Takes away the bands of these metrics, which would call the value certain.
void mark_impossible(result& r);

}  // namespace nvlsim
