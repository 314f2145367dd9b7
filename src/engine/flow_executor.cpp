#include "engine/flow_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace nvlsim::engine {
namespace {

namespace sg4 = compat::sg4;

const port_bytes& bytes_of(const network_traffic& t, std::size_t fabric) { return fabric == 0 ? t.nvlink : t.nic; }
const std::vector<sg4::Host*>& hosts_of(const network::zones& z, std::size_t fabric) {
  return fabric == 0 ? z.nvlink : z.fabric;
}

/// The end point of flows on a fabric.
struct port {
  sg4::Host* host = nullptr;
  sg4::Mailbox* box = nullptr;      ///< none if nothing is sent to this port
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
  flow_executor(const session& s, const network::zones& z, const receiving_ports& used) : session_(s) {
    for (std::size_t f = 0; f < fabrics; ++f) {
      const std::vector<sg4::Host*>& hosts = hosts_of(z, f);
      for (sg4::Host* h : hosts) ports_[f].push_back({.host = h});
      classes_ = used.own[f].size();
      for (std::size_t c = 0; c < classes_; ++c) {
        if (used.own[f][c]) receive_at(ports_[f].at(c));
        if (used.outside[f][c]) receive_at(ports_[f].at(classes_ + c));
      }
    }
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
  /// Adds a permanent receiver at the port, so that messages to its mailbox flow immediately.
  static void receive_at(port& p) {
    p.box = sg4::Mailbox::by_name(p.host->get_name());
    const auto receiver = compat::add_actor(p.host, p.host->get_name() + ".receiver", [box = p.box] {
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
      const auto uses = [f](const network_demand& d) { return bytes_of(d.traffic, f) != port_bytes{}; };
      if (std::any_of(w.network.begin(), w.network.end(), uses))
        used.push_back(&ports_[f][static_cast<std::size_t>(at.from)]);
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
    if (left < clock_resolution_s) return true;
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

  /// Blocks until this share of the bytes has been sent. Without other traffic that is at `end`.
  void send(const network_traffic& t, double share, endpoints at, double end, bool entered) {
    std::array<sg4::CommPtr, 2 * fabrics> flows;
    std::array<port*, 2 * fabrics> users{};
    std::size_t count = 0, user_count = 0;
    const double left = end - session_.now();
    if (left < clock_resolution_s) return;
    const auto use = [&](port& p) {
      if (entered) return;
      enter(p);
      users[user_count++] = &p;
    };
    const auto flow = [&](const port& from, const port& to, double amount) {
      const double whole = std::floor(amount * share);  // SimGrid sends whole bytes; the rate compensates for it
      if (whole < 1) return;
      if (sg4::this_actor::get_host() != from.host) sg4::this_actor::set_host(from.host);
      flows[count] = to.box->put_init(&payload_, static_cast<std::uint64_t>(whole));
      flows[count++]->set_rate(whole / left)->start();
    };
    for (std::size_t f = 0; f < fabrics; ++f) {
      const double out = bytes_of(t, f).out.base(), in = bytes_of(t, f).in.base();
      if (!(out > 0) && !(in > 0)) continue;
      const auto from = static_cast<std::size_t>(at.from);
      port& own = ports_[f][from];
      use(own);
      if (at.to != no_peer) {
        port& other = ports_[f][static_cast<std::size_t>(at.to)];
        use(other);
        flow(own, other, out);
        continue;
      }
      // Both directions have the same rate, as in a ring, where a rank forwards what it receives.
      flow(own, own, std::min(out, in));
      if (out > in) flow(own, ports_[f][classes_ + from], out - in);
      if (in > out) flow(ports_[f][classes_ + from], own, in - out);
    }
    for (std::size_t i = 0; i < count; ++i) flows[i]->wait();
    for (std::size_t i = 0; i < user_count; ++i) leave(*users[i]);
    activities_ += static_cast<std::int64_t>(count);
  }

  const session& session_;
  std::size_t classes_ = 0;
  std::array<std::vector<port>, fabrics> ports_;
  char payload_ = 0;
};

void note_receivers(const network_traffic& t, std::size_t from, std::int32_t peer, receiving_ports& used) {
  for (std::size_t f = 0; f < fabrics; ++f) {
    const port_bytes& b = bytes_of(t, f);
    if (b.out == bytes{} && b.in == bytes{}) continue;
    used.own[f][peer == no_peer ? from : static_cast<std::size_t>(peer)] = true;
    if (peer != no_peer || b.out == b.in) continue;
    used.any_outside = true;
    if (b.out > b.in) used.outside[f][from] = true;
  }
}

}  // namespace

std::size_t receiving_ports::count() const {
  std::size_t n = 0;
  for (const auto* set : {&own, &outside})
    for (const std::vector<bool>& ports : *set)
      n += static_cast<std::size_t>(std::count(ports.begin(), ports.end(), true));
  return n;
}

receiving_ports receiving_ports_of(const plan& p) {
  receiving_ports used;
  for (auto* set : {&used.own, &used.outside})
    for (std::vector<bool>& ports : *set) ports.assign(p.classes.size(), false);
  for (std::size_t c = 0; c < p.classes.size(); ++c)
    for (const stream& s : p.classes[c].streams)
      for (const operation& o : s.operations)
        for (const network_demand& d : p.templates[static_cast<std::size_t>(o.template_index)].network)
          note_receivers(d.traffic, c, o.peer, used);
  return used;
}

std::unique_ptr<executor> make_flow_executor(const session& s, const network::zones& z,
                                             const receiving_ports& used) {
  return std::make_unique<flow_executor>(s, z, used);
}

}  // namespace nvlsim::engine
