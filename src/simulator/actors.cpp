#include "simulator/actors.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/event_board.hpp"
#include "simulator/guarded_actor.hpp"

namespace nvlsim::simulator {
namespace {

namespace sg4 = compat::sg4;

class actors {
 public:
  actors(const plan& p, executor& how)
      : plan_(p), how_(how), places_(busy_streams(p)), events_(p, places_.size()) {
    for (std::size_t i = 0; i < places_.size(); ++i) gates_.push_back(sg4::Semaphore::create(0));
    out_.spans.resize(p.classes.size());
    for (std::size_t c = 0; c < p.classes.size(); ++c) {
      for (const stream& s : p.classes[c].streams) out_.spans[c].emplace_back(s.operations.size());
    }
  }

  timeline run(sg4::Engine& simgrid, const std::vector<sg4::Host*>& hosts) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      add_guarded_actor(hosts.at(class_of(i)), stream_name(plan_, places_[i]), first_error_,
                        [this, i] { run_stream(i); });
    }
    simgrid.run();
    if (first_error_) std::rethrow_exception(first_error_);
    report_stuck();
    out_.makespan = seconds::from_base(end_);
    out_.activities = how_.activities();
    return std::move(out_);
  }

 private:
  std::size_t class_of(std::size_t i) const { return static_cast<std::size_t>(places_[i].rank_class); }
  std::size_t stream_of(std::size_t i) const { return static_cast<std::size_t>(places_[i].stream); }
  const std::vector<operation>& operations(std::size_t i) const {
    return plan_.classes[class_of(i)].streams[stream_of(i)].operations;
  }

  void run_stream(std::size_t i) {
    std::uint32_t& at = places_[i].operation;
    std::vector<span>& spans = out_.spans[class_of(i)][stream_of(i)];
    double free = 0;
    for (const std::vector<operation>& all = operations(i); at < all.size(); ++at) {
      const operation& o = all[at];
      const double begin = std::max(free, last_wait(i, o));
      free = how_.run(plan_.templates[static_cast<std::size_t>(o.template_index)], {places_[i].rank_class, o.peer},
                      begin);
      spans[at] = {begin, free};
      if (o.signals != no_event) {
        events_.arrive(o.signals, free,
                       [this](std::int32_t w) { gates_[static_cast<std::size_t>(w)]->release(); });
      }
    }
    end_ = std::max(end_, free);
  }

  /// Blocks until every event that the operation waits for has happened. Returns the latest date.
  double last_wait(std::size_t i, const operation& o) {
    double latest = 0;
    for (std::uint32_t w = 0; w < o.waits; ++w) {
      const event_id e = plan_.waits[o.first_wait + w];
      if (!events_.happened(e)) {
        events_.enrol(e, static_cast<std::int32_t>(i));
        gates_[i]->acquire();
      }
      latest = std::max(latest, events_.date(e));
    }
    return latest;
  }

  /// SimGrid's run() returns normally after a deadlock, so this checks for one.
  void report_stuck() const {
    std::vector<stream_position> stuck;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].operation < operations(i).size()) stuck.push_back(places_[i]);
    }
    if (!stuck.empty()) throw internal_error(deadlock_text(plan_, events_, stuck));
  }

  const plan& plan_;
  executor& how_;
  std::vector<stream_position> places_;
  event_board events_;
  std::vector<sg4::SemaphorePtr> gates_;  ///< by stream: the gate at which it waits for events
  timeline out_;
  double end_ = 0;
  std::exception_ptr first_error_;
};

}  // namespace

timeline run_actors(const plan& p, session& s, executor& how, const std::vector<sg4::Host*>& hosts) {
  return actors(p, how).run(s.simgrid(), hosts);
}

}  // namespace nvlsim::simulator
