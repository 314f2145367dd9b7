#include "nvlsim/analysis/link_use.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace nvlsim {
namespace {

constexpr std::array<const char*, 4> link_names = {"nvlink out", "nvlink in", "nic out", "nic in"};

struct port_log {
  std::map<std::string_view, double> bytes_of;     ///< by exchange name
  std::vector<std::pair<double, double>> changes;  ///< time, change of the rate
  double carried = 0;
};

/// Indexed by class and link.
using logs = std::vector<std::array<port_log, link_names.size()>>;

void note(port_log& log, double amount, double begin, double end) {
  if (!(amount > 0) || !(end > begin)) return;
  log.carried += amount;
  const double rate = amount / (end - begin);
  log.changes.emplace_back(begin, rate);
  log.changes.emplace_back(end, -rate);
}

/// Attributes the bytes to the operation's exchanges, in proportion to what each sends.
void name_bytes(port_log& log, const operation_template& w, double amount, bytes port_bytes::*way, bool nic) {
  if (!(amount > 0)) return;
  const auto of = [&](const operation_part& p) {
    if (!p.facts) return 0.0;
    const port_bytes& one = nic ? p.facts->traffic.nic : p.facts->traffic.nvlink;
    return (one.*way).base() * p.facts->times * p.repeat;
  };
  double all = 0;
  for (const operation_part& p : w.parts) all += of(p);
  if (!(all > 0)) log.bytes_of[w.name] += amount;
  for (const operation_part& p : w.parts)
    if (const double b = of(p); b > 0) log.bytes_of[p.name] += amount * (b / all);
}

/// Logs an operation. If contention slowed it, all of its exchanges stretch by the same factor.
void note(const operation& o, const operation_template& w, std::size_t at, const span& s, logs& out) {
  const double longer = w.duration > seconds{} ? (s.end_s - s.begin_s) / w.duration.base() : 1;
  const auto date = [&](seconds t) { return s.begin_s + t.base() * longer; };
  const std::size_t to = o.peer == no_peer ? at : static_cast<std::size_t>(o.peer);
  for (std::size_t f = 0; f < 2; ++f) {
    double sent = 0, received = 0;
    for (const network_demand& d : w.network) {
      const port_bytes& b = f == 0 ? d.traffic.nvlink : d.traffic.nic;
      const bytes in = o.peer == no_peer ? b.in : b.out;
      const double end = std::min(date(d.end), s.end_s);
      const double begin = std::min(date(d.start) + d.latency.base(), end);
      note(out[at][2 * f], b.out.base(), begin, end);
      note(out[to][2 * f + 1], in.base(), begin, end);
      sent += b.out.base(), received += in.base();
    }
    name_bytes(out[at][2 * f], w, sent, &port_bytes::out, f == 1);
    name_bytes(out[to][2 * f + 1], w, received, o.peer == no_peer ? &port_bytes::in : &port_bytes::out, f == 1);
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
    // The rates of operations that slowed each other are means, so their sum may exceed the port's capacity.
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
        if (const operation_template& w = p.templates[static_cast<std::size_t>(operations[i].template_index)];
            !w.network.empty())
          note(operations[i], w, c, times.spans[c][s][i], all);
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
      for (const auto& [name, amount] : log.bytes_of)
        if (amount > u.of_busiest.base()) u.of_busiest = bytes::from_base(amount), u.busiest = name;
      out.push_back(std::move(u));
    }
  std::stable_sort(out.begin(), out.end(), [](const link_use& a, const link_use& b) { return a.mean > b.mean; });
  return out;
}

}  // namespace nvlsim
