#include "simulator/flow_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace nvlsim::simulator {
namespace {

namespace sg4 = compat::sg4;

constexpr std::size_t nvlink_way = 0, leaf_way = 1, uplink_way = 2, pod_way = 3;
constexpr std::size_t fabrics = 2;  ///< NVLink, NIC
constexpr std::size_t fabric_of(std::size_t way) { return way == nvlink_way ? 0 : 1; }

port_bytes less(const port_bytes& all, const port_bytes& part) {
  return {std::max(all.out - part.out, bytes{}), std::max(all.in - part.in, bytes{})};
}

/// Bytes that an exchange sends one way.
port_bytes bytes_of(const network_traffic& t, std::size_t way, simulated_levels levels) {
  if (way == nvlink_way) return t.nvlink;
  const port_bytes pod = levels.pods ? t.pod : port_bytes{};
  if (way == pod_way) return pod;
  const port_bytes uplink = levels.leaves ? less(t.uplink, pod) : port_bytes{};
  return way == uplink_way ? uplink : less(less(t.nic, uplink), pod);
}

constexpr std::size_t index_of(network::uplink_level level) {
  return level == network::uplink_level::leaves ? 0 : 1;
}
static_assert(pod_way == uplink_way + index_of(network::uplink_level::pods));
/// Whether the way passes the up-links of the level with this index.
constexpr bool passes(std::size_t way, std::size_t level) { return way >= uplink_way + level; }

/// An end point of flows.
struct place {
  sg4::Host* host = nullptr;
  sg4::Mailbox* box = nullptr;  ///< none if nothing is sent here
};

/// The port of a class on a fabric.
struct port {
  int users = 0;                    ///< number of operations that use it now
  sg4::Semaphore* quiet = nullptr;  ///< of the only user, which is not simulating its flows
};

/// Another operation uses the port. A user that was alone must simulate its flows from now on.
void enter(port& p) {
  ++p.users;
  if (p.quiet) p.quiet->release();
  p.quiet = nullptr;
}
void leave(port& p) { --p.users; }

class flow_executor final : public executor {
 public:
  flow_executor(const session& s, const network::zones& z, const receiving_ports& used,
                const std::vector<shared_uplink>& uplinks)
      : session_(s), classes_(used.own.front().size()), levels_(levels_of(uplinks)) {
    for (auto& of_level : shared_of_) of_level.resize(classes_);
    for (std::vector<port>& of_fabric : ports_) of_fabric.resize(classes_);
    for (const shared_uplink& u : uplinks) {
      if (u.classes.size() < 2) continue;
      for (const std::int32_t c : u.classes) {
        std::vector<std::size_t>& of_class = shared_of_[index_of(u.level)].at(static_cast<std::size_t>(c));
        if (of_class.empty() || of_class.back() != ports_[1].size()) of_class.push_back(ports_[1].size());
      }
      ports_[1].emplace_back();
    }
    for (std::size_t w = 0; w < ways; ++w) {
      for (std::size_t i = 0; i < z.fabric.size(); ++i) {
        sg4::Host* at = w == nvlink_way ? z.nvlink[i] : z.fabric[i];
        if (passes(w, 0) && !z.beyond.empty() && z.beyond[i]) at = z.beyond[i];
        if (passes(w, 1) && !z.beyond_pod.empty() && z.beyond_pod[i]) at = z.beyond_pod[i];
        places_[w].push_back({at, nullptr});
      }
      for (std::size_t c = 0; c < classes_; ++c) {
        if (used.own[w][c]) receive_at(places_[w].at(c), w);
        if (used.outside[w][c]) receive_at(places_[w].at(classes_ + c), w);
      }
    }
    add_others(z, used);
  }

  double run(const operation_template& w, endpoints at, double begin) override {
    const double closed_end = begin + w.duration.base();
    double over = begin;  // end of the previous exchange
    if (has_pieces(w)) {
      over = pass(w, at, begin);
    } else if (!w.network.empty()) {
      over = exchange(w.network.front(), at, begin, begin, false);
    }
    const double end = std::max(over, closed_end);
    if (sleep_to_end(session_, w, end)) ++activities_;
    return end;
  }

 private:
  /// Ports that stand for several have the traffic of the others on the shared up-links alone.
  void add_others(const network::zones& z, const receiving_ports& used) {
    for (auto& of_level : others_) of_level.resize(classes_);
    for (std::size_t c = 0; c < classes_ && c < z.others.size(); ++c)
      for (const network::other_ports& o : z.others[c]) {
        place at{o.host, nullptr};
        const std::size_t level = index_of(o.level);
        if ((level == 0 && used.own[uplink_way][c]) || used.own[pod_way][c]) receive_at(at, uplink_way + level);
        std::vector<place>& others = others_[level][c];
        others.insert(others.end(), static_cast<std::size_t>(o.count), at);
      }
  }

  /// Adds a permanent receiver, so that messages to the mailbox flow immediately.
  static void receive_at(place& p, std::size_t way) {
    const std::string name = fmt::format("{}.{}", p.host->get_name(), way);
    p.box = sg4::Mailbox::by_name(name);
    const auto receiver = compat::add_actor(p.host, name, [box = p.box] {
      box->set_receiver(sg4::Actor::self());
      for (;;) box->get<char>();
    });
    receiver->daemonize();
  }

  /// Whether the operation does anything else before, between or after its exchanges.
  static bool has_pieces(const operation_template& w) {
    if (w.network.size() != 1) return w.network.size() > 1;
    const network_demand& only = w.network.front();
    return only.start > seconds{} || only.end < w.duration;
  }

  /// Runs the exchanges of an operation that began at `begin`, and returns the end of the last one. Does not
  /// simulate them while no other operation uses the same ports.
  double pass(const operation_template& w, endpoints at, double begin) {
    std::vector<port*> used;
    for (std::size_t f = 0; f < fabrics; ++f) {
      const auto uses = [f](const network_demand& d) {
        return (f == 0 ? d.traffic.nvlink : d.traffic.nic) != port_bytes{};
      };
      if (std::any_of(w.network.begin(), w.network.end(), uses))
        used.push_back(&ports_[f][static_cast<std::size_t>(at.from)]);
    }
    for (std::size_t level = 0; level < network::uplink_levels.size(); ++level) {
      const auto leaves = [level](const network_demand& d) {
        return (level == 0 && d.traffic.uplink != port_bytes{}) || d.traffic.pod != port_bytes{};
      };
      if (!std::any_of(w.network.begin(), w.network.end(), leaves)) continue;
      for (const std::size_t i : shared_of_[level][static_cast<std::size_t>(at.from)])
        used.push_back(&ports_[1][i]);
    }
    for (port* p : used) enter(*p);
    const auto length = [](const network_demand& d) { return (d.end - d.start).base(); };
    double over = begin;
    for (auto d = w.network.begin(); d != w.network.end();) {
      const auto starts = [&] { return std::max(over, begin + d->start.base()); };
      double now = begin;
      if (std::all_of(used.begin(), used.end(), [](const port* p) { return p->users == 1; })) {
        double last = over;
        for (auto next = d; next != w.network.end(); ++next)
          last = std::max(last, begin + next->start.base()) + length(*next);
        const bool alone = stays_alone(used, last);
        now = alone ? last : session_.now();
        for (; d != w.network.end() && (alone || starts() + length(*d) <= now); ++d) over = starts() + length(*d);
        if (d == w.network.end()) break;
      }
      over = exchange(*d, at, starts(), now, true);
      ++d;
    }
    for (port* p : used) leave(*p);
    return over;
  }

  /// Blocks until `end`, or until another operation uses one of the ports. Returns whether none did.
  bool stays_alone(const std::vector<port*>& used, double end) {
    const double left = end - session_.now();
    if (left < session_.resolution()) return true;
    const sg4::SemaphorePtr company = sg4::Semaphore::create(0);
    for (port* p : used) p->quiet = company.get();
    const bool alone = company->acquire_timeout(left);
    for (port* p : used)
      if (p->quiet == company.get()) p->quiet = nullptr;
    ++activities_;
    return alone;
  }

  /// Runs the rest of an exchange from date `now`, and returns its end. Its `closed` time begins at `begin`.
  /// `entered`: the operation already uses the ports.
  double exchange(const network_demand& d, endpoints at, double begin, double now, bool entered) {
    const double over = begin + (d.end - d.start).base(), flows_from = begin + d.latency.base();
    if (over <= now) return over;
    if (session_.sleep_until(flows_from)) ++activities_;
    const double left = now > flows_from ? (over - now) / (over - flows_from) : 1;
    send(d.traffic, left, at, over, entered);
    // Other traffic slowed it down, if the difference exceeds the tolerance of the clock.
    return session_.now() > over + session_.tolerance() ? session_.now() : over;
  }

  struct outgoing {
    sg4::CommPtr comm;
    sg4::Host* from = nullptr;
  };
  /// A flow starts where its actor is.
  static void go_to(sg4::Host* host) {
    if (sg4::this_actor::get_host() != host) sg4::this_actor::set_host(host);
  }
  static void start(const outgoing& f) {
    go_to(f.from);
    f.comm->start();
  }

  /// Blocks until this share of the bytes has been sent. Without other traffic that is at `end`.
  void send(const network_traffic& t, double share, endpoints at, double end, bool entered) {
    std::vector<outgoing> flows;
    flows.reserve(ways);
    std::vector<port*> users;
    const double left = end - session_.now();
    if (left < session_.resolution()) return;
    const auto use = [&](port& p) {
      if (entered || std::find(users.begin(), users.end(), &p) != users.end()) return;
      enter(p);
      users.push_back(&p);
    };
    const auto flow = [&](const place& from, const place& to, double amount) {
      const double whole = std::floor(amount * share);  // SimGrid sends whole bytes; the rate compensates for it
      if (whole < 1) return;
      if (!flows.empty()) start(flows.back());
      flows.push_back({to.box->put_init(&payload_, static_cast<std::uint64_t>(whole)), from.host});
      flows.back().comm->set_rate(whole / left);
    };
    const auto from = static_cast<std::size_t>(at.from);
    for (std::size_t w = 0; w < ways; ++w) {
      const port_bytes b = bytes_of(t, w, levels_);
      const double out = b.out.base(), in = b.in.base();
      if (!(out > 0) && !(in > 0)) continue;
      std::vector<port>& ports = ports_[fabric_of(w)];
      const std::vector<place>& places = places_[w];
      use(ports[from]);
      const auto use_shared = [&](std::size_t c) {
        for (std::size_t level = 0; level < shared_of_.size() && passes(w, level); ++level)
          for (const std::size_t i : shared_of_[level][c]) use(ports_[1][i]);
      };
      use_shared(from);
      if (at.to != no_peer) {
        const auto to = static_cast<std::size_t>(at.to);
        use(ports[to]);
        use_shared(to);
        flow(places[from], places[to], out);
        for (std::size_t level = 0; level < others_.size() && passes(w, level); ++level) {
          const std::vector<place>&here = others_[level][from], &there = others_[level][to];
          for (std::size_t k = 0; k < std::min(here.size(), there.size()); ++k) flow(here[k], there[k], out);
        }
        continue;
      }
      // Both directions have the same rate, as in a ring, where a rank forwards what it receives.
      flow(places[from], places[from], std::min(out, in));
      if (out > in) flow(places[from], places[classes_ + from], out - in);
      if (in > out) flow(places[classes_ + from], places[from], in - out);
      for (std::size_t level = 0; level < others_.size() && passes(w, level); ++level)
        for (const place& others : others_[level][from]) {
          flow(others, others, std::min(out, in));
          if (out > in) flow(others, places[classes_ + from], out - in);
          if (in > out) flow(places[classes_ + from], others, in - out);
        }
    }
    if (!flows.empty()) go_to(flows.back().from);
    for (std::size_t i = flows.size(); i-- > 0;) flows[i].comm->wait();  // starts the last, which saves a call
    for (port* p : users) leave(*p);
    activities_ += static_cast<std::int64_t>(flows.size());
  }

  const session& session_;
  std::size_t classes_;
  simulated_levels levels_;
  /// By level and class: the up-links that it shares. They are ports of their own in ports_[1], after those of the
  /// classes.
  std::array<std::vector<std::vector<std::size_t>>, network::uplink_levels.size()> shared_of_;
  std::array<std::vector<port>, fabrics> ports_;
  std::array<std::vector<place>, ways> places_;
  /// By level and class: where its GPUs send beside the one that is simulated, under all up-links that it shares.
  std::array<std::vector<std::vector<place>>, network::uplink_levels.size()> others_;
  char payload_ = 0;
};

void note_receivers(const network_traffic& t, const endpoints& at, simulated_levels levels,
                    receiving_ports& used) {
  const auto from = static_cast<std::size_t>(at.from);
  for (std::size_t w = 0; w < ways; ++w) {
    const port_bytes b = bytes_of(t, w, levels);
    if (b.out == bytes{} && b.in == bytes{}) continue;
    used.own[w][at.to == no_peer ? from : static_cast<std::size_t>(at.to)] = true;
    if (at.to != no_peer || b.out == b.in) continue;
    used.any_outside = true;
    if (b.out > b.in) used.outside[w][from] = true;
  }
}

}  // namespace

simulated_levels levels_of(const std::vector<shared_uplink>& uplinks) {
  simulated_levels out;
  for (const shared_uplink& u : uplinks) (u.level == network::uplink_level::leaves ? out.leaves : out.pods) = true;
  return out;
}

bool is_used(std::size_t way, simulated_levels levels) {
  return way == uplink_way ? levels.leaves : way == pod_way ? levels.pods : true;
}

std::size_t receiving_ports::count() const {
  std::size_t n = 0;
  for (const auto* set : {&own, &outside})
    for (const std::vector<bool>& ports : *set)
      n += static_cast<std::size_t>(std::count(ports.begin(), ports.end(), true));
  return n;
}

receiving_ports no_receivers(std::size_t classes) {
  receiving_ports used;
  for (auto* set : {&used.own, &used.outside})
    for (std::vector<bool>& ports : *set) ports.assign(classes, false);
  return used;
}

receiving_ports receiving_ports_of(const plan& p, simulated_levels levels) {
  receiving_ports used = no_receivers(p.classes.size());
  for (std::size_t c = 0; c < p.classes.size(); ++c)
    for (const stream& s : p.classes[c].streams)
      for (const operation& o : s.operations)
        for (const network_demand& d : p.templates[static_cast<std::size_t>(o.template_index)].network)
          note_receivers(d.traffic, {static_cast<std::int32_t>(c), o.peer}, levels, used);
  return used;
}

std::unique_ptr<executor> make_flow_executor(const session& s, const network::zones& z,
                                             const receiving_ports& used,
                                             const std::vector<shared_uplink>& uplinks) {
  return std::make_unique<flow_executor>(s, z, used, uplinks);
}

}  // namespace nvlsim::simulator
