// What a framework's loop of rollouts and updates costs, by the name of its file.
#pragma once

#include <string>

#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Reads `platforms/loops/NAME.json`. Throws input_error with all problems.
loop_profile load_loop_profile(const std::string& name, const data_folders& data);

}  // namespace nvlsim
