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

/// Where flows of a fabric begin and end.
struct port {
  sg4::Host* host = nullptr;
  sg4::Mailbox* box = nullptr;  ///< none when nothing is sent there
};

class flow_executor final : public executor {
 public:
  flow_executor(const session& s, const network::zones& z, const receiving_ports& used) : session_(s) {
    for (std::size_t f = 0; f < fabrics; ++f) {
      const std::vector<sg4::Host*>& hosts = hosts_of(z, f);
      for (sg4::Host* h : hosts) ports_[f].push_back({h, nullptr});
      classes_ = used.own[f].size();
      for (std::size_t c = 0; c < classes_; ++c) {
        if (used.own[f][c]) receive_at(ports_[f].at(c));
        if (used.outside[f][c]) receive_at(ports_[f].at(classes_ + c));
      }
    }
  }

  double run(const work_template& w, endpoints at, double begin) override {
    double over = begin;  // the exchange before
    for (const network_demand& d : w.network) {
      const double from = std::max(over, begin + d.start.base());
      over = from + (d.end - d.start).base();
      if (session_.sleep_until(from + d.latency.base())) ++activities_;
      send(d.traffic, at, over);
      // Slower than alone; less than the clock's tolerance is not told from that.
      if (const double now = session_.now(); now > over + session_.tolerance()) over = now;
    }
    const double end = std::max(over, begin + w.duration.base());
    if (sleep_to_end(session_, w, end)) ++activities_;
    return end;
  }

 private:
  /// A permanent receiver: what is sent to its mailbox flows at once, to the port that it sits at.
  static void receive_at(port& p) {
    p.box = sg4::Mailbox::by_name(p.host->get_name());
    const auto receiver = compat::add_actor(p.host, p.host->get_name() + ".receiver", [box = p.box] {
      box->set_receiver(sg4::Actor::self());
      for (;;) box->get<char>();
    });
    receiver->daemonize();
  }

  /// Blocks until all bytes have flowed, alone at `end`.
  void send(const network_traffic& t, endpoints at, double end) {
    std::array<sg4::CommPtr, 2 * fabrics> flows;
    std::size_t count = 0;
    const double left = end - session_.now();
    if (left < clock_resolution_s) return;
    const auto flow = [&](const port& from, const port& to, double amount) {
      const double whole = std::floor(amount);  // SimGrid's are; the rate makes up for it
      if (whole < 1) return;
      if (sg4::this_actor::get_host() != from.host) sg4::this_actor::set_host(from.host);
      flows[count] = to.box->put_init(&payload_, static_cast<std::uint64_t>(whole));
      flows[count++]->set_rate(whole / left)->start();
    };
    for (std::size_t f = 0; f < fabrics; ++f) {
      const double out = bytes_of(t, f).out.base(), in = bytes_of(t, f).in.base();
      const auto from = static_cast<std::size_t>(at.from);
      const port& own = ports_[f][from];
      if (at.to != no_peer) {
        flow(own, ports_[f][static_cast<std::size_t>(at.to)], out);
        continue;
      }
      // Both ways at one pace, as in a ring, where a rank cannot pass on what it has not got.
      flow(own, own, std::min(out, in));
      if (out > in) flow(own, ports_[f][classes_ + from], out - in);
      if (in > out) flow(ports_[f][classes_ + from], own, in - out);
    }
    for (std::size_t i = 0; i < count; ++i) flows[i]->wait();
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
        for (const network_demand& d : p.templates[static_cast<std::size_t>(o.work)].network)
          note_receivers(d.traffic, c, o.peer, used);
  return used;
}

std::unique_ptr<executor> make_flow_executor(const session& s, const network::zones& z,
                                             const receiving_ports& used) {
  return std::make_unique<flow_executor>(s, z, used);
}

}  // namespace nvlsim::engine
