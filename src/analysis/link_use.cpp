#include "nvlsim/analysis/link_use.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "nvlsim/network/fabric_path.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t links_of_gpu = 8;

std::array<std::string, links_of_gpu> link_names(const platform& hardware) {
  const std::string domain = domain_link(hardware);
  return {domain + " out", domain + " in", "nic out",        "nic in",
          "uplink out",    "uplink in",    "pod uplink out", "pod uplink in"};
}

const port_bytes& bytes_of(const network_traffic& t, std::size_t link) {
  return link == 0 ? t.nvlink : link == 1 ? t.nic : link == 2 ? t.uplink : t.pod;
}

struct port_log {
  std::map<std::string_view, double> bytes_of;     ///< by exchange name
  std::vector<std::pair<double, double>> changes;  ///< time, change of the rate
  double carried = 0, unended = 0;                 ///< bytes, and those of operations that outlast the run
};

/// Indexed by class and link.
using logs = std::vector<std::array<port_log, links_of_gpu>>;

void note(port_log& log, double amount, double begin, double end) {
  if (!(amount > 0) || !(end > begin)) return;
  log.carried += amount;
  const double rate = amount / (end - begin);
  log.changes.emplace_back(begin, rate);
  log.changes.emplace_back(end, -rate);
}

/// Attributes the bytes to the operation's exchanges, in proportion to what each sends.
void name_bytes(port_log& log, const operation_template& w, double amount, bytes port_bytes::*way,
                std::size_t link) {
  if (!(amount > 0)) return;
  const auto of = [&](const operation_part& p) {
    if (!p.facts) return 0.0;
    return (bytes_of(p.facts->traffic, link).*way).base() * p.facts->times * p.repeat;
  };
  double all = 0;
  for (const operation_part& p : w.parts) all += of(p);
  if (!(all > 0)) log.bytes_of[w.name] += amount;
  for (const operation_part& p : w.parts)
    if (const double b = of(p); b > 0) log.bytes_of[p.name] += amount * (b / all);
}

/// Where and when an operation ran, and the time up to which links are used.
struct operation_run {
  std::size_t rank_class = 0;
  span ran;
  double last_s = 0;
};

/// Logs an operation. If contention slowed it, all of its exchanges stretch by the same factor.
void note(const operation& o, const operation_template& w, const operation_run& run, logs& out) {
  const std::size_t at = run.rank_class;
  const span& s = run.ran;
  const double last_s = run.last_s;
  const double longer = w.duration > seconds{} ? (s.end_s - s.begin_s) / w.duration.base() : 1;
  const auto date = [&](seconds t) { return s.begin_s + t.base() * longer; };
  const std::size_t to = o.peer == no_peer ? at : static_cast<std::size_t>(o.peer);
  for (std::size_t f = 0; f < links_of_gpu / 2; ++f) {
    double sent = 0, received = 0;
    for (const network_demand& d : w.network) {
      const port_bytes& b = bytes_of(d.traffic, f);
      const bytes in = o.peer == no_peer ? b.in : b.out;
      const double end = std::min(date(d.end), s.end_s);
      const double begin = std::min(date(d.start) + d.latency.base(), end);
      const double share = end > last_s ? std::max(0.0, last_s - begin) / (end - begin) : 1;
      note(out[at][2 * f], b.out.base() * share, begin, std::min(end, last_s));
      note(out[to][2 * f + 1], in.base() * share, begin, std::min(end, last_s));
      sent += b.out.base() * share, received += in.base() * share;
    }
    if (s.end_s > last_s) out[at][2 * f].unended += sent, out[to][2 * f + 1].unended += received;
    name_bytes(out[at][2 * f], w, sent, &port_bytes::out, f);
    name_bytes(out[to][2 * f + 1], w, received, o.peer == no_peer ? &port_bytes::in : &port_bytes::out, f);
  }
}

link_use summary(port_log& log, double capacity, double makespan) {
  link_use u;
  // What outlasts the run may have been slower during the run than on average.
  const double later = std::clamp(log.carried - capacity * makespan, 0.0, log.unended);
  const double in_run = log.carried > 0 ? 1 - later / log.carried : 1;
  log.carried -= later;
  for (auto& [name, amount] : log.bytes_of) amount *= in_run;
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

void name_busiest(const std::map<std::string_view, double>& bytes_of, link_use& u) {
  for (const auto& [name, amount] : bytes_of)
    if (amount > u.of_busiest.base()) u.of_busiest = bytes::from_base(amount), u.busiest = name;
}

/// The part of the up-links of a level that each class has to itself; zero where they limit nothing, and the NIC
/// says it all.
std::vector<bandwidth> uplink_shares(const plan& p, const platform& hardware, network::uplink_level level) {
  const bandwidth usual = network::uplink_of(hardware, level);
  const bool limits = p.uplinks.empty() && usual < hardware.fabric.nic_bandwidth;
  std::vector<bandwidth> out(p.classes.size(), limits ? usual : bandwidth{});
  for (const shared_uplink& u : p.uplinks)
    if (u.level == level && u.classes.size() == 1) out[static_cast<std::size_t>(u.classes.front())] = u.capacity;
  return out;
}

/// Use of the up-links that classes share.
std::vector<link_use> shared_uses(const plan& p, const logs& all, seconds makespan) {
  std::vector<link_use> out;
  for (const shared_uplink& u : p.uplinks) {
    if (u.classes.size() < 2) continue;
    const std::size_t first = u.level == network::uplink_level::leaves ? 4 : 6;
    for (const std::size_t l : {first, first + 1}) {
      port_log sum;
      link_use use;
      for (const std::int32_t c : u.classes) {
        const port_log& one = all[static_cast<std::size_t>(c)][l];
        sum.carried += one.carried, sum.unended += one.unended;
        sum.changes.insert(sum.changes.end(), one.changes.begin(), one.changes.end());
        if (use.by_class.empty() || use.by_class.back().first != c) use.by_class.emplace_back(c, bytes{});
        use.by_class.back().second += bytes::from_base(one.carried);
        for (const auto& [name, amount] : one.bytes_of) sum.bytes_of[name] += amount;
      }
      if (sum.carried <= 0) continue;
      auto by_class = std::move(use.by_class);
      const double in_all = sum.carried;
      use = summary(sum, u.capacity.base(), makespan.base());
      for (auto& [of_class, amount] : by_class) amount *= use.carried.base() / in_all;
      use.by_class = std::move(by_class);
      use.rank_class = -1;
      use.name = u.name + (l == first ? " out" : " in");
      name_busiest(sum.bytes_of, use);
      out.push_back(std::move(use));
    }
  }
  return out;
}

}  // namespace

std::string domain_link(const platform& hardware) {
  std::string out(link_name(hardware.gpu));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

std::vector<link_use> links_used(const plan& p, const timeline& times, const platform& hardware) {
  logs all(p.classes.size());
  for (std::size_t c = 0; c < p.classes.size(); ++c)
    for (std::size_t s = 0; s < p.classes[c].streams.size(); ++s) {
      const std::vector<operation>& operations = p.classes[c].streams[s].operations;
      for (std::size_t i = 0; i < operations.size(); ++i)
        if (const operation_template& w = p.templates[static_cast<std::size_t>(operations[i].template_index)];
            !w.network.empty())
          note(operations[i], w, {c, times.spans[c][s][i], times.makespan.base()}, all);
    }
  const std::vector<bandwidth> uplinks = uplink_shares(p, hardware, network::uplink_level::leaves),
                               of_pods = uplink_shares(p, hardware, network::uplink_level::pods);
  const std::array<std::string, links_of_gpu> names = link_names(hardware);
  std::vector<link_use> out = shared_uses(p, all, times.makespan);
  for (std::size_t c = 0; c < all.size(); ++c)
    for (std::size_t l = 0; l < links_of_gpu; ++l) {
      port_log& log = all[c][l];
      const std::array<bandwidth, links_of_gpu / 2> capacities = {
          hardware.gpu.nvlink, hardware.fabric.nic_bandwidth, uplinks[c], of_pods[c]};
      const bandwidth capacity = capacities[l / 2];
      if (log.carried <= 0 || !(capacity > bandwidth{})) continue;
      link_use u = summary(log, capacity.base(), times.makespan.base());
      u.rank_class = static_cast<std::int32_t>(c);
      u.name = names[l];
      name_busiest(log.bytes_of, u);
      out.push_back(std::move(u));
    }
  std::stable_sort(out.begin(), out.end(), [](const link_use& a, const link_use& b) { return a.mean > b.mean; });
  return out;
}

}  // namespace nvlsim
