// The cost models behind `collective_time`, one for inside a domain and one for across domains.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "nvlsim/collectives/collectives.hpp"

namespace nvlsim::collectives {

/// A collective with everything that its models share.
struct call {
  collective kind = collective::all_reduce;
  bytes size;
  int ranks = 1;
  collective_options options;

  /// Bytes that cross each rank's wire in a ring.
  bytes wire() const { return size * bus_factor(kind, ranks); }
  /// Messages one after the other.
  double hops() const;
};

/// What remains of latencies hidden behind bytes: x + 2 sqrt(rho x).
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

/// The algorithms that are counted from the library's rates, not measured; a rank's latency is that of Simple.
/// Throws input_error when `options.algorithm` cannot run here.
estimate derived_in_domain(const call& c, const domain_collective& d);

/// Throws input_error when `options.algorithm` or `options.protocol` cannot run here.
estimate in_domain(const call& c, const domain_collective& d, const protocol_tuning* tuning);

struct network {
  int domains = 1, members = 1, fewest = 1;  ///< members of the fullest domain and of the emptiest
  bandwidth nic;                             ///< what the fabric gives one rank, of traffic that keeps to its rail
  bandwidth nic_any;                         ///< and of traffic that does not
  bool sharp = false;                        ///< the fabric's switches may reduce
  double step_more = 0;  ///< seconds that a step over the fabric takes beyond what was measured; may be negative

  /// All ranks of the emptiest domain, through which as much passes as through the others.
  bandwidth share(double of_nics) const { return nic * (fewest * of_nics); }
  /// A step over the fabric.
  seconds step(seconds measured) const {
    return seconds::from_base(measured.base() + step_more > 0 ? measured.base() + step_more : 0.0);
  }
};

/// All collectives but all-to-all. Throws input_error when `options.algorithm` cannot run here.
estimate across_domains(const call& c, const fabric_collective& f, const domain_collective& d, const network& net);

/// Reduce and scatter in the domains, all-reduce between them, gather; `inside` is the first and the last
/// together.
estimate hierarchical(const call& c, const fabric_collective& f, const network& net, seconds inside);

/// `inside` is the part that stays in the domain.
estimate all_to_all_across(const call& c, const fabric_all_to_all& f, const network& net, seconds inside);

/// Parameters of the profile's `default` fabric for the fabric of `p`, as if it were not listed: every step is
/// longer by what its latency is longer than the default's, where messages go back and forth several times that.
fabric_collective unlisted_fabric(const collective_profile& profile, const platform& p,
                                  const fabric_collective& general);

/// The operation whose parameters count: what is not measured by itself takes those of what is most like it.
collective measured_kind(collective c);

/// The kind of NVLink domain whose parameters stand for the GPU's.
struct domain_kind {
  std::string name;
  bool derived = false;  ///< nobody measured its own
};
domain_kind kind_of_domain(const collective_profile& profile, const gpu_spec& gpu);

[[noreturn]] void no_such_algorithm(const call& c, std::string_view where);

}  // namespace nvlsim::collectives
