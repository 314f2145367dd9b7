// What differs between the inputs of two results.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim::analysis {

/// One input, by the pointer that `--set` takes. A null is a value that is not there.
struct input_change {
  std::string pointer;
  value a, b;
};

/// Compares the `inputs` sections of two results: values, not their sources, and neither names nor descriptions of
/// scenarios. Where another platform, stack or model is named, what differs inside it is left out. When only a
/// digest differs, because a result holds no more, the change is of that digest.
std::vector<input_change> changed_inputs(const value& a, const value& b);

}  // namespace nvlsim::analysis
