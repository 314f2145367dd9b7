// Weights of the parts of a layer. [docs/models-and-assumptions.md#flops]
#pragma once

#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// Projections of the token mixer, including those of an indexer and of a compressor.
std::int64_t mixer_projections(const model& m, const layer_spec& l);
/// Weights of the short convolution before a scan.
std::int64_t convolution_weights(const layer_spec& l);

std::int64_t norm_weights(const model& m, const layer_spec& l);
/// Gains of the norms between low-rank projections, which Megatron-Bridge counts as one multiply-add each.
std::int64_t rank_norm_weights(const layer_spec& l);

/// The dense MLP, or shared experts with the projections to and from the latent width.
std::int64_t mlp_weights(const model& m, const layer_spec& l);
std::int64_t router_weights(const model& m, const layer_spec& l);
/// One routed expert.
std::int64_t expert_weights(const model& m, const layer_spec& l);

/// Width of the queries, or values, of all heads.
std::int64_t query_width(const layer_spec& l);
/// Width of the values that a scan carries.
std::int64_t scan_width(const scan_spec& s);

}  // namespace nvlsim
