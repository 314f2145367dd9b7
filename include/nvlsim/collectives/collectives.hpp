// Collective operations: what they cost on a group of GPUs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nvlsim/platform/platform.hpp"
#include "nvlsim/stack/stack.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

enum class collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  send_recv,
  reduce,
  neighbor_exchange,  ///< every rank sends the array to both neighbours in a line of ranks, and receives theirs
  barrier             ///< has no bytes
};
std::string_view name(collective c);
/// All names, in the order of the enumeration.
std::span<const std::string> collective_names();
std::optional<collective> collective_by_name(std::string_view name);

/// The ranks of one communicator, as the network sees them.
struct comm_group {
  int ranks = 1;
  int domains = 1;              ///< NVLink domains they span
  int fullest = 0, fewest = 0;  ///< members of a domain; as even as can be when 0
  std::int64_t apart = 0;  ///< of two neighbours of many that all send: GPUs from one to the next; 0: not known

  int most_members() const { return fullest > 0 ? fullest : (ranks + domains - 1) / domains; }
  int fewest_members() const { return fewest > 0 ? fewest : ranks / domains; }
};

struct collective_cost {
  seconds time;
  /// "ll", "ll128", "simple", "nvls", "tree", "nvls_tree", "ring", "sharp", "pairwise", "halving_doubling",
  /// "hierarchical", "one_shot", "two_shot" or "none"
  std::string_view algorithm;
  bool derived = false;  ///< some parameter came from hardware figures instead of a measurement
};

struct collective_options {
  /// Only this algorithm, one of `collective_algorithms()`; the library's choice when empty.
  std::string_view algorithm;
  bool in_place = false;  ///< no copy of the rank's own share
  /// Only this protocol, as NCCL_PROTO sets it: "ll", "ll128" or "simple"; the library's choice when empty.
  std::string_view protocol = {};
  double skew = 1;  ///< all-to-all: bytes of the busiest rank over the mean
};

/// Every algorithm that can be asked for. "ring", "tree", "nvls", "nvls_tree" and "sharp" are the library's;
/// "halving_doubling", "pairwise" and "hierarchical" run on its measured rates; "one_shot" and "two_shot" are
/// inference kernels.
std::span<const std::string> collective_algorithms();

/// One collective among the ranks of a group. `size` is nccl-tests' size: the array for all-reduce and broadcast,
/// the total over ranks for all-gather and reduce-scatter, each rank's total for all-to-all.
struct collective_call {
  collective kind = collective::all_reduce;
  bytes size;
  comm_group group;
  collective_options options = {};
};

/// Time of one collective through the collective library.
/// One rank costs nothing. Never decreases when `size` grows. Throws input_error when the profile knows neither
/// the domain kind nor a default for it, when the group is impossible and when the algorithm asked for is not to
/// be had.
collective_cost collective_time(const collective_profile& profile, const platform& p, const collective_call& c);

/// How measured times spread around a `cost` that `collective_time` gave; nothing where nobody measured what is
/// like it.
std::optional<collective_spread> spread_of(const collective_profile& profile, const platform& p, collective c,
                                           comm_group g, const collective_cost& cost);

/// The fused all-reduce of inference engines inside one domain, `only` "one_shot" or "two_shot", else whichever is
/// faster; nothing when the profile has none for this GPU.
std::optional<collective_cost> custom_all_reduce_time(const collective_profile& profile, const platform& p,
                                                      bytes size, int ranks, std::string_view only = {});

/// To how many of `places` a token goes that goes to one of them at random `copies` times.
double places_reached(double places, double copies);

/// What every rank of an expert-parallel group sends at once, inside one domain.
struct expert_traffic {
  double tokens = 0;  ///< of a rank
  double topk = 1, hidden = 0;
  int ranks = 1;
  double skew = 1;  ///< bytes of the busiest rank over the mean
  /// Tokens spread over as many ranks as they can, as benchmarks send them; else to experts at random.
  bool spread = false;

  /// Mean number of other ranks that a token goes to; only one copy goes to a rank with several of its experts.
  double reach() const;
};
/// Time of the exchange kernel `kind` ("two_sided_dispatch_bf16"); nothing when the profile has no such kernel.
std::optional<seconds> expert_exchange_time(const collective_profile& profile, const platform& p,
                                            std::string_view kind, const expert_traffic& t);

/// The same for a group that may span domains: what leaves them goes through the NICs as an all-to-all does, while
/// the kernel serves the rest. "two_sided" or "one_sided" is its algorithm.
std::optional<collective_cost> expert_exchange_cost(const collective_profile& profile, const platform& p,
                                                    std::string_view kind, const expert_traffic& t, comm_group g);

/// Bytes through one port of a GPU, each way.
struct port_bytes {
  bytes out, in;
  friend bool operator==(const port_bytes&, const port_bytes&) = default;
};
/// Bytes through the two ports of a GPU.
struct network_traffic {
  port_bytes nvlink, nic;
  friend bool operator==(const network_traffic&, const network_traffic&) = default;
};
/// What the busiest rank of a collective sends and receives when it runs by `algorithm`, one of the names that
/// `collective_time` returns. [docs/collectives.md#wire-bytes]
network_traffic wire_traffic(collective c, bytes size, comm_group g, std::string_view algorithm);

/// busbw = algbw x this (nccl-tests): 2(n-1)/n for all-reduce, (n-1)/n for gather, scatter and all-to-all, else 1;
/// 2 for the neighbour exchange, which nccl-tests lacks.
double bus_factor(collective c, int ranks);

}  // namespace nvlsim
