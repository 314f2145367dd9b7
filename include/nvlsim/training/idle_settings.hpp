// Training settings without effect, for the notes of a result.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// One sentence per setting without effect: recomputed modules that no layer has, expert settings of a dense
/// model, more offloaded layers than a GPU holds, adapters whose rank is not stated.
std::vector<std::string> idle_settings(const model& m, const training_workload& w);

}  // namespace nvlsim
