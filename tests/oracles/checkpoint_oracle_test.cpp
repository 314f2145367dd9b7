// Copies of a job's state by hand: every tray with its own port, the up-links of each rack's leaves as one link,
// and the store as another, in plain SimGrid. The program has one rate for all trays.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "nvlsim/network/fabric_path.hpp"
#include "nvlsim/network/topology.hpp"
#include "nvlsim/run/operation_job.hpp"
#include "oracles/in_child.hpp"
#include "simulator/compat.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"
#include "support/shipped.hpp"

using namespace nvlsim;
namespace sg4 = simulator::compat::sg4;

namespace {

/// What is passed on does not take its part of a tray's own rate; nothing is, where that is what limits.
bool passes_on(const platform& p, const save_tier& t) {
  return t.read.read() >= p.fabric.nic_bandwidth.read() * static_cast<double>(p.vm.gpus);
}

/// Seconds until each tray's part of the state is where it is saved, or back. What several hold is then passed on
/// by a tray of the next rack.
double copied_by_hand(const platform& p, const operation_setup& s, const save_tier& t, bool back) {
  const std::int64_t trays = s.asked.slots, per_rack = s.asked.per_rack, racks = (trays + per_rack - 1) / per_rack;
  const auto gpus = static_cast<double>(p.vm.gpus);
  const bandwidth endless = bandwidth::from_base(1e18), own = back ? t.read.read() : t.write.read();
  network::star fabric{"ib", "n", {}, {}, {}};
  for (std::int64_t i = 0; i < trays; ++i) {
    const bandwidth port = std::min(own, p.fabric.nic_bandwidth.read() * gpus);
    fabric.ports.push_back({i, port, port});
  }
  for (std::int64_t r = 0; r < racks; ++r) {
    const std::int64_t first = r * per_rack, end = std::min(trays, first + per_rack);
    const bandwidth up = network::uplink_of(p) * (gpus * static_cast<double>(end - first));
    network::aggregate leaf{fmt::format("leaf {}", r), up, up, {}};
    for (std::int64_t i = first; i < end; ++i) leaf.ports.push_back(static_cast<std::size_t>(i));
    fabric.aggregates.push_back(leaf);
  }
  const auto& limit = back ? t.store_read : t.store_write;
  const bandwidth store = limit ? limit->read() : endless;
  fabric.ports.push_back({trays, store, store});
  return test::in_child([&] {
           simulator::session clock;
           const network::zones z = network::build(clock.simgrid(), {{"nvl", "g", {}, {}, {}}, fabric});
           const double each = s.save.state.base() / static_cast<double>(trays),
                        more = back && passes_on(p, t)
                                   ? (s.save.held - s.save.state).base() / static_cast<double>(trays)
                                   : 0;
           double end = 0;
           for (std::int64_t i = 0; i < trays; ++i) {
             const auto there =
                 static_cast<std::size_t>(t.to == save_place::store ? trays : (i + per_rack) % trays);
             sg4::Host *from = z.beyond[static_cast<std::size_t>(i)],
                       *to = t.to == save_place::store ? z.fabric[there] : z.beyond[there];
             if (back) std::swap(from, to);
             simulator::compat::add_actor(from, fmt::format("copy {}", i), [&, from, to, each] {
               sg4::Comm::sendto(from, to, static_cast<std::uint64_t>(each));
               end = std::max(end, clock.now());
             });
             if (!(more > 0)) continue;
             sg4::Host *holder = z.beyond[static_cast<std::size_t>((i + per_rack) % trays)],
                       *taker = z.beyond[static_cast<std::size_t>(i)];
             simulator::compat::add_actor(holder, fmt::format("pass on {}", i), [&, holder, taker, more] {
               sg4::Comm::sendto(holder, taker, static_cast<std::uint64_t>(more));
               end = std::max(end, clock.now());
             });
           }
           clock.simgrid().run();
           return std::vector<double>{end};
         })
      .front();
}

}  // namespace

TEST_CASE("Copies and loads take as long as flows on the platform's network, whatever limits them") {
  const std::vector<std::pair<const char*, std::vector<override_option>>> cases = {
      {"client", {}},
      {"store",
       {{"/workload/checkpoint/tiers/store/store_write", "20 GB/s"},
        {"/workload/checkpoint/tiers/store/store_read", "30 GB/s"}}},
      {"NIC",
       {{"/workload/checkpoint/tiers/store/write", "900 GB/s"},
        {"/workload/checkpoint/tiers/store/read", "900 GB/s"},
        {"/workload/checkpoint/tiers/store/store_write", "1e6 GB/s"},
        {"/workload/checkpoint/tiers/store/store_read", "1e6 GB/s"}}},
      {"up-links",
       {{"/platform/fabric/oversubscription", "8"},
        {"/workload/checkpoint/tiers/store/write", "900 GB/s"},
        {"/workload/checkpoint/tiers/store/read", "900 GB/s"},
        {"/workload/checkpoint/tiers/store/store_write", "1e6 GB/s"},
        {"/workload/checkpoint/tiers/store/store_read", "1e6 GB/s"}}},
      {"neighbour",
       {{"/platform/fabric/oversubscription", "4"},
        {"/workload/checkpoint/tiers/neighbour", R"({"write": "300 GB/s", "read": "300 GB/s"})"},
        {"/workload/checkpoint/tiers/store/every", "10"}}}};
  for (const auto& [name, sets] : cases) {
    std::vector<override_option> all = {{"/platform/racks", "4"},
                                        {"/jobs/0/workload/dp", "3"},
                                        {"/jobs/0/workload/global_batch_size", "96"},
                                        {"/workload/seeds", "1"}};
    all.insert(all.end(), sets.begin(), sets.end());
    const scenario s = test::shipped_scenario("operation/llama3.1-405b-gb300-4608-90-days", all);
    const operation_setup setup = price_alone(s).study.setup;
    const std::vector<save_times> times = tiers_of(setup);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const save_tier& t = setup.save.tiers[i];
      INFO(name << ", " << save_place_names[static_cast<std::size_t>(t.to)]);
      CHECK(times[i].drain.base() == Approx(copied_by_hand(s.platform, setup, t, false)).epsilon(1e-6));
      save_policy save = setup.save;
      save.plan_per_gpu = seconds{};
      if (!passes_on(s.platform, t)) save.held = bytes{};
      const std::int64_t trays = setup.asked.slots;
      CHECK(load_time(t, save, trays, trays * 4).base() ==
            Approx(copied_by_hand(s.platform, setup, t, true)).epsilon(1e-6));
    }
  }
}
