// MLPerf Inference's rules of how a run of a language model is measured. [docs/serving.md#mlperf]
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// Limits on the 99th percentiles, in seconds.
struct mlperf_limits {
  double ttft_s = 0, tpot_s = 0;
};
/// A benchmark of MLPerf Inference, named as its model is here.
struct mlperf_benchmark {
  std::string_view name;
  std::int64_t samples = 0;  ///< of its data set, at most 24,576: the fewest that an offline run sends
  std::optional<mlperf_limits> server, interactive;
};
std::span<const mlperf_benchmark> mlperf_benchmarks();
/// Nothing for a name that is none.
const mlperf_benchmark* find_mlperf_benchmark(std::string_view name);

/// A run lasts at least ten minutes. (MLPerf Inference rules, "Scenarios")
inline constexpr double mlperf_run_s = 600;

/// The fewest requests that the rules let a workload that names them send: offline the samples, else what arrives
/// in ten minutes.
std::int64_t mlperf_requests(const inference_workload& w);
/// The objective of a server, which 99 % of the requests must meet. None offline.
service_objective mlperf_objective(const mlperf_rules& rules);
/// How many requests to send where `requests` of them took `took_s`, less than a run may.
std::int64_t mlperf_longer(std::int64_t requests, double took_s);

}  // namespace nvlsim
