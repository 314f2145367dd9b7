// Building a layer's list of operators, with what each keeps for the backward pass.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "nvlsim/model/attended_keys.hpp"
#include "nvlsim/model/matrices.hpp"
#include "training/layer_operators.hpp"

namespace nvlsim {

/// A count as a factor.
inline double real(std::int64_t x) { return static_cast<double>(x); }

/// `groups` products C[m,n] = A[m,k] W[k,n].
struct gemm_size {
  double m = 0, n = 0, k = 0, groups = 1;
};

/// Bytes per element of what is kept for the backward pass.
struct stored_formats {
  double operand = 2;          ///< of a GEMM, as the recipe quantises it
  double attention_input = 2;  ///< inputs of GEMMs; 0: frozen weights need none
  double mlp_input = 2, mlp_product = 2;
  double activation_input = 2;  ///< of the MLP of a dense layer
  double inner = 2;             ///< of experts and shared experts, before their activation
  double expert_output = 0;
  double score = 0;  ///< of attention that is not fused
};
stored_formats stored_formats_of(const training_workload& w, const training_profile& framework);

/// What a norm keeps: its input, and its output where a GEMM needs it.
struct kept_by_norm {
  bool alone = false;  ///< a kernel of its own, which can be computed again; else part of the next projection
  double output = 0;   ///< bytes per element
  bool input_away = false, output_away = false;  ///< offloaded to CPU memory
  bool streams_again = false;                    ///< copies of several residual streams are computed again
};

/// How ranks divide a projection with an adapter: its outputs or its inputs.
enum class adapted_side { column, row };

/// Operators of one layer on one GPU, in forward order.
class operator_list {
 public:
  operator_list(const model& m, const layer_spec& l, const training_workload& w,
                const training_profile& framework);

  const layer_spec& layer;
  const training_workload& workload;
  const training_profile& framework;
  const token_counts tokens;
  const double hidden, tp;
  const stored_formats kept;
  layer_part part = layer_part::mixer;  ///< of the operators that are added next

  /// The GEMM of these matrices, which have one input, in forward order. Matrices that ranks divide work on all
  /// tokens of their group, others on a rank's own. Matrices that the layer lacks are skipped. `again`: the
  /// backward pass recomputes it even without full recompute.
  layer_operator& project(std::initializer_list<matrix> all, bool again = false);
  layer_operator& linear(const char* name, const gemm_size& s, bool again = false);
  /// Width of a matrix's output on this rank; 0 if the layer lacks it.
  double width_of(matrix name) const;
  /// The adapter of a projection, if the workload has adapters there (`target`): two narrow products in 16 bits,
  /// whose result is added to that of the projection.
  void adapt(bool target, layer_operator projection, adapted_side side);
  /// Sets the format of `o`'s operands to `format`, if given and the recipe's GEMMs are not in BF16.
  void run_in(layer_operator& o, const std::optional<precision>& format) const;
  /// `moved`: bytes read and written if tensors have 16 bits. `backward_share`: how many times these the backward
  /// pass moves. [assumed]
  layer_operator& stream(const char* name, double moved, bool again = false, double backward_share = 1.5);
  /// Norm of `n` tokens before a block, with the block's residual connection.
  void norm(double n, const kept_by_norm& k);
  layer_operator& add(layer_operator::type what, const char* name, bool again);
  /// Keeps bytes for the backward pass, of tensors of 16 bits, in CPU memory if they are `offloaded`.
  void keep(double size, bool offloaded = false) { (offloaded ? away_ : here_) += size * wider_; }

  std::vector<layer_operator> take() { return std::move(out_); }
  stored_bytes stored() const { return {bytes::from_base(here_), bytes::from_base(away_)}; }

 private:
  std::vector<weight_matrix> matrices_;
  double streams_;  ///< residual streams
  double wider_;    ///< size of tensors over that of 16 bits
  /// Bytes that a residual connection moves per element of the hidden state.
  double residual_bytes_, residual_backward_bytes_;
  std::vector<layer_operator> out_;
  double here_ = 0, away_ = 0;
};

/// Whether `lora` trains an adapter beside a matrix of the layer: linear_qkv, linear_proj, linear_fc1 and
/// linear_fc2 of Megatron-Core, which scans do not have.
bool adapted(const layer_spec& l, const lora_spec& lora, matrix name);

/// Appends the token mixer of the layer (attention or scan), if it has one.
/// [docs/models-and-assumptions.md#mixers]
void add_mixer(operator_list& o);

}  // namespace nvlsim
