#include "nvlsim/engine/serving_actors.hpp"

#include <deque>
#include <exception>
#include <memory>
#include <utility>

#include "engine/flow_executor.hpp"
#include "engine/ports.hpp"
#include "engine/session.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

namespace sg4 = engine::compat::sg4;
using engine::session;

/// What all actors of a run share.
struct stage {
  session& clock;
  engine::executor* network;      ///< none: transfers take their own times
  std::vector<sg4::Host*> hosts;  ///< by worker, over all servers
  std::int64_t activities = 0;
  std::exception_ptr first_error = {};

  void sleep_until(double date) {
    if (clock.sleep_until(date)) ++activities;
  }
};

/// A worker's actor waits here for what to do next.
struct desk {
  sg4::SemaphorePtr work = sg4::Semaphore::create(0);
  double end_s = 0;
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

/// The actors of one server. Each tells its events and then yields, so that all events of a date are known before
/// the first of them is handled, in the same order as in `serve_by_queue`.
class server_actors {
 public:
  server_actors(const server_case& c, stage& on, std::size_t first_host)
      : server_(c.list, c.settings, c.price), on_(on), first_(first_host), desks_(server_.workers()),
        outboxes_(server_.workers()), inboxes_(server_.workers()),
        decoding_(static_cast<std::size_t>(c.settings.workers)), fetches_(!c.settings.tiers.empty()) {}

  void start() {
    guarded(on_.hosts[first_], "requests", [this] { bring_requests(); });
    for (std::size_t i = 0; i < desks_.size(); ++i) {
      guarded(on_.hosts[first_ + i], "worker " + std::to_string(i), [this, i] { work(i); });
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
    const auto actor = engine::compat::add_actor(host, name, [this, body] {
      try {
        body();
      } catch (const simgrid::ForcefulKillException&) {
        throw;  // SimGrid uses it to unwind actors
      } catch (...) {
        if (!on_.first_error) on_.first_error = std::current_exception();
      }
    });
    if (name != "requests") actor->daemonize();
  }

  void bring_requests() {
    server_.open();
    obey(0);
    while (!idle()) {
      const double next = server_.next_arrival();
      if (next == std::numeric_limits<double>::infinity()) {
        changed_->acquire();
      } else if (const double left = next - on_.clock.now(); left >= on_.clock.resolution()) {
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

  void work(std::size_t i) {
    for (;;) {
      desks_[i].work->acquire();
      const double end = desks_[i].end_s;
      on_.sleep_until(end);
      happened({end, server_event::kind::end, static_cast<std::int32_t>(i)});
    }
  }

  void send_caches(std::size_t i) {
    double free = 0;
    for (;;) {
      const auto [ready, cache] = outboxes_[i].next();
      const double begin = std::max(free, ready);
      if (on_.network && cache.transfer.operation) {
        free = on_.network->run(*cache.transfer.operation, place(cache), begin);
      } else {
        free = begin + cache.transfer.seconds;
        on_.sleep_until(free);
      }
      happened({free, server_event::kind::delivery, cache.request});
    }
  }
  void fetch(std::size_t i) {
    double free = 0;
    for (;;) {
      const auto [ready, wanted] = inboxes_[i].next();
      free = std::max(free, ready) + wanted.seconds;
      on_.sleep_until(free);
      happened({free, server_event::kind::fetch, wanted.request});
    }
  }

  engine::endpoints place(const server::sending& s) const {
    return {static_cast<std::int32_t>(first_ + s.from), static_cast<std::int32_t>(first_ + s.to)};
  }

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
    for (const server::started& i : orders.iterations) {
      ++busy_;
      desks_[i.worker].end_s = i.end_s;
      desks_[i.worker].work->release();
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

/// Every decode worker can receive on both fabrics, and from beyond its leaf.
engine::receiving_ports receivers_of(const std::vector<server_case>& cases) {
  engine::receiving_ports out;
  for (std::size_t f = 0; f < engine::ways; ++f)
    for (const server_case& c : cases) {
      const bool sends = c.settings.prefill.has_value();
      for (std::size_t i = 0; i < workers_of(c.settings); ++i) {
        out.own[f].push_back(sends && i < static_cast<std::size_t>(c.settings.workers));
        out.outside[f].push_back(false);
      }
    }
  return out;
}

}  // namespace

served_cases serve_by_actors(const std::vector<server_case>& cases, const platform& hardware,
                             const simulation_options& options) {
  std::size_t workers = 0, actors = 0;
  for (const server_case& c : cases) {
    workers += workers_of(c.settings);
    actors += 1 + workers_of(c.settings) * (c.settings.tiers.empty() ? 1 : 2) +
              static_cast<std::size_t>(c.settings.prefill ? c.settings.prefill->workers : 0);
  }
  const bool shared = options.network != fidelity::closed;
  const engine::receiving_ports used = shared ? receivers_of(cases) : engine::receiving_ports{};
  session clock;
  clock.expect_actors(actors + used.count());
  const std::vector<shared_uplink> uplinks =
      shared ? engine::uplink_shares(hardware, workers) : std::vector<shared_uplink>{};
  const network::zones zones = engine::build_ports(clock, hardware, workers, shared, uplinks);
  const auto network = shared ? engine::make_flow_executor(clock, zones, used, uplinks) : nullptr;
  stage on{clock, network.get(), zones.nvlink};
  std::vector<std::unique_ptr<server_actors>> servers;
  std::size_t first = 0;
  for (const server_case& c : cases) {
    servers.push_back(std::make_unique<server_actors>(c, on, first));
    servers.back()->start();
    first += workers_of(c.settings);
  }
  clock.engine().run();
  if (on.first_error) std::rethrow_exception(on.first_error);
  served_cases out;
  for (const auto& s : servers) out.outcomes.push_back(std::move(*s).close());
  out.activities = on.activities + (network ? network->activities() : 0);
  return out;
}

}  // namespace nvlsim
