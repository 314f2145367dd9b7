// What one iteration of a serving engine costs on one GPU of a replica: a function of what the iteration holds.
// [docs/models-and-assumptions.md#inference-iteration]
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Of the tables of exchange kernels, the one that engines send tokens to experts with.
inline constexpr const char* dispatch_kernel = "two_sided_dispatch_bf16";

struct time_and_energy {
  seconds time;
  joules energy;
  part_facts facts = {};
};

/// An iteration, or the mean of many: the same counts, of the whole replica.
struct iteration_content {
  double decodes = 0, context = 0, prompt_tokens = 0, prompt_pairs = 0, prompts = 0, finished_prompts = 0;
};
iteration_content content_of(const iteration& it);

/// How weights of a storage format are multiplied on a GPU: block formats it lacks run in 16 bit.
struct gemm_route {
  precision operands = precision::bf16;
  double weight_element_bytes = 0;  ///< 0: that of the operands
  gemm_params params;
};

/// Iteration times of one lane. What depends only on the number of tokens is kept: gemm_cost is the dear part.
class iteration_costs {
 public:
  /// Requires `s.inference` and no `serving_problems`. `p`, `s` and `m` must outlive it.
  iteration_costs(const platform& p, const stack& s, const model& m, const inference_workload& w);

  /// Parts (host work first, then kernels in the order of a layer), duration and mean power. `explained` parts
  /// have their facts.
  work_template price(const iteration& it, bool explained = false);
  seconds time(const iteration_content& it);

 private:
  struct named_cost {
    work_kind kind;
    const char* name;
    time_and_energy cost;
    int repeat;
  };
  /// Costs of a layer that depend only on the tokens of the iteration, before and after attention.
  struct token_costs {
    std::vector<named_cost> before, after;
  };
  /// What one rank works on: that of the busiest one.
  struct rank_content {
    iteration_content it;
    double tokens = 0, expert_tokens = 0;
  };
  rank_content of_rank(const iteration_content& it) const;
  template <class Sink>
  void walk(const iteration_content& it, Sink&& sink);
  template <class Sink>
  void add_drafts(const iteration_content& all, const iteration_content& mine, Sink&& sink);
  const std::vector<token_costs>& of_tokens(std::int64_t tokens, std::int64_t expert_tokens);
  token_costs layer_costs(const layer_slice& l, double tokens, double expert_tokens) const;
  void add_experts(const layer_slice& l, double tokens, double expert_tokens, std::vector<named_cost>& out) const;
  time_and_energy lm_head(std::int64_t rows);
  time_and_energy gemm(const gemm_route& r, const gemm_shape& s) const;
  time_and_energy elementwise(const layer_slice& l, double rows) const;
  time_and_energy all_reduce(double rows, double width) const;
  time_and_energy stage_send(double rows, bool leaves_domain) const;
  int sends_out() const;
  seconds stage_wait(seconds layers, seconds head) const;
  time_and_energy exchange(const layer_slice& l, double tokens) const;
  time_and_energy prefill_attention(const layer_slice& l, const iteration_content& it) const;
  time_and_energy decode_attention(const layer_slice& l, const iteration_content& it) const;
  void add_scores(kernel_cost& c, const layer_spec& l, double tokens, double scored) const;
  void add_scores_read(kernel_cost& c, const layer_spec& l, const decode_shape& s, double scored) const;
  static double compressed_keys(const layer_spec& l, double context);
  time_and_energy prefill_mixer(const layer_slice& l, const iteration_content& it) const;
  decode_shape one_vector(const layer_slice& l, double batch, double keys, double elements) const;
  kernel_cost one_vector_decode(const decode_shape& s, double products) const;
  time_and_energy compressed_decode(const layer_slice& l, double batch, double context) const;
  time_and_energy latent_decode(const layer_slice& l, double batch, double context) const;
  time_and_energy recurrence(const layer_slice& l, const iteration_content& it) const;
  time_and_energy timed(precision operands, const kernel_cost& c) const;
  time_and_energy transferred(const priced_transfer& t, bytes moved) const;

  const platform& platform_;
  const stack& stack_;
  const model& model_;
  inference_workload work_;
  engine_costs costs_;
  seconds sequence_host_, request_host_;
  double most_in_graph_ = 0;  ///< decodes of an iteration that has a CUDA graph
  kernel_profile kernels_;
  std::map<weight_role, gemm_route> routes_;  ///< at the rates the engine reaches over a long run
  attention_params attention_;
  kernel_profile decode_;   ///< kernels of decode attention for the format of the cache, at the engine's rates
  double busy_stages_ = 1;  ///< of a pipeline: micro-batches that are in it at once
  stream_params stream_;
  std::vector<layer_slice> slices_;  ///< of the model, and from `layers_` on of the module that drafts
  std::size_t layers_;
  std::unordered_map<std::int64_t, std::vector<token_costs>> by_tokens_;  ///< one entry a slice
  std::unordered_map<std::int64_t, time_and_energy> by_rows_;
};

}  // namespace nvlsim
