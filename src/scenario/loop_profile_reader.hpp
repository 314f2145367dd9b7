// Reading what a framework's loop costs.
#pragma once

#include <string>

#include "nvlsim/config/reader.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Reads `platforms/loops/NAME.json`, and over it the `"costs"` that the workload gives itself, into `w`.
void read_framework(config::reader& r, const config::document& doc, const data_folders& data,
                    post_training_workload& w, diagnostics& problems);
value write_costs(const loop_profile& c);

}  // namespace nvlsim
