#include "nvlsim/link_use.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace nvlsim {
namespace {

constexpr std::array<const char*, 4> link_names = {"nvlink out", "nvlink in", "nic out", "nic in"};

struct port_log {
  std::map<std::int32_t, double> bytes_of;              ///< by template
  std::vector<std::pair<double, double>> changes;       ///< date, change of the rate
  double carried = 0;
};

/// By class and link.
using logs = std::vector<std::array<port_log, link_names.size()>>;

void note(port_log& log, std::int32_t work, double amount, double begin, double end) {
  if (!(amount > 0) || !(end > begin)) return;
  log.bytes_of[work] += amount;
  log.carried += amount;
  const double rate = amount / (end - begin);
  log.changes.emplace_back(begin, rate);
  log.changes.emplace_back(end, -rate);
}

void note(const operation& o, const network_demand& demand, std::size_t at, const span& s, logs& out) {
  const double begin = std::min(s.begin_s + demand.latency.base(), s.end_s);
  const port_bytes* both[] = {&demand.traffic.nvlink, &demand.traffic.nic};
  for (std::size_t f = 0; f < 2; ++f) {
    const double sent = both[f]->out.base(), received = both[f]->in.base();
    note(out[at][2 * f], o.work, sent, begin, s.end_s);
    if (o.peer == no_peer) note(out[at][2 * f + 1], o.work, received, begin, s.end_s);
    else note(out[static_cast<std::size_t>(o.peer)][2 * f + 1], o.work, sent, begin, s.end_s);
  }
}

link_use summary(port_log& log, double capacity, double makespan) {
  link_use u;
  u.carried = bytes::from_base(log.carried);
  u.mean = makespan > 0 ? log.carried / capacity / makespan : 0;
  std::sort(log.changes.begin(), log.changes.end());
  double rate = 0;
  for (std::size_t i = 0; i < log.changes.size(); ++i) {
    rate += log.changes[i].second;
    if (i + 1 < log.changes.size() && log.changes[i + 1].first == log.changes[i].first) continue;
    const bool last = i + 1 == log.changes.size();
    // Operations that slowed each other did not flow evenly: their means may add up to more than the port.
    const double share = last ? 0 : std::clamp(rate / capacity, 0.0, 1.0);
    u.peak = std::max(u.peak, share);
    u.points.emplace_back(log.changes[i].first, share);
  }
  return u;
}

}  // namespace

std::vector<link_use> links_used(const plan& p, const timeline& times, const platform& hardware) {
  logs all(p.classes.size());
  for (std::size_t c = 0; c < p.classes.size(); ++c)
    for (std::size_t s = 0; s < p.classes[c].streams.size(); ++s) {
      const std::vector<operation>& operations = p.classes[c].streams[s].operations;
      for (std::size_t i = 0; i < operations.size(); ++i)
        if (const auto& demand = p.templates[static_cast<std::size_t>(operations[i].work)].network)
          note(operations[i], *demand, c, times.spans[c][s][i], all);
    }
  std::vector<link_use> out;
  for (std::size_t c = 0; c < all.size(); ++c)
    for (std::size_t l = 0; l < link_names.size(); ++l) {
      port_log& log = all[c][l];
      if (log.carried <= 0) continue;
      const bandwidth capacity = l < 2 ? hardware.gpu.nvlink : hardware.fabric.nic_bandwidth;
      link_use u = summary(log, capacity.base(), times.makespan.base());
      u.rank_class = static_cast<std::int32_t>(c);
      u.name = link_names[l];
      for (const auto& [work, amount] : log.bytes_of)
        if (amount > u.of_busiest.base()) {
          u.of_busiest = bytes::from_base(amount);
          u.busiest = p.templates[static_cast<std::size_t>(work)].name;
        }
      out.push_back(std::move(u));
    }
  std::stable_sort(out.begin(), out.end(), [](const link_use& a, const link_use& b) { return a.mean > b.mean; });
  return out;
}

}  // namespace nvlsim
