// How a layer's list of operators is put together.
#pragma once

#include <vector>

#include "training/layer_operators.hpp"

namespace nvlsim {

/// `groups` products C[m,n] = A[m,k] W[k,n].
struct gemm_size {
  double m = 0, n = 0, k = 0, groups = 1;
};

/// The operators of one layer on one GPU, appended in forward order.
class operator_list {
 public:
  operator_list(const model& m, const layer_spec& l, const training_workload& w);

  const layer_spec& layer;
  const training_workload& work;
  const token_counts tokens;
  const double hidden, tp;

  /// `again`: its forward runs again in the backward pass even when the layer is not recomputed in full.
  layer_operator& linear(const char* name, const gemm_size& s, bool again = false);
  /// `backward_share`: bytes of the backward over the forward's. [assumed]
  void stream(const char* name, double moved, bool again = false, double backward_share = 1.5);
  /// Norm of `n` tokens before a block, and the residual stream round it.
  void norm(double n);
  layer_operator& add(layer_operator::type what, const char* name, bool again);

  std::vector<layer_operator> take() { return std::move(out_); }

 private:
  double residual_bytes_;  ///< an element of the hidden state that a residual connection moves
  std::vector<layer_operator> out_;
};

/// Appends what mixes tokens in the layer, if anything does. [docs/models-and-assumptions.md#mixers]
void add_mixer(operator_list& o);

/// Keys one query sees in a layer of chosen, pooled or windowed keys, on average over a sequence of `s`.
struct mean_keys {
  double window = 0;  ///< of those nearest
  double pooled = 0;  ///< of those chosen or pooled further back
  double scored = 0;  ///< by an indexer, to choose them
};
mean_keys keys_of(const layer_spec& l, double s);
/// Whether fewer keys are attended than there are: below that, an indexer has nothing to choose.
bool attends_sparsely(const layer_spec& l, std::int64_t sequence);

}  // namespace nvlsim
