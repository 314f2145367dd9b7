// A layer as a list of operators: what runs forward, in order. Backward is the same list reversed.
// [docs/models-and-assumptions.md#training]
#pragma once

#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// One operator of a layer on one GPU, for one micro-batch.
struct layer_operator {
  enum class type { linear, attention, sparse_attention, indexer, scan, stream };
  type what = type::stream;
  const char* name = "";
  bool recomputed = false;  ///< its forward runs again in the backward pass
  bool experts = false;     ///< a GEMM of routed experts
  // linear: C[m,n] = A[m,k] W[k,n]
  double m = 0, n = 0, k = 0, groups = 1;
  precision operands = precision::bf16;
  attention_shape shape;          // attention
  sparse_attention_shape sparse;  // sparse_attention
  indexer_shape index;            // indexer
  scan_shape scan;                // scan
  // stream
  double forward_bytes = 0, backward_bytes = 0;
};

/// Tokens that a layer works on.
struct token_counts {
  double whole = 0;    ///< of a tensor-parallel group: micro-batch x sequence / CP
  double sharded = 0;  ///< on one GPU outside tensor-parallel regions (sequence parallelism)
  double moe = 0;      ///< entering the routed experts on one GPU
};
token_counts tokens_of(const training_workload& w);

/// `unfused_activation_passes`: of the stack, for experts with biased, clamped activations.
std::vector<layer_operator> layer_operators(const model& m, const layer_spec& l, const training_workload& w,
                                            double unfused_activation_passes);

/// Bytes a layer keeps for its backward pass, one micro-batch, one GPU. [docs/models-and-assumptions.md#memory]
bytes stored_activations(const model& m, const layer_spec& l, const training_workload& w);

/// Parameters of a layer on one GPU: replicated over the data-parallel group, and routed experts, which are shared
/// out over the expert-parallel group.
struct local_parameters {
  double dense = 0, expert = 0;
  double total() const { return dense + expert; }
};
local_parameters parameters_on_gpu(const model& m, const layer_spec& l, const parallelism& par);

/// Width that routed experts see: the latent one, or the hidden size.
double expert_width(double hidden, const layer_spec& l);

}  // namespace nvlsim
