// The layers of a training step's model chunks, in the buckets that data parallelism reduces and gathers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "training/pass_costs.hpp"

namespace nvlsim {

/// The distinct layers of a model, and of each layer (multi-token-prediction layers last) which of them it is.
/// Where a part of the layers is recomputed, the kinds that are not follow those that are.
struct layer_kinds {
  std::vector<layer_spec> distinct;
  std::vector<std::size_t> of_layer;
  std::size_t count = 0;

  const layer_spec& spec(std::size_t kind) const { return distinct[kind % distinct.size()]; }
};

layer_kinds kinds_of(const model& m, const training_workload& w);

/// A run of layers of one chunk that data parallelism reduces or gathers as one bucket. Layers are counted by
/// kind: kinds are the distinct layers of the model in order of appearance.
struct bucket {
  std::vector<std::int64_t> layers;  ///< by kind
  bool embedding = false, head = false;
  local_parameters parameters;  ///< on one GPU
};

/// Cuts a chunk's layers (kinds in order) into buckets of nearly equal numbers of layers.
std::vector<bucket> buckets_of(const training_context& c, const layer_kinds& kinds,
                               std::span<const std::size_t> layers, bool embedding, bool head);
/// A chunk's buckets as one.
bucket merged(const std::vector<bucket>& buckets);

/// Whether updated parameters are gathered at the start of a step, to stay until its end.
bool gathers_once(data_parallel_sharding s);

}  // namespace nvlsim
