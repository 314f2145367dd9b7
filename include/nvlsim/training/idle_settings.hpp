// Training settings that change nothing, so that a result can say so.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// A sentence for each setting that the model has nothing for: modules to recompute that no layer has, settings of
/// experts without experts, more layers to offload than a GPU has.
std::vector<std::string> idle_settings(const model& m, const training_workload& w);

}  // namespace nvlsim
