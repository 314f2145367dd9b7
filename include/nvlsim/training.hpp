// One training step of a dense transformer: operator costs, pipeline schedule, data-parallel traffic and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/layout.hpp"
#include "nvlsim/memory.hpp"
#include "nvlsim/model.hpp"
#include "nvlsim/plan.hpp"
#include "nvlsim/platform.hpp"
#include "nvlsim/precision.hpp"
#include "nvlsim/stack.hpp"

namespace nvlsim {

enum class pipeline_schedule { one_f_one_b, interleaved };
enum class data_parallel_sharding { replicated, distributed_optimizer, fsdp };
enum class training_task { pretrain, sft, lora };

/// What is computed again in the backward pass instead of stored.
struct recompute_spec {
  bool full = false;        ///< whole layers
  bool core_attention = false, layernorm = false, mlp = false, activation = false;
  bool mla_up_proj = false, moe = false;
  bool any() const {
    return full || core_attention || layernorm || mlp || activation || mla_up_proj || moe;
  }
};

/// How tokens reach their experts. `alltoall` sends a copy for every expert, and the host waits for the counts;
/// `deduplicated` (DeepEP, HybridEP) one for every rank that holds one of them.
enum class moe_dispatcher { alltoall, deduplicated };
/// What runs inside CUDA graphs, so that the host does not hold it up.
enum class cuda_graphs { none, partial, full_iteration };

struct training_workload {
  std::int64_t seq_length = 0, global_batch_size = 0, micro_batch_size = 1;  ///< batches in sequences
  precision gemm_precision = precision::bf16;  ///< of the layers' linear layers; the LM head runs in BF16
  bool fp8_attention = false;
  moe_dispatcher dispatcher = moe_dispatcher::deduplicated;
  bool moe_overlap = false;     ///< expert exchange runs beside another micro-batch's compute
  bool fused_expert_mlp = false;  ///< both expert GEMMs and the activation between them are one kernel
  bool token_drop = false;      ///< experts take a fixed number of tokens: static shapes, no counts
  cuda_graphs graphs = cuda_graphs::none;
  parallelism par;
  placement place;
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  data_parallel_sharding sharding = data_parallel_sharding::distributed_optimizer;
  recompute_spec recompute;
  std::int64_t offload_layers = 0;  ///< layers of a GPU whose activations go to CPU memory over C2C
  training_task task = training_task::pretrain;
  std::optional<double> token_budget;  ///< of the whole training run

  std::int64_t micro_batches() const { return global_batch_size / (micro_batch_size * par.dp); }
};

/// Layers of each model chunk in pipeline order: chunk c runs on stage c % PP. The embedding joins the first chunk and
/// the loss the last; when the layers do not divide evenly the two count as a layer each (Megatron's
/// account_for_embedding_in_pipeline_split), so 126 layers on 64 chunks are 1, 2, ..., 2, 1. Multi-token-prediction
/// layers sit on the last chunk, which gives up layers for them and the loss: 61 + 1 on 16 chunks are 15 x 4, then 1 + 1.
std::vector<std::int64_t> layers_by_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t mtp_layers = 0);

/// One entry of a stage's compute stream.
struct pipeline_slot {
  bool forward = true;
  std::int32_t chunk = 0;        ///< on this stage, 0..VP-1
  std::int32_t micro_batch = 0;
};
/// Order of forward and backward passes on one stage: 1F1B, or Megatron's interleaved schedule for VP > 1.
std::vector<pipeline_slot> stage_schedule(const parallelism& par, std::int64_t micro_batches, std::int64_t stage);

/// Everything wrong with a layout, in sentences; empty when it can run (memory aside).
std::vector<std::string> training_problems(const platform& p, const model& m, const training_workload& w);

/// Half-width of the 90 % band of a step time on this stack, as a share; wider for routed experts.
double step_error_90(const stack& s, const model& m);

memory_report training_memory(const platform& p, const stack& s, const model& m, const training_workload& w);

/// A step ready for the engine: one class a pipeline stage. Requires training_problems() to be empty. `fold` false
/// makes a class of every rank.
plan plan_training(const platform& p, const stack& s, const model& m, const training_workload& w, bool fold = true);

}  // namespace nvlsim
