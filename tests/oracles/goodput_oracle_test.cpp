// A job's months by SimGrid's own failures: hosts that state profiles or `turn_off` take down kill what runs on
// them, and start it again when they are back. The program decides when the job notices, waits and restarts.
#include <fmt/format.h>

#include <simgrid/kernel/ProfileBuilder.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/network/topology.hpp"
#include "nvlsim/operation/operation_run.hpp"
#include "oracles/in_child.hpp"
#include "simulator/compat.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"
#include "unit/operation/setups.hpp"

using namespace nvlsim;
namespace sg4 = simulator::compat::sg4;

namespace {

using outages = std::vector<std::pair<double, double>>;

/// A job on one rack, which fails as a whole, without spares.
operation_setup job_on_a_rack() {
  operation_setup s = test::plain_setup(1, 1, 18);
  component c = test::stopper("switch", cluster_part::rack, 2 * test::day, test::hour);
  c.of = cluster_part::rack;
  s.failures.components = {c};
  s.save.state = bytes::from_base(5e12);
  save_tier& store = s.save.tiers.front();
  store.write = store.read = bandwidth::from_base(2e9);
  store.asynchronous = false;
  s.save.interval = seconds::from_base(1800);
  s.save.pause = test::secs(5);
  s.recovery.watched = 1;
  s.recovery.health = test::secs(30);
  s.recovery.decide = test::secs(60);
  s.recovery.init = test::secs(20);
  s.recovery.first_step = test::secs(40);
  s.notes_racks = true;
  return s;
}

outages outages_of(const operation_outcome& o) {
  outages out;
  for (const rack_stretch& x : o.racks.over) {
    if (x.broken == 0) continue;
    if (!out.empty() && out.back().second == x.begin) out.back().second = x.end;
    else out.emplace_back(x.begin, x.end);
  }
  return out;
}

/// Seconds of work kept, and redone, of a job on a host that is off at these times.
std::vector<double> played_by_hosts(const operation_setup& s, const outages& off, bool by_profile) {
  const save_times save = tiers_of(s).front();
  const double interval = s.save.interval->base(), end = s.duration.base();
  const recovery_policy& r = s.recovery;
  const double notice = (r.health.read() + r.decide.read()).base(),
               restart = (r.init_of(72) + r.first_step.read() + save.load).base();
  return test::in_child([&] {
    simulator::session clock;
    const bandwidth port = bandwidth::from_base(1e9);
    const network::star fabric{"ib", "n", {}, {{0, port, port}, {1, port, port}}, {}};
    const network::zones z = network::build(clock.simgrid(), {{"nvl", "g", {}, {}, {}}, fabric});
    sg4::Host *rack = z.fabric[0], *control = z.fabric[1];
    double saved = 0, began = -1, worked = 0, being_saved = 0;
    bool first = true;
    const auto worked_until = [&](double t) {
      if (began >= 0) worked += t - began;
      began = -1;
    };
    const auto job = simulator::compat::add_actor(rack, "job", [&] {
      being_saved = 0;
      if (!first) {
        const auto last =
            std::find_if(off.rbegin(), off.rend(), [&](const auto& x) { return x.first < clock.now(); });
        worked_until(last->first);
        clock.sleep_until(std::max(clock.now(), last->first + notice));
        sg4::this_actor::sleep_for(restart);
      }
      first = false;
      for (;;) {
        began = clock.now();
        sg4::this_actor::execute(interval * rack->get_speed());
        worked_until(clock.now());
        being_saved = interval;
        sg4::this_actor::sleep_for(save.stall.base());
        saved += interval;
        being_saved = 0;
      }
    });
    job->daemonize();
    job->set_auto_restart(true);
    if (by_profile) {
      std::string states;
      for (const auto& [from, to] : off) states += fmt::format("{:.9f} 0\n{:.9f} 1\n", from, to);
      rack->set_state_profile(simgrid::kernel::profile::ProfileBuilder::from_string("outages", states, -1));
    }
    simulator::compat::add_actor(control, "control", [&] {
      if (!by_profile)
        for (const auto& [from, to] : off) {
          clock.sleep_until(from);
          rack->turn_off();
          if (to >= end) break;
          clock.sleep_until(to);
          rack->turn_on();
        }
      clock.sleep_until(end);
      if (rack->is_on()) saved += being_saved + (began >= 0 ? clock.now() - began : 0);
      worked_until(rack->is_on() ? clock.now() : off.back().first);
    });
    clock.simgrid().run();
    return std::vector<double>{saved, worked - saved};
  });
}

}  // namespace

TEST_CASE("A job that SimGrid's own host failures kill and restart keeps as much work as the run says") {
  const operation_setup s = job_on_a_rack();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const operation_outcome o = run_by_queue(s, seed);
    const outages off = outages_of(o);
    REQUIRE(off.size() > 15);
    for (const bool by_profile : {false, true}) {
      INFO("seed " << seed << (by_profile ? ", state profile" : ", turn_off"));
      const std::vector<double> played = played_by_hosts(s, off, by_profile);
      CHECK(played[0] == Approx(o.progress).epsilon(1e-6));
      CHECK(played[1] == Approx(test::spent(o, gpu_use::redone) / 72).epsilon(1e-5));
    }
  }
}
