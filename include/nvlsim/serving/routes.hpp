// Choice of GEMM kernels by weight format and GPU.
#pragma once

#include <optional>

#include "nvlsim/serving/iteration_time.hpp"

namespace nvlsim {

/// The factor for `k`; 1 if not given.
template <class Map, class Key>
constant<double> factor_of(const Map& m, const Key& k) {
  const auto it = m.find(k);
  return it == m.end() ? constant<double>(1) : it->second;
}

/// The format whose factors price a model's weights. No dense model in block-scaled FP8 was measured, and the
/// factor fitted on models with experts covers more than GEMMs. [docs/models-and-assumptions.md#inference-formats]
precision priced_as(const model& m, precision weights);

/// Engine costs for a model on a GPU. The factor of block-scaled FP8 is fitted on models with experts, where it
/// covers more than GEMMs; dense models use the factor of FP8. Requires `s.inference`.
/// [docs/models-and-assumptions.md#inference-formats]
engine_costs costs_for(const stack& s, const gpu_spec& gpu, const model& m);

struct stored_weights {
  weight_role role;
  precision format;
};

/// Nothing when the stack has no kernel for it.
std::optional<gemm_route> route_gemm(const gpu_spec& gpu, const kernel_profile& k, const engine_costs& c,
                                     stored_weights w, const constant<double>& sustained);

}  // namespace nvlsim
