#include "nvlsim/simulator/post_training_actors.hpp"

#include <cmath>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "simulator/guarded_actor.hpp"
#include "simulator/ports.hpp"
#include "simulator/session.hpp"

namespace nvlsim {
namespace {

namespace sg4 = simulator::compat::sg4;
using simulator::session;

/// Actors that wait for their dates. Whoever wakes first carries out what is due for all, so that the order at
/// equal dates is the loop's own.
class loop_actors {
 public:
  loop_actors(const loop_settings& s, const loop_prices& p, session& clock) : loop_(s, p), clock_(clock) {
    for (std::size_t i = 0; i < loop_.actors(); ++i) bells_.push_back(sg4::ConditionVariable::create());
  }

  void start(const std::vector<sg4::Host*>& hosts) {
    for (std::size_t i = 0; i < loop_.actors(); ++i) {
      const bool trains = i + 1 == loop_.actors();
      const std::string name = trains ? "trainer" : "rollout engine " + std::to_string(i);
      simulator::add_guarded_actor(
          hosts[i], name, first_error_, [this, i] { run_worker(i); }, [this] { ring_all(); });
    }
  }
  loop_record close() && {
    if (first_error_) std::rethrow_exception(first_error_);
    return std::move(loop_).close();
  }

 private:
  void run_worker(std::size_t i) {
    std::unique_lock<sg4::Mutex> lock(*mutex_);
    while (!loop_.done() && !first_error_) {
      const double date = loop_.date(i);
      if (std::isinf(date)) {
        if (std::isinf(loop_.next_date())) throw internal_error("a post-training loop waits for itself");
        bells_[i]->wait(lock);
      } else if (date - clock_.now() > clock_.resolution()) {
        bells_[i]->wait_for(lock, date - clock_.now());
      } else {
        loop_.act(loop_.next_date());
        for (const std::size_t other : loop_.take_changed())
          if (other != i) bells_[other]->notify_one();
        if (loop_.done()) ring_all();
      }
    }
  }
  void ring_all() {
    for (const sg4::ConditionVariablePtr& b : bells_) b->notify_one();
  }

  post_training_loop loop_;
  session& clock_;
  sg4::MutexPtr mutex_ = sg4::Mutex::create();
  std::vector<sg4::ConditionVariablePtr> bells_;  ///< by actor: its date is another
  std::exception_ptr first_error_ = {};
};

}  // namespace

loop_record play_by_actors(const loop_settings& s, const loop_prices& p, const platform& hardware) {
  const auto actors = static_cast<std::size_t>(p.workers) + 1;
  session clock;
  clock.expect_actors(actors);
  const network::zones zones = simulator::build_ports(clock, hardware, actors, false, {});
  loop_actors all(s, p, clock);
  all.start(zones.nvlink);
  clock.simgrid().run();
  return std::move(all).close();
}

}  // namespace nvlsim
