// Weights of the parts of a layer. [docs/models-and-assumptions.md#flops]
#pragma once

#include <array>
#include <numeric>

#include "nvlsim/model/matrices.hpp"

namespace nvlsim {

/// Parameters of the matrices of a layer, by part.
struct matrix_counts {
  std::array<std::int64_t, 4> parts = {};
  std::int64_t& operator[](matrix_part p) { return parts[static_cast<std::size_t>(p)]; }
  std::int64_t operator[](matrix_part p) const { return parts[static_cast<std::size_t>(p)]; }
  std::int64_t all() const { return std::accumulate(parts.begin(), parts.end(), std::int64_t{}); }
};
matrix_counts count_matrices(const layer_spec& l, std::int64_t hidden);
/// Weights of the short convolution before a scan.
std::int64_t convolution_weights(const layer_spec& l);

std::int64_t norm_weights(const model& m, const layer_spec& l);
/// Gains of the norms between low-rank projections, which Megatron-Bridge counts as one multiply-add each.
std::int64_t rank_norm_weights(const layer_spec& l);

/// Width of the queries, or values, of all heads.
std::int64_t query_width(const layer_spec& l);
/// Width of the values that a scan carries.
std::int64_t scan_width(const scan_spec& s);

}  // namespace nvlsim
