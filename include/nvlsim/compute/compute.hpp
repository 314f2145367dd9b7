// Kernel times: one formula per kernel class, with parameters from the stack and peaks from the platform.
// All functions are pure; the cost functions neither allocate nor do I/O. [docs/models-and-assumptions.md#kernels]
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "nvlsim/platform/platform.hpp"
#include "nvlsim/stack/stack.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

enum class kernel_resource { compute, memory, launch };
std::string_view name(kernel_resource b);

/// What one kernel launch costs.
struct kernel_cost {
  seconds time;
  flops flop;   ///< useful FLOPs
  bytes moved;  ///< HBM traffic
  kernel_resource limit = kernel_resource::launch;
  seconds launch = {};  ///< part of `time` before the kernel moves bytes or computes
  double activity = 0;  ///< mean power beyond that of products and HBM traffic, as a share of tdp - idle
};

/// C[m,n] = A[m,k] x W[k,n]; one launch computes `groups` of them (experts).
struct gemm_shape {
  double m = 0, n = 0, k = 0;
  double groups = 1;
  double output_element_bytes = 2;  ///< 8 for a weight gradient accumulated in FP32 (read and written)
  double weight_element_bytes = 0;  ///< if weights are stored in another format than the operands; 0: the same
  bool sparse = false;              ///< weights with 2:4 structured sparsity; FLOPs still count every element
  bool repeated = false;            ///< a benchmark that reuses its operands, which then come from L2 if they fit
};
kernel_cost gemm_cost(const gpu_spec& gpu, const gemm_params& p, precision operands, const gemm_shape& s);

/// Attention of `batch` sequences; `heads` and `kv_heads` on this GPU.
struct attention_shape {
  double batch = 1, heads = 0, kv_heads = 0;
  double qk_dim = 0, v_dim = 0;
  double queries = 0;  ///< per sequence, on this GPU (s / CP)
  double pairs = 0;    ///< (query, key) pairs per sequence and head, on this GPU: s^2/2/CP when causal
  bool fp8 = false;
  /// Without rotary embedding and the cache's write, as in training: moves its own inputs and outputs only, behind
  /// its products.
  bool alone = false;
};
kernel_cost attention_forward_cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s);
/// With the parameters of the kernel for the format of the shape.
kernel_cost attention_forward_cost(const gpu_spec& gpu, const kernel_profile& k, const attention_shape& s);
/// 2.5 times the FLOPs of the forward pass, at `backward_efficiency` times its rate.
kernel_cost attention_backward_cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s);

/// Attention that writes its scores to memory, as frameworks had it before fused kernels: two batched GEMMs (four
/// backward) over all pairs, and `score_passes` passes of 2 bytes over the scores (one more backward).
kernel_cost unfused_attention_forward_cost(const gpu_spec& gpu, const kernel_profile& k, const gemm_params& g,
                                           const attention_shape& s, double score_passes);
kernel_cost unfused_attention_backward_cost(const gpu_spec& gpu, const kernel_profile& k, const gemm_params& g,
                                            const attention_shape& s, double score_passes);

/// Attention of `tokens` queries, each to the keys that a window or an indexer selects for it. All heads on this
/// GPU share one vector per key, as in DeepSeek's absorbed form. [docs/models-and-assumptions.md#sparse-attention]
struct sparse_attention_shape {
  double tokens = 0, heads = 0;
  double keys = 0;  ///< per query, on average
  double qk_dim = 0, v_dim = 0;
  bool fp8 = false;
};
kernel_cost sparse_attention_forward_cost(const gpu_spec& gpu, const attention_params& p,
                                          const sparse_attention_shape& s);
/// 2.5 times the FLOPs of the forward pass; gradients of the selected keys are accumulated in FP32.
kernel_cost sparse_attention_backward_cost(const gpu_spec& gpu, const attention_params& p,
                                           const sparse_attention_shape& s);

/// The scores by which an indexer selects keys. [docs/models-and-assumptions.md#sparse-attention]
struct indexer_shape {
  double tokens = 0, heads = 0, dim = 0;
  double scored = 0, chosen = 0;  ///< keys per query, on average
  bool fp8 = false;
};
kernel_cost indexer_forward_cost(const gpu_spec& gpu, const attention_params& p, const indexer_shape& s);
kernel_cost indexer_backward_cost(const gpu_spec& gpu, const attention_params& p, const indexer_shape& s);

/// A scan of state matrices over a sequence, in chunks: Mamba-2 (SSD), or the gated delta rule if `delta` is set.
/// [docs/models-and-assumptions.md#scans]
struct scan_shape {
  double tokens = 0;
  double heads = 0, head_dim = 0, state = 0;
  double groups = 0;   ///< the heads of a group share B and C, or keys and queries
  double chunk = 128;  ///< tokens
  bool delta = false;
};
/// `tensor_rate` is the rate of products with a large inner dimension. `words_per_sm` is the number of
/// exponentials and moved 16-bit words that an SM handles per second; 0: no limit.
kernel_cost scan_forward_cost(const gpu_spec& gpu, flop_rate tensor_rate, double words_per_sm,
                              const stream_params& p, const scan_shape& s);
kernel_cost scan_backward_cost(const gpu_spec& gpu, flop_rate tensor_rate, double words_per_sm,
                               const stream_params& p, const scan_shape& s);

/// One new token of each of `batch` sequences against `context` cached tokens each.
struct decode_shape {
  double batch = 0, context = 0;
  double heads = 0, kv_heads = 0, head_dim = 0;
  double kv_element_bytes = 2;
  bool repeated = false;  ///< a benchmark that rereads its cache, which then comes from L2 if it fits
};
kernel_cost decode_attention_cost(const gpu_spec& gpu, const decode_params& p, const decode_shape& s);
/// The same when each query head reads the cache separately.
kernel_cost ungrouped_decode_cost(const gpu_spec& gpu, const decode_params& p, const ungrouped_decode_params& u,
                                  const decode_shape& s);
/// With the parameters of the kernel for the format of the cache and the number of query heads per KV head.
kernel_cost decode_attention_cost(const gpu_spec& gpu, const kernel_profile& k, const decode_shape& s);

/// The same against a cache of one latent vector per token, which all heads share.
struct mla_decode_shape {
  double batch = 0, context = 0;
  double heads = 0;         ///< on this GPU
  double latent_dim = 576;  ///< cached per token; its first `value_dim` elements are the values
  double value_dim = 512;
  double kv_element_bytes = 2;
};
kernel_cost mla_decode_cost(const gpu_spec& gpu, const mla_decode_params& p, const mla_decode_shape& s);

/// A memory-bound kernel. `repeated`: a benchmark on one tensor, which comes from L2 if it fits.
kernel_cost stream_cost(const gpu_spec& gpu, const stream_params& p, bytes moved, bool repeated = false);

/// A memory-bound kernel, defined by what it reads and writes per element. [docs/kernels.md#memory-bound-kernels]
struct elementwise_kernel {
  std::string_view name;
  double bytes;                                ///< moved per element
  std::string_view element, reads_and_writes;  ///< in words
};
std::span<const elementwise_kernel> elementwise_kernels();

/// Copies by one GPU while the other GPUs of its VM do the same.
enum class copy_path { hbm, from_cpu, to_cpu, nvme_read, nvme_write };
inline constexpr std::array<std::string_view, 5> copy_path_names = {"hbm", "from_cpu", "to_cpu", "nvme_read",
                                                                    "nvme_write"};
kernel_cost copy_cost(const platform& machine, const stream_params& p, copy_path path, bytes size);

/// Copies of tokens on the experts of one rank.
struct expert_load {
  static constexpr std::array<double, 5> tile_rows = {16, 32, 64, 128, 256};
  double pairs = 0;                              ///< (token, expert)
  double active = 0;                             ///< experts with a token
  double mean = 0;                               ///< pairs per expert, over all ranks: decides the height of tiles
  std::array<double, tile_rows.size()> tiles{};  ///< number of row tiles of each height, over all experts
};
/// `tokens` x `topk` copies are routed to `experts`; each of `ranks` ranks holds an equal share of the experts, in
/// order.
struct expert_routing {
  double tokens = 0, topk = 1, experts = 1, ranks = 1;
};
/// Every expert gets the same number of tokens.
expert_load balanced_load(const expert_routing& r);
/// Expert popularity follows a power law. The load is that of the fullest rank, averaged over `samples` samples;
/// equal seeds give equal loads.
expert_load skewed_load(const expert_routing& r, double exponent, int samples = 12, std::uint64_t seed = 12345);

/// The experts of one rank after dispatch, gate and up projection in one GEMM.
struct moe_shape {
  double tokens = 0;  ///< received by the rank; some may have no expert here
  double local_experts = 0;
  double hidden = 0;
  double inter = 0;  ///< on this GPU (over TP)
  bool gated = true;
  expert_load load;
};
kernel_cost moe_cost(const gpu_spec& gpu, const moe_params& p, const moe_shape& s);

/// Mean power of one GPU while the kernel runs: idle + HBM traffic + arithmetic, limited by the power cap.
watts kernel_power(const gpu_spec& gpu, precision operands, const kernel_cost& c);

/// The parameters for a GPU: the entry of the stack for its name, else for its architecture, else "default". Rates
/// follow the power cap if it differs from tdp, and the peaks of the GPU if the entry was not measured on it.
/// Throws input_error that lists the known entries if none applies.
kernel_profile kernels_for(const stack& s, const gpu_spec& gpu);

/// Whether the entry that `kernels_for` uses holds measured GEMMs of the format. If not, the format gets the share
/// of the data-sheet peak that a measured format reaches. False if the GPU has no entry.
bool measured_gemm(const stack& s, const gpu_spec& gpu, precision p);

/// The spread of measured times around computed ones: that of the kernel family on this GPU, else on all GPUs of
/// its architecture, else that of its class; nullptr if the stack has none of these.
const kernel_spread* spread_of(const stack& s, const gpu_spec& gpu, std::string_view family);

/// Whether the stack has kernels that were measured on this very GPU.
bool measured_on(const stack& s, const gpu_spec& gpu);

/// The note for results: that this GPU was not measured, or that its power cap is a what-if; "" if neither.
std::string kernels_note(const stack& s, const gpu_spec& gpu);

}  // namespace nvlsim
