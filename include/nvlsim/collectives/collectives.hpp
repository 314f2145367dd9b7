// Costs of collective operations on a group of GPUs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nvlsim/network/fabric_path.hpp"
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
  neighbor_exchange,  ///< ranks form a line; each sends its array to both neighbours and receives theirs
  barrier             ///< moves no bytes
};
std::string_view name(collective c);
/// All names, in the order of the enumeration.
std::span<const std::string> collective_names();
std::optional<collective> collective_by_name(std::string_view name);

/// The ranks of one communicator, as the network sees them.
struct communicator {
  int ranks = 1;
  int domains = 1;                ///< NVLink domains they span
  int fullest = 0, emptiest = 0;  ///< ranks in the fullest and in the emptiest domain; 0: spread evenly
  std::int64_t stride = 0;        ///< distance in GPU numbers between consecutive senders; 0: not known

  int max_members() const { return fullest > 0 ? fullest : (ranks + domains - 1) / domains; }
  int min_members() const { return emptiest > 0 ? emptiest : ranks / domains; }
};

struct collective_cost {
  seconds time;
  /// "ll", "ll128", "simple", "nvls", "tree", "nvls_tree", "ring", "sharp", "pairwise", "halving_doubling",
  /// "hierarchical", "one_shot", "two_shot" or "none"
  std::string_view algorithm;
  bool derived = false;  ///< some parameter was derived from hardware data, not measured
};

struct collective_options {
  /// The algorithm to use, one of `collective_algorithms()`; empty: the library chooses.
  std::string_view algorithm;
  bool in_place = false;  ///< the rank does not copy its own share
  /// The protocol to use, as in NCCL_PROTO: "ll", "ll128" or "simple"; empty: the library chooses.
  std::string_view protocol = {};
  double skew = 1;  ///< all-to-all: bytes of the busiest rank over the mean
};

/// Every algorithm that a caller can choose. "ring", "tree", "nvls", "nvls_tree" and "sharp" belong to the
/// library. "halving_doubling", "pairwise" and "hierarchical" are derived from its measured rates. "one_shot" and
/// "two_shot" are inference kernels.
std::span<const std::string> collective_algorithms();

/// One collective among the ranks of a group. `size` is nccl-tests' size: the array for all-reduce and broadcast,
/// the total over ranks for all-gather and reduce-scatter, each rank's total for all-to-all.
struct collective_call {
  collective kind = collective::all_reduce;
  bytes size;
  communicator group;
  collective_options options = {};
};

/// Time of one collective through the collective library. One rank costs nothing. The time never decreases as the
/// size grows. Throws input_error if the profile has neither the kind of domain nor a default, if the group is
/// impossible, or if the chosen algorithm is not available.
collective_cost collective_time(const collective_profile& profile, const platform& p, const collective_call& c);

/// The spread of measured times around a `cost` of `collective_time`; nothing if no similar collective was
/// measured.
std::optional<collective_spread> spread_of(const collective_profile& profile, const platform& p,
                                           const collective_call& c, const collective_cost& cost);

/// The fused all-reduce of inference engines inside one domain: `only` if it is "one_shot" or "two_shot", else the
/// faster of the two. Nothing if the profile has none for this GPU.
std::optional<collective_cost> custom_all_reduce_time(const collective_profile& profile, const platform& p,
                                                      bytes size, int ranks, std::string_view only = {});

/// Expected number of distinct places that a token reaches when each of its `copies` goes to a random one of
/// `places`.
double places_reached(double places, double copies);

/// Tokens that every rank of an expert-parallel group sends at once.
struct expert_traffic {
  double tokens = 0;  ///< per rank
  double topk = 1, hidden = 0;
  int ranks = 1;
  double skew = 1;  ///< bytes of the busiest rank over the mean
  /// Whether the copies of a token go to as many ranks as possible, as in benchmarks; else they go to random
  /// experts.
  bool spread = false;
  /// Ranks in the NVLink domain of each rank, where the group has more than one domain; 0: it has one.
  int members = 0;

  /// Mean number of other ranks that a token reaches over the links of a domain. A rank with several of its
  /// experts receives one copy, and the rank at which a token arrives in a domain none.
  double reach() const;
};
/// Time of the exchange kernel `kind` ("two_sided_dispatch_bf16"); nothing if the profile does not have it.
std::optional<seconds> expert_exchange_time(const collective_profile& profile, const platform& p,
                                            std::string_view kind, const expert_traffic& t);

/// The same for a group that may span domains. A token leaves a rank once for each other domain that it reaches,
/// through the NIC; the rank that receives it forwards it over the links of its domain. The algorithm is
/// "two_sided" or "one_sided".
std::optional<collective_cost> expert_exchange_cost(const collective_profile& profile, const platform& p,
                                                    std::string_view kind, const expert_traffic& t,
                                                    communicator g);

/// Bytes through one port of a GPU, in each direction.
struct port_bytes {
  bytes out, in;
  friend bool operator==(const port_bytes&, const port_bytes&) = default;
};
/// Bytes through the two ports of a GPU. `uplink` and `pod`: those of the NIC that cross up-links of its leaf and
/// of its pod, where those limit.
struct network_traffic {
  port_bytes nvlink, nic, uplink = {}, pod = {};
  friend bool operator==(const network_traffic&, const network_traffic&) = default;
};
/// Bytes that the busiest rank of a collective sends and receives, without `uplink` and `pod`. `algorithm` is a
/// name that `collective_time` returns. [docs/collectives.md#wire-bytes]
network_traffic wire_traffic(collective c, bytes size, communicator g, std::string_view algorithm);

/// Path between NICs of a collective across domains. [docs/collectives.md#fabric-conditions]
network::fabric_path path_of(const platform& p, collective c, communicator g);
/// The platform as the group sees it if no other GPU sends: of a leaf's NICs only the group's share its up-links.
platform only_group_on(platform p, communicator g);
/// The traffic with those bytes of its NIC that leave their leaf, and their pod, on this path.
network_traffic along(network_traffic t, const network::fabric_path& path);

/// busbw / algbw of nccl-tests: 2(n-1)/n for all-reduce, (n-1)/n for gather, scatter and all-to-all, else 1; and 2
/// for the neighbour exchange, which nccl-tests does not have.
double bus_factor(collective c, int ranks);

}  // namespace nvlsim
