// Software as data: the efficiency of one named release of kernels, collectives and framework. Efficiencies live
// here and never in code, because they differ by up to 37 % between releases.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/stack/inference_profile.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Dense or grouped GEMM on one GPU in one precision. [docs/models-and-assumptions.md#gemm]
struct gemm_params {
  constant<flop_rate> tensor_rate;  ///< of all SMs on infinitely deep tiles, at the GPU's power cap
  constant<seconds> step_time;      ///< shortest time of a tile per unit of k (operand latency)
  constant<double> fill_depth = 0;  ///< pipeline fill and drain, in units of k
  constant<double> hbm_share = 1;   ///< share of the data-sheet HBM rate
  constant<seconds> launch;
  constant<double> cast_passes =
      0;  ///< passes over the activations to quantise them; 0 if the input is already quantised
  constant<seconds> cast_row_time = {};  ///< shortest time of the cast per row
  constant<double> output_bytes =
      0;  ///< extra traffic per output element (bias, residual, amax of training epilogues)
  std::optional<constant<seconds>>
      split_time;  ///< time to reduce the parts of a split-k kernel; empty when kernels never split
  constant<double> l2_speedup = 1;  ///< for operands that stay in L2 between launches, as in benchmarks
  friend bool operator==(const gemm_params&, const gemm_params&) = default;
};

/// Attention of prefill and training. [docs/models-and-assumptions.md#attention]
struct attention_params {
  constant<flop_rate> tensor_rate;
  constant<double> exponential_share = 1;  ///< share of the GPU's exponential rate
  constant<seconds> item_time;       ///< overhead per work item (a block of query rows of one head) on one SM
  constant<double> tail_share = 0;   ///< share of the longest item's time during which the other SMs are idle
  constant<double> item_rows = 128;  ///< query rows per work item
  constant<seconds> launch;
  constant<double> io_passes = 1;  ///< passes over Q, K, V and the output in 16 bits, at the data-sheet HBM rate
  constant<double> backward_efficiency = 1;  ///< rate of the backward kernel over that of the forward kernel
  constant<double> fp8_speedup = 1;          ///< of the matrix products, if attention runs in FP8
  constant<double> power_share =
      0;  ///< share of tdp - idle that busy SMs draw for exponentials and operands, beyond products and HBM
  friend bool operator==(const attention_params&, const attention_params&) = default;
};

/// Decode attention: one query token per sequence against the KV cache.
/// [docs/models-and-assumptions.md#decode-attention]
struct decode_params {
  constant<double> hbm_share = 1;  ///< share of the data-sheet HBM rate
  constant<seconds> launch;
  constant<seconds> item_time;   ///< per part of one KV head of one sequence, on one SM
  constant<seconds> head_time;   ///< added to `item_time` per query head of the KV head
  constant<seconds> split_time;  ///< combining parts, for each doubling of the parts of one sequence
  constant<seconds> part_time;   ///< combining parts, for each part after the first
  constant<double> chunk = 1;    ///< fewest KV tokens per part
  std::optional<constant<bandwidth>> part_rate;  ///< rate at which one SM reads its part; no such limit when empty
  constant<double> l2_speedup =
      1;  ///< for a cache that stays in L2 between launches, as in benchmarks but not in a server
  friend bool operator==(const decode_params&, const decode_params&) = default;
};

/// Decode attention for models with more query heads per KV head than the kernels can group: each query head runs
/// alone. [docs/models-and-assumptions.md#decode-attention]
struct ungrouped_decode_params {
  constant<double> beyond = 32;  ///< used above this many query heads per KV head
  constant<seconds> item_time;   ///< per part of one query head of one sequence, on one SM
  constant<seconds> key_time;    ///< per key and value of 128 elements each
  constant<double> chunk = 1;    ///< fewest KV tokens per part
  friend bool operator==(const ungrouped_decode_params&, const ungrouped_decode_params&) = default;
};

/// Memory-bound kernels: norms, rotary, activations, casts, optimizer.
/// [docs/models-and-assumptions.md#memory-bound]
struct stream_params {
  constant<double> hbm_share = 1;  ///< share of the measured stream rate
  constant<seconds> launch;
  constant<double> l2_speedup = 1;  ///< for a tensor that stays in L2 between launches, as in benchmarks
  friend bool operator==(const stream_params&, const stream_params&) = default;
};

/// MoE layer on one rank: routing, permutation, two grouped GEMMs and local combine.
/// [docs/kernels.md#expert-kernels]
struct moe_params {
  precision weights = precision::bf16, activations = precision::bf16;  ///< formats in memory
  constant<flop_rate> tensor_rate;
  constant<seconds> step_time;
  constant<double> fill_depth = 100;    ///< pipeline fill and drain, in units of k
  constant<double> hbm_share = 1;       ///< share of the data-sheet HBM rate
  constant<seconds> launch;             ///< of all kernels of the layer
  constant<seconds> expert_time;        ///< per local expert, with or without tokens
  constant<double> pair_passes = 0;     ///< passes over the local copies of tokens, read and written in 16 bits
  constant<double> token_passes = 0;    ///< passes over all tokens that the rank receives
  constant<double> exposed_share = 0;   ///< share of one tile's time in each GEMM that no transfer hides
  constant<double> tile_margin = 1;     ///< smallest tile height over the mean tokens per expert
  constant<double> tallest_tile = 128;  ///< rows of the tallest tile
  friend bool operator==(const moe_params&, const moe_params&) = default;
};

/// MLA decode attention in its absorbed form: one latent vector per token. [docs/kernels.md#latent-attention]
struct mla_decode_params {
  constant<flop_rate> tensor_rate;
  constant<double> hbm_share = 1;  ///< share of the data-sheet HBM rate
  constant<seconds> launch;
  constant<seconds> item_time;   ///< per part of 64 query heads of one sequence, on one SM
  constant<seconds> split_time;  ///< combining parts, for each doubling of the parts
  constant<seconds> part_time;   ///< combining parts, for each part after the first
  constant<double> chunk = 1;    ///< fewest cached tokens per part
  constant<double> narrow_tile =
      64;  ///< query heads per item when there are fewer than 64; such an item takes as long as one of 64
  friend bool operator==(const mla_decode_params&, const mla_decode_params&) = default;
};

/// Data sheet of the GPU that rates were measured on.
struct measured_gpu {
  std::map<precision, constant<flop_rate>> peaks;  ///< dense
  constant<watts> dynamic_power;                   ///< tdp - idle
  constant<int> sm_count = 0;
  friend bool operator==(const measured_gpu&, const measured_gpu&) = default;
};

/// Kernel parameters for one GPU or architecture.
struct kernel_profile {
  std::string gpu;                ///< GPU or architecture that the entry is named after
  std::vector<std::string> like;  ///< entries that this one inherits from, nearest first
  std::map<precision, gemm_params> gemm;
  std::map<precision, gemm_params> weight_only;  ///< by format of the weights; arithmetic is in 16 bits
  std::map<precision, gemm_params> absorb_keys;  ///< MLA: queries times the key projection, one GEMM per head
  std::map<precision, gemm_params>
      absorb_values;  ///< MLA: attention output times the value projection, one GEMM per head
  attention_params attention;
  std::optional<attention_params> attention_fp8;  ///< given if the FP8 kernel is a different one
  decode_params decode;
  std::optional<decode_params> decode_fp8;  ///< given if 8-bit caches have a different kernel
  std::map<precision, decode_params>
      single_decode;  ///< by format of the cache; given if one query head per KV head has its own kernel
  std::optional<ungrouped_decode_params> ungrouped_decode;
  std::map<precision, attention_params> mla_context;  ///< by format of the cache
  std::map<precision, mla_decode_params> mla_decode;  ///< by format of the cache
  std::map<std::string, moe_params> moe;              ///< by kernel family: "deepgemm_fp8_block"
  stream_params stream;
  std::optional<stream_params> amax;    ///< finding the dynamic scale of a tensor that is cast
  constant<double> power_exponent = 0;  ///< tensor rate ~ ((cap - idle) / (tdp - idle))^exponent, for what-if runs
  /// Peaks of the GPU that was measured, if the entry also serves GPUs that were not. Those reach the same share
  /// of their own peaks.
  std::map<precision, constant<flop_rate>> peaks_of_origin;
  /// tdp - idle of the measured GPU. Unmeasured GPUs of the same architecture are scaled by power instead of by
  /// peaks.
  std::optional<constant<watts>> dynamic_power_of_origin;
  constant<double> ultra_factor =
      1;  ///< multiplies the scaled rates if the unmeasured GPU is an "ultra" version and the measured one is not
  /// Data sheet of the GPU `gpu`. A platform that changes it gets rates scaled by its peaks and power. Never
  /// inherited.
  std::optional<measured_gpu> measured_on;
  friend bool operator==(const kernel_profile&, const kernel_profile&) = default;
};

/// One protocol: latency + per-hop x hops + bytes / rate. The fastest protocol counts.
/// [docs/collectives.md#collectives]
struct protocol_params {
  constant<seconds> latency, hop;
  constant<bandwidth> rate;
  friend bool operator==(const protocol_params&, const protocol_params&) = default;
};

/// The library's own cost model, by which it picks a protocol for a message size. The time then follows from
/// `domain_collective`.
struct protocol_tuning {
  protocol_params ll, ll128, simple;
  std::optional<protocol_params> nvls;
  constant<bytes> p2p_ll_limit;  ///< all-to-all uses LL up to this many bytes per peer
  friend bool operator==(const protocol_tuning&, const protocol_tuning&) = default;
};

/// One collective inside an NVLink domain.
struct domain_collective {
  std::optional<protocol_params> ll_few;  ///< LL for messages too small for all channels
  protocol_params ll;
  std::optional<protocol_params> ll128;
  std::optional<protocol_params> simple_few;  ///< Simple for messages too small for all channels
  protocol_params simple;
  constant<double> simple_power =
      1;                           ///< exponent p that combines latency and byte time of Simple: (l^p + b^p)^(1/p)
  constant<bandwidth> local_copy;  ///< rate of copying the rank's own share out of place
  constant<seconds> pipeline;      ///< rho in the byte time of Simple: pipe(x) = x + 2 sqrt(rho x)
  // In-switch reduction (NVLS). The rate is empty when the domain has none.
  std::optional<constant<bandwidth>> nvls_rate;
  constant<seconds> nvls_latency, nvls_pipeline_per_rank;
  constant<bytes> nvls_pipeline_limit;  ///< per rank: size above which chunks stop growing, also those of trees
  bool nvls_tree_many = false;  ///< the library combines the NVLS reductions of more than two domains with a tree
  std::optional<constant<bandwidth>>
      network_ring_rate;  ///< NVLink rate of a ring through several domains; that of Simple when empty
  friend bool operator==(const domain_collective&, const domain_collective&) = default;
};

/// One collective across domains. NIC shares are relative to the nominal NIC rate of all members of a domain.
struct fabric_collective {
  protocol_params ll;  ///< hops: 2 log2(D) for all-reduce, n-1 for all-gather and reduce-scatter
  constant<seconds> ll_pipeline;
  std::optional<protocol_params> ll128;  ///< for messages between those of LL and those of a ring or tree
  constant<bytes> ll128_limit;           ///< largest message for which the library uses LL128
  struct ring_params {
    constant<seconds> latency, nvlink_step, fabric_step;
    constant<seconds> pipeline;  ///< rho in the byte time
    constant<double> power = 1;  ///< exponent p that combines latency and byte time: (l^p + b^p)^(1/p)
    constant<double> nic_share = 1;
    constant<double> per_latency = 1;  ///< in `default`: added step time per added fabric latency
    friend bool operator==(const ring_params&, const ring_params&) = default;
  } ring;
  struct tree_params {
    constant<seconds> latency, hop;  ///< beyond the latency inside the domain: latency + 2 log2(D) hop
    constant<double> pipeline =
        0;  ///< rho in the byte time, over that of the NVLS reduction in the fullest domain
    constant<double> domain_share = 1;  ///< share of the rate inside the domain, of NVLS or of the ring
    constant<double> nic_share = 1;
    constant<double> many_share = 1;   ///< share of that which remains beyond two domains
    constant<double> per_latency = 1;  ///< as in `ring_params`
    friend bool operator==(const tree_params&, const tree_params&) = default;
  };
  std::optional<tree_params> tree;       ///< reduces over the ranks inside each domain
  std::optional<tree_params> nvls_tree;  ///< reduces with NVLS inside each domain
  struct sharp_params {
    constant<seconds> latency, pipeline;
    constant<double> nic_share = 1;
    bool derived = false;  ///< not measured on this fabric
    friend bool operator==(const sharp_params&, const sharp_params&) = default;
  };
  std::optional<sharp_params> sharp;  ///< reduction in the switches of the fabric
  friend bool operator==(const fabric_collective&, const fabric_collective&) = default;
};

struct fabric_all_to_all {
  constant<seconds> latency, per_rank;
  constant<seconds> pipeline_per_rank;  ///< rho in the byte time, per rank: more ranks mean less data to each
  constant<double> nic_share = 1;       ///< share of the nominal NIC rate
  friend bool operator==(const fabric_all_to_all&, const fabric_all_to_all&) = default;
};

/// Fused one-shot and two-shot all-reduce of inference engines.
struct custom_all_reduce {
  constant<seconds> one_latency, per_peer, two_extra;
  constant<double> one_share = 1, two_share = 1;  ///< share of the NVLink port rate
  friend bool operator==(const custom_all_reduce&, const custom_all_reduce&) = default;
};

/// A kernel that dispatches tokens to their experts or combines their outputs.
/// [docs/collectives.md#expert-exchange]
struct expert_exchange {
  constant<seconds> latency;
  constant<double> per_doubling = 0;   ///< added for each doubling of the ranks, as a share of the latency
  constant<seconds> per_token;         ///< shortest time per token of a rank, however little of it leaves the GPU
  constant<double> element_bytes = 0;  ///< bytes on the wire per element of the hidden vector
  constant<double> nvlink_share = 1;   ///< share of the port rate
  constant<double> per_peer = 0;       ///< added wire time for each rank, as a share, because messages get shorter
  friend bool operator==(const expert_exchange&, const expert_exchange&) = default;
};

/// Hardware that parameters were measured on. Parameters are scaled to other hardware.
struct measured_hardware {
  std::optional<constant<bandwidth>> nvlink;  ///< of a GPU, one direction; rates of a domain kind scale with it
  /// One-way latency of the fabric and of one switch. A longer latency on another platform is added to each step.
  std::optional<constant<seconds>> latency, switch_latency;
  std::optional<constant<seconds>> host_step;  ///< in `default`: added to each step if hosts drive the messages
  std::string like;  ///< for a domain kind without measurements: the kind whose parameters it uses
  friend bool operator==(const measured_hardware&, const measured_hardware&) = default;
};

/// Spread of measured collectives around the model: quantiles of measured over computed time.
struct collective_spread {
  int rows = 0;
  double low = 1, high = 1;  ///< 5 % and 95 % quantiles
  friend bool operator==(const collective_spread&, const collective_spread&) = default;
};

/// Parameters of one release of a collective library, by kind of NVLink domain ("nvlink5") and fabric
/// ("quantum-2"). The entry "default" applies to kinds that are not listed.
struct collective_profile {
  std::map<std::string, measured_hardware> measured_on;  ///< domain kind or fabric -> hardware
  std::map<std::string, protocol_tuning> tuning;         ///< domain kind -> how the library picks a protocol
  std::map<std::string, std::map<std::string, domain_collective>>
      domain;  ///< domain kind -> collective -> parameters
  std::map<std::string, std::map<std::string, fabric_collective>> fabric;  ///< fabric -> collective -> parameters
  std::map<std::string, fabric_all_to_all> all_to_all;                     ///< fabric -> parameters
  std::map<std::string, custom_all_reduce> custom;                         ///< GPU or domain kind -> parameters
  std::map<std::string, expert_exchange> expert;     ///< "two_sided_dispatch_bf16" -> parameters
  std::string expert_links;                          ///< kind of the domain on which `expert` was measured
  constant<double> expert_nic_share = 1;             ///< share of the nominal NIC rate that exchange kernels reach
  std::map<std::string, collective_spread> spreads;  ///< "domain/nvlink5/all_reduce" -> spread
  friend bool operator==(const collective_profile&, const collective_profile&) = default;
};

/// Error band of one kind of run: 5 % and 95 % quantiles of log(published / simulated step time). Each row comes
/// from a fit without its GPU.
struct step_residuals {
  bool rack = false;     ///< NVLink domains span racks, not servers
  int weight_bits = 16;  ///< of GEMM operands: 16, 8 or 4
  bool experts = false;  ///< the model routes tokens to experts
  int rows = 0;
  double low = 0, high = 0;
  friend bool operator==(const step_residuals&, const step_residuals&) = default;
};

/// Training framework parameters: overlap, launches and memory reserves. [docs/models-and-assumptions.md#training]
struct training_profile {
  constant<double> tp_exposed = 1, cp_exposed = 1;  ///< share of a collective that the compute stream waits for
  constant<double> dp_interference =
      0;  ///< slowdown of compute by hidden data-parallel traffic, as a share of that traffic's time
  /// Passes over the scores, 2 bytes each, of the softmax and dropout kernels of attention that is not fused, in
  /// the forward pass; the backward pass has one more. 0: fused attention, which keeps no scores in memory.
  constant<double> score_passes = 0;
  constant<seconds> collective_launch;  ///< per collective inside a layer
  constant<seconds> pipeline_launch;    ///< per pipeline send or receive, on the compute stream
  constant<seconds> step_host;          ///< per step
  /// Number of first micro-batches of a dense model that defer the LM head's weight gradient to the end of the
  /// pipeline (Megatron-Core's `wgrad_deferral_limit`); 0: none.
  constant<std::int64_t> wgrad_deferral_limit = 0;
  constant<double> time_factor = 1;  ///< kernel time of this release over that of the reference release
  constant<double> jitter_per_doubling =
      0;  ///< added share of kernel time for each doubling of the GPU count beyond 8
  constant<double> optimizer_bytes = 30;       ///< moved per local parameter
  constant<double> gradient_bytes = 4;         ///< on the wire, per parameter
  constant<double> gradient_memory_bytes = 4;  ///< in the accumulation buffer, per parameter
  constant<double> scan_words_per_sm =
      0;  ///< throughput of scan kernels, 16-bit words per second and SM; 0: no limit
  constant<double> quantise_bytes_forward = 3,
                   quantise_bytes_backward =
                       4;                ///< moved per GEMM operand element, for formats of 8 bits or fewer
  constant<bytes> reserve;               ///< GPU memory of the CUDA context, its modules and libraries
  constant<bytes> communicator_buffers;  ///< GPU memory of each communicator of the collective library
  constant<double> fragmentation = 0;    ///< memory that the allocator holds beyond what is allocated, as a share
  constant<double> workspace_bytes_per_layer_param =
      0;  ///< temporary memory at the start of the backward pass, per dense parameter of the last layer
  constant<double> workspace_bytes_per_head_param =
      0;  ///< the same on the last stage, per parameter of the LM head
  // Mixtures of experts.
  constant<double> moe_time_factor =
      1;  ///< multiplies `time_factor` on memory-bound kernels around routed experts
  constant<double> ep_exposed = 1,
                   ep_exposed_overlapped = 1;  ///< share of the token exchange that compute waits for
  constant<double> ep_nvlink_share = 0.72,
                   ep_nic_share = 0.85;     ///< share of the port rates that exchange kernels reach
  constant<double> ep_combine_ratio = 1.3;  ///< time of combine over that of dispatch
  constant<seconds> ep_launch;              ///< per exchange
  constant<bytes> ep_buffers;               ///< GPU memory of the exchange's own buffers
  constant<double> expert_output_bytes =
      0;  ///< kept of the output of experts, per element and routed copy: 2 where
          ///< the combination weighs it, 0 where the activation is weighed
  /// Forced balance deals the experts out to tokens in turn, so that those of a token stand beside each other;
  /// else it routes at random.
  bool forced_in_turn = false;
  constant<seconds> host_per_operator;  ///< of the host, to launch one operator of a layer
  constant<double> unfused_router_launches =
      0;  ///< operators that a router without fused kernels launches forward, beyond those of one with them
  constant<seconds> moe_host_per_expert;  ///< to launch a local expert forward
  /// The same, to cast the operands of its GEMMs in formats of 8 bits or fewer.
  constant<seconds> moe_host_per_cast_expert;
  /// To run shared experts beside routed ones forward, beyond the launches of their operators.
  constant<seconds> moe_host_of_shared_experts;
  constant<seconds> moe_host_per_node;  ///< to run a node of the overlapped exchange's schedule in 8 bits or fewer
  constant<double> unfused_activation_passes =
      0;  ///< passes over routed activations by biased, clamped SwiGLU in separate kernels (gpt_oss)
  constant<double> fused_activation_share = 1;  ///< share of these passes that remains with a fused expert MLP
  // Half-width of the 90 % band on the step time, as a share. From refits that leave out one model each.
  double error_90 = 0, moe_error_90 = 0;
  std::vector<step_residuals> residuals;  ///< bands by kind of run; other kinds use the half-width
  friend bool operator==(const training_profile&, const training_profile&) = default;
};

/// Spread of measured kernels around their formula: quantiles of measured over computed time.
struct kernel_spread {
  std::string family;        ///< "gemm/bf16", "moe/deepgemm_fp8_block"; the part before the slash is the class
  std::string gpu;           ///< that was measured
  std::string architecture;  ///< of that GPU
  std::int64_t rows = 0;
  double low = 1, median = 1, high = 1;  ///< 5 %, 50 % and 95 % quantiles
  bool held_out = false;                 ///< the fit did not use these rows
  friend bool operator==(const kernel_spread&, const kernel_spread&) = default;
};

struct stack {
  std::string name;
  std::string description;
  std::map<std::string, kernel_profile> kernels;  ///< by GPU or architecture name
  std::vector<kernel_spread> kernel_spreads;
  collective_profile collectives;
  std::optional<training_profile> training;
  std::optional<inference_profile> inference;
  friend bool operator==(const stack&, const stack&) = default;
};

}  // namespace nvlsim
