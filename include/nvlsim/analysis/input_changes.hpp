// Differences between the inputs of two results.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim::analysis {

/// One changed input, named by the pointer that `--set` takes. An absent value is null.
struct input_change {
  std::string pointer;
  value a, b;
};

/// Compares the `inputs` sections of two results. Ignores the sources of values and the names and descriptions of
/// scenarios. If the two name different platforms, stacks or models, reports the names and not the differences
/// inside. If only a digest differs, reports the digest: the result holds nothing more specific.
std::vector<input_change> changed_inputs(const value& a, const value& b);

}  // namespace nvlsim::analysis
