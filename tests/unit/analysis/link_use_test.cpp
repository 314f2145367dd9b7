#include "nvlsim/link_use.hpp"

#include <catch2/catch.hpp>

using namespace nvlsim;

namespace {

/// A send of 10 GB from class 0 to class 1 over NICs of 100 GB/s in the second half of two tenths of a second.
struct sending {
  plan work;
  timeline times;
  platform hardware;

  sending() {
    hardware.gpu.nvlink = 900.0_GBps;
    hardware.fabric.nic_bandwidth = 800.0_Gbps;
    work_template w{"send", {{work_kind::pp, "send", 0.2_s, 1}}, {}, {}};
    w.network = network_demand{{{}, {5.0_GB, {}}}, 0.1_s};
    const std::int32_t t = work.add_template(std::move(w));
    work.classes.resize(2);
    for (rank_class& c : work.classes) c.streams = {{stream_kind::pipeline, {}}};
    work.append(work.classes[0].streams[0], t, {}, no_event, -1, 1);
    times.spans = {{{{0, 0.2}}}, {{}}};
    times.makespan = 0.4_s;
  }
};

}  // namespace

TEST_CASE("Links are used at both ends of a transfer, from the end of its latency") {
  const sending s;
  const auto links = links_used(s.work, s.times, s.hardware);
  REQUIRE(links.size() == 2);
  CHECK(links[0].name == "nic out");
  CHECK(links[0].rank_class == 0);
  CHECK(links[1].name == "nic in");
  CHECK(links[1].rank_class == 1);
  for (const link_use& u : links) {
    CHECK(u.carried == 5.0_GB);
    CHECK(u.mean == Approx(0.125));
    CHECK(u.peak == Approx(0.5));
    CHECK(u.busiest == "send");
    REQUIRE(u.points.size() == 2);
    CHECK(u.points[0].first == Approx(0.1));
    CHECK(u.points[1] == std::pair(0.2, 0.0));
  }
}

TEST_CASE("What does not use the network uses no link") {
  sending s;
  s.work.templates[0].network.reset();
  CHECK(links_used(s.work, s.times, s.hardware).empty());
}
