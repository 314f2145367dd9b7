// Serving settings that change nothing, so that a result can say so.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// A sentence for each setting without effect: waits for what cannot come, precisions of experts without experts,
/// a prefix cache without prompts that begin alike, a router in front of one replica.
std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
