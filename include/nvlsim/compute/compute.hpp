// Kernel times: one formula per class, parameters from the stack, peaks from the platform.
// Pure functions without allocation or I/O. [docs/models-and-assumptions.md#kernels]
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

enum class bound { compute, memory, launch };
std::string_view name(bound b);

/// What one kernel launch costs.
struct kernel_cost {
  seconds time;
  flops work;   ///< useful arithmetic
  bytes moved;  ///< HBM traffic
  bound limit = bound::launch;
  seconds launch = {};  ///< of `time`, what passes before bytes or arithmetic count
  double activity = 0;  ///< share of tdp - idle drawn beside products and HBM, on average over `time`
};

/// C[m,n] = A[m,k] x W[k,n], `groups` of them in one launch (experts).
struct gemm_shape {
  double m = 0, n = 0, k = 0;
  double groups = 1;
  double output_element_bytes = 2;  ///< 8 for a weight gradient accumulated in FP32 (read and written)
  double weight_element_bytes = 0;  ///< where weights are kept in another format than the operands; 0: the same
  bool sparse = false;              ///< weights with 2:4 structured sparsity; `work` still counts every element
  bool repeated = false;            ///< a benchmark on the same operands again and again, out of L2 when they fit
};
kernel_cost gemm_cost(const gpu_spec& gpu, const gemm_params& p, precision operands, const gemm_shape& s);

/// Attention of `batch` sequences; `heads` and `kv_heads` on this GPU.
struct attention_shape {
  double batch = 1, heads = 0, kv_heads = 0;
  double qk_dim = 0, v_dim = 0;
  double queries = 0;  ///< a sequence, on this GPU (s / CP)
  double pairs = 0;    ///< (query, key) pairs a sequence and head, on this GPU: s^2/2/CP when causal
  bool fp8 = false;
};
kernel_cost attention_forward_cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s);
/// With the parameters of the kernel that runs for the format.
kernel_cost attention_forward_cost(const gpu_spec& gpu, const kernel_profile& k, const attention_shape& s);
/// 2.5 times the forward's FLOPs, at `backward_efficiency` of its rate.
kernel_cost attention_backward_cost(const gpu_spec& gpu, const attention_params& p, const attention_shape& s);

/// Attention of `tokens` queries to the keys that a window or an indexer chose for each of them; all heads on this
/// GPU share one vector a key, as in DeepSeek's absorbed form. [docs/models-and-assumptions.md#sparse-attention]
struct sparse_attention_shape {
  double tokens = 0, heads = 0;
  double keys = 0;  ///< of one query, on average
  double qk_dim = 0, v_dim = 0;
  bool fp8 = false;
};
kernel_cost sparse_attention_forward_cost(const gpu_spec& gpu, const attention_params& p,
                                          const sparse_attention_shape& s);
/// 2.5 times the forward's FLOPs, and the gradient of every chosen key added up in FP32.
kernel_cost sparse_attention_backward_cost(const gpu_spec& gpu, const attention_params& p,
                                           const sparse_attention_shape& s);

/// The scores by which an indexer chooses. [docs/models-and-assumptions.md#sparse-attention]
struct indexer_shape {
  double tokens = 0, heads = 0, dim = 0;
  double scored = 0, chosen = 0;  ///< keys of one query, on average
  bool fp8 = false;
};
kernel_cost indexer_forward_cost(const gpu_spec& gpu, const attention_params& p, const indexer_shape& s);
kernel_cost indexer_backward_cost(const gpu_spec& gpu, const attention_params& p, const indexer_shape& s);

/// A scan of state matrices over a sequence, chunk by chunk: Mamba-2 (SSD), or with `delta` the gated delta rule.
/// [docs/models-and-assumptions.md#scans]
struct scan_shape {
  double tokens = 0;
  double heads = 0, head_dim = 0, state = 0;
  double groups = 0;   ///< of heads that share B and C, or keys and queries
  double chunk = 128;  ///< tokens
  bool delta = false;
};
/// `tensor_rate` is that of deep products; `words_per_sm` what an SM works on in a second, exponentials and 16-bit
/// words that are moved; 0: as many as there are.
kernel_cost scan_forward_cost(const gpu_spec& gpu, flop_rate tensor_rate, double words_per_sm,
                              const stream_params& p, const scan_shape& s);
kernel_cost scan_backward_cost(const gpu_spec& gpu, flop_rate tensor_rate, double words_per_sm,
                               const stream_params& p, const scan_shape& s);

/// One new token of each of `batch` sequences against `context` cached tokens each.
struct decode_shape {
  double batch = 0, context = 0;
  double heads = 0, kv_heads = 0, head_dim = 0;
  double kv_element_bytes = 2;
  bool repeated = false;  ///< a benchmark that reads the same cache again and again, out of L2 when it fits
};
kernel_cost decode_attention_cost(const gpu_spec& gpu, const decode_params& p, const decode_shape& s);
/// The same where each query head reads the cache by itself.
kernel_cost ungrouped_decode_cost(const gpu_spec& gpu, const decode_params& p, const ungrouped_decode_params& u,
                                  const decode_shape& s);
/// With the parameters of the kernel that runs for the cache's format and the heads of a KV head.
kernel_cost decode_attention_cost(const gpu_spec& gpu, const kernel_profile& k, const decode_shape& s);

/// The same against a cache of one latent vector a token, which all heads share.
struct mla_decode_shape {
  double batch = 0, context = 0;
  double heads = 0;         ///< on this GPU
  double latent_dim = 576;  ///< cached a token; its first `value_dim` are the values
  double value_dim = 512;
  double kv_element_bytes = 2;
};
kernel_cost mla_decode_cost(const gpu_spec& gpu, const mla_decode_params& p, const mla_decode_shape& s);

/// A kernel bounded by the bytes it moves. `repeated`: a benchmark on one tensor, out of L2 when that fits.
kernel_cost stream_cost(const gpu_spec& gpu, const stream_params& p, bytes moved, bool repeated = false);

/// A kernel bounded by bytes, by what it reads and writes for an element. [docs/kernels.md#memory-bound-kernels]
struct elementwise_kernel {
  std::string_view name;
  double bytes;                                ///< moved an element
  std::string_view element, reads_and_writes;  ///< in words
};
std::span<const elementwise_kernel> elementwise_kernels();

/// Copies of one GPU while the others of its VM do the same.
enum class copy_path { hbm, from_cpu, to_cpu, nvme_read, nvme_write };
inline constexpr std::array<std::string_view, 5> copy_path_names = {"hbm", "from_cpu", "to_cpu", "nvme_read",
                                                                    "nvme_write"};
kernel_cost copy_cost(const platform& machine, const stream_params& p, copy_path path, bytes size);

/// Token copies on the experts of one rank.
struct expert_load {
  static constexpr std::array<double, 5> tile_rows = {16, 32, 64, 128, 256};
  double pairs = 0;   ///< (token, expert)
  double active = 0;  ///< experts with a token
  double mean = 0;    ///< pairs of an expert, over all ranks: what the height of tiles is chosen by
  std::array<double, tile_rows.size()> tiles{};  ///< row tiles of that height over all experts
};
/// `tokens` x `topk` over `experts`, of which `ranks` ranks hold equal shares in order.
struct expert_routing {
  double tokens = 0, topk = 1, experts = 1, ranks = 1;
};
/// Every expert gets the same.
expert_load balanced_load(const expert_routing& r);
/// Popularity of experts by a power law: the mean over `draws` draws of the fullest rank. Same seed, same load.
expert_load skewed_load(const expert_routing& r, double exponent, int draws = 12, std::uint64_t seed = 12345);

/// The experts of one rank after dispatch, gate and up projection in one GEMM.
struct moe_shape {
  double tokens = 0;  ///< presented to the rank; some may have no expert here
  double local_experts = 0;
  double hidden = 0;
  double inter = 0;  ///< on this GPU (over TP)
  bool gated = true;
  expert_load load;
};
kernel_cost moe_cost(const gpu_spec& gpu, const moe_params& p, const moe_shape& s);

/// Mean power of one GPU while such a kernel runs, at most the cap: idle + HBM traffic + arithmetic.
watts kernel_power(const gpu_spec& gpu, precision operands, const kernel_cost& c);

/// The parameters for a GPU: the stack's entry of its name, else of its architecture, else "default". Rates follow
/// the GPU's power cap where that is not tdp, and its peaks where the entry stands for GPUs that were never
/// measured. Throws input_error naming what the stack knows when there is none.
kernel_profile kernels_for(const stack& s, const gpu_spec& gpu);

/// Whether the entry that `kernels_for` takes holds GEMMs of the format: others get a measured format's share of
/// the data-sheet peak. False where the GPU has none.
bool measured_gemm(const stack& s, const gpu_spec& gpu, precision p);

/// What measured kernels say of a computed time: the spread of the same family on the same GPU, else on all GPUs
/// of its architecture, else of its class; nullptr where the stack has none of these.
const kernel_spread* spread_of(const stack& s, const gpu_spec& gpu, std::string_view family);

/// What a result must say of them: that nobody measured this GPU, that its power cap is a what-if; "" when
/// neither.
std::string kernels_note(const stack& s, const gpu_spec& gpu);

}  // namespace nvlsim
