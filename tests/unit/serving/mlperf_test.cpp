#include "nvlsim/serving/mlperf.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "nvlsim/serving/serving.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using namespace test;

inference_workload offline_by_rules(const char* benchmark) {
  inference_workload w = small_workload();
  w.load = load_kind::offline;
  w.input = {100, 0.5};
  w.mlperf = mlperf_rules{mlperf_scenario::offline, benchmark};
  w.requests = mlperf_requests(w);
  return w;
}

TEST_CASE("An offline run by MLPerf's rules sends every sample and lasts ten minutes or more") {
  for (const mlperf_benchmark& b : mlperf_benchmarks())
    for (const double output : {2.0, 400.0}) {
      inference_workload w = offline_by_rules(std::string(b.name).c_str());
      w.output = {output, 0.5};
      const serving_run run = serve(small_machine(), small_stack(), small_model(), w, {.traced = false});
      INFO(b.name << ", " << output << " tokens");
      REQUIRE(run.reasons.empty());
      const auto sent = static_cast<std::int64_t>(run.outcome.requests.size());
      CHECK(sent >= b.samples);
      CHECK(run.outcome.end_s >= mlperf_run_s);
      if (sent > b.samples) CHECK(run.outcome.end_s < 1.3 * mlperf_run_s);
    }
}

TEST_CASE("A run by MLPerf's rules is the offline run of as many requests, whoever plays it") {
  inference_workload w = offline_by_rules("deepseek-r1");
  w.output = {20, 0.5};
  const serving_run by_rules = serve(small_machine(), small_stack(), small_model(), w, {.traced = false});
  const serving_run traced = serve(small_machine(), small_stack(), small_model(), w);
  w.mlperf.reset();
  w.requests = static_cast<std::int64_t>(by_rules.outcome.requests.size());
  const serving_run plain = serve(small_machine(), small_stack(), small_model(), w, {.traced = false});
  for (const serving_run* run : {&by_rules, &traced}) {
    CHECK(run->outcome.end_s == Approx(plain.outcome.end_s).epsilon(1e-12));
    CHECK(run->outcome.output_tokens == plain.outcome.output_tokens);
  }
}

TEST_CASE("Arrivals by MLPerf's rules last ten minutes in the mean") {
  inference_workload w = small_workload();
  w.load = load_kind::open_loop;
  w.arrivals.rate_per_s = 2;
  w.mlperf = mlperf_rules{mlperf_scenario::server, "llama2-70b"};
  w.requests = mlperf_requests(w);
  double sum = 0;
  int before = 0;
  constexpr int runs = 100;
  for (int i = 0; i < runs; ++i) {
    w.seed = static_cast<std::uint64_t>(i);
    const double last = generate_requests(w, 0).requests.back().arrival_s;
    sum += last;
    before += last < mlperf_run_s ? 1 : 0;
  }
  // One run's last arrival spreads by 1 / sqrt(1,200).
  CHECK(sum / runs == Approx(mlperf_run_s).epsilon(4 / std::sqrt(1200.0 * runs)));
  CHECK(std::abs(before - runs / 2) < 20);
}

TEST_CASE("MLPerf's servers send what arrives in ten minutes and have limits of their own") {
  for (const mlperf_benchmark& b : mlperf_benchmarks()) {
    inference_workload w = small_workload();
    w.load = load_kind::open_loop;
    w.arrivals.rate_per_s = 12.5;
    w.mlperf = mlperf_rules{mlperf_scenario::server, std::string(b.name)};
    CHECK(mlperf_requests(w) == 7500);
    const service_objective server = mlperf_objective(*w.mlperf);
    CHECK(server.share == 0.99);
    CHECK(mlperf_objective({mlperf_scenario::offline, std::string(b.name)}).any() == false);
    if (!b.interactive) continue;
    const service_objective interactive = mlperf_objective({mlperf_scenario::interactive, std::string(b.name)});
    CHECK(*interactive.tpot_s < *server.tpot_s);
    CHECK(*interactive.ttft_s < *server.ttft_s);
  }
  CHECK(find_mlperf_benchmark("resnet50") == nullptr);
}

}  // namespace
}  // namespace nvlsim
