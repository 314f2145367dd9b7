#include "nvlsim/analysis/operation_metrics.hpp"

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {
namespace {

constexpr measured_metric<operation_metrics> operation_rows[] = {
    {{.name = "duration_s",
      .unit = metric_unit::second,
      .direction = better::neither,
      .meaning = "Time for which the cluster runs."},
     [](const operation_metrics& o) -> metric_value { return o.duration.base(); }},
    {{.name = "gpus", .unit = metric_unit::count, .direction = better::neither, .meaning = "GPUs of the cluster."},
     [](const operation_metrics& o) -> metric_value { return o.gpus; }},
};

}  // namespace

std::span<const measured_metric<operation_metrics>> operation_table() { return operation_rows; }
bool applies(const metric& m, const operation_metrics&) { return m.needs == metric_needs::nothing; }

}  // namespace nvlsim
