#include "nvlsim/analysis/post_training_metrics.hpp"

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {
namespace {

constexpr measured_metric<post_training_metrics> post_training_rows[] = {
    {{.name = "step_time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of one step, from its start to the end of the last GPU."},
     [](const post_training_metrics& p) -> metric_value { return p.step_time.base(); }},
    {{.name = "gpus", .unit = metric_unit::count, .direction = better::neither, .meaning = "GPUs of the loop."},
     [](const post_training_metrics& p) -> metric_value { return p.gpus; }},
};

}  // namespace

std::span<const measured_metric<post_training_metrics>> post_training_table() { return post_training_rows; }
bool applies(const metric& m, const post_training_metrics&) { return m.needs == metric_needs::nothing; }

}  // namespace nvlsim
