// Distribution of weights over a replica's ranks, and their formats.
#pragma once

#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// The ranks of one replica.
rank_layout ranks_of(const inference_workload& w);

/// Format of the weights with role `r`.
precision weights_of(const inference_workload& w, weight_role r);

}  // namespace nvlsim
