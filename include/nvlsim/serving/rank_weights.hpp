// How a replica's ranks share weights, and the formats they keep them in.
#pragma once

#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// The ranks of one replica.
rank_layout ranks_of(const inference_workload& w);

/// Format of the weights of a role.
precision weights_of(const inference_workload& w, weight_role r);

}  // namespace nvlsim
