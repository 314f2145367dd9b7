// What one iteration of a serving engine costs on one GPU of a replica: a function of what the iteration holds.
// [docs/models-and-assumptions.md#inference-iteration]
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "nvlsim/compute.hpp"
#include "nvlsim/inference.hpp"

namespace nvlsim {

/// Equal layers, as one tensor-parallel rank sees them.
struct layer_slice {
  int layers = 0;
  double heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  bool gated = true;

  double qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  double up_width() const { return gated ? 2 * ffn : ffn; }
  /// Weights of the four GEMMs of one layer.
  double gemm_weights(double hidden) const { return hidden * (qkv_width() + heads * head_dim + up_width() + ffn); }
};
/// Layers of `m` by shape. KV heads are replicated on ranks that have less than one.
std::vector<layer_slice> slice_layers(const model& m, int tp);

struct time_and_energy {
  seconds time;
  joules energy;
};

/// Iteration times of one replica. What depends only on the number of tokens is kept: gemm_cost is the dear part.
class iteration_costs {
 public:
  /// Requires `s.inference`, and GEMM parameters of `w.weights` and BF16 for the GPU, which must outlive it.
  iteration_costs(const platform& p, const stack& s, const model& m, const inference_workload& w);

  /// Parts (host work first, then kernels in the order of a layer), duration and mean power.
  work_template price(const iteration& it);

 private:
  /// Costs of one layer that depend only on the tokens of the iteration.
  struct token_costs {
    time_and_energy qkv, out, up, down, elementwise, all_reduce;
  };
  const std::vector<token_costs>& of_tokens(std::int64_t count);
  time_and_energy lm_head(std::int64_t rows);
  time_and_energy gemm(precision operands, double m, double n, double k) const;
  time_and_energy elementwise(const layer_slice& l, double rows) const;
  time_and_energy all_reduce(double rows) const;
  time_and_energy prefill_attention(const layer_slice& l, const iteration& it) const;
  time_and_energy decode_attention(const layer_slice& l, const iteration& it) const;
  time_and_energy timed(precision operands, const kernel_cost& c) const;

  const platform& platform_;
  const stack& stack_;
  const model& model_;
  const inference_workload& work_;
  const inference_profile& engine_;
  std::map<precision, gemm_params> gemms_;  ///< at the rates the engine reaches over a long run
  attention_params attention_;
  decode_params decode_;
  stream_params stream_;
  std::vector<layer_slice> slices_;
  std::unordered_map<std::int64_t, std::vector<token_costs>> by_tokens_;  ///< one entry a slice
  std::unordered_map<std::int64_t, time_and_energy> by_rows_;
};

}  // namespace nvlsim
