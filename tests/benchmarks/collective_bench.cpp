// One closed evaluation of a collective, without text.
#include <benchmark/benchmark.h>

#include "nvlsim/collectives/collectives.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

void closed(benchmark::State& state, collective c, communicator g) {
  static const scenario s = test::shipped_scenario("collectives/all-reduce-gb300-rack");
  double size = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(collective_time(s.stack.collectives, s.platform, {c, bytes::from_base(size), g}));
    size = size < 1e10 ? size * 1.7 : 1;
  }
}
BENCHMARK_CAPTURE(closed, all_reduce_in_a_rack, collective::all_reduce, communicator{72, 1});
BENCHMARK_CAPTURE(closed, all_reduce_of_two_racks, collective::all_reduce, communicator{144, 2});
BENCHMARK_CAPTURE(closed, all_gather_of_two_racks, collective::all_gather, communicator{144, 2});
BENCHMARK_CAPTURE(closed, all_to_all_of_eight_racks, collective::all_to_all, communicator{576, 8});

}  // namespace
}  // namespace nvlsim
