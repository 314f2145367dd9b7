#include "nvlsim/simulator/serving_actors.hpp"

#include <deque>
#include <exception>
#include <memory>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/event_board.hpp"
#include "simulator/actors.hpp"
#include "simulator/flow_executor.hpp"
#include "simulator/guarded_actor.hpp"
#include "simulator/ports.hpp"
#include "simulator/session.hpp"

namespace nvlsim {
namespace {

namespace sg4 = simulator::compat::sg4;
using simulator::session;

/// What all actors of a run share.
struct stage {
  session& clock;
  simulator::executor* network;          ///< none: iterations and transfers take their own times
  const std::vector<sg4::Host*>& hosts;  ///< by class, or by worker over all servers
  std::int64_t activities = 0;
  std::exception_ptr first_error = {};

  void sleep_until(double date) {
    if (clock.sleep_until(date)) ++activities;
  }
};

/// A worker's actor waits here for what to do next.
struct desk {
  sg4::SemaphorePtr arrived = sg4::Semaphore::create(0);
  server::started now;
};
/// What a worker has yet to send or to fetch, one at a time.
template <class Order>
class tray {
 public:
  /// `ready`: the date from which the order can be carried out.
  void add(double ready, const Order& order) {
    waiting_.emplace_back(ready, order);
    work_->release();
  }
  /// Blocks the calling actor until there is an order. Returns it with its date.
  std::pair<double, Order> next() {
    work_->acquire();
    const auto out = waiting_.front();
    waiting_.pop_front();
    return out;
  }

 private:
  sg4::SemaphorePtr work_ = sg4::Semaphore::create(0);
  std::deque<std::pair<double, Order>> waiting_;
};

/// The first host of a server's workers, and the date at which its own time begins.
struct server_place {
  std::size_t first_host = 0;
  double start_s = 0;
};

/// The actors of one server. Each tells its events and then yields, so that all events of a date are known before
/// the first of them is handled, in the same order as in `serve_by_queue`.
class server_actors {
 public:
  server_actors(const server_case& c, stage& on, const server_place& at)
      : server_(c.list, c.settings, c.price), on_(on), first_(at.first_host), start_(at.start_s),
        desks_(server_.workers()), outboxes_(server_.workers()), inboxes_(server_.workers()),
        decoding_(static_cast<std::size_t>(c.settings.workers)), fetches_(!c.settings.tiers.empty()) {}

  void start() {
    guarded(on_.hosts[first_], "requests", [this] { bring_requests(); });
    for (std::size_t i = 0; i < desks_.size(); ++i) {
      guarded(on_.hosts[first_ + i], "worker " + std::to_string(i), [this, i] { run_worker(i); });
      if (fetches_)
        guarded(on_.hosts[first_ + i], "tiers of worker " + std::to_string(i), [this, i] { fetch(i); });
      if (i >= decoding_)
        guarded(on_.hosts[first_ + i], "caches of worker " + std::to_string(i), [this, i] { send_caches(i); });
    }
  }
  serving_outcome close() && { return std::move(server_).close(); }

 private:
  template <class Body>
  void guarded(sg4::Host* host, const std::string& name, Body body) {
    const auto actor = simulator::add_guarded_actor(host, name, on_.first_error, std::move(body));
    if (name != "requests") actor->daemonize();
  }

  /// Blocks until the server's clock shows `date`.
  void sleep_until(double date) { on_.sleep_until(start_ + date); }
  double now() const { return on_.clock.now() - start_; }
  /// Runs an operation from `begin` on, and returns its end.
  double run(const operation_template& o, const simulator::endpoints& at, double begin) {
    return on_.network->run(o, at, start_ + begin) - start_;
  }

  void bring_requests() {
    sleep_until(0);
    server_.open();
    obey(0);
    while (!idle()) {
      const double next = server_.next_arrival();
      if (next == std::numeric_limits<double>::infinity()) {
        changed_->acquire();
      } else if (const double left = next - now(); left >= on_.clock.resolution()) {
        ++on_.activities;
        if (!changed_->acquire_timeout(left)) continue;  // woken before the date
        happened({next, server_event::kind::arrival, 0});
      } else {
        happened({next, server_event::kind::arrival, 0});
      }
    }
  }
  /// Whether nothing can happen any more.
  bool idle() { return busy_ == 0 && server_.next_arrival() == std::numeric_limits<double>::infinity(); }

  void run_worker(std::size_t i) {
    for (;;) {
      desks_[i].arrived->acquire();
      const server::started it = std::move(desks_[i].now);
      double end = it.end_s;
      if (on_.network && it.operation) end = run(*it.operation, {host_of(i), no_peer}, it.begin_s);
      else sleep_until(end);
      happened({end, server_event::kind::end, static_cast<std::int32_t>(i)});
    }
  }

  void send_caches(std::size_t i) {
    double free = 0;
    for (;;) {
      const auto [ready, cache] = outboxes_[i].next();
      const double begin = std::max(free, ready);
      if (on_.network && cache.transfer.operation) {
        free = run(*cache.transfer.operation, {host_of(cache.from), host_of(cache.to)}, begin);
      } else {
        free = begin + cache.transfer.seconds;
        sleep_until(free);
      }
      happened({free, server_event::kind::delivery, cache.request});
    }
  }
  void fetch(std::size_t i) {
    double free = 0;
    for (;;) {
      const auto [ready, wanted] = inboxes_[i].next();
      free = std::max(free, ready) + wanted.seconds;
      sleep_until(free);
      happened({free, server_event::kind::fetch, wanted.request});
    }
  }

  std::int32_t host_of(std::size_t worker) const { return static_cast<std::int32_t>(first_ + worker); }

  void happened(const server_event& e) {
    due_.push_back(e);
    sg4::this_actor::yield();
    if (due_.empty()) return;  // another actor has told the server
    double last = 0;
    for (const server_event& d : due_) {
      last = std::max(last, d.at_s);
      if (d.what != server_event::kind::arrival) --busy_;
    }
    tell(server_, due_);
    obey(last);
  }

  void obey(double now) {
    server::orders orders;
    server_.take_orders(orders);
    for (server::started& i : orders.iterations) {
      ++busy_;
      desk& d = desks_[i.worker];
      d.now = std::move(i);
      d.arrived->release();
    }
    for (const server::sending& c : orders.caches) {
      ++busy_;
      outboxes_[c.from].add(now, c);
    }
    for (const server::fetching& f : orders.fetches) {
      ++busy_;
      inboxes_[f.worker].add(now, f);
    }
    if (server_.next_arrival() < expected_ || idle()) changed_->release();
    expected_ = server_.next_arrival();
  }

  server server_;
  stage& on_;
  std::size_t first_;
  double start_;
  std::vector<desk> desks_;
  std::vector<tray<server::sending>> outboxes_;  ///< caches, of prefill workers
  std::vector<tray<server::fetching>> inboxes_;  ///< blocks in tiers
  std::size_t decoding_;
  bool fetches_;
  std::vector<server_event> due_;
  std::int64_t busy_ = 0;  ///< iterations and transfers under way
  double expected_ = std::numeric_limits<double>::infinity();
  sg4::SemaphorePtr changed_ = sg4::Semaphore::create(0);
};

std::size_t workers_of(const server_settings& s) {
  return static_cast<std::size_t>(s.workers + (s.prefill ? s.prefill->workers : 0));
}

/// Actors of servers, without those of ports.
std::size_t actors_of(const std::vector<server_case>& cases) {
  std::size_t out = 0;
  for (const server_case& c : cases)
    out += 1 + workers_of(c.settings) * (c.settings.tiers.empty() ? 1 : 2) +
           static_cast<std::size_t>(c.settings.prefill ? c.settings.prefill->workers : 0);
  return out;
}

std::size_t workers_of(const std::vector<server_case>& cases) {
  std::size_t out = 0;
  for (const server_case& c : cases) out += workers_of(c.settings);
  return out;
}

/// Every worker can receive on both fabrics, from its peers and from outside of what is simulated.
void add_receivers(simulator::receiving_ports& used, std::size_t first, std::size_t workers,
                   simulator::simulated_levels levels) {
  for (std::size_t way = 0; way < simulator::ways; ++way) {
    if (!simulator::is_used(way, levels)) continue;
    for (std::size_t i = first; i < first + workers; ++i) used.own[way][i] = used.outside[way][i] = true;
  }
  used.any_outside = used.any_outside || workers > 0;
}

/// The servers of a run.
class server_set {
 public:
  /// Starts the actors of servers whose workers follow each other from `at` on.
  void start(const std::vector<server_case>& cases, stage& on, server_place at) {
    for (const server_case& c : cases) {
      servers_.push_back(std::make_unique<server_actors>(c, on, at));
      servers_.back()->start();
      at.first_host += workers_of(c.settings);
    }
  }
  /// What the next servers did, in the order in which they were started.
  std::vector<serving_outcome> close(std::size_t count) {
    std::vector<serving_outcome> out;
    for (; count > 0; --count) out.push_back(std::move(*servers_[closed_++]).close());
    return out;
  }

 private:
  std::vector<std::unique_ptr<server_actors>> servers_;
  std::size_t closed_ = 0;
};

}  // namespace

served_cases serve_by_actors(const std::vector<server_case>& cases, const platform& hardware,
                             const simulation_options& options) {
  const std::size_t workers = workers_of(cases);
  const bool shared = options.network != fidelity::closed;
  const std::vector<shared_uplink> uplinks =
      shared ? simulator::uplink_shares(hardware, workers) : std::vector<shared_uplink>{};
  simulator::receiving_ports used = simulator::no_receivers(shared ? workers : 0);
  if (shared) add_receivers(used, 0, workers, simulator::levels_of(uplinks));
  session clock;
  clock.expect_actors(actors_of(cases) + used.count());
  const network::zones zones =
      simulator::build_ports(clock, hardware, workers * (used.any_outside ? 2 : 1), shared, uplinks);
  const auto network = shared ? simulator::make_flow_executor(clock, zones, used, uplinks) : nullptr;
  stage on{clock, network.get(), zones.nvlink};
  server_set servers;
  servers.start(cases, on, {});
  clock.simgrid().run();
  if (on.first_error) std::rethrow_exception(on.first_error);
  return {servers.close(cases.size()), on.activities + (network ? network->activities() : 0)};
}

joint_outcome simulate_jointly(const plan& p, const std::vector<placed_servers>& servers,
                               const platform& hardware) {
  check_plan(p);
  const simulator::simulated_levels levels = simulator::levels_of(p.uplinks);
  simulator::receiving_ports used = simulator::receiving_ports_of(p, levels);
  std::size_t actors = busy_streams(p).size();
  for (const placed_servers& s : servers) {
    add_receivers(used, static_cast<std::size_t>(s.first_class), workers_of(*s.cases), levels);
    actors += actors_of(*s.cases);
  }
  session clock;
  clock.expect_actors(actors + used.count());
  const network::zones zones =
      simulator::build_ports(clock, hardware, p.classes.size() * (used.any_outside ? 2 : 1), true, p.uplinks);
  const auto network = simulator::make_flow_executor(clock, zones, used, p.uplinks);
  stage on{clock, network.get(), zones.nvlink};
  server_set all;
  for (const placed_servers& s : servers)
    all.start(*s.cases, on, {static_cast<std::size_t>(s.first_class), s.start.base()});
  joint_outcome out;
  out.times = simulator::run_actors(p, clock, *network, zones.nvlink);
  if (on.first_error) std::rethrow_exception(on.first_error);
  for (const placed_servers& s : servers) out.served.push_back({all.close(s.cases->size()), 0});
  out.times.activities += on.activities;
  return out;
}

}  // namespace nvlsim
