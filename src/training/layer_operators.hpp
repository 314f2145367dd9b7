// A layer as a list of operators in forward order. Backward runs the list in reverse.
// [docs/models-and-assumptions.md#training]
#pragma once

#include <optional>
#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/layers/expert_reach.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// Blocks of a layer, in forward order: attention or a scan; then a dense MLP, or a router and what runs on the
/// copies of tokens that it sends to experts.
enum class layer_part { mixer, router, experts, mlp };

/// One operator of a layer on one GPU, for one micro-batch.
struct layer_operator {
  enum class type { linear, attention, sparse_attention, indexer, scan, stream };
  type what = type::stream;
  const char* name = "";
  bool recomputed = false;  ///< the backward pass runs its forward again
  layer_part part = layer_part::mixer;
  double launches = 1;                      ///< of the host, for kernels that are priced together
  std::optional<double> backward_launches;  ///< where they are not as many backward
  bool adapter = false;  ///< of low rank, whose weights are trained where those of the model are frozen
  // linear: C[m,n] = A[m,k] W[k,n]
  double m = 0, n = 0, k = 0, groups = 1;
  precision operands = precision::bf16;
  bool cast_input = true, cast_gradient = true;  ///< in a kernel of its own, if the format has 8 bits or fewer
  attention_shape shape;                         // attention
  sparse_attention_shape sparse;                 // sparse_attention
  indexer_shape index;                           // indexer
  scan_shape scan;                               // scan
  // stream
  double forward_bytes = 0, backward_bytes = 0;
};

/// Bytes of an element of weights and of what flows between kernels and GPUs: 4 in `fp32` and `tf32`, whose
/// tensors are FP32, else 2. Formats of fewer bits are those of products alone.
double tensor_bytes(const training_workload& w);

/// Whether a workload trains as DeepSeek's framework does with its FP8 recipe. Of what follows from the schedule,
/// this alone changes the price of a pass.
bool as_deepseek(const training_workload& w);

/// Size of the tokens that experts are sent, as a share of their size in BF16. DeepSeek's FP8 recipe sends tokens
/// and their gradients in 8 bits; experts' outputs return in 16 (DeepSeek-V3 technical report, section 3.3.3).
double dispatched_share(const training_workload& w);

/// How routers choose experts in this workload.
expert_choice choice_of(const training_workload& w, const training_profile& framework);

/// Tokens of one micro-batch that a layer processes.
struct token_counts {
  double whole = 0;    ///< per tensor-parallel group: micro-batch x sequence / CP
  double sharded = 0;  ///< per GPU outside tensor-parallel regions (sequence parallelism)
  double moe = 0;      ///< entering the routed experts, per GPU
};
token_counts tokens_of(const training_workload& w);

std::vector<layer_operator> layer_operators(const model& m, const layer_spec& l, const training_workload& w,
                                            const training_profile& framework);

/// Bytes that a layer keeps for its backward pass, per micro-batch: on the GPU, and in CPU memory by
/// `offload_modules`. [docs/models-and-assumptions.md#memory]
struct stored_bytes {
  bytes here, away;
};
stored_bytes stored_activations(const model& m, const layer_spec& l, const training_workload& w,
                                const training_profile& framework);

/// Parameters of a layer on one GPU: dense ones, replicated over the data-parallel group, and routed experts,
/// distributed over the expert-parallel group.
struct local_parameters {
  double dense = 0, expert = 0;
  double total() const { return dense + expert; }
};
local_parameters parameters_on_gpu(const model& m, const layer_spec& l, const parallelism& par);

/// Input width of routed experts: the latent width if there is one, else the hidden size.
double expert_width(double hidden, const layer_spec& l);

}  // namespace nvlsim
