// Cost of one iteration of a serving engine on one GPU of a replica, as a function of the iteration's content.
// [docs/models-and-assumptions.md#inference-iteration]
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/plan/network_demand.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Exchange kernel that serving engines dispatch tokens with.
inline constexpr const char* dispatch_kernel = "two_sided_dispatch_bf16";

struct time_and_energy {
  seconds time;
  joules energy;
  part_facts facts = {};
};

/// Content of an iteration, or the mean over many, for a whole replica.
struct iteration_content {
  double decodes = 0, context = 0, prompt_tokens = 0, prompt_pairs = 0, prompts = 0, finished_prompts = 0;
};
iteration_content content_of(const iteration& it);

/// How a GPU multiplies weights of a storage format. Block formats that it lacks run in 16 bits.
struct gemm_route {
  precision operands = precision::bf16;
  double weight_element_bytes = 0;  ///< 0: as the operands
  gemm_params params;
};

/// Iteration times of one worker. Caches costs that depend only on the number of tokens, because gemm_cost is
/// expensive.
class iteration_costs {
 public:
  /// Requires `s.inference` and no `serving_problems`. `p`, `s` and `m` must outlive it.
  iteration_costs(const platform& p, const stack& s, const model& m, const inference_workload& w);
  /// The slowest GPU of the worker runs kernels at this share of its usual speed.
  void slow_to(double speed);

  /// Sets the load and the batch limits that it runs under; the rest of `w` must be as before. Returns whether
  /// times of decodes are others than before.
  bool run_under(const inference_workload& w);
  /// What prompts asked of `max_num_tokens` since `run_under`.
  limit_use prompt_tokens_use() const;

  const platform& hardware() const { return platform_; }
  /// Parts (host work first, then kernels in layer order), duration and mean power. `explained` adds facts to
  /// parts.
  operation_template price(const iteration& it, bool explained = false);
  seconds time(const iteration_content& it);

 private:
  struct named_cost {
    part_kind kind;
    const char* name;
    time_and_energy cost;
    int repeat;
  };
  /// Costs of a layer before and after attention, which depend only on the number of tokens.
  struct token_costs {
    std::vector<named_cost> before, after;
  };
  /// Content of the busiest rank.
  struct rank_content {
    iteration_content it;
    double tokens = 0, expert_tokens = 0;
  };
  rank_content of_rank(const iteration_content& it);
  double busiest_prompts(double tokens, double each);
  template <class Sink>
  void walk(const iteration_content& it, Sink& sink);
  template <class Sink>
  void add_sends(double tokens, Sink&& sink) const;
  template <class Sink>
  void add_drafts(const iteration_content& all, const iteration_content& mine, Sink&& sink);
  template <class Sink>
  void add_draft_model(const iteration_content& all, Sink&& sink);
  template <class Sink>
  void add_vision_tower(const iteration_content& it, Sink&& sink);
  template <class Sink>
  void add_launches(const iteration_content& it, seconds before, Sink&& sink);
  double exchanged_width(const layer_slice& l) const;
  time_and_energy adapters(const std::vector<rank_gemm>& gemms, double tokens) const;
  const std::vector<token_costs>& of_tokens(std::int64_t tokens, std::int64_t expert_tokens);
  const std::vector<double>& times_of_tokens(std::int64_t tokens, std::int64_t expert_tokens);
  token_costs layer_costs(const layer_slice& l, double tokens, double expert_tokens) const;
  double experts_hit(const layer_slice& l, double expert_tokens) const;
  seconds reads_of_offloaded(double expert_tokens) const;
  void add_experts(const layer_slice& l, double tokens, double expert_tokens, std::vector<named_cost>& out) const;
  time_and_energy lm_head(std::int64_t rows);
  time_and_energy gemm(const gemm_route& r, const gemm_shape& s) const;
  time_and_energy elementwise(const layer_slice& l, double rows) const;
  time_and_energy all_reduce(double rows, double width) const;
  time_and_energy stage_send(double rows, bool leaves_domain) const;
  int sends_out() const;
  seconds stage_wait(seconds layers, seconds head) const;
  time_and_energy exchange(const layer_slice& l, double tokens) const;
  void slow_to_gather(kernel_cost& c, const attention_shape& s) const;
  attention_shape prompts_of(const layer_slice& l, const iteration_content& it, bool absorbed) const;
  kernel_cost all_keys(const layer_slice& l, const attention_shape& s) const;
  kernel_cost chosen_keys(const attention_shape& s) const;
  time_and_energy prefill_attention(const layer_slice& l, const iteration_content& it) const;
  time_and_energy decode_attention(const layer_slice& l, const iteration_content& it) const;
  void add_scores(kernel_cost& c, const layer_spec& l, double tokens, double scored) const;
  void add_selection(kernel_cost& c, const layer_spec& l, double tokens) const;
  void add_scores_read(kernel_cost& c, double tokens, double each) const;
  static double compressed_keys(const layer_spec& l, double context);
  time_and_energy prefill_mixer(const layer_slice& l, const iteration_content& it) const;
  decode_shape one_vector(const layer_slice& l, double keys, double elements, double size) const;
  kernel_cost one_vector_decode(const decode_shape& s, double products) const;
  time_and_energy compressed_decode(const layer_slice& l, double batch, double context) const;
  time_and_energy latent_decode(const layer_slice& l, double batch, double context) const;
  time_and_energy recurrence(const layer_slice& l, const iteration_content& it) const;
  time_and_energy timed(precision operands, const kernel_cost& c) const;
  template <class... Shape>
  time_and_energy shaped(precision operands, const kernel_cost& c, const Shape&... shape) const;
  time_and_energy waited(resource r, seconds t) const;
  time_and_energy transferred(const priced_transfer& t, bytes moved) const;

  const platform& platform_;
  const stack& stack_;
  const model& model_;
  inference_workload workload_;
  engine_costs costs_;
  seconds sequence_host_, request_host_;
  double speed_ = 1;
  bytes offloaded_;               ///< weights of a GPU that stay in CPU memory
  double max_in_graph_ = 0;       ///< most decodes in an iteration that runs as a CUDA graph
  double context_ranks_ = 1;      ///< that share out the tokens of a sequence while it decodes
  double max_prompt_tokens_ = 0;  ///< of a rank in an iteration
  limit_use prompt_tokens_use_;
  std::unique_ptr<iteration_costs> draft_;  ///< of a draft model
  kernel_profile kernels_;
  std::map<weight_role, gemm_route> routes_;  ///< at the engine's rates in a long run
  attention_params attention_;
  kernel_profile decode_;   ///< decode-attention kernels for the cache format, at the engine's rates
  double busy_stages_ = 1;  ///< micro-batches in the pipeline at once
  stream_params stream_;
  std::vector<layer_slice>
      slices_;  ///< layers of the model; from `layers_` on, those of the prediction module that drafts
  std::size_t layers_;
  std::unordered_map<std::int64_t, std::vector<token_costs>> by_tokens_;  ///< one entry per slice
  std::unordered_map<std::int64_t, time_and_energy> by_rows_;
  // The same as times alone, for iterations of which nothing else is asked.
  bool times_alone_ = false;
  std::vector<std::vector<double>> times_by_tokens_;  ///< of as many tokens of experts
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> times_by_both_;
};

}  // namespace nvlsim
