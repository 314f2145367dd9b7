#include "nvlsim/simulator/operation_actors.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "simulator/guarded_actor.hpp"
#include "simulator/ports.hpp"
#include "simulator/session.hpp"

namespace nvlsim {
namespace {

namespace sg4 = simulator::compat::sg4;
using simulator::session;

/// What an actor is to do next, and when; woken when that changes.
struct due_event {
  double at = std::numeric_limits<double>::infinity();
  operation_event what;
  sg4::SemaphorePtr changed = sg4::Semaphore::create(0);
};

/// The actors of a run. They keep the time of orders and tell what happened; `happen` decides.
class operation_actors {
 public:
  operation_actors(const operation_setup& setup, std::uint64_t seed, session& clock, std::vector<sg4::Host*> racks)
      : clock_(clock), racks_(std::move(racks)), end_(setup.duration.base()), state_(begin_operation(setup, seed)),
        failures_(setup.failures.components.size()) {}

  void start() {
    for (std::size_t c = 0; c < failures_.size(); ++c)
      guarded(racks_[c % racks_.size()], state_.setup->failures.components[c].name, true,
              [this, c] { keep(failures_[c]); });
    guarded(racks_.front(), "job", true, [this] { keep(phase_); });
    guarded(racks_.front(), "calendar", false, [this] { clock_.sleep_until(end_); });
    obey();
  }
  operation_outcome close() {
    if (first_error_) std::rethrow_exception(first_error_);
    return end_operation(state_, end_);
  }

 private:
  template <class Body>
  void guarded(sg4::Host* host, const std::string& name, bool daemon, Body body) {
    const auto actor = simulator::add_guarded_actor(host, name, first_error_, std::move(body));
    if (daemon) actor->daemonize();
  }

  /// Tells one event after the other, each at its date, unless another takes its place before.
  void keep(due_event& due) {
    for (;;) {
      const double left = due.at - clock_.now();
      if (due.at == std::numeric_limits<double>::infinity()) {
        due.changed->acquire();
      } else if (left < clock_.resolution() || due.changed->acquire_timeout(left)) {
        const operation_order order{due.at, due.what};
        due.at = std::numeric_limits<double>::infinity();
        tell(order);
      }
    }
  }

  void tell(const operation_order& o) {
    if (first_error_) return;
    happen(state_, std::max(o.at, state_.now), o.what);
    obey();
  }

  void obey() {
    std::vector<operation_order> orders;
    orders.swap(state_.orders);
    for (const operation_order& o : orders) {
      if (o.at > end_) continue;
      if (o.what.kind == operation_event_kind::failure)
        give(failures_[static_cast<std::size_t>(o.what.component)], o);
      else if (o.what.kind == operation_event_kind::phase_over) give(phase_, o);
      else send_crew(o);
    }
  }

  static void give(due_event& due, const operation_order& o) {
    due.at = o.at;
    due.what = o.what;
    due.changed->release();
  }

  /// Somebody who works on one part until it is done.
  void send_crew(const operation_order& o) {
    const auto tray = o.what.kind == operation_event_kind::mended ? o.what.index : 0;
    const auto rack = static_cast<std::size_t>(tray / state_.machine.shape.trays_per_rack);
    guarded(racks_[rack % racks_.size()], "crew", true, [this, o] {
      clock_.sleep_until(o.at);
      tell(o);
    });
  }

  session& clock_;
  std::vector<sg4::Host*> racks_;
  double end_;
  operation_state state_;
  std::vector<due_event> failures_;  ///< by component
  due_event phase_;
  std::exception_ptr first_error_;
};

/// Hosts that stand for racks; more than this many actors' places would tell nothing.
constexpr std::int64_t max_racks = 1024;

}  // namespace

operation_outcome run_operation_by_actors(const operation_setup& setup, std::uint64_t seed,
                                          const platform& hardware) {
  session clock;
  const auto racks = static_cast<std::size_t>(std::min(setup.cluster.racks, max_racks));
  const network::zones zones = simulator::build_ports(clock, hardware, racks, false, {});
  operation_actors actors(setup, seed, clock, zones.nvlink);
  actors.start();
  clock.simgrid().run();
  return actors.close();
}

}  // namespace nvlsim
