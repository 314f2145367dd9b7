// [docs/collectives.md#wire-bytes]
#include <algorithm>

#include "nvlsim/collectives/models.hpp"

namespace nvlsim {
namespace {

/// LL sends a flag of 4 bytes with every 4 bytes, LL128 a flag of 8 bytes with every 120.
double flags(std::string_view algorithm) {
  if (algorithm.ends_with("ll")) return 2;
  return algorithm.ends_with("ll128") ? 128.0 / 120 : 1;
}

port_bytes both_ways(bytes b) { return {b, b}; }

/// The switch reads the whole array of every rank. Each rank then writes its share of the sums, which the switch
/// multicasts.
port_bytes switch_reduction(bytes size, double ranks) { return both_ways(size * (1 + 1 / ranks)); }

port_bytes in_domain(collective c, bytes size, int ranks, std::string_view algorithm) {
  const double n = ranks;
  if (algorithm == "nvls") {
    if (c == collective::all_reduce) return switch_reduction(size, n);
    const bytes own = size / n, others = size * ((n - 1) / n);
    return c == collective::all_gather ? port_bytes{own, others} : port_bytes{others, own};
  }
  if (algorithm == "tree") return both_ways(size * 2.0);
  if (algorithm == "one_shot") return both_ways(size * (n - 1));
  return both_ways(size * (bus_factor(c, ranks) * flags(algorithm)));
}

/// The NIC of each rank carries its share of the traffic of a domain of `g` ranks with other domains.
network_traffic across_domains(collective c, bytes size, const communicator& group, std::string_view algorithm) {
  const bool pair = c == collective::send_recv || c == collective::neighbor_exchange;
  const double g = pair ? 1 : group.max_members(), few = pair ? 1 : group.min_members(), n = group.ranks;
  const double inside = (g - 1) / g;  // share of the hops of a domain that stay inside
  if (algorithm == "pairwise") return {both_ways(size * ((g - 1) / n)), both_ways(size * ((n - few) / n))};
  if (algorithm == "sharp") return {g > 1 ? switch_reduction(size, g) : port_bytes{}, both_ways(size / few)};
  if (algorithm == "hierarchical") {
    const double between = 2 * (group.domains - 1.0) / group.domains;
    return {both_ways(size * (2 * inside)), both_ways(size * (between / few))};
  }
  const bool small = algorithm == "ll" || algorithm == "ll128";
  const bool tree = algorithm == "tree" || algorithm == "nvls_tree" || (small && c == collective::all_reduce);
  if (tree) {
    const double passes = collectives::tree_passes(group.domains);
    const port_bytes domain =
        algorithm == "nvls_tree" ? switch_reduction(size, g) : both_ways(size * (2 * inside));
    const double f = flags(algorithm);
    return {{domain.out * f, domain.in * f}, both_ways(size * (passes * f / few))};
  }
  const bytes along_ring = size * (bus_factor(c, group.ranks) * flags(algorithm));
  return {both_ways(along_ring * inside), both_ways(along_ring / few)};
}

}  // namespace

network_traffic wire_traffic(collective c, bytes size, communicator g, std::string_view algorithm) {
  if (g.ranks <= 1) return {};
  if (g.domains == 1) return {in_domain(c, size, g.ranks, algorithm), {}};
  return across_domains(c, size, g, algorithm);
}

network::fabric_path path_of(const platform& p, collective c, communicator g) {
  if (g.domains == 1) return {p.fabric.nic_bandwidth};
  if (g.stride > 0) return network::path_of_shift(p, g.stride);
  // A leaf has the NICs of whole domains, of which the group may use only some.
  return network::path_between(p, std::max(g.ranks, g.domains * p.gpus_per_rack()), c != collective::all_to_all);
}

platform only_group_on(platform p, communicator g) {
  if (p.gpus_per_rack() > 0)
    p.fabric.busy = p.fabric.busy_of_pod = std::min(1.0, static_cast<double>(g.max_members()) / p.gpus_per_rack());
  return p;
}

network_traffic along(network_traffic t, const network::fabric_path& path) {
  t.uplink = {t.nic.out * path.leaving, t.nic.in * path.leaving};
  t.pod = {t.nic.out * path.leaving_pod, t.nic.in * path.leaving_pod};
  return t;
}

}  // namespace nvlsim
