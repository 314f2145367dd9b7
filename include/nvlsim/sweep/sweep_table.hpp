// What the points of a sweep gave, for a terminal.
#pragma once

#include <map>
#include <string>

#include "nvlsim/sweep/sweep.hpp"

namespace nvlsim {

/// A table of at most 80 columns: a row for each point that ran, with the settings that differ and the main
/// metrics of its kind. The first twenty points; a line counts the others. `records` are those of `read_records`.
/// Empty if no point ran.
std::string sweep_table(const sweep_plan& plan, const std::map<std::string, value>& records);

}  // namespace nvlsim
