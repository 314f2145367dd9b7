#include "nvlsim/analysis/operation_metrics.hpp"

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {
namespace {

using record = operation_metrics;

constexpr measured_metric<operation_metrics> operation_rows[] = {
    {{.name = "duration_s",
      .unit = metric_unit::second,
      .direction = better::neither,
      .meaning = "Time for which the cluster runs."},
     [](const record& o) -> metric_value { return o.duration.base(); }},
    {{.name = "gpus", .unit = metric_unit::count, .direction = better::neither, .meaning = "GPUs of the cluster."},
     [](const record& o) -> metric_value { return o.gpus; }},
    {{.name = "job_gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the job.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->gpus; }},
    {{.name = "ettr_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning =
          "Effective training time ratio: time of steps that were kept, at full speed, over wall time. Mean "
          "over the seeds.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->ettr; }},
    {{.name = "goodput_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "GPU-time of steps that were kept over that of all GPUs of the cluster; spare, idle and broken "
                 "ones included.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->goodput; }},
    {{.name = "tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of steps that were kept over wall time.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->tokens / o.training->wall; }},
    {{.name = "step_time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of a step while nothing is broken.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->step_time.base(); }},
    {{.name = "interruptions",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Failures that stopped the job.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->stops; }},
    {{.name = "failures",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Failures of all components of the cluster.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->failures; }},
    {{.name = "mttf_s",
      .unit = metric_unit::second,
      .direction = better::larger,
      .meaning = "Wall time over the failures that stopped the job.",
      .null_when = "nothing stopped the job",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value {
       return o.training->stops > 0 ? metric_value(o.training->wall / o.training->stops) : metric_value();
     }},
    {{.name = "lost_per_interruption_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Wall time without useful steps over the failures that stopped the job.",
      .null_when = "nothing stopped the job",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value {
       const training_tally& t = *o.training;
       return t.stops > 0 ? metric_value(t.stopped_time / t.stops) : metric_value();
     }},
    {{.name = "redone_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the cluster's GPU-time in steps that a failure made worthless.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->redone; }},
    {{.name = "repair_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the cluster's GPU-time on trays that wait for a repair.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->repair; }},
    {{.name = "spare_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the cluster's GPU-time on trays that work and are not in the job.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->spare; }},
    {{.name = "checkpoint_interval_s",
      .unit = metric_unit::second,
      .direction = better::neither,
      .meaning = "Time of work between two saves.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->interval.base(); }},
    {{.name = "checkpoint_stall_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time for which a save stops the job.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->stall.base(); }},
    {{.name = "time_to_train_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time until the job has done the steps of its token budget.",
      .null_when = "the job has no token budget, or the run ends before it is met",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value {
       return o.training->to_train ? metric_value(o.training->to_train->base()) : metric_value();
     }},
    {{.name = "cost_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Price of all GPUs of the cluster until the job or the run ends.",
      .null_when = "no price is known",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value {
       return o.training->cost ? metric_value(o.training->cost->base()) : metric_value();
     }},
    {{.name = "cost_per_million_tokens_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "That price over the tokens of steps that were kept.",
      .null_when = "no price is known, or no step was kept",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value {
       const training_tally& t = *o.training;
       return t.cost && t.tokens > 0 ? metric_value(t.cost->base() / t.tokens * 1e6) : metric_value();
     }},
};

}  // namespace

std::span<const measured_metric<operation_metrics>> operation_table() { return operation_rows; }
bool applies(const metric& m, const operation_metrics& o) {
  return m.needs == metric_needs::nothing || (m.needs == metric_needs::training_job && o.training);
}

}  // namespace nvlsim
