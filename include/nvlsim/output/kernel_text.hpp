// The price of a kernel as text.
#pragma once

#include <string>

#include "nvlsim/analysis/kernel_answer.hpp"
#include "nvlsim/config/value.hpp"

namespace nvlsim {

value kernel_json(const kernel_answer& a);
/// For a terminal of 80 columns.
std::string kernel_text(const kernel_answer& a);

}  // namespace nvlsim
