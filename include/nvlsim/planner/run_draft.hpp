// Scenarios of one layout, from options: `nvlsim run --model ... --tp 8`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// An option that a scenario is made of.
struct draft_option {
  const char* name;      ///< "--tp"
  const char* training;  ///< the pointer in a training scenario; empty: it has none
  const char* serving;   ///< the pointer in a serving scenario; empty: it has none
  const char* help;
  const char* what = "N";
};
/// All of them. `--model`, `--platform`, `--gpus` and `--stack` are of both kinds.
const std::vector<draft_option>& draft_options();

/// The text of a scenario from options and their texts. The kind is serving where an option that only servers have
/// is given. Sizes that follow from others (data parallel ranks, replicas, racks) are computed. What was taken for
/// granted is added to `assumed`; every problem to `problems`.
value draft_run(const std::vector<std::pair<std::string, std::string>>& given, const data_folders& data,
                std::vector<std::string>& assumed, diagnostics& problems);

}  // namespace nvlsim
