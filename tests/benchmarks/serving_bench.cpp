// Serving from requests to timeline, and how it grows.
#include <benchmark/benchmark.h>

#include <variant>

#include "nvlsim/serving/serving.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

void offline_by_requests(benchmark::State& state) {
  const scenario s = test::shipped_scenario("inference/llama2-70b-offline-gb300-rack",
                                            {{"/workload/load/requests", std::to_string(state.range(0))}});
  const auto& w = std::get<inference_workload>(s.workload);
  for (auto _ : state) benchmark::DoNotOptimize(serve(s.platform, s.stack, s.model, w));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(offline_by_requests)
    ->RangeMultiplier(4)
    ->Range(2048, 524288)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

void open_loop_by_requests(benchmark::State& state) {
  const scenario s = test::shipped_scenario("inference/llama2-70b-server-gb200-vm",
                                            {{"/workload/load/requests", std::to_string(state.range(0))}});
  const auto& w = std::get<inference_workload>(s.workload);
  for (auto _ : state) benchmark::DoNotOptimize(serve(s.platform, s.stack, s.model, w));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(open_loop_by_requests)
    ->RangeMultiplier(4)
    ->Range(5000, 80000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

}  // namespace
}  // namespace nvlsim
