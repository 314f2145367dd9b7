#include "nvlsim/analysis/link_use.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/scenario/scenario.hpp"
#include "support/ports.hpp"
#include "support/root.hpp"

using namespace nvlsim;

namespace {

/// A send of 10 GB from class 0 to class 1 over NICs of 100 GB/s in the second half of two tenths of a second.
struct sending {
  plan planned;
  timeline times;
  platform hardware = test::bare_ports();

  sending() {
    operation_template w{"send", {{part_kind::pp, "send", 0.2_s, 1}}, {}, {}};
    w.network = {network_demand{{{}, {5.0_GB, {}}}, 0.1_s, 0.2_s}};
    const std::int32_t t = planned.add_template(std::move(w));
    planned.classes.resize(2);
    for (rank_class& c : planned.classes) c.streams = {{stream_kind::pipeline, {}}};
    planned.append(planned.classes[0].streams[0], t, {}, no_event, {-1, 1});
    times.spans = {{{{0, 0.2}}}, {{}}};
    times.makespan = 0.4_s;
  }
};

}  // namespace

TEST_CASE("Links are used at both ends of a transfer, from the end of its latency") {
  const sending s;
  const auto links = links_used(s.planned, s.times, s.hardware);
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

TEST_CASE("Links are used by the exchanges inside an operation, each while it lasts") {
  sending s;
  // Computes for 60 ms, of which 20 hide 1 GB, and waits 40 ms for 2 GB; it took 1.5 times as long.
  auto facts = std::make_shared<part_facts>();
  facts->traffic = {{}, {3.0_GB, 3.0_GB}};
  operation_template w{
      "pass", {{part_kind::gemm, "gemm", 0.06_s, 1}, {part_kind::ep, "ep.exchange", 0.04_s, 1, facts}}, {}, {}};
  w.network = {{{{}, {1.0_GB, 1.0_GB}}, {}, 0.02_s}, {{{}, {2.0_GB, 2.0_GB}}, {}, 0.1_s, 0.06_s}};
  s.planned.append(s.planned.classes[1].streams[0], s.planned.add_template(std::move(w)), {});
  s.times.spans[1][0] = {{0.2, 0.35}};
  const auto links = links_used(s.planned, s.times, s.hardware);
  const auto into = std::find_if(links.begin(), links.end(),
                                 [](const link_use& u) { return u.rank_class == 1 && u.name == "nic in"; });
  REQUIRE(into != links.end());
  CHECK(into->carried == 8.0_GB);
  CHECK(into->busiest == "send");
  CHECK(into->of_busiest == 5.0_GB);
  const std::vector<std::pair<double, double>> expected = {
      {0.1, 0.5}, {0.2, 1 / 3.0}, {0.23, 0.0}, {0.29, 1 / 3.0}, {0.35, 0.0}};
  REQUIRE(into->points.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(into->points[i].first == Approx(expected[i].first));
    CHECK(into->points[i].second == Approx(expected[i].second).margin(1e-12));
  }
  const auto out = std::find_if(links.begin(), links.end(),
                                [](const link_use& u) { return u.rank_class == 1 && u.name == "nic out"; });
  REQUIRE(out != links.end());
  CHECK(out->busiest == "ep.exchange");
  CHECK(out->carried == 3.0_GB);
}

TEST_CASE("Links name the exchange inside passes that fills them") {
  using test::root;
  const std::vector<override_option> sets = {
      {"/workload/global_batch_size", "4608"}, {"/platform/racks", "576"}, {"/placement/gpus_per_rack", "8"}};
  const scenario s = load_scenario(root / "scenarios/training/kimi-k2-gb300-4608.json", sets, folders_under(root));
  const plan p = plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload));
  const std::vector<link_use> links = links_used(p, evaluate(p), s.platform);
  REQUIRE(!links.empty());
  CHECK(links.front().name.starts_with("nic"));
  CHECK(links.front().busiest == "ep.exchange");
}

TEST_CASE("What does not use the network uses no link") {
  sending s;
  s.planned.templates[0].network.clear();
  CHECK(links_used(s.planned, s.times, s.hardware).empty());
}

TEST_CASE("Links of a domain are called what they are") {
  platform p;
  p.gpu.nvlink = 450.0_GBps;
  CHECK(domain_link(p) == "infinity fabric");
  p.gpu.nvlink_generation = 5;
  CHECK(domain_link(p) == "nvlink");
  p.gpu.nvlink_generation = 0;
  p.gpu.nvlink = {};
  CHECK(domain_link(p) == "pcie");
}
