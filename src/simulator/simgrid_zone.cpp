#include "simulator/simgrid_zone.hpp"

#include <fmt/format.h>
#include <simgrid/s4u.hpp>
// Must follow s4u.hpp: on its own it does not compile with SimGrid 3.32.
#include <simgrid/version.h>

#include <map>
#include <string>

namespace nvlsim::network {
namespace {

namespace sg4 = simgrid::s4u;

// SimGrid needs a speed, although nothing is computed on these hosts: the plan has the times of kernels.
constexpr double host_speed = 1e9;

#if SIMGRID_VERSION >= 40000
// The root already exists and cannot be replaced.
sg4::NetZone* root_zone(sg4::Engine& e) { return e.get_netzone_root(); }
#else
sg4::NetZone* root_zone(sg4::Engine&) { return sg4::create_empty_zone("world"); }
#endif

#if SIMGRID_VERSION >= 40100
sg4::NetZone* star_zone(sg4::NetZone* parent, const std::string& name) { return parent->add_netzone_star(name); }
sg4::Host* add_host(sg4::NetZone* z, const std::string& name) { return z->add_host(name, host_speed); }
sg4::Link* add_link(sg4::NetZone* z, const std::string& name, bandwidth b) { return z->add_link(name, b.base()); }
void add_routes(sg4::NetZone* z, sg4::Host* h, const std::vector<sg4::LinkInRoute>& up,
                const std::vector<sg4::LinkInRoute>& down) {
  z->add_route(h, nullptr, up, false);
  z->add_route(nullptr, h, down, false);
}
#else
sg4::NetZone* star_zone(sg4::NetZone* parent, const std::string& name) {
  sg4::NetZone* z = sg4::create_star_zone(name);
  z->set_parent(parent);
  return z;
}
sg4::Host* add_host(sg4::NetZone* z, const std::string& name) { return z->create_host(name, host_speed); }
sg4::Link* add_link(sg4::NetZone* z, const std::string& name, bandwidth b) {
  return z->create_link(name, b.base());
}
void add_routes(sg4::NetZone* z, sg4::Host* h, const std::vector<sg4::LinkInRoute>& up,
                const std::vector<sg4::LinkInRoute>& down) {
  z->add_route(h->get_netpoint(), nullptr, nullptr, nullptr, up, false);
  z->add_route(nullptr, h->get_netpoint(), nullptr, nullptr, down, false);
}
#endif

/// The links of a port, towards the switch and from it.
struct port_links {
  std::vector<sg4::LinkInRoute> up, down;
};

/// Appends the aggregates of a level to the ways of their ports, and gives ports that stand for several the hosts
/// of the others. Which ports have one.
std::vector<bool> add_aggregates(sg4::NetZone* zone, const star& s, uplink_level level,
                                 std::vector<port_links>& crossing, zones& out) {
  std::vector<bool> crosses(crossing.size(), false);
  for (const aggregate& a : s.aggregates) {
    if (a.level != level) continue;
    sg4::Link* a_up = add_link(zone, a.name + ".up", a.up)->set_latency(0);
    sg4::Link* a_down = add_link(zone, a.name + ".down", a.down)->set_latency(0);
    std::map<std::size_t, int> times;
    for (std::size_t i : a.ports) ++times[i];
    for (const auto& [i, count] : times) {
      crosses.at(i) = true;
      crossing[i].up.emplace_back(a_up);
      crossing[i].down.emplace_back(a_down);
      if (count < 2) continue;
      std::vector<other_ports>& others = out.others[i];
      others.push_back(
          {add_host(zone, fmt::format("{}{}.others {}", s.host_prefix, s.ports[i].gpu, others.size())), count - 1,
           level});
      add_routes(zone, others.back().host, {sg4::LinkInRoute(a_up)}, {sg4::LinkInRoute(a_down)});
    }
  }
  return crosses;
}

/// All routes of a star have the same latency, half of it on each side. SimGrid shares a link among routes in
/// inverse proportion to their latencies, so unequal latencies would be unfair. For the same reason aggregates
/// have none.
std::vector<sg4::Host*> build_star(sg4::NetZone* root, const star& s, zones* out) {
  sg4::NetZone* zone = star_zone(root, s.name);
  const double half = s.latency.base() / 2;
  std::vector<sg4::Host*> hosts;
  std::vector<port_links> links;
  for (const port& p : s.ports) {
    const std::string name = fmt::format("{}{}", s.host_prefix, p.gpu);
    hosts.push_back(add_host(zone, name));
    links.push_back({{sg4::LinkInRoute(add_link(zone, name + ".up", p.up)->set_latency(half))},
                     {sg4::LinkInRoute(add_link(zone, name + ".down", p.down)->set_latency(half))}});
    add_routes(zone, hosts.back(), links.back().up, links.back().down);
  }
  if (!out || s.aggregates.empty()) return hosts;
  out->others.resize(hosts.size());
  std::vector<port_links> crossing = links;  // up to the level
  for (const uplink_level level : uplink_levels) {
    const bool of_pods = level == uplink_level::pods;
    const std::vector<bool> crosses = add_aggregates(zone, s, level, crossing, *out);
    std::vector<sg4::Host*>& beyond = of_pods ? out->beyond_pod : out->beyond;
    beyond.assign(hosts.size(), nullptr);
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (!crosses[i]) continue;
      beyond[i] =
          add_host(zone, fmt::format("{}{}.beyond{}", s.host_prefix, s.ports[i].gpu, of_pods ? " pod" : ""));
      add_routes(zone, beyond[i], crossing[i].up, crossing[i].down);
    }
  }
  return hosts;
}

}  // namespace

zones build(sg4::Engine& simgrid, const topology& t) {
  sg4::NetZone* root = root_zone(simgrid);
  zones out;
  out.nvlink = build_star(root, t.nvlink, nullptr);
  out.fabric = build_star(root, t.fabric, &out);
  root->seal();
  return out;
}

}  // namespace nvlsim::network
