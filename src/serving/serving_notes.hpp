// What a served run assumes, in sentences for its notes.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// `workers`: of the pool that decodes.
std::vector<std::string> serving_notes(const serving_case& c, std::int64_t workers);

}  // namespace nvlsim
