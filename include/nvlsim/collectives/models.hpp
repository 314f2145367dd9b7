// The cost models behind `collective_time`, one for inside a domain and one for across domains.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "nvlsim/collectives/collectives.hpp"

namespace nvlsim::collectives {

/// A collective, with the inputs that all models use.
struct call {
  collective kind = collective::all_reduce;
  bytes size;
  int ranks = 1;
  collective_options options;

  /// Bytes that cross each rank's wire in a ring.
  bytes wire() const { return size * bus_factor(kind, ranks); }
  /// Number of consecutive messages.
  double hops() const;
};

/// Latency x with the part that pipelining does not hide: x + 2 sqrt(rho x).
inline seconds pipe(seconds x, seconds rho) {
  return seconds::from_base(x.base() + 2 * std::sqrt(rho.base() * x.base()));
}
/// (l^p + b^p)^(1/p)
seconds power_sum(seconds latency, seconds transfer, double p);

struct estimate {
  seconds time;
  std::string_view algorithm;
  bool derived = false;
};

/// Algorithms that were not measured, derived from the rates of the library. The latency per rank is that of
/// Simple. Throws input_error when `options.algorithm` cannot run here.
estimate derived_in_domain(const call& c, const domain_collective& d);

/// Throws input_error when `options.algorithm` or `options.protocol` cannot run here.
estimate in_domain(const call& c, const domain_collective& d, const protocol_tuning* tuning);

struct network {
  int domains = 1, members = 1, emptiest = 1;  ///< members of the fullest domain and of the emptiest
  bandwidth nic;                               ///< bandwidth per rank for traffic that stays on its rail
  bandwidth nic_any;                           ///< bandwidth per rank for other traffic
  bool sharp = false;                          ///< the switches of the fabric can reduce
  double step_more = 0;  ///< seconds per step over the fabric beyond the measured step; may be negative

  /// Bandwidth of the emptiest domain, which carries as much traffic as the others.
  bandwidth share(double of_nics) const { return nic * (emptiest * of_nics); }
  /// A step over the fabric.
  seconds step(seconds measured) const {
    return seconds::from_base(measured.base() + step_more > 0 ? measured.base() + step_more : 0.0);
  }
};

/// All collectives but all-to-all. Throws input_error when `options.algorithm` cannot run here.
estimate across_domains(const call& c, const fabric_collective& f, const domain_collective& d, const network& net);

/// Reduce-scatter in the domains, all-reduce between them, all-gather in the domains. `inside` is the time of the
/// first and the last part.
estimate hierarchical(const call& c, const fabric_collective& f, const network& net, seconds inside);

/// Bytes at `rate` through a pipeline of chunks that grow with the message up to `limit`.
seconds chunked_pipe(bytes size, bandwidth rate, seconds rho, bytes limit);

/// `inside` is the time of the traffic that stays in the domain.
estimate all_to_all_across(const call& c, const fabric_all_to_all& f, const network& net, seconds inside);

/// Parameters for the fabric of `p` from the `default` fabric of the profile, as if it were not listed. Each step
/// is longer by the difference in latency; protocols with several round trips add it several times.
fabric_collective unlisted_fabric(const collective_profile& profile, const platform& p,
                                  const fabric_collective& general);

/// The operation whose parameters apply: an operation that was not measured uses those of the most similar one.
collective measured_kind(collective c);

/// The kind of NVLink domain whose parameters apply to a GPU.
struct domain_kind {
  std::string name;
  bool derived = false;  ///< its own kind was not measured
};
domain_kind kind_of_domain(const collective_profile& profile, const gpu_spec& gpu);

/// Below this size, runs of one shape on one kind of machine differ by up to 2.3 times: hosts, virtual machines
/// and releases show. `spread_family` names the entry of `collective_profile::spreads` that applies.
inline constexpr bytes small_message = bytes::from_base(2 << 20);
inline std::string spread_family(const std::string& family, bytes size) {
  return size < small_message ? family + "/small" : family;
}

/// How many times the busiest domain of a double binary tree sends the array through its NICs, and receives it.
/// [docs/collectives.md#trees-of-domains]
double tree_passes(int domains);

/// Share of the links of a GPU that lead to the other `members` of a group. With a switch all links reach every
/// GPU. Without one, they are assumed to be spread evenly over the GPUs of the domain.
double links_reaching(const platform& p, int members);

[[noreturn]] void no_such_algorithm(const call& c, std::string_view where);

}  // namespace nvlsim::collectives
