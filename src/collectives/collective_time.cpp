#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "collectives/models.hpp"
#include "nvlsim/diagnostics.hpp"

namespace nvlsim {
namespace collectives {

double call::hops() const {
  switch (kind) {
    case collective::all_reduce:
      return 2.0 * (ranks - 1);
    case collective::all_to_all:
      return std::log2(static_cast<double>(ranks));
    case collective::send_recv:
      return 1;
    default:
      return ranks - 1.0;
  }
}

seconds power_sum(seconds latency, seconds transfer, double p) {
  const double l = latency.base(), b = transfer.base();
  if (p == 1) return latency + transfer;
  const double most = std::max(l, b);
  if (most <= 0) return {};
  return seconds::from_base(most * std::pow(std::pow(l / most, p) + std::pow(b / most, p), 1 / p));
}

void no_such_algorithm(const call& c, std::string_view where) {
  throw input_error({{"",
                      "",
                      fmt::format("algorithm \"{}\" cannot run {} of {} ranks {} here", c.options.algorithm,
                                  name(c.kind), c.ranks, where),
                      {}}});
}

}  // namespace collectives

namespace {

using collectives::call;

struct found_kind {
  std::string_view name;
  bool derived;
};

/// Broadcast and point-to-point take the parameters of all-gather.
found_kind measured_kind(collective c) {
  if (c == collective::broadcast || c == collective::send_recv) return {name(collective::all_gather), true};
  return {name(c), false};
}

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

std::string domain_kind(const gpu_spec& gpu) { return fmt::format("nvlink{}", gpu.nvlink_generation); }

const domain_collective& domain_params(const collective_profile& profile, const std::string& kind,
                                       std::string_view c) {
  const auto* table = find(profile.domain, kind);
  if (!table) table = find(profile.domain, "default");
  if (!table) unknown("domain", "the NVLink domain", kind, keys(profile.domain));
  const domain_collective* d = find(*table, c);
  if (!d) unknown(fmt::format("domain/{}", kind), "the collective", std::string(c), keys(*table));
  return *d;
}

struct fabric_choice {
  const fabric_collective& params;
  bool derived;
};

fabric_choice fabric_params(const collective_profile& profile, const std::string& fabric, std::string_view c) {
  if (const auto* own = find(profile.fabric, fabric)) {
    if (const auto* f = find(*own, c)) return {*f, false};
    // Gather and scatter are each other's mirror image.
    if (c == name(collective::reduce_scatter))
      if (const auto* f = find(*own, name(collective::all_gather))) return {*f, true};
  }
  if (const auto* general = find(profile.fabric, "default"))
    if (const auto* f = find(*general, c)) return {*f, true};
  unknown("fabric", fmt::format("{} on the fabric", c), fabric, keys(profile.fabric));
}

void check(bytes size, comm_group g) {
  std::string what;
  if (g.ranks < 1 || g.domains < 1)
    what = fmt::format("a group of {} ranks in {} domains", g.ranks, g.domains);
  else if (g.domains > g.ranks)
    what = fmt::format("{} ranks cannot span {} domains", g.ranks, g.domains);
  else if (!(size.base() >= 0) || !std::isfinite(size.base()))
    what = fmt::format("a size of {} bytes", size.base());
  if (!what.empty()) throw input_error({{"", "", "not a collective: " + what, {}}});
}

collective_cost all_to_all_time(const collective_profile& profile, const platform& p, const call& c,
                                const domain_collective& d, const protocol_tuning* tuning,
                                const collectives::network& net) {
  const fabric_all_to_all* f = find(profile.all_to_all, p.fabric.name);
  const bool derived = !f;
  if (!f) f = find(profile.all_to_all, "default");
  if (!f) unknown("all_to_all", "the fabric", p.fabric.name, keys(profile.all_to_all));
  seconds inside;
  if (net.members > 1) {
    call local = c;
    local.ranks = net.members;
    local.size = c.size * (static_cast<double>(net.members) / c.ranks);
    inside = collectives::in_domain(local, d, tuning).time;
  }
  const collectives::estimate e = collectives::all_to_all_across(c, *f, net, inside);
  return {e.time, e.algorithm, derived};
}

}  // namespace

collective_cost collective_time(const collective_profile& profile, const platform& p, collective kind, bytes size,
                                comm_group g, const collective_options& options) {
  check(size, g);
  if (g.ranks == 1) return {{}, "none", false};
  const call c{kind, size, g.ranks, options};
  const found_kind params = measured_kind(kind);
  const std::string domain = domain_kind(p.gpu);
  const domain_collective& d = domain_params(profile, domain, params.name);
  const protocol_tuning* tuning = find(profile.tuning, domain);
  if (g.domains == 1) {
    const collectives::estimate e = collectives::in_domain(c, d, tuning);
    return {e.time, e.algorithm, e.derived};
  }
  const collectives::network net{g.domains, kind == collective::send_recv ? 1 : g.ranks_per_domain(),
                                 p.fabric.nic_bandwidth, p.fabric.sharp};
  if (kind == collective::all_to_all) return all_to_all_time(profile, p, c, d, tuning, net);
  const fabric_choice f = fabric_params(profile, p.fabric.name, params.name);
  const collectives::estimate e = collectives::across_domains(c, f.params, d, net);
  return {e.time, e.algorithm, f.derived || params.derived};
}

}  // namespace nvlsim
