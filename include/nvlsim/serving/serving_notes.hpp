// Notes of a served run: what it assumes, and which settings have no effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// What a run assumes, one sentence each. `workers`: of the pool that decodes.
std::vector<std::string> serving_notes(const serving_case& c, std::int64_t workers);

/// One sentence per setting without effect: waits that never happen, expert precisions of a dense model, a prefix
/// cache without shared prefixes, a router with a single replica.
std::vector<std::string> idle_settings(const stack& s, const model& m, const inference_workload& w);

}  // namespace nvlsim
