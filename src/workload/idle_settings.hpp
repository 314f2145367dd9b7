// Settings that change nothing, so that a result can say so.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/inference.hpp"
#include "nvlsim/training.hpp"

namespace nvlsim {

/// A sentence for each setting that the model has nothing for: modules to recompute that no layer has, settings of
/// experts without experts, more layers to offload than a GPU has.
std::vector<std::string> idle_settings(const model& m, const training_workload& w);
/// The same of serving: waits for what cannot come, precisions of experts without experts, a prefix cache without prompts
/// that begin alike, a router of one lane.
std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
