// Reading loops of rollouts and updates.
#pragma once

#include "scenario/nested_reader.hpp"

namespace nvlsim {

/// Reads `/workload` of kind "post_training" of a scenario: the loop, its framework, of which the folders have a
/// file, and its members `rollout` and `training`, which are scenarios of their own. The loop gives the load of
/// rollouts, and the batch of training.
post_training_case read_post_training(config::reader& r, const config::document& doc, const data_folders& data,
                                      const scenario_reader& read_alone, diagnostics& problems);
value write_post_training(const post_training_case& c);

}  // namespace nvlsim
