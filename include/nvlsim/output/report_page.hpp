// Reports: self-contained HTML pages.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/memory_over_time.hpp"
#include "nvlsim/analysis/result.hpp"

namespace nvlsim::output {

/// The timeline of a run, reduced for drawing.
struct report_timeline {
  struct slice {
    std::size_t name;  ///< index into `names`
    double begin_s, length_s;
    std::int32_t micro_batch;
  };
  struct track {
    std::string name;
    std::vector<slice> slices;
  };
  std::string scenario;
  std::vector<std::string> names;
  std::vector<track> tracks;
  std::vector<memory_curve> memory;
  std::vector<time_curve> power;           ///< at the site
  std::vector<time_curve> over_seeds;      ///< of an operation
  std::optional<cluster_picture> cluster;  ///< the same, of jobs that share it
  /// A service of a fleet: its load, replicas and queue.
  struct service {
    std::string name;
    std::vector<time_curve> curves;
  };
  std::vector<service> services;
  /// Cumulative latency distribution of a serving run: up to 100 pairs of value and fraction of requests not
  /// slower.
  struct latency_curve {
    std::string metric;
    std::vector<std::pair<double, double>> points;
  };
  std::vector<latency_curve> latencies;
};
/// Keeps at most `tracks` classes and about `slices` slices in total. To stay within the limit, merges consecutive
/// operations under the name of the first.
report_timeline timeline_of(const run_record& run, std::size_t tracks = 32, std::size_t slices = 30'000);

/// Points of a sweep and their outcomes, as in the lines of a merged sweep.
struct report_sweep {
  std::string name;
  value points = value::array{};  ///< {"set": {pointer: value}, "status", "metrics"}
};

struct report_contents {
  std::vector<result> results;
  std::vector<explanation> explanations;  ///< of some of the results, by scenario
  std::vector<report_timeline> timelines;
  std::vector<report_sweep> sweeps;
  std::vector<value> searches;  ///< `nvlsim.search/1`
  std::vector<value> plans;     ///< `nvlsim.plan/1`
};
/// A self-contained HTML file. Its data are JSON (`nvlsim.report/1`) in element "data".
/// [docs/report.md]
std::string report_page(const report_contents& r);

}  // namespace nvlsim::output
