// Building a layer's list of operators.
#pragma once

#include <optional>
#include <vector>

#include "training/layer_operators.hpp"

namespace nvlsim {

/// A count as a factor.
inline double real(std::int64_t x) { return static_cast<double>(x); }

/// `groups` products C[m,n] = A[m,k] W[k,n].
struct gemm_size {
  double m = 0, n = 0, k = 0, groups = 1;
};

/// Operators of one layer on one GPU, in forward order.
class operator_list {
 public:
  operator_list(const model& m, const layer_spec& l, const training_workload& w);

  const layer_spec& layer;
  const training_workload& workload;
  const token_counts tokens;
  const double hidden, tp;
  layer_part part = layer_part::mixer;  ///< of the operators that are added next

  /// `again`: the backward pass recomputes it even without full recompute.
  layer_operator& linear(const char* name, const gemm_size& s, bool again = false);
  /// The adapter of a projection of size `s`, if the workload has adapters there (`target`): two narrow products
  /// in 16 bits, whose result is added to that of the projection.
  void adapt(bool target, const gemm_size& s);
  /// Runs `o` in the format that a recipe keeps it in, if it keeps one.
  void keep(layer_operator& o, const std::optional<precision>& format) const;
  /// `backward_share`: bytes of the backward pass over those of the forward pass. [assumed]
  layer_operator& stream(const char* name, double moved, bool again = false, double backward_share = 1.5);
  /// Norm of `n` tokens before a block, with the block's residual connection.
  void norm(double n);
  layer_operator& add(layer_operator::type what, const char* name, bool again);

  std::vector<layer_operator> take() { return std::move(out_); }

 private:
  /// Bytes that a residual connection moves per element of the hidden state.
  double residual_bytes_, residual_backward_bytes_;
  std::vector<layer_operator> out_;
};

/// Appends the token mixer of the layer (attention or scan), if it has one.
/// [docs/models-and-assumptions.md#mixers]
void add_mixer(operator_list& o);

/// Mean keys per query over a sequence of `s` tokens, in layers with selected, pooled or windowed keys.
struct mean_keys {
  double window = 0;  ///< nearest keys
  double pooled = 0;  ///< selected or pooled keys further back
  double scored = 0;  ///< keys that an indexer scores
};
mean_keys keys_of(const layer_spec& l, double s);
/// Whether queries attend to fewer keys than there are. Otherwise an indexer has nothing to select.
bool attends_sparsely(const layer_spec& l, std::int64_t sequence);

}  // namespace nvlsim
