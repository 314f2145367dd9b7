// One training step: operator costs, pipeline schedule, data-parallel traffic and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/layers/token_lengths.hpp"
#include "nvlsim/layout/layout.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/plan/memory.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/stack/stack.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim {

/// The last three split the backward pass: zero-bubble schedules (Qi et al., arXiv 2401.10241) and DeepSeek's
/// DualPipe, which holds two chunks of the model on each stage and runs micro-batches from both ends.
enum class pipeline_schedule { one_f_one_b, interleaved, zb_h1, zb_v, dualpipe };
constexpr bool splits_backward(pipeline_schedule s) { return s >= pipeline_schedule::zb_h1; }
/// What data-parallel ranks share out: nothing; optimizer states (ZeRO-1); all (ZeRO-3); optimizer states and
/// gradients (ZeRO-2), which leave after every micro-batch.
enum class data_parallel_sharding { replicated, distributed_optimizer, fsdp, optim_grads };
/// How context-parallel ranks meet each other's keys: shards of them go round, or heads are shared out instead.
enum class context_exchange { ring, all_to_all };
enum class training_task { pretrain, sft, lora };

/// What is computed again in the backward pass instead of stored.
struct recompute_spec {
  bool full = false;   ///< whole layers
  bool block = false;  ///< of these only the first `num_layers` of each chunk; the others keep what they need
  std::int64_t num_layers = 1;  ///< else every layer, by units of so many of which only the input is kept
  bool core_attention = false, layernorm = false, mlp = false, activation = false;
  bool mla_up_proj = false, moe = false;
  bool any() const { return full || core_attention || layernorm || mlp || activation || mla_up_proj || moe; }
};

/// How tokens reach their experts. `alltoall` sends a copy for every expert, and the host waits for the counts;
/// `deduplicated` (DeepEP, HybridEP) one for every rank that holds one of them.
enum class moe_dispatcher { alltoall, deduplicated };
/// What runs inside CUDA graphs, so that the host does not hold it up.
enum class cuda_graphs { none, partial, full_iteration };

/// How layers are dealt to model chunks, where a scenario says; evenly otherwise, see `layers_by_chunk`.
struct pipeline_split {
  std::vector<std::string> layout = {};  ///< by chunk: E (embedding), t (layer), m (prediction module), L (loss)
  std::int64_t first = 0, last = 0;      ///< layers of the first and last stage; 0: like the others
  std::optional<bool> embedding = {}, loss = {};  ///< takes a layer's place

  bool given() const { return !layout.empty() || first > 0 || last > 0 || embedding || loss; }
};

struct training_workload {
  std::int64_t seq_length = 0, global_batch_size = 0, micro_batch_size = 1;  ///< batches in sequences
  precision gemm_precision = precision::bf16;  ///< of the layers' linear layers; the LM head runs in BF16
  bool fp8_attention = false;
  moe_dispatcher dispatcher = moe_dispatcher::deduplicated;
  bool moe_overlap = false;       ///< expert exchange runs beside another micro-batch's compute
  bool fused_expert_mlp = false;  ///< both expert GEMMs and the activation between them are one kernel
  bool token_drop = false;        ///< experts take a fixed number of tokens: static shapes, no counts
  /// Tokens that an expert takes of a rank, over an even share; the rest is dropped. Nothing is when absent.
  std::optional<double> expert_capacity_factor;
  bool pad_to_capacity = false;  ///< experts work on their whole capacity, filled or not
  double expert_imbalance = 1;   ///< tokens of the busiest rank's experts over the mean, which all others wait for
  std::optional<token_lengths> packed;  ///< of sequences that share a window and do not attend to each other
  cuda_graphs graphs = cuda_graphs::none;
  parallelism par;
  placement place;
  std::vector<degradation> degraded;
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  pipeline_split split;
  data_parallel_sharding sharding = data_parallel_sharding::distributed_optimizer;
  std::int64_t sharding_groups =
      1;  ///< groups of data-parallel ranks that share out apart; equal ranks of each reduce
  context_exchange cp_exchange = context_exchange::ring;
  recompute_spec recompute;
  std::int64_t offload_layers = 0;  ///< layers of a GPU whose activations go to CPU memory over C2C
  training_task task = training_task::pretrain;
  std::optional<double> token_budget;  ///< of the whole training run

  bool static_experts() const { return token_drop || pad_to_capacity; }
  std::int64_t micro_batches() const { return global_batch_size / (micro_batch_size * par.dp); }
};

/// Lengths in tokens that sequences have, with the share of the sequences that have each; shares add up to 1.
/// Windows that hold one sequence give that alone.
struct sequence_share {
  std::int64_t length = 0;
  double share = 1;
};
std::vector<sequence_share> sequences_of(const training_workload& w);
/// Mean length of a sequence, in tokens.
double mean_length(const std::vector<sequence_share>& sequences);

/// What experts do of a rank's token assignments, as shares of them. [docs/models-and-assumptions.md#capacity]
struct capacity_load {
  double kept = 1;  ///< not dropped
  double rows = 1;  ///< worked on by the busiest rank: as many as are kept, or the experts' capacity
};
capacity_load load_of_experts(const layer_spec& l, const training_workload& w);

/// Decoder layers of all prediction modules.
inline std::int64_t predicting_layers(const model& m) {
  return m.mtp_layers * static_cast<std::int64_t>(m.mtp_block.size());
}

/// Layers of each model chunk in pipeline order: chunk c runs on stage c % PP. The embedding joins the first chunk
/// and the loss the last; when the layers do not divide evenly the two count as a layer each (Megatron's
/// account_for_embedding_in_pipeline_split), so 126 layers on 64 chunks are 1, 2, ..., 2, 1.
/// Multi-token-prediction layers sit on the last chunk, which gives up layers for them and the loss: 61 + 1 on 16
/// chunks are 15 x 4, then 1 + 1.
std::vector<std::int64_t> layers_by_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t mtp_layers = 0);

/// Megatron's `pipeline_model_parallel_layout` ("Et*3|(tt|)*14tmL") by chunk; nothing, and why, when it cannot be
/// read.
std::optional<std::vector<std::string>> parse_pipeline_layout(std::string_view text, std::string& why);
/// Why the layers cannot be dealt as the workload says; empty when they can.
std::vector<std::string> split_problems(const model& m, const training_workload& w);
/// Layers of each chunk, those of prediction modules last.
std::vector<std::int64_t> chunk_layers(const model& m, const training_workload& w);

/// `backward` gives both gradients; its halves give that of the input, which the stage before waits for, and those
/// of the weights.
enum class pass_kind { forward, backward, backward_input, backward_weight };
inline constexpr int pass_kinds = 4;

/// Whether a layer, counted from the first of its chunk, is computed again as a whole in the backward pass.
bool recomputes_layer(const recompute_spec& r, std::int64_t layer, bool predicts);

/// One entry of a stage's compute stream.
struct pipeline_slot {
  pass_kind what = pass_kind::forward;
  std::int32_t chunk = 0;  ///< on this stage
  std::int32_t micro_batch = 0;
  bool paired = false;  ///< one direction's forward beside the other's backward, which hides token exchange
};

/// Which stage holds which chunks of the model. Chunks are numbered in the order a micro-batch meets them.
struct pipeline_geometry {
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  std::int64_t pp = 1, local = 1;  ///< stages; chunks held by each
  std::int64_t micro_batches = 1;

  std::int64_t chunks() const;
  std::int64_t chunk_of(std::int64_t stage, std::int64_t local_chunk) const;
  /// DualPipe's second half of the micro-batches enters at the last stage.
  std::int64_t stage_of(std::int64_t chunk, std::int64_t micro_batch) const;
};
pipeline_geometry geometry_of(const training_workload& w);

/// Order of passes on one stage. Requires schedule_problems() to be empty.
std::vector<pipeline_slot> stage_schedule(const pipeline_geometry& g, std::int64_t stage);
/// Why a schedule cannot run with these chunks and micro-batches; empty when it can.
std::vector<std::string> schedule_problems(const training_workload& w);

/// Everything wrong with a layout, in sentences; empty when it can run (memory aside).
std::vector<std::string> training_problems(const platform& p, const model& m, const training_workload& w);

/// Where nine of ten published step times lie, as factors of the simulated one; (1, 1) when errors are not known.
struct step_band {
  double low = 1, high = 1;
  bool known() const { return low < high; }
};
/// That of the stack for runs of this kind of NVLink domain, precision and model (`training_profile::residuals`),
/// else for all its dense models or all with routed experts.
step_band step_band_90(const platform& p, const stack& s, const model& m, const training_workload& w);
/// The kind of a run; its quantiles are left at zero.
step_residuals kind_of_step(const platform& p, const model& m, const training_workload& w);

memory_report training_memory(const platform& p, const stack& s, const model& m, const training_workload& w);

/// A step ready for the engine: a class for each pipeline stage of each kind of replica, and one kind of replica
/// unless hardware is degraded. Requires training_problems() to be empty. `fold` false makes a class of every
/// rank.
plan plan_training(const platform& p, const stack& s, const model& m, const training_workload& w,
                   bool fold = true);

}  // namespace nvlsim
