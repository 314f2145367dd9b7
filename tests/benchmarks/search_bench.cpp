// Layouts a second.
#include <benchmark/benchmark.h>

#include "nvlsim/search/search.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

void search(benchmark::State& state, const scenario& s, search_options o) {
  std::int64_t layouts = 0, evaluated = 0;
  for (auto _ : state) {
    const search_result r = search_layouts(s, o);
    layouts += r.candidates;
    evaluated += r.evaluated;
  }
  state.counters["layouts"] = benchmark::Counter(static_cast<double>(layouts), benchmark::Counter::kIsRate);
  state.counters["evaluated"] = benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}

void search_405b_on_512(benchmark::State& state) {
  search_options o;
  o.gpus = 512;
  for (const char* p : {"recompute", "data_parallel_sharding", "offload_layers"})
    o.restrictions.push_back({p, {}});
  search(state,
         test::shipped_scenario("training/llama3.1-405b-gb300-512", {{"/workload/global_batch_size", "1024"}}), o);
}
BENCHMARK(search_405b_on_512)->Unit(benchmark::kSecond)->Iterations(1);

void search_70b_serving_on_8(benchmark::State& state) {
  search_options o;
  o.gpus = 8;
  search(state,
         test::shipped_scenario("inference/llama2-70b-offline-gb300-rack", {{"/workload/load/requests", "2048"}}),
         o);
}
BENCHMARK(search_70b_serving_on_8)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace nvlsim
