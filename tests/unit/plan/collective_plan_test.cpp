// Collectives as plans: one operation, or every message.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "unit/collectives/support.hpp"

using namespace nvlsim;
using Catch::Matchers::Contains;

namespace {

collective_workload ideal(collective c, std::int64_t gpus, std::string algorithm = {}) {
  collective_workload w;
  w.operation = c;
  w.size = bytes::from_base(1e9);
  w.gpus = gpus;
  w.algorithm = std::move(algorithm);
  w.ideal = ideal_network{seconds::from_base(0.5e-6), bandwidth::from_base(900e9)};
  return w;
}

collective_run planned(const collective_workload& w, fidelity f, bool fold = true) {
  return plan_collective({}, {}, w, f, fold);
}

double longest(const plan& p) { return evaluate(p).makespan.base(); }

}  // namespace

TEST_CASE("Every message of a collective adds up to its closed form") {
  const int n = GENERATE(2, 3, 8, 72);
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::reduce_scatter,
                             collective::all_to_all, collective::broadcast, collective::send_recv}) {
    collective_workload w = ideal(c, n);
    for (int variant = 0; variant < 2; ++variant) {
      INFO(name(c) << " of " << n << ", variant " << variant);
      const collective_run exact = planned(w, fidelity::exact);
      CHECK(exact.planned.classes.size() == static_cast<std::size_t>(n));
      CHECK(longest(exact.planned) == Approx(exact.cost.time.base()).epsilon(1e-12));
      CHECK(longest(planned(w, fidelity::closed).planned) == Approx(exact.cost.time.base()).epsilon(1e-12));
      w.ideal->endpoint = 0.2_us;
      w.ideal->local_rate = bandwidth::from_base(1600e9);
      w.ideal->splits = 3;
      w.ideal->integer = true;
    }
  }
}

TEST_CASE("Halving and doubling meets every other rank's share once") {
  const int n = 16;
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::reduce_scatter}) {
    const collective_run run = planned(ideal(c, n, "halving_doubling"), fidelity::exact);
    CHECK(longest(run.planned) == Approx(run.cost.time.base()).epsilon(1e-12));
    double sent = 0;
    std::set<std::int32_t> partners;
    for (const operation& o : run.planned.classes[3].streams[0].operations) {
      sent += run.planned.templates[static_cast<std::size_t>(o.template_index)]
                  .network.front()
                  .traffic.nvlink.out.base();
      partners.insert(o.peer);
    }
    CHECK(sent == Approx(1e9 * bus_factor(c, n)).epsilon(1e-12));
    CHECK(partners == std::set<std::int32_t>{3 ^ 1, 3 ^ 2, 3 ^ 4, 3 ^ 8});
  }
}

TEST_CASE("Ring sends to the next rank only, pairwise once to each") {
  const collective_run ring = planned(ideal(collective::all_reduce, 5), fidelity::exact);
  for (const operation& o : ring.planned.classes[4].streams[0].operations) CHECK(o.peer == 0);
  const collective_run pairs = planned(ideal(collective::all_to_all, 5), fidelity::exact);
  std::multiset<std::int32_t> to;
  for (const operation& o : pairs.planned.classes[2].streams[0].operations) to.insert(o.peer);
  CHECK(to == std::multiset<std::int32_t>{0, 1, 3, 4});
}

TEST_CASE("A forced protocol and a skew hold in flow as in closed") {
  const platform p = test::machine(5, "quantum-x800", 800.0_Gbps);
  stack s;
  s.collectives = test::shipped();
  collective_workload w;
  w.size = bytes::from_base(64 << 20);
  w.gpus = 144;
  w.place = {72};
  w.protocol = "ll";
  CHECK(plan_collective(p, s, w, fidelity::flow, true).cost.algorithm == "ll");
  w.protocol.clear();
  w.operation = collective::all_to_all;
  const collective_run even = plan_collective(p, s, w, fidelity::flow, true);
  w.skew = 2;
  const collective_run skewed = plan_collective(p, s, w, fidelity::flow, true);
  CHECK(skewed.cost.time > even.cost.time);
  CHECK(skewed.demand.traffic.nic.out.base() == Approx(2 * even.demand.traffic.nic.out.base()));
  CHECK(longest(skewed.planned) == Approx(skewed.cost.time.base()).epsilon(1e-12));
}

TEST_CASE("Flow plan of a collective carries its bytes in what its latency leaves") {
  const collective_run run = planned(ideal(collective::all_reduce, 72), fidelity::flow);
  REQUIRE(run.planned.classes.size() == 1);
  CHECK(run.planned.classes[0].multiplicity == 72);
  const operation_template& w = run.planned.templates.at(0);
  CHECK(w.network.front().latency.base() == Approx(142 * 0.5e-6));
  CHECK(w.network.front().traffic.nvlink.in.base() == Approx(1e9 * 2 * 71 / 72));
  const collective_run all = planned(ideal(collective::all_reduce, 72), fidelity::flow, false);
  CHECK(all.planned.classes.size() == 72);
  CHECK(all.planned.classes[71].streams[0].operations[0].peer == 0);
}

TEST_CASE("Exact refuses what it cannot show") {
  CHECK_THROWS_WITH(planned(ideal(collective::all_reduce, 73), fidelity::exact), Contains("at most 72 ranks"));
  collective_workload w = ideal(collective::all_reduce, 8);
  w.ideal.reset();
  CHECK_THROWS_WITH(planned(w, fidelity::exact), Contains("ideal parameters"));
}

TEST_CASE("Collective needs as many racks as its ranks fill") {
  platform p;
  p.name = "two racks";
  p.vm.gpus = 4;
  p.rack.vms = 18;
  p.racks = 2;
  collective_workload w;
  w.place.gpus_per_domain = 72;
  w.gpus = 144;
  CHECK(collective_problems(p, w).empty());
  w.gpus = 145;
  CHECK(collective_problems(p, w) ==
        std::vector<std::string>{"145 GPUs at 72 per rack need 3 racks; the platform has 2"});
  w.place.gpus_per_domain = 73;
  CHECK(collective_problems(p, w).size() == 1);
  w.ideal = ideal_network{};
  CHECK(collective_problems(p, w).empty());
}
