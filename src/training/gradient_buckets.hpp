// Gradient buckets: groups of layers of a model chunk that data parallelism reduces and gathers together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "training/pass_costs.hpp"

namespace nvlsim {

/// The distinct layers of a model, and the kind of each layer (multi-token-prediction layers last). If some layers
/// are not recomputed, or kept in BF16, their kinds follow the others: `distinct` once for each workload that
/// differs.
struct layer_kinds {
  std::vector<layer_spec> distinct;
  std::vector<training_workload> workloads;  ///< the first is the step's
  std::vector<std::size_t> of_layer;

  std::size_t count() const { return distinct.size() * workloads.size(); }
  const layer_spec& spec(std::size_t kind) const { return distinct[kind % distinct.size()]; }
};

layer_kinds kinds_of(const model& m, const training_workload& w);

/// Consecutive layers of one chunk that are reduced or gathered together. Layers are counted by kind, in order of
/// first appearance in the model.
struct bucket {
  std::vector<std::int64_t> layers;  ///< number of layers by kind
  bool embedding = false, head = false;
  local_parameters parameters;  ///< on one GPU
};

/// Splits a chunk's layers (given by kind) into buckets of nearly equal size.
std::vector<bucket> buckets_of(const training_context& c, const layer_kinds& kinds,
                               std::span<const std::size_t> layers, bool embedding, bool head);
/// Merges all buckets of a chunk into one.
bucket merged(const std::vector<bucket>& buckets);

/// Whether updated parameters are gathered once, at the start of a step.
bool gathers_once(data_parallel_sharding s);

}  // namespace nvlsim
