// Lines of plans.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim {

/// Text wrapped to the terminal, indented; later lines two columns more.
std::string lines_of(const std::string& text, std::size_t indent);
std::string joined(const std::vector<std::string>& texts);
value list_of_texts(const std::vector<std::string>& texts);

}  // namespace nvlsim
