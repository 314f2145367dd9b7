// Which GEMM kernel multiplies weights of a storage format on a GPU.
#pragma once

#include <optional>

#include "nvlsim/serving/iteration_time.hpp"

namespace nvlsim {

/// Where a factor has not been identified it is one.
template <class Map, class Key>
double factor_of(const Map& m, const Key& k) {
  const auto it = m.find(k);
  return it == m.end() ? 1.0 : it->second;
}

/// The format whose factors price weights of a model: no dense model in block-scaled FP8 was measured, and those
/// with experts show more than its GEMMs. [docs/models-and-assumptions.md#inference-formats]
precision priced_as(const model& m, precision weights);

/// What the engine takes to serve a model on a GPU. The factor of block-scaled FP8 is fitted on models with
/// experts, where it stands for more than its GEMMs; a dense model takes that of FP8. Requires `s.inference`.
/// [docs/models-and-assumptions.md#inference-formats]
engine_costs costs_for(const stack& s, const gpu_spec& gpu, const model& m);

struct stored_weights {
  weight_role role;
  precision format;
};

/// Nothing when the stack has no kernel for it.
std::optional<gemm_route> route_gemm(const gpu_spec& gpu, const kernel_profile& k, const engine_costs& c,
                                     stored_weights w, double sustained);

}  // namespace nvlsim
