// Software as data: what one named release of kernels, collectives and framework reaches. Efficiencies live here
// and never in code, because they drift by up to 37 % between releases.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/stack/inference_profile.hpp"
#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Dense or grouped GEMM, one GPU and precision. [docs/models-and-assumptions.md#gemm]
struct gemm_params {
  flop_rate tensor_rate;  ///< of infinitely deep tiles on all SMs, at the GPU's power cap
  seconds step_time;      ///< shortest time of one unit of k of a tile (operand latency)
  double fill_depth = 0;  ///< pipeline fill and drain, in units of k
  double hbm_share = 1;   ///< of the data-sheet HBM rate
  seconds launch;
  double cast_passes = 0;      ///< passes over the activations to quantise them; 0 when the input is already cast
  seconds cast_row_time = {};  ///< least time that the cast takes for a row, however short
  double output_bytes =
      0;  ///< further bytes moved for each output element (bias, residual, amax of training epilogues)
  std::optional<seconds>
      split_time;         ///< of adding up the parts when a kernel splits k; nothing when it never splits
  double l2_speedup = 1;  ///< of operands that stay in L2 from launch to launch, as in benchmarks
};

/// Prefill or training attention. [docs/models-and-assumptions.md#attention]
struct attention_params {
  flop_rate tensor_rate;
  double exponential_share = 1;  ///< of the GPU's exponentials a second
  seconds item_time;             ///< overhead of one work item (a block of query rows of one head) on one SM
  double tail_share = 0;   ///< of the longest item's time, during which the other SMs have nothing left to do
  double item_rows = 128;  ///< query rows of a work item
  seconds launch;
  double io_passes = 1;            ///< over Q, K, V and the output in 16 bit, at the data-sheet HBM rate
  double backward_efficiency = 1;  ///< rate of the backward kernel over that of the forward
  double fp8_speedup = 1;          ///< of the matmul part, when the stack runs attention in FP8
  double power_share = 0;  ///< of tdp - idle, drawn by busy SMs beside products and HBM: exponentials, operands
};

/// Decode attention: one query token against the KV cache. [docs/models-and-assumptions.md#decode-attention]
struct decode_params {
  double hbm_share = 1;  ///< of the data-sheet HBM rate
  seconds launch;
  seconds item_time;                   ///< of one part of one KV head of one sequence, on one SM
  seconds head_time;                   ///< the same, for each query head of the KV head
  seconds split_time;                  ///< combining, for each doubling of the split of one sequence
  seconds part_time;                   ///< combining, for each part beyond the first
  double chunk = 1;                    ///< fewest KV tokens of a split
  std::optional<bandwidth> part_rate;  ///< at which one SM reads its part; no limit of its own when absent
  double l2_speedup =
      1;  ///< of a cache that stays in L2 from launch to launch, as in benchmarks; no server has one
};

/// What runs instead of decode attention where a KV head has more query heads than its kernels can group: each
/// query head by itself. [docs/models-and-assumptions.md#decode-attention]
struct ungrouped_decode_params {
  double beyond = 32;  ///< query heads a KV head
  seconds item_time;   ///< of one part of one query head of one sequence, on one SM
  seconds key_time;    ///< of one of its keys and values, of 128 elements each
  double chunk = 1;    ///< fewest KV tokens of a part
};

/// Kernels bounded by bytes: norms, rotary, activations, casts, optimizer.
/// [docs/models-and-assumptions.md#memory-bound]
struct stream_params {
  double hbm_share = 1;  ///< of the measured stream rate
  seconds launch;
  double l2_speedup = 1;  ///< of a tensor that stays in L2 from launch to launch, as in benchmarks
};

/// Experts of one rank: routing, permutation, two grouped GEMMs, local combine. [docs/kernels.md#expert-kernels]
struct moe_params {
  precision weights = precision::bf16, activations = precision::bf16;  ///< formats in memory
  flop_rate tensor_rate;
  seconds step_time;
  double fill_depth = 100;    ///< pipeline fill and drain, in units of k
  double hbm_share = 1;       ///< of the data-sheet HBM rate
  seconds launch;             ///< of all its kernels
  seconds expert_time;        ///< of each local expert, with tokens or without
  double pair_passes = 0;     ///< over the local copies of tokens, read and written in 16 bit
  double token_passes = 0;    ///< over all tokens presented to the rank
  double exposed_share = 0;   ///< of one tile's time in each product, which no transfer hides
  double tile_margin = 1;     ///< least rows of a tile, over the tokens of a mean expert
  double tallest_tile = 128;  ///< rows
};

/// Decode attention against one latent vector a token, in its absorbed form. [docs/kernels.md#latent-attention]
struct mla_decode_params {
  flop_rate tensor_rate;
  double hbm_share = 1;  ///< of the data-sheet HBM rate
  seconds launch;
  seconds item_time;        ///< of one part of 64 query heads of one sequence, on one SM
  seconds split_time;       ///< combining, for each doubling of the parts
  seconds part_time;        ///< combining, for each part beyond the first
  double chunk = 1;         ///< fewest cached tokens of a part
  double narrow_tile = 64;  ///< query heads of an item where there are fewer than 64, at the price of 64
};

/// The GPU that rates were measured on, as its data sheet had it.
struct measured_gpu {
  std::map<precision, flop_rate> peaks;  ///< dense
  watts dynamic_power;                   ///< tdp - idle
  int sm_count = 0;
};

/// Everything a stack knows of one GPU.
struct kernel_profile {
  std::string gpu;                ///< GPU or architecture it was fitted on
  std::vector<std::string> like;  ///< entries that give what its own lacks, nearest first
  std::map<precision, gemm_params> gemm;
  std::map<precision, gemm_params> weight_only;    ///< by format of the weights; the arithmetic is in 16 bit
  std::map<precision, gemm_params> absorb_keys;    ///< MLA: queries times the key projection, a product a head
  std::map<precision, gemm_params> absorb_values;  ///< MLA: what was attended times the value projection
  attention_params attention;
  std::optional<attention_params> attention_fp8;  ///< where the FP8 kernel is another one, not the same sped up
  decode_params decode;
  std::optional<decode_params> decode_fp8;  ///< of an 8-bit cache, where its kernel is another one
  std::map<precision, decode_params>
      single_decode;  ///< by format of the cache: where one query head a KV head has its own kernel
  std::optional<ungrouped_decode_params> ungrouped_decode;
  std::map<precision, attention_params> mla_context;  ///< by format of the cache
  std::map<precision, mla_decode_params> mla_decode;  ///< by format of the cache
  std::map<std::string, moe_params> moe;              ///< by kernel family: "deepgemm_fp8_block"
  stream_params stream;
  std::optional<stream_params> amax;  ///< finding the scale of a tensor that is cast with a dynamic one
  double power_exponent = 0;          ///< tensor rate ~ ((cap - idle) / (tdp - idle))^exponent, for what-ifs
  /// Peaks of the GPU whose rates these are, where they stand for GPUs that were never measured: such a GPU gets
  /// the same share of its own peaks.
  std::map<precision, flop_rate> peaks_of_origin;
  /// tdp - idle of that GPU. One of the same architecture that was never measured gets rates by its power instead.
  std::optional<watts> dynamic_power_of_origin;
  double ultra_factor =
      1;  ///< on those rates where the unmeasured GPU is the later make of its silicon and the origin not
  /// A platform that says otherwise of the GPU `gpu` than this gets rates by its peaks and its power. Never that
  /// of an entry it is like.
  std::optional<measured_gpu> measured_on;
};

/// One line of the min() of protocols: latency + per-hop x hops + bytes / rate. [docs/collectives.md#collectives]
struct protocol_params {
  seconds latency, hop;
  bandwidth rate;
};

/// What the library believes of its protocols when it picks one by size; the price is then that of
/// `domain_collective`.
struct protocol_tuning {
  protocol_params ll, ll128, simple;
  std::optional<protocol_params> nvls;
  bytes p2p_ll_limit;  ///< all-to-all: the most to one peer that still goes by LL
};

/// Collectives of one kind inside an NVLink domain.
struct domain_collective {
  std::optional<protocol_params> ll_few;  ///< LL of messages too small for all channels
  protocol_params ll;
  std::optional<protocol_params> ll128;
  std::optional<protocol_params> simple_few;  ///< Simple of messages too small for all channels
  protocol_params simple;
  double simple_power = 1;  ///< how latency and bytes of Simple add: (l^p + b^p)^(1/p)
  bandwidth local_copy;     ///< of the rank's own share, out of place
  seconds pipeline;         ///< rho of the bytes of Simple: pipe(x) = x + 2 sqrt(rho x)
  // In-switch reduction; no rate when the domain has none.
  std::optional<bandwidth> nvls_rate;
  seconds nvls_latency, nvls_pipeline_per_rank;
  bool nvls_tree_many = false;  ///< the library links the in-switch reductions of more than two domains by a tree
  std::optional<bandwidth>
      network_ring_rate;  ///< NVLink side of a ring through several domains; that of Simple if none
};

/// One collective across domains. NIC shares are of the nominal rate of the NICs of a domain's members.
struct fabric_collective {
  protocol_params ll;  ///< hops: 2 log2(D) for all-reduce, n-1 for gather and scatter
  seconds ll_pipeline;
  std::optional<protocol_params> ll128;  ///< of messages between those of LL and those of a ring or tree
  bytes ll128_limit;                     ///< beyond it the library does not take LL128
  struct ring_params {
    seconds latency, nvlink_step, fabric_step;
    seconds pipeline;  ///< rho of the bytes
    double power = 1;  ///< how latency and bytes add: (l^p + b^p)^(1/p)
    double nic_share = 1;
    double per_latency = 1;  ///< of `default`: what a step takes longer for what the fabric's latency is longer
  } ring;
  struct tree_params {
    seconds latency, hop;     ///< latency + 2 log2(D) hop
    double pipeline = 0;      ///< rho of the bytes over that of the in-switch reduction in the fullest domain
    bytes pipeline_limit;     ///< beyond it chunks are as long as they get, and the wait for the first is constant
    double domain_share = 1;  ///< of the rate inside the domain: in-switch reduction or ring
    double nic_share_2 = 1, nic_share_many = 1;  ///< two domains; more than two
    double per_latency = 1;                      ///< as of the ring
  };
  std::optional<tree_params> tree;       ///< over the ranks of each domain
  std::optional<tree_params> nvls_tree;  ///< over the in-switch reductions of the domains
  struct sharp_params {
    seconds latency, pipeline;
    double nic_share = 1;
    bool derived = false;  ///< no sweep on this fabric shows it
  };
  std::optional<sharp_params> sharp;  ///< reduction in the fabric's switches
};

struct fabric_all_to_all {
  seconds latency, per_rank;
  seconds pipeline_per_rank;  ///< rho of the bytes that leave, for each rank: the more there are, the less to each
  double nic_share = 1;       ///< of the nominal NIC rate
};

/// Fused one-shot and two-shot all-reduce of inference engines.
struct custom_all_reduce {
  seconds one_latency, per_peer, two_extra;
  double one_share = 1, two_share = 1;  ///< of the NVLink port rate
};

/// A kernel that sends tokens to their experts, or brings them back. [docs/collectives.md#expert-exchange]
struct expert_exchange {
  seconds latency;
  double per_doubling = 0;   ///< of the latency, for each doubling of the ranks
  seconds per_token;         ///< of a rank: the least that a token takes, however little of it leaves
  double element_bytes = 0;  ///< on the wire, an element of the hidden vector
  double nvlink_share = 1;   ///< of the port rate
  double per_peer = 0;       ///< more of the wire's time for each rank, as the messages get shorter
};

/// Hardware that parameters were measured on. Others get them in proportion to what differs.
struct measured_hardware {
  std::optional<bandwidth> nvlink;  ///< of a GPU, one way: rates of a domain kind scale with it
  /// Of the fabric one way, and of one of its switches: what they are longer elsewhere, each step takes longer.
  std::optional<seconds> latency, switch_latency;
  std::optional<seconds> host_step;  ///< of `default`: what a step takes longer where hosts drive the messages
  std::string like;                  ///< of a domain kind that nobody measured: the one whose parameters it takes
};

/// How measured collectives spread around their model: quantiles of measured over computed time.
struct collective_spread {
  int rows = 0;
  double low = 1, high = 1;  ///< 90 % lie between
};

/// What a collective library release does, by kind of NVLink domain ("nvlink5") and fabric ("quantum-2"). An entry
/// named "default" stands for every kind that is not listed.
struct collective_profile {
  std::map<std::string, measured_hardware> measured_on;  ///< domain kind or fabric -> hardware
  std::map<std::string, protocol_tuning> tuning;         ///< domain kind -> choice of protocols
  std::map<std::string, std::map<std::string, domain_collective>>
      domain;  ///< domain kind -> collective -> parameters
  std::map<std::string, std::map<std::string, fabric_collective>> fabric;  ///< fabric -> collective -> parameters
  std::map<std::string, fabric_all_to_all> all_to_all;                     ///< fabric -> parameters
  std::map<std::string, custom_all_reduce> custom;                         ///< GPU or domain kind -> parameters
  std::map<std::string, expert_exchange> expert;     ///< "two_sided_dispatch_bf16" -> parameters
  std::map<std::string, collective_spread> spreads;  ///< "domain/nvlink5/all_reduce" -> errors
};

/// Logarithms of published over simulated step times that 90 % of the rows of a kind of run lie between; the rows'
/// GPU had no part in the fit.
struct step_residuals {
  bool rack = false;     ///< NVLink domains of racks, not of servers
  int weight_bits = 16;  ///< of GEMM operands: 16, 8 or 4
  bool experts = false;  ///< the model routes tokens to experts
  int rows = 0;
  double low = 0, high = 0;
};

/// What the training framework overlaps, launches and reserves. [docs/models-and-assumptions.md#training]
struct training_profile {
  double tp_exposed = 1, cp_exposed = 1;  ///< share of the collective that the compute stream waits for
  double dp_interference = 0;  ///< slow-down of compute by hidden data-parallel traffic, as a share of it
  seconds collective_launch;   ///< of each in-layer collective
  seconds pipeline_launch;     ///< of each pipeline send or receive, on the compute stream
  seconds step_host;           ///< once a step
  /// Of a dense model's first micro-batches, so many leave the weight gradient of the LM head to the end of the
  /// pipeline (Megatron-Core's option of that name). 0: none.
  std::int64_t wgrad_deferral_limit = 0;
  double time_factor = 1;            ///< of this release against the reference release, on kernel time
  double jitter_per_doubling = 0;    ///< of the GPU count beyond 8
  double optimizer_bytes = 30;       ///< moved a local parameter
  double gradient_bytes = 4;         ///< on the wire, a parameter
  double gradient_memory_bytes = 4;  ///< of the accumulation buffer, a parameter
  double scan_words_per_sm = 0;      ///< a second, that kernels of scans work on; 0: as many as there are
  double quantise_bytes_forward = 3, quantise_bytes_backward = 4;  ///< a GEMM operand element, for 8-bit formats
  bytes reserve;                               ///< of GPU memory, by the runtime and the collective library
  double workspace_bytes_per_layer_param = 0;  ///< of temporary memory as the backward pass begins
  double workspace_bytes_per_head_param = 0;   ///< the same, where it begins with the LM head
  // Mixtures of experts.
  double moe_time_factor = 1;        ///< of this release on layers with routed experts, their GEMMs aside
  double moe_expert_time = 1;        ///< in its place on the GEMMs of experts
  double moe_block_scaled_time = 1;  ///< times both in block-scaled formats (MXFP8, NVFP4)
  double moe_quantise_passes = 1;    ///< over the operands of experts' GEMMs, where those of dense ones take 1
  double ep_exposed = 1, ep_exposed_overlapped = 1;    ///< share of the token exchange that is waited for
  double ep_nvlink_share = 0.72, ep_nic_share = 0.85;  ///< of the port rates, by the exchange kernels
  double ep_combine_ratio = 1.3;                       ///< combine over dispatch
  seconds ep_launch;                                   ///< of each exchange
  /// A layer's forward takes at least this without CUDA graphs; of n local experts, sqrt(n) times that of one.
  seconds moe_host, moe_host_per_expert;
  double moe_overlap_host_factor = 1;  ///< of both, where the exchange overlaps without whole-step graphs
  seconds moe_sync_per_expert;         ///< token counts through the host (alltoall dispatcher), a local expert
  double graphed_host_share = 1;       ///< of a layer's host time beside its experts', left by partial CUDA graphs
  double unfused_activation_passes =
      0;  ///< over routed activations by biased, clamped SwiGLU in separate kernels (gpt_oss)
  double fused_activation_share = 1;  ///< of these passes, left by a fused expert MLP
  // Half-width of the 90 % band on the step time, as a share: from refits without each model in turn.
  double error_90 = 0, moe_error_90 = 0;
  std::vector<step_residuals>
      residuals;  ///< finer, by kind of run; a kind that is not listed takes the half-width
};

/// How measured kernels spread around their formula: quantiles of measured over computed time.
struct kernel_spread {
  std::string family;        ///< "gemm/bf16", "moe/deepgemm_fp8_block"; the part before the slash is the class
  std::string gpu;           ///< measured on
  std::string architecture;  ///< its generation
  std::int64_t rows = 0;
  double low = 1, median = 1, high = 1;  ///< 5, 50 and 95 %
  bool held_out = false;                 ///< rows that took no part in the fit
};

struct stack {
  std::string name;
  std::string description;
  std::map<std::string, kernel_profile> kernels;  ///< by GPU or architecture name
  std::vector<kernel_spread> kernel_spreads;
  collective_profile collectives;
  std::optional<training_profile> training;
  std::optional<inference_profile> inference;
};

}  // namespace nvlsim
