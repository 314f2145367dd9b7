// Reading loops of rollouts and updates.
#pragma once

#include "scenario/nested_reader.hpp"

namespace nvlsim {

/// Reads `/workload` of kind "post_training" of a scenario on platform `p`: the loop, and its members `rollout`
/// and `training`, which are scenarios of their own.
post_training_case read_post_training(config::reader& r, const config::document& doc, const platform& p,
                                      const scenario_reader& read_alone, diagnostics& problems);
value write_post_training(const post_training_case& c);

}  // namespace nvlsim
