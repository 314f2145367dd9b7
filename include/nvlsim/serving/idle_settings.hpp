// Serving settings without effect, for the notes of a result.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// One sentence per setting without effect: waits that never happen, expert precisions of a dense model, a prefix
/// cache without shared prefixes, a router with a single replica.
std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
