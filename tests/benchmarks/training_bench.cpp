// A training step from files to timeline, and how it grows.
#include <benchmark/benchmark.h>

#include <variant>

#include "nvlsim/training/training.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

constexpr const char* step_8192 = "training/llama3.1-405b-gb300-8192";

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(test::shipped_scenario(step_8192));
}
BENCHMARK(load)->Unit(benchmark::kMillisecond);

void plan_and_evaluate(benchmark::State& state, const scenario& s) {
  const auto& w = std::get<training_workload>(s.workload);
  std::size_t operations = 0;
  for (auto _ : state) {
    const plan p = plan_training(s.platform, s.stack, s.model, w);
    benchmark::DoNotOptimize(evaluate(p));
    operations = 0;
    for (const rank_class& c : p.classes)
      for (const auto& st : c.streams) operations += st.operations.size();
  }
  state.counters["operations"] = static_cast<double>(operations);
  state.SetComplexityN(state.range(0));
}

/// By data-parallel replicas of 64 GPUs, with the same work for each.
void step_by_replicas(benchmark::State& state) {
  const std::string dp = std::to_string(state.range(0)), batch = std::to_string(state.range(0) * 16);
  plan_and_evaluate(state, test::shipped_scenario(step_8192, {{"/platform/racks", dp},
                                                              {"/workload/dp", dp},
                                                              {"/workload/global_batch_size", batch}}));
}
BENCHMARK(step_by_replicas)->RangeMultiplier(8)->Range(8, 32768)->Unit(benchmark::kMicrosecond)->Complexity();

void step_by_micro_batches(benchmark::State& state) {
  const std::string batch = std::to_string(state.range(0) * 128);
  plan_and_evaluate(state, test::shipped_scenario(step_8192, {{"/workload/global_batch_size", batch}}));
}
BENCHMARK(step_by_micro_batches)->RangeMultiplier(4)->Range(8, 8192)->Unit(benchmark::kMicrosecond)->Complexity();

void step_by_layers(benchmark::State& state) {
  plan_and_evaluate(
      state, test::shipped_scenario(step_8192, {{"/model/num_hidden_layers", std::to_string(state.range(0))}}));
}
BENCHMARK(step_by_layers)->RangeMultiplier(4)->Range(64, 4096)->Unit(benchmark::kMicrosecond)->Complexity();

}  // namespace
}  // namespace nvlsim
