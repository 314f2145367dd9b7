// One training step: operator costs, pipeline schedule, data-parallel traffic and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// The last three split the backward pass: the zero-bubble schedules (Qi et al., arXiv 2401.10241) and DeepSeek's
/// DualPipe, which holds two model chunks per stage and runs micro-batches from both ends.
enum class pipeline_schedule { one_f_one_b, interleaved, zb_h1, zb_v, dualpipe };
constexpr bool splits_backward(pipeline_schedule s) { return s >= pipeline_schedule::zb_h1; }
/// What data-parallel ranks shard: nothing; optimizer states (ZeRO-1); everything (ZeRO-3); optimizer states and
/// gradients (ZeRO-2), with a reduction after every micro-batch.
enum class data_parallel_sharding { replicated, distributed_optimizer, fsdp, optim_grads };
/// How context-parallel ranks exchange keys and values: shards travel around a ring, or an all-to-all switches
/// from sharded tokens to sharded heads.
enum class context_exchange { ring, all_to_all };
enum class training_task { pretrain, sft, lora };

/// Activation recomputation: what the backward pass computes again instead of loading.
struct recompute_spec {
  bool full = false;            ///< whole layers
  bool block = false;           ///< with `full`: only the first `num_layers` layers of each chunk
  std::int64_t num_layers = 1;  ///< without `block`: layers per unit; only the input of a unit is kept
  bool core_attention = false, layernorm = false, mlp = false, activation = false;
  bool mla_up_proj = false, moe = false;
  bool shared_experts = false;     ///< the MLP of shared experts
  bool hyper_connections = false;  ///< mixed copies of several residual streams (`mhc`)
  bool any() const {
    return full || core_attention || layernorm || mlp || activation || mla_up_proj || moe || shared_experts ||
           hyper_connections;
  }
  friend bool operator==(const recompute_spec&, const recompute_spec&) = default;
};

/// Inputs that are moved to CPU memory from the forward to the backward pass (Megatron-Core's `offload_modules`):
/// of a norm, a projection, attention, the up GEMM of experts, the activation of MLPs and experts.
struct offload_spec {
  bool attn_norm = false, qkv_linear = false, core_attn = false, attn_proj = false, mlp_norm = false,
       expert_fc1 = false, moe_act = false;
  bool any() const {
    return attn_norm || qkv_linear || core_attn || attn_proj || mlp_norm || expert_fc1 || moe_act;
  }
};

/// Muon keeps one moment for the matrices of layers; vocabulary tables and vectors have both of Adam's.
enum class optimizer_kind { adam, muon };

/// What is kept of a trained parameter, in bytes (Megatron-Core's precision-aware optimizer).
struct optimizer_spec {
  optimizer_kind kind = optimizer_kind::adam;
  double master = 4;
  std::optional<double> first_moment, second_moment;  ///< empty: see `moment_bytes`
  /// Whether gradients accumulate in FP32. Empty: see `gradient_bytes`.
  std::optional<bool> fp32_gradients;
};

/// Low-rank adapters on named projections; only they are trained.
struct lora_spec {
  std::int64_t rank = 0;  ///< 0: not stated; adapters are assumed on attention
  bool qkv = true, proj = true, fc1 = true, fc2 = true;
};

/// How tokens reach their experts. `alltoall` sends one copy per expert and sorts what arrives; `deduplicated`
/// (DeepEP) sends one copy per rank that holds any of the experts, which copies it for them; `hybridep` sends the
/// same, and its kernels permute tokens on their way.
enum class moe_dispatcher { alltoall, deduplicated, hybridep };
/// Whether a token travels once to a rank, however many of its experts are there.
constexpr bool sends_once(moe_dispatcher d) { return d != moe_dispatcher::alltoall; }

/// Variance of the popularity of experts over its mean squared under natural routing, if training balances it with
/// a loss: Qwen3-30B-A3B on two servers takes 1.23 times as long as with forced balance. [derived]
inline constexpr double natural_expert_skew = 0.35;
/// The same if training balances it with a bias on scores: lower by the ratio of the skews fitted to serving.
/// [derived]
inline constexpr double natural_biased_expert_skew = 0.07;

/// What runs inside CUDA graphs, without waiting for the host.
enum class cuda_graphs { none, partial, full_iteration };
/// What partial graphs hold (Megatron-Core's `cuda_graph_scope`): attention, scans, dense MLPs, and routers with
/// what prepares the dispatch.
struct graph_scope {
  bool attention = true, scans = true, mlp = false, router = true;
};

/// Linear layers that a low-precision recipe keeps in other formats than the workload's; those named by layer are
/// in BF16. [docs/models-and-assumptions.md#kept-formats]
struct kept_formats {
  std::int64_t first_layers = 0, last_layers = 0;  ///< decoder layers at the start and at the end, in BF16
  bool predictors = false;                         ///< layers of prediction modules, in BF16
  std::optional<precision> attention;              ///< projections of attention
  std::optional<precision> scan_output;            ///< out-projections of scans
  std::optional<precision> latent;                 ///< projections to and from the latent width of experts

  bool by_layer() const { return first_layers > 0 || last_layers > 0 || predictors; }
  friend bool operator==(const kept_formats&, const kept_formats&) = default;
};

/// Assignment of layers to model chunks. If not `given`, layers are spread evenly; see `layers_by_chunk`.
struct pipeline_split {
  std::vector<std::string> layout = {};  ///< by chunk: E (embedding), t (layer), m (prediction module), L (loss)
  std::int64_t first = 0, last = 0;      ///< layers of the first and last stage; 0: as many as the others
  std::optional<bool> embedding = {}, loss = {};  ///< whether it counts as a layer

  bool given() const { return !layout.empty() || first > 0 || last > 0 || embedding || loss; }
};

/// Images of a sample, whose tokens are part of its sequence.
struct sample_images {
  double count = 0;              ///< images of a sample, mean
  std::int64_t tokens_each = 0;  ///< tokens of an image in the sequence
};

struct training_workload {
  std::int64_t seq_length = 0, global_batch_size = 0, micro_batch_size = 1;  ///< batch sizes in sequences
  precision gemm_precision = precision::bf16;  ///< of linear layers; the LM head runs in BF16
  bool fp8_attention = false;
  moe_dispatcher dispatcher = moe_dispatcher::hybridep;
  bool moe_overlap = false;       ///< the expert exchange overlaps another micro-batch's compute
  bool fused_expert_mlp = false;  ///< both expert GEMMs and the activation between them are one kernel
  std::optional<bool>
      router_fusion;  ///< scores, top-k and balancing loss are one kernel each. Empty: `fuses_router`
  bool token_drop =
      false;  ///< experts take a fixed number of tokens, so that shapes are static and no counts are exchanged
  /// Most tokens that an expert takes from a rank, over an even share; the others are dropped. Empty: none are
  /// dropped.
  std::optional<double> expert_capacity_factor;
  bool pad_to_capacity = false;  ///< experts always compute on their full capacity
  double expert_imbalance =
      1;  ///< tokens on the busiest expert-parallel rank over the mean; other ranks wait for it
  bool forced_balance = true;         ///< routers send every expert as many tokens, as benchmarks do
  std::optional<double> expert_skew;  ///< of natural routing, in place of `natural_expert_skew`
  std::optional<token_lengths>
      packed;  ///< lengths of sequences that share a window without attending to each other
  kept_formats kept;
  cuda_graphs graphs = cuda_graphs::none;
  graph_scope graphed;
  parallelism par;
  placement place;
  std::vector<degradation> degraded;
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  pipeline_split split;
  data_parallel_sharding sharding = data_parallel_sharding::distributed_optimizer;
  std::int64_t sharding_groups = 1;  ///< number of groups of data-parallel ranks with shards of their own
                                     ///< (num_distributed_optimizer_instances)
  context_exchange cp_exchange = context_exchange::ring;
  recompute_spec recompute;
  std::int64_t offload_layers = 0;  ///< layers per GPU whose activations are moved to CPU memory over C2C
  offload_spec offload;             ///< inputs of all layers that are moved, alone
  std::optional<bool> fp8_activation_inputs;  ///< of MLPs, kept in 8 bits. Empty: see `keeps_fp8_inputs`
  std::optional<bool> fp8_params;  ///< weights of 8-bit recipes have no BF16 copy. Empty: as the recipes have it
  optimizer_spec optimizer;
  lora_spec lora;
  std::optional<sample_images> images;
  bool freeze_towers = false;    ///< encoders of images and sound are not trained
  bool freeze_language = false;  ///< nor are the layers of the language model
  bool deterministic = false;    ///< kernels and collectives give the same bits every time
  training_task task = training_task::pretrain;
  std::optional<double> token_budget;  ///< tokens of the whole training run

  /// Whether the weights of layers are not trained; adapters beside them may be.
  bool frozen_layers() const { return task == training_task::lora || freeze_language; }
  bool static_experts() const { return token_drop || pad_to_capacity; }
  std::int64_t micro_batches() const { return global_batch_size / (micro_batch_size * par.dp); }
};

/// Distribution of sequence lengths in tokens. Shares add up to 1. Without packing there is one entry, the window.
struct sequence_share {
  std::int64_t length = 0;
  double share = 1;
};
std::vector<sequence_share> sequences_of(const training_workload& w);
/// Mean length of a sequence, in tokens.
double mean_length(const std::vector<sequence_share>& sequences);

/// Token assignments that experts process, as shares of all assignments. [docs/models-and-assumptions.md#capacity]
struct capacity_load {
  double kept = 1;  ///< not dropped
  double rows = 1;  ///< computed on the busiest rank: the kept ones, or the full capacity
};
capacity_load load_of_experts(const layer_spec& l, const training_workload& w);
/// Tokens of the busiest expert-parallel rank over the mean: the stated imbalance times that of natural routing.
double expert_imbalance(const layer_spec& l, const training_workload& w);

/// Decoder layers of all prediction modules.
inline std::int64_t predicting_layers(const model& m) {
  return m.mtp_layers * static_cast<std::int64_t>(m.mtp_block.size());
}

/// Layers of each model chunk in pipeline order: chunk c runs on stage c % PP. The embedding belongs to the first
/// chunk and the loss to the last. If layers do not divide evenly, each of them counts as a layer (Megatron's
/// account_for_embedding_in_pipeline_split): 126 layers on 64 chunks are 1, 2, ..., 2, 1. Multi-token-prediction
/// layers are on the last chunk, which has fewer decoder layers in return: 61 + 1 on 16 chunks are 15 x 4, then 1
/// + 1.
std::vector<std::int64_t> layers_by_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t mtp_layers = 0);

/// Megatron's `pipeline_model_parallel_layout` ("Et*3|(tt|)*14tmL") split by chunk. Empty on a syntax error, with
/// the reason in `why`.
std::optional<std::vector<std::string>> parse_pipeline_layout(std::string_view text, std::string& why);
/// Why layers cannot be assigned to stages as the workload asks; empty when they can.
std::vector<std::string> split_problems(const model& m, const training_workload& w);
/// Number of layers of each chunk. Layers of prediction modules come last.
std::vector<std::int64_t> chunk_layers(const model& m, const training_workload& w);

/// `backward` computes both gradients. `backward_input` computes the gradient that the previous stage waits for,
/// `backward_weight` those of the weights.
enum class pass_kind { forward, backward, backward_input, backward_weight };
inline constexpr int pass_kinds = 4;

/// Bytes of the first and of the second moment of a parameter: as stated, else 4, or 2 in DeepSeek's FP8 recipe.
/// DualPipe runs in DeepSeek's own framework alone, whose recipe keeps inputs of activations in 8 bits and moments
/// in BF16 (DeepSeek-V3 technical report, section 3.3.3).
std::pair<double, double> moment_bytes(const training_workload& w);
/// Whether scores, top-k and balancing loss of routers run in fused kernels: as stated, else in pretraining with a
/// deduplicating dispatcher, as in the performance recipes; the library's recipes of fine-tuning, and those with
/// `alltoall`, leave them apart.
bool fuses_router(const training_workload& w);
/// Whether inputs of MLP activations are kept in 8 bits: as stated, else in DeepSeek's FP8 recipe.
bool keeps_fp8_inputs(const training_workload& w);

/// Whether a layer is recomputed as a whole in the backward pass. `layer` counts from the first of its chunk.
bool recomputes_layer(const recompute_spec& r, std::int64_t layer, bool predicts);

/// One entry of a stage's compute stream.
struct pipeline_slot {
  pass_kind what = pass_kind::forward;
  std::int32_t chunk = 0;  ///< on this stage
  std::int32_t micro_batch = 0;
  bool paired =
      false;  ///< a forward pass that overlaps the other direction's backward pass, which hides token exchange
};

/// Mapping of model chunks to stages. A micro-batch visits chunks in the order of their numbers.
struct pipeline_geometry {
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  std::int64_t pp = 1, local = 1;  ///< stages; chunks per stage
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

/// Formats of the workload's linear layers that the stack has no rates for on this GPU, in sentences; empty when
/// it has them all.
std::vector<std::string> format_problems(const platform& p, const stack& s, const training_workload& w);

/// Passes of micro-batches through model chunks in one step.
double passes_of(const training_workload& w);
/// Why steps with so many passes together cannot have their transfers as flows, each of which takes memory while
/// it lasts (up to 8 kB a pass); empty when they can.
std::vector<std::string> flow_problems(double passes);

/// 90 % band of published step times, as factors of the simulated one; (1, 1) when unknown.
struct step_band {
  double low = 1, high = 1;
  bool known() const { return low < high; }
};
/// The stack's band for this kind of NVLink domain, precision and model (`training_profile::residuals`), else its
/// band for all dense models or all models with routed experts. Unknown where `unpriced_work` has something.
step_band step_band_90(const platform& p, const stack& s, const model& m, const training_workload& w);
/// The kind of a run, with quantiles of zero.
step_residuals kind_of_step(const platform& p, const model& m, const training_workload& w);

/// Bytes per trained parameter of the buffer in which gradients accumulate: as `optimizer.fp32_gradients` says,
/// else 4 B where the stack says so, in 16-bit recipes and in fine-tuning, as Megatron-Bridge's mixed precision
/// has it, and 2 B in pretraining with narrower formats, as its performance recipes have it.
double gradient_bytes(const training_profile& t, const training_workload& w);

/// Parameters that a run trains, once each; those under adapters are frozen.
double trained_parameters(const model& m, const training_workload& w);
/// Parameters on all GPUs together, every copy counted.
double parameters_on_all_gpus(const model& m, const training_workload& w);

memory_report training_memory(const platform& p, const stack& s, const model& m, const training_workload& w);

/// Plan of one step, with one class per pipeline stage and kind of replica. There is one kind of replica unless
/// hardware is degraded. Without `fold` every rank is a class. Requires training_problems() to be empty.
plan plan_training(const platform& p, const stack& s, const model& m, const training_workload& w,
                   bool fold = true);

}  // namespace nvlsim
