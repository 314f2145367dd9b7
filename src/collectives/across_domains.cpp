// [docs/collectives.md#collectives-across-domains]
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "nvlsim/collectives/models.hpp"

namespace nvlsim::collectives {
namespace {

/// With fewer members per domain, the library does not reduce in the switches of the domain.
constexpr int nvls_members = 5;

double log2_domains(const network& net) { return std::log2(static_cast<double>(net.domains)); }

/// Bandwidth of the ring through all ranks: limited by the links of a domain and by a share of the NICs.
bandwidth ring_rate(const fabric_collective& f, const domain_collective& d, const network& net) {
  const bandwidth nics = net.share(f.ring.nic_share);
  return net.members > 1 ? std::min<bandwidth>(nics, d.network_ring_rate ? *d.network_ring_rate : d.simple.rate)
                         : nics;
}

/// LL sends a flag with every word, which takes half of the wire. LL128 sends 8 bytes of flags per 128 bytes.
constexpr double ll_payload = 0.5, ll128_payload = 120.0 / 128;

/// Steps between domains of a message that passes every rank once.
double steps_between(const call& c, const network& net) {
  if (c.kind == collective::send_recv || c.kind == collective::neighbor_exchange) return 1;
  return (net.domains - 1.0) * (c.kind == collective::all_reduce ? 2 : 1);
}

/// Paths of small messages: a ring through all ranks or, for all-reduce, a tree of domains with a chain in each
/// domain.
enum class way { ring, tree };

way usual_way(const call& c) { return c.kind == collective::all_reduce ? way::tree : way::ring; }

/// Consecutive hops: those inside domains and those between them.
seconds hops_time(const call& c, way w, seconds inside, seconds outside, const network& net) {
  if (w == way::tree) return inside * (2 * (net.members - 1.0)) + net.step(outside) * (2 * log2_domains(net));
  const double between = std::min(steps_between(c, net), c.hops());
  return inside * (c.hops() - between) + net.step(outside) * between;
}

/// A call with the parameters of its fabric and domains, and the rate of a ring through them.
struct crossing {
  const call& c;
  const fabric_collective& f;
  const domain_collective& d;
  const network& net;
  bandwidth ring;
};

seconds ll_time(const crossing& x, way w) {
  const auto& [c, f, d, net, ring] = x;
  const double passes = w == way::tree ? tree_passes(net.domains) : 1;
  const bandwidth rate = std::min(f.ll.rate.read(), ring * (ll_payload / passes));
  return f.ll.latency + hops_time(c, w, d.ll.hop, f.ll.hop, net) +
         pipe((w == way::tree ? c.size : c.wire()) / rate, f.ll_pipeline);
}

seconds ll128_time(const crossing& x, way w) {
  const auto& [c, f, d, net, ring] = x;
  const seconds inside = d.ll128 ? d.ll128->hop : d.ll.hop;
  // An inner domain of the tree passes the whole array up and down.
  const bytes passed = w == way::tree && net.domains > 2 ? c.size * 2.0 : c.wire();
  const seconds transfer = std::max(c.wire() / f.ll128->rate, passed / (ring * ll128_payload));
  return f.ll128->latency + hops_time(c, w, inside, f.ll128->hop, net) + transfer;
}

seconds ring_time(const call& c, const fabric_collective& f, const network& net, bandwidth rate) {
  const double between = std::min(steps_between(c, net), c.hops());
  const seconds steps = f.ring.nvlink_step * (c.hops() - between) + net.step(f.ring.fabric_step) * between;
  return f.ring.latency + power_sum(steps, pipe(c.wire() / rate, f.ring.pipeline), f.ring.power);
}

/// Rate of a tree of domains whose ranks reduce at the rate `inside`.
bandwidth tree_rate(const fabric_collective::tree_params& t, const network& net, bandwidth inside) {
  const double many = net.domains > 2 ? t.many_share.read() : 1.0;
  const bandwidth nics = net.share(t.nic_share * many / tree_passes(net.domains));
  return net.members > 1 ? std::min(nics, inside * t.domain_share) : nics;
}

seconds tree_latency(const fabric_collective::tree_params& t, const network& net) {
  return t.latency + net.step(t.hop) * (2 * log2_domains(net));
}

/// In each domain a chain of its ranks, up and down.
seconds chain_tree_time(const crossing& x) {
  const auto& [c, f, d, net, ring] = x;
  return d.simple.latency + tree_latency(*f.tree, net) + f.ring.nvlink_step * (2 * (net.members - 1.0)) +
         c.size / tree_rate(*f.tree, net, d.simple.rate);
}

/// In each domain a reduction in its switches.
seconds nvls_tree_time(const crossing& x) {
  const auto& [c, f, d, net, ring] = x;
  // A longer pipeline takes as many times longer to fill, also once chunks are of their largest size.
  const double longer = f.nvls_tree->pipeline;
  return d.nvls_latency + tree_latency(*f.nvls_tree, net) +
         chunked_pipe(c.size, tree_rate(*f.nvls_tree, net, *d.nvls_rate),
                      d.nvls_pipeline_per_rank * (longer * net.members),
                      d.nvls_pipeline_limit * (longer * net.members));
}

seconds sharp_time(const call& c, const fabric_collective::sharp_params& s, const fabric_collective& f,
                   const domain_collective& d, const network& net) {
  // If the switches of a domain do not reduce, its ranks form a chain, up and down.
  constexpr double chain = 0.5;
  bandwidth rate = net.share(s.nic_share);
  if (net.members > 1)
    rate = std::min(rate, d.nvls_rate ? *d.nvls_rate * (f.nvls_tree ? f.nvls_tree->domain_share.read() : 1.0)
                                      : d.simple.rate * (f.tree ? f.tree->domain_share.read() : chain));
  return net.step(s.latency) + pipe(c.size / rate, s.pipeline);
}

/// The protocol in the name of an estimate.
std::string_view protocol_of(std::string_view algorithm) {
  if (algorithm.ends_with("ll128")) return "ll128";
  return algorithm.ends_with("ll") ? "ll" : "simple";
}

class cheapest {
 public:
  explicit cheapest(const call& c) : c_(c) {}
  /// `family`: the name in NCCL_ALGO.
  void offer(std::string_view algorithm, std::string_view family, seconds time) {
    const std::string_view wanted = c_.options.algorithm, protocol = c_.options.protocol;
    if (!wanted.empty() && wanted != family) return;
    if (!protocol.empty() && protocol != protocol_of(algorithm)) return;
    if (!best_ || time < best_->time) best_ = estimate{time, algorithm};
  }
  estimate take() const {
    if (!best_) no_such_algorithm(c_, "across domains");
    return *best_;
  }

 private:
  const call& c_;
  std::optional<estimate> best_;
};

}  // namespace

estimate across_domains(const call& c, const fabric_collective& f, const domain_collective& d,
                        const network& net) {
  const bandwidth ring = ring_rate(f, d, net);
  const bool reduces = c.kind == collective::all_reduce;
  const bool asked = c.options.algorithm == "sharp",
             free = c.options.algorithm.empty() && c.options.protocol.empty();
  cheapest best(c);
  // By default, the library sends small messages of an all-reduce through its tree.
  const auto small = [&](way w, std::string_view ll, std::string_view ll128, std::string_view family) {
    best.offer(ll, family, ll_time({c, f, d, net, ring}, w));
    if (f.ll128 && (c.size <= f.ll128_limit || c.options.protocol == "ll128"))
      best.offer(ll128, family, ll128_time({c, f, d, net, ring}, w));
  };
  small(usual_way(c), "ll", "ll128", reduces ? "tree" : "ring");
  if (reduces && c.options.algorithm == "ring") small(way::ring, "ring_ll", "ring_ll128", "ring");
  const bool nvls = d.nvls_rate && net.emptiest >= nvls_members;
  const bool over_nvls = reduces && f.nvls_tree && nvls &&
                         (net.domains == 2 || d.nvls_tree_many || c.options.algorithm == "nvls_tree");
  if (over_nvls) best.offer("nvls_tree", "nvls_tree", nvls_tree_time({c, f, d, net, ring}));
  if (reduces && f.sharp && (net.sharp || asked)) {
    best.offer("sharp", "sharp", sharp_time(c, *f.sharp, f, d, net));
    if (free || asked) {  // by default, the library prefers the switches to rings and to trees of whole messages
      estimate e = best.take();
      e.derived = e.algorithm == "sharp" && f.sharp->derived;
      return e;
    }
  }
  best.offer("ring", "ring", ring_time(c, f, net, ring));
  if (!reduces) return best.take();

  if (f.tree && (!nvls || c.options.algorithm == "tree"))
    best.offer("tree", "tree", chain_tree_time({c, f, d, net, ring}));
  return best.take();
}

double tree_passes(int domains) {
  // Each of the two trees carries half of the array, up and down each of its edges. With two domains each domain
  // has an edge in either tree. With three, each tree is a path, and the middle of one is an end of the other.
  // With more, an inner domain has up to three edges in one tree and is a leaf of the other.
  return domains < 3 ? 1 : domains == 3 ? 1.5 : 2;
}

estimate hierarchical(const call& c, const fabric_collective& f, const network& net, seconds inside) {
  // Each member of a domain runs a ring with its peers in the other domains, over its own share and its own NIC.
  const double steps = 2 * (net.domains - 1.0);
  const bytes share = c.size / static_cast<double>(net.emptiest);
  const seconds wire = share * (steps / net.domains) / (net.nic * f.ring.nic_share);
  const seconds between = f.ring.latency + power_sum(net.step(f.ring.fabric_step) * steps, wire, f.ring.power);
  return {inside + between, "hierarchical", true};
}

estimate all_to_all_across(const call& c, const fabric_all_to_all& f, const network& net, seconds inside) {
  const double leaving = static_cast<double>(c.ranks - net.emptiest) / c.ranks * c.options.skew;
  const seconds outside =
      pipe(c.size * leaving / (net.nic_any * f.nic_share), f.pipeline_per_rank * static_cast<double>(c.ranks));
  return {net.step(f.latency) + f.per_rank * c.ranks + std::max(outside, inside), "pairwise"};
}

}  // namespace nvlsim::collectives
