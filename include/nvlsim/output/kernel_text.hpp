// Formats the cost of a kernel.
#pragma once

#include <string>

#include "nvlsim/analysis/kernel_answer.hpp"
#include "nvlsim/config/value.hpp"

namespace nvlsim {

value kernel_json(const kernel_answer& a);
/// Text for a terminal of 80 columns.
std::string kernel_text(const kernel_answer& a);

}  // namespace nvlsim
