// Collective operations: what they cost on a group of GPUs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nvlsim/platform.hpp"
#include "nvlsim/stack.hpp"
#include "nvlsim/units.hpp"

namespace nvlsim {

enum class collective { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv };
std::string_view name(collective c);
std::optional<collective> collective_by_name(std::string_view name);

/// The ranks of one communicator, as the network sees them.
struct comm_group {
  int ranks = 1;
  int domains = 1;  ///< NVLink domains they span
  /// Members in the fullest domain.
  int ranks_per_domain() const { return (ranks + domains - 1) / domains; }
};

struct collective_cost {
  seconds time;
  /// "ll", "ll128", "simple", "nvls", "tree", "nvls_tree", "ring", "sharp", "pairwise", "one_shot", "two_shot" or
  /// "none"
  std::string_view algorithm;
  bool derived = false;        ///< some parameter came from hardware figures instead of a measurement
};

struct collective_options {
  /// Only this algorithm, as NCCL_ALGO sets it: "ring", "tree", "nvls", "nvls_tree" or "sharp"; any when empty.
  std::string_view algorithm;
  bool in_place = false;  ///< no copy of the rank's own share
};

/// Time of one collective through the collective library. `size` is nccl-tests' size: the array for all-reduce and
/// broadcast, the total over ranks for all-gather and reduce-scatter, each rank's total for all-to-all.
/// One rank costs nothing. Never decreases when `size` grows. Throws input_error when the profile knows neither the
/// domain kind nor a default for it, when the group is impossible and when the algorithm asked for is not to be had.
collective_cost collective_time(const collective_profile& profile, const platform& p, collective c, bytes size,
                                comm_group g, const collective_options& options = {});

/// The fused all-reduce of inference engines inside one domain, one-shot or two-shot, whichever is faster; nothing
/// when the profile has none for this GPU.
std::optional<collective_cost> custom_all_reduce_time(const collective_profile& profile, const platform& p, bytes size,
                                                      int ranks);

/// What every rank of an expert-parallel group sends at once, inside one domain.
struct expert_traffic {
  double tokens = 0;  ///< of a rank
  double topk = 1, hidden = 0;
  int ranks = 1;
};
/// Time of the exchange kernel `kind` ("two_sided_dispatch_bf16"); nothing when the profile has no such kernel.
std::optional<seconds> expert_exchange_time(const collective_profile& profile, const platform& p,
                                            std::string_view kind, const expert_traffic& t);

/// Bytes through one port of a GPU, each way.
struct port_bytes {
  bytes out, in;
};
/// Bytes through the two ports of a GPU.
struct network_traffic {
  port_bytes nvlink, nic;
};
/// What the busiest rank of a collective sends and receives when it runs by `algorithm`, one of the names that
/// `collective_time` returns. [docs/models-and-assumptions.md#wire-bytes]
network_traffic wire_traffic(collective c, bytes size, comm_group g, std::string_view algorithm);

/// busbw = algbw x this (nccl-tests): 2(n-1)/n for all-reduce, (n-1)/n for gather, scatter and all-to-all, else 1.
double bus_factor(collective c, int ranks);

}  // namespace nvlsim
