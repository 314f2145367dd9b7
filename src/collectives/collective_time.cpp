#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nvlsim/collectives/models.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/network/fabric_path.hpp"

namespace nvlsim {
namespace collectives {

double call::hops() const {
  switch (kind) {
    case collective::all_reduce:
      return 2.0 * (ranks - 1);
    case collective::all_to_all:
      return std::log2(static_cast<double>(ranks));
    case collective::send_recv:
    case collective::neighbor_exchange:
      return 1;
    default:
      return ranks - 1.0;
  }
}

seconds power_sum(seconds latency, seconds transfer, double p) {
  const double l = latency.base(), b = transfer.base();
  if (p == 1) return latency + transfer;
  const double max = std::max(l, b);
  if (max <= 0) return {};
  return seconds::from_base(max * std::pow(std::pow(l / max, p) + std::pow(b / max, p), 1 / p));
}

double links_reaching(const platform& p, int members) {
  const auto all = static_cast<double>(p.gpus_per_rack());
  return p.rack.nvlink_planes > 0 || members < 2 || members >= all ? 1 : (members - 1) / (all - 1);
}

void no_such_algorithm(const call& c, std::string_view where) {
  const auto [a, p] = std::pair(c.options.algorithm, c.options.protocol);
  const std::string what = a.empty()   ? fmt::format("protocol \"{}\"", p)
                           : p.empty() ? fmt::format("algorithm \"{}\"", a)
                                       : fmt::format("algorithm \"{}\" by protocol \"{}\"", a, p);
  std::string text = fmt::format("{} cannot run {} of {} ranks {}", what, name(c.kind), c.ranks, where);
  throw input_error({{"", "", std::move(text), {}}});
}

}  // namespace collectives

namespace {

using collectives::call;

template <class T>
const T* find(const std::map<std::string, T>& table, std::string_view key) {
  const auto it = table.find(std::string(key));
  return it == table.end() ? nullptr : &it->second;
}

template <class T>
std::vector<std::string> keys(const std::map<std::string, T>& table) {
  std::vector<std::string> out;
  for (const auto& [key, v] : table) out.push_back(key);
  return out;
}

[[noreturn]] void unknown(std::string_view section, std::string_view what, const std::string& key,
                          const std::vector<std::string>& known) {
  std::string text = fmt::format("no parameters for {} \"{}\"; ", what, key);
  text += known.empty() ? "the stack has none" : fmt::format("the stack has {}", fmt::join(known, ", "));
  throw input_error({{"stack", fmt::format("/collectives/{}", section), std::move(text), nearest(key, known)}});
}

const domain_collective& domain_params(const collective_profile& profile, const std::string& kind,
                                       std::string_view c) {
  const auto* table = find(profile.domain, kind);
  if (!table) table = find(profile.domain, "default");
  if (!table) unknown("domain", "the domain", kind, keys(profile.domain));
  const domain_collective* d = find(*table, c);
  if (!d) unknown(fmt::format("domain/{}", kind), "the collective", std::string(c), keys(*table));
  return *d;
}

struct fabric_choice {
  fabric_collective params;
  bool derived;
};

/// A measured fabric stores its latency at the time of the measurement. The difference to the present latency is
/// added to each step.
seconds longer_than_default(const collective_profile& profile, const platform& p) {
  const measured_hardware* general = find(profile.measured_on, "default");
  if (!general || !general->latency) return {};
  const measured_hardware* own = find(profile.measured_on, p.fabric.name);
  const seconds host = p.fabric.host_driven && general->host_step ? general->host_step->read() : seconds{};
  return (own && own->latency ? *own->latency : p.fabric.latency) + host - *general->latency;
}

fabric_choice fabric_params(const collective_profile& profile, const platform& p, std::string_view c) {
  const std::string& fabric = p.fabric.name;
  if (const auto* own = find(profile.fabric, fabric)) {
    if (const auto* f = find(*own, c)) return {*f, false};
    // Gather and scatter mirror each other, and run like the ring and the small messages of an all-reduce.
    for (const collective like : {collective::all_gather, collective::all_reduce})
      if (const auto* f = find(*own, name(like)); f && c != name(collective::all_reduce)) return {*f, true};
  }
  if (const auto* general = find(profile.fabric, "default"))
    if (const auto* f = find(*general, c)) return {collectives::unlisted_fabric(profile, p, *f), true};
  unknown("fabric", fmt::format("{} on the fabric", c), fabric, keys(profile.fabric));
}

/// Wire rates, scaled by the NVLink rate of this GPU over that of the measured GPUs. LL has a limit of its own.
domain_collective on_nvlink(domain_collective d, double ratio) {
  d.ll.rate *= ratio;
  if (d.ll128) d.ll128->rate *= ratio;
  d.simple.rate *= ratio;
  if (d.simple_few) d.simple_few->rate *= ratio;
  if (d.nvls_rate) *d.nvls_rate *= ratio;
  if (d.network_ring_rate) *d.network_ring_rate *= ratio;
  return d;
}

/// The library knows the links. Its limit for LL is constant down to half of the links.
protocol_tuning on_nvlink(protocol_tuning t, double ratio) {
  t.ll128.rate *= ratio;
  t.simple.rate *= ratio;
  t.ll.rate = std::min(t.ll.rate.read(), t.simple.rate * 0.5);
  if (t.nvls) t.nvls->rate *= ratio;
  return t;
}

/// Share of the port rate that an all-to-all reaches where GPUs have links to some GPUs of their domain only: what
/// goes to the others takes a second link.
double relayed_share(const platform& p) {
  const double others = p.gpus_per_rack() - 1.0, peers = p.rack.mesh_peers;
  if (p.rack.nvlink_planes > 0 || peers <= 0 || others <= peers) return 1;
  return others / (peers + 2 * (others - peers));
}

/// 1 if only the generation is known, that is, if the profile does not say on which links it was measured.
double nvlink_ratio(const collective_profile& profile, const platform& p, const std::string& domain, int members,
                    collective kind) {
  const measured_hardware* m = find(profile.measured_on, domain);
  if (!m || !m->nvlink || p.gpu.nvlink <= bandwidth{}) return 1;
  const double relayed = kind == collective::all_to_all ? relayed_share(p) : 1;
  return p.gpu.nvlink / *m->nvlink * collectives::links_reaching(p, members) * relayed;
}

/// Whether every rank sends to one other.
bool is_of_pairs(collective c) { return c == collective::send_recv || c == collective::neighbor_exchange; }

/// GPUs of a leaf of a domain whose planes have two levels of switches: half of the ports lead to them.
double gpus_of_switch(const platform& p) { return p.rack.nvlink_switch_ports / 2.0; }

/// What a hop between two leaves takes longer in a domain whose planes have two levels of switches: the message
/// crosses three switches in place of one.
seconds more_per_hop(const platform& p, int members) {
  if (p.rack.nvlink_levels < 2 || members <= gpus_of_switch(p)) return {};
  return p.rack.nvlink_switch_latency * 2.0;
}

/// The share of hops that lead to another leaf. A ring goes through the GPUs of a leaf one after the other; what
/// has other partners in each step, and pairs of which all wait for the slowest, have the longer hop in each.
/// Where the library chooses, ring and tree have the hops of a ring.
double between_leaves(const platform& p, const call& c, int members) {
  const std::string_view algorithm = c.options.algorithm;
  if (c.kind == collective::all_to_all || is_of_pairs(c.kind) || !(algorithm.empty() || algorithm == "ring"))
    return 1;
  return std::min(1.0, std::ceil(members / gpus_of_switch(p)) / members);
}

/// `share` of the hops take longer.
domain_collective with_longer_hops(domain_collective d, seconds more, double share) {
  for (protocol_params* x : {&d.ll, &d.simple}) x->hop += more * share;
  for (auto* x : {&d.ll_few, &d.ll128, &d.simple_few})
    if (*x) (*x)->hop += more * share;
  // Up to the switches that add, and down again.
  if (d.nvls_rate) d.nvls_latency += more * 2.0;
  return d;
}

collectives::network network_of(const collective_profile& profile, const platform& p, collective kind,
                                communicator g) {
  const bool pair = is_of_pairs(kind);
  const network::fabric_path aligned = path_of(p, collective::all_reduce, g);
  collectives::network net{g.domains,
                           pair ? 1 : g.max_members(),
                           pair ? 1 : g.min_members(),
                           aligned.nic,
                           path_of(p, collective::all_to_all, g).nic,
                           p.fabric.sharp};
  const measured_hardware* m = find(profile.measured_on, p.fabric.name);
  if (m && m->latency) net.step_more = (p.fabric.latency - *m->latency).base();
  if (m && m->switch_latency)
    net.step_more += aligned.switches * (p.fabric.leaf.latency - *m->switch_latency).base();
  return net;
}

void check(bytes size, communicator g) {
  std::string what;
  if (g.ranks < 1 || g.domains < 1) what = fmt::format("a group of {} ranks in {} domains", g.ranks, g.domains);
  else if (g.domains > g.ranks) what = fmt::format("{} ranks cannot span {} domains", g.ranks, g.domains);
  else if (!(size.base() >= 0) || !std::isfinite(size.base()))
    what = fmt::format("a size of {} bytes", size.base());
  if (!what.empty()) throw input_error({{"", "", "not a collective: " + what, {}}});
}

struct all_to_all_choice {
  fabric_all_to_all params;
  bool derived;
};

all_to_all_choice all_to_all_params(const collective_profile& profile, const platform& p) {
  if (const fabric_all_to_all* own = find(profile.all_to_all, p.fabric.name)) return {*own, false};
  const fabric_all_to_all* general = find(profile.all_to_all, "default");
  if (!general) unknown("all_to_all", "the fabric", p.fabric.name, keys(profile.all_to_all));
  fabric_all_to_all f = *general;
  f.latency = std::max(f.latency + longer_than_default(profile, p), seconds{});
  return {f, true};
}

/// What the fullest domain would take for the same bytes among its own ranks, which they exchange in any case. Of
/// the library's own choice only: what a caller forces may be worse inside a domain than across.
seconds min_time(const call& c, const domain_collective& d, const protocol_tuning* tuning, int members) {
  if (members < 2 || !c.options.algorithm.empty() || !c.options.protocol.empty()) return {};
  call inside = c;
  inside.ranks = members;
  return collectives::in_domain(inside, d, tuning).time;
}

collective_cost all_to_all_time(const collective_profile& profile, const platform& p, const call& c,
                                const domain_collective& d, const collectives::network& net) {
  const std::string_view asked = c.options.algorithm, protocol = c.options.protocol;
  if ((!asked.empty() && asked != "pairwise") || (!protocol.empty() && protocol != "simple"))
    collectives::no_such_algorithm(c, "across domains");
  const auto [f, derived] = all_to_all_params(profile, p);
  seconds inside;
  if (net.members > 1) {
    call local = c;
    local.ranks = net.members;
    // What two domains keep. More keep less, but where that shows (small messages, two ranks in a domain) they are
    // not faster for it. By the faster protocol: the library picks one for the whole exchange.
    local.size = c.size * std::max(0.5, static_cast<double>(net.members) / c.ranks);
    inside = collectives::in_domain(local, d, nullptr).time;
  }
  const collectives::estimate e = collectives::all_to_all_across(c, f, net, inside);
  return {e.time, e.algorithm, derived};
}

collective_cost fused_all_reduce(const collective_profile& profile, const platform& p,
                                 const collective_call& asked) {
  const auto& [kind, size, g, options] = asked;
  if (kind != collective::all_reduce || g.domains > 1)
    throw input_error({{"", "", fmt::format("\"{}\" is an all-reduce inside one domain", options.algorithm), {}}});
  if (!options.protocol.empty())
    throw input_error(
        {{"",
          "",
          fmt::format("\"{}\" is not an algorithm of the library, so it has no protocols", options.algorithm),
          {}}});
  const auto cost = custom_all_reduce_time(profile, p, size, g.ranks, options.algorithm);
  if (!cost) unknown("custom", "the fused all-reduce of GPU", p.gpu.name, keys(profile.custom));
  return *cost;
}

/// Whether expert exchanges were measured on such links; elsewhere their rate is derived from that of the links.
bool exchanges_measured(const collective_profile& profile, const platform& p, communicator g) {
  const collectives::domain_kind domain = collectives::kind_of_domain(profile, p.gpu);
  return domain.name == profile.expert_links && !domain.derived &&
         nvlink_ratio(profile, p, domain.name, g.max_members(), collective::all_to_all) == 1 &&
         more_per_hop(p, g.max_members()) == seconds{};
}

}  // namespace

collective collectives::measured_kind(collective c) {
  switch (c) {
    case collective::broadcast:
    case collective::send_recv:
    case collective::neighbor_exchange:
      return collective::all_gather;
    case collective::reduce:
      return collective::reduce_scatter;
    case collective::barrier:
      return collective::all_reduce;
    default:
      return c;
  }
}

collectives::domain_kind collectives::kind_of_domain(const collective_profile& profile, const gpu_spec& gpu) {
  std::string own = link_kind(gpu);
  const measured_hardware* m = find(profile.measured_on, own);
  if (m && !m->like.empty()) return {m->like, true};
  const bool derived = gpu.nvlink_generation == 0;  // no sweep of other links is in the tables
  return {std::move(own), derived};
}

fabric_collective collectives::unlisted_fabric(const collective_profile& profile, const platform& p,
                                               const fabric_collective& general) {
  fabric_collective f = general;
  const seconds longer = longer_than_default(profile, p);
  const auto add = [&](constant<seconds>& step, double times) {
    step = std::max(step + longer * times, seconds{});
  };
  add(f.ll.hop, 1);
  if (f.ll128) add(f.ll128->hop, 1);
  add(f.ring.fabric_step, f.ring.per_latency);
  for (auto* t : {&f.tree, &f.nvls_tree})
    if (*t) add((*t)->hop, (*t)->per_latency);
  if (f.sharp) add(f.sharp->latency, 1);
  return f;
}

collective_cost collective_time(const collective_profile& profile, const platform& p,
                                const collective_call& asked) {
  const auto& [kind, size, g, options] = asked;
  check(size, g);
  if (g.ranks == 1) return {{}, "none", false};
  if (options.algorithm == "one_shot" || options.algorithm == "two_shot")
    return fused_all_reduce(profile, p, asked);
  if (kind == collective::barrier) {
    collective_cost cost = collective_time(profile, p, {collective::all_reduce, {}, g, options});
    cost.derived = true;
    return cost;
  }
  const call c{kind, size, g.ranks, options};
  const collective measured = collectives::measured_kind(kind);
  const collectives::domain_kind domain = collectives::kind_of_domain(profile, p.gpu);
  const double ratio = nvlink_ratio(profile, p, domain.name, g.max_members(), kind);
  const seconds longer = more_per_hop(p, g.max_members());
  const bool derived = measured != kind || domain.derived || ratio != 1 || longer > seconds{};
  // Most calls use the measured port rate. Only the others copy the parameters, to scale them.
  const domain_collective* as_measured = &domain_params(profile, domain.name, name(measured));
  const protocol_tuning* tuning = find(profile.tuning, domain.name);
  std::optional<domain_collective> scaled;
  std::optional<protocol_tuning> scaled_tuning;
  if (ratio != 1) {
    as_measured = &scaled.emplace(on_nvlink(*as_measured, ratio));
    if (tuning) tuning = &scaled_tuning.emplace(on_nvlink(*tuning, ratio));
  }
  if (longer > seconds{})
    as_measured = &scaled.emplace(with_longer_hops(*as_measured, longer, between_leaves(p, c, g.max_members())));
  const domain_collective& d = *as_measured;
  if (g.domains == 1) {
    const collectives::estimate e = collectives::in_domain(c, d, tuning);
    return {e.time, e.algorithm, e.derived || derived};
  }
  const collectives::network net = network_of(profile, p, kind, g);
  if (kind == collective::all_to_all) return all_to_all_time(profile, p, c, d, net);
  const fabric_choice f = fabric_params(profile, p, name(measured));
  if (options.algorithm == "hierarchical" && kind == collective::all_reduce) {
    if (!options.protocol.empty() && options.protocol != "simple")
      collectives::no_such_algorithm(c, "across domains");
    seconds inside;
    if (net.members > 1)
      for (const collective half : {collective::reduce_scatter, collective::all_gather})
        inside += collective_time(profile, p, {half, size, {net.members, 1}}).time;
    return {collectives::hierarchical(c, f.params, net, inside).time, "hierarchical", true};
  }
  collectives::estimate e = collectives::across_domains(c, f.params, d, net);
  if (const auto least = min_time(c, d, tuning, net.members); least > e.time) e.time = least;
  return {e.time, e.algorithm, e.derived || f.derived || derived};
}

std::optional<collective_spread> spread_of(const collective_profile& profile, const platform& p,
                                           const collective_call& c, const collective_cost& cost) {
  const auto& [kind, size, g, options] = c;
  if (g.ranks == 1) return std::nullopt;  // nothing to do
  const auto entry = [&](std::string_view table, std::string_view key,
                         std::string_view member) -> std::optional<collective_spread> {
    const std::string family = fmt::format("{}/{}{}{}", table, key, member.empty() ? "" : "/", member);
    const auto* s = find(profile.spreads, collectives::spread_family(family, c.size));
    if (!s) s = find(profile.spreads, family);
    return s ? std::optional(*s) : std::nullopt;
  };
  const std::string domain = collectives::kind_of_domain(profile, p.gpu).name;
  if (cost.algorithm == "one_shot" || cost.algorithm == "two_shot")
    return entry("custom", profile.custom.contains(p.gpu.name) ? p.gpu.name : domain, {});
  const bool exchange = kind == collective::all_to_all;
  const std::string_view member = exchange ? std::string_view{} : name(kind);
  if (g.domains == 1) return cost.derived ? std::nullopt : entry("domain", domain, name(kind));
  const std::string_view table = exchange ? "all_to_all" : "fabric";
  if (!cost.derived)
    if (const auto own = entry(table, p.fabric.name, member)) return own;
  // The error of the default fabric is that of predicting each measured fabric from the others.
  return entry(table, "default", member);
}

std::optional<collective_cost> expert_exchange_cost(const collective_profile& profile, const platform& p,
                                                    std::string_view kind, const expert_traffic& t,
                                                    communicator g) {
  const std::string_view algorithm = kind.starts_with("one_sided") ? "one_sided" : "two_sided";
  expert_traffic on_links = t;
  on_links.members = g.domains > 1 ? g.max_members() : 0;
  const auto kernel = expert_exchange_time(profile, p, kind, on_links);
  if (!kernel) return std::nullopt;
  if (g.domains == 1) return collective_cost{*kernel, algorithm, !exchanges_measured(profile, p, g)};
  const collectives::network net = network_of(profile, p, collective::all_to_all, g);
  const expert_exchange& k = profile.expert.find(std::string(kind))->second;
  // The busiest NICs are those of the emptiest domain: as many tokens come in for fewer of them.
  const double places = static_cast<double>(g.ranks) / net.emptiest;
  const double domains =
      (t.spread ? std::min(t.topk, places) : places_reached(places, t.topk)) * (places - 1) / places;
  const bytes leaving = bytes::from_base(t.tokens * domains * t.skew * t.hidden * k.element_bytes);
  // A token that another rank of the domain receives is forwarded to it as the next ones arrive.
  const seconds nics = leaving / (net.nic * profile.expert_nic_share);
  const auto [f, derived] = all_to_all_params(profile, p);
  return collective_cost{net.step(f.latency) + std::max(nics, *kernel), algorithm, true};
}

}  // namespace nvlsim
