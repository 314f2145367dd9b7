// The three fidelities agree on ideal collectives.
#include <catch2/catch.hpp>
#include <string>

#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/simulator/simulation.hpp"

using namespace nvlsim;

namespace {

double run(const collective_workload& w, fidelity f, bool fold = true) {
  const collective_run planned = plan_collective({}, {}, w, f, fold);
  return simulate(planned.planned, planned.hardware, {f}).makespan.base();
}

void check_agreement(const collective_workload& w) {
  INFO(name(w.operation) << " of " << w.gpus << " by " << w.algorithm << ", " << w.size.base() << " B");
  const double closed = run(w, fidelity::closed);
  CHECK(run(w, fidelity::flow) == Approx(closed).epsilon(1e-9).margin(0));
  CHECK(run(w, fidelity::flow, false) == Approx(closed).epsilon(1e-9).margin(0));
  CHECK(run(w, fidelity::exact) == Approx(closed).epsilon(1e-9).margin(0));
}

}  // namespace

TEST_CASE("Closed, flow and exact agree on every ideal collective") {
  const int n = GENERATE(1, 2, 3, 7, 16, 36, 72);
  const double size = GENERATE(8.0, 12345.0, 1e6, 1e9);
  for (const collective c : {collective::all_reduce, collective::all_gather, collective::reduce_scatter,
                             collective::all_to_all, collective::broadcast, collective::send_recv}) {
    collective_workload w;
    w.operation = c, w.size = bytes::from_base(size), w.gpus = n;
    w.ideal = ideal_network{seconds::from_base(0.5e-6), bandwidth::from_base(900e9)};
    check_agreement(w);
    const bool halves = c != collective::all_to_all && c != collective::broadcast && c != collective::send_recv;
    if (n == 16 && halves) {
      w.algorithm = "halving_doubling";
      check_agreement(w);
    }
  }
}

TEST_CASE("Fidelities agree with endpoints, store-and-forward hops, splits and integer clocks") {
  collective_workload w;
  w.operation = collective::all_reduce, w.size = bytes::from_base(1e7), w.gpus = 24;
  w.ideal = ideal_network{seconds::from_base(936.25e-9), bandwidth::from_base(50e9)};
  w.ideal->hops = GENERATE(1, 2);
  w.ideal->endpoint = seconds::from_base(10e-9);
  w.ideal->local_rate = bandwidth::from_base(1600e9);
  w.ideal->splits = 4;
  w.ideal->integer = GENERATE(false, true);
  check_agreement(w);
}
