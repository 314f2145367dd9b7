#include "nvlsim/serving/mlperf.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace nvlsim {
namespace {

/// Samples and limits in seconds (mlcommons/inference, loadgen/mlperf.conf of v6.0; gpt-oss-120b: submitted logs).
constexpr std::array<mlperf_benchmark, 6> benchmarks = {{
    {"llama2-70b", 24'576, mlperf_limits{2, 0.2}, mlperf_limits{0.45, 0.04}},
    {"llama3.1-405b", 8'313, mlperf_limits{6, 0.175}, mlperf_limits{4.5, 0.08}},
    {"llama3.1-8b", 13'368, mlperf_limits{2, 0.1}, mlperf_limits{0.5, 0.03}},
    {"mixtral-8x7b", 15'000, mlperf_limits{2, 0.2}, std::nullopt},
    {"deepseek-r1", 4'388, mlperf_limits{2, 0.08}, mlperf_limits{1.5, 0.015}},
    {"gpt-oss-120b", 6'396, mlperf_limits{3, 0.08}, mlperf_limits{2, 0.015}},
}};

/// LoadGen sends an offline run so many more samples than ten minutes need at the rate that it expects.
/// (mlcommons/inference, loadgen/test_settings_internal.cc)
constexpr double slack = 1.1;

}  // namespace

std::span<const mlperf_benchmark> mlperf_benchmarks() { return benchmarks; }

const mlperf_benchmark* find_mlperf_benchmark(std::string_view name) {
  const auto at =
      std::find_if(benchmarks.begin(), benchmarks.end(), [&](const auto& b) { return b.name == name; });
  return at == benchmarks.end() ? nullptr : &*at;
}

std::int64_t mlperf_requests(const inference_workload& w) {
  // In the mean. LoadGen goes on where they come sooner.
  if (w.mlperf->scenario != mlperf_scenario::offline)
    return static_cast<std::int64_t>(std::ceil(w.arrivals.rate_per_s * mlperf_run_s));
  return find_mlperf_benchmark(w.mlperf->benchmark)->samples;
}

service_objective mlperf_objective(const mlperf_rules& rules) {
  service_objective out;
  if (rules.scenario == mlperf_scenario::offline) return out;
  const mlperf_benchmark& b = *find_mlperf_benchmark(rules.benchmark);
  const mlperf_limits& l = (rules.scenario == mlperf_scenario::server ? b.server : b.interactive).value();
  out.ttft_s = l.ttft_s;
  out.tpot_s = l.tpot_s;
  out.share = 0.99;
  return out;
}

std::int64_t mlperf_longer(std::int64_t requests, double took_s) {
  const double more = slack * mlperf_run_s / took_s;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(requests) * more));
}

}  // namespace nvlsim
