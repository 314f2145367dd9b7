// Distribution of weights over a replica's ranks, and their formats.
#pragma once

#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// The ranks of one replica.
rank_layout ranks_of(const inference_workload& w);

/// Format of the weights with role `r`.
precision weights_of(const inference_workload& w, weight_role r);

/// Whether LoRA adapters have a part beside this matrix: projections of attention and of dense MLPs.
bool adapted(const rank_gemm& g);

/// The workload as a draft model sees it: 16-bit weights on the same ranks, without drafts, adapters and images.
inference_workload draft_workload(const inference_workload& w);

/// The layer that EAGLE-3 drafts with, as a model: a dense layer as wide as the model, and a vocabulary of its
/// own.
model eagle_layer(const model& m);

}  // namespace nvlsim
