#include "nvlsim/analysis/operation_metrics.hpp"

#include <cmath>
#include <iterator>
#include <vector>

#include "nvlsim/analysis/metrics.hpp"

namespace nvlsim {
namespace {

using record = operation_metrics;

metric_value power_figure(const record& o, double (*figure)(const power_figures&)) {
  return o.site->power ? metric_value(figure(*o.site->power)) : metric_value();
}

constexpr measured_metric<operation_metrics> operation_rows[] = {
    {{.name = "duration_s",
      .unit = metric_unit::second,
      .direction = better::neither,
      .meaning = "Time for which the cluster runs."},
     [](const record& o) -> metric_value { return o.duration.base(); }},
    {{.name = "fleet_requests",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "Requests that come to the fleet.",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value { return o.fleet->requests; }},
    {{.name = "fleet_availability_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "Share of the fleet's requests that a replica serves before their patience ends.",
      .needs = metric_needs::fleet,
      .is_headline = true},
     [](const record& o) -> metric_value { return o.fleet->availability; }},
    {{.name = "fleet_slo_attained_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning =
          "Share of the fleet's requests within every limit of their service's objective, at the first try.",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value { return o.fleet->attained; }},
    {{.name = "fleet_retried_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Requests that were lost with a replica and sent again, over all requests.",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value { return o.fleet->retried_share; }},
    {{.name = "fleet_gpus_mean",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "GPUs of ready and starting replicas, mean over the time.",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value { return o.fleet->gpus; }},
    {{.name = "fleet_gpu_use_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "Share of the platform's GPU time in ready replicas.",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value { return o.fleet->use; }},
    {{.name = "fleet_energy_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of ready and starting replicas at the supplies of their racks.",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value { return o.fleet->energy.base(); }},
    {{.name = "fleet_carbon_g",
      .unit = metric_unit::gram,
      .direction = better::smaller,
      .meaning = "Carbon dioxide equivalent of the fleet's energy at the meter.",
      .null_when = "the facility states no carbon intensity of its grid",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value {
       return o.fleet->carbon_g ? metric_value(*o.fleet->carbon_g) : metric_value();
     }},
    {{.name = "fleet_bill_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "What is paid at the prices of /facility/money: for ready and starting replicas; where GPUs are "
                 "owned or reserved, for all of the platform.",
      .null_when = "the scenario has no /facility/money",
      .needs = metric_needs::fleet},
     [](const record& o) -> metric_value {
       return o.fleet->bill ? metric_value(o.fleet->bill->base()) : metric_value();
     }},
    {{.name = "gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the cluster.",
      .parts = metric_parts::pools},
     [](const record& o) -> metric_value { return o.gpus; }},
    {{.name = "job_gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the jobs that train.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->gpus; }},
    {{.name = "ettr_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning =
          "Effective training time ratio: time of steps that were kept, at full speed, over wall time since "
          "the first start, weighed by GPUs. Mean over the seeds.",
      .needs = metric_needs::training_job,
      .search = search_use::weighed},
     [](const record& o) -> metric_value { return o.training->ettr; }},
    {{.name = "goodput_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning =
          "GPU-time of steps that were kept, of replicas that serve and of batch work over that of all GPUs "
          "of the cluster; spare, idle and broken ones included, those that a seller took back not.",
      .needs = metric_needs::training_job,
      .is_headline = true},
     [](const record& o) -> metric_value { return o.training->goodput; }},
    {{.name = "tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of steps that were kept over wall time.",
      .needs = metric_needs::training_job,
      .search = search_use::objective},
     [](const record& o) -> metric_value { return o.training->tokens / o.training->wall; }},
    {{.name = "serving_availability_fraction",
      .unit = metric_unit::fraction,
      .direction = better::larger,
      .meaning = "Share of their time since the first start in which replicas of services serve, by GPUs.",
      .null_when = "no service ever starts",
      .needs = metric_needs::services},
     [](const record& o) -> metric_value {
       return std::isnan(*o.availability) ? metric_value() : *o.availability;
     }},
    {{.name = "healthy_step_time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of a step while nothing is broken.",
      .needs = metric_needs::lone_job},
     [](const record& o) -> metric_value { return o.training->step_time.base(); }},
    {{.name = "interruptions",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Failures that stopped a job that trains.",
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
      .meaning = "Wall time of the jobs over the failures that stopped them.",
      .null_when = "nothing stopped a job",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value {
       return o.training->stops > 0 ? metric_value(o.training->job_time / o.training->stops) : metric_value();
     }},
    {{.name = "lost_per_interruption_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Wall time without useful steps over the failures that stopped jobs.",
      .null_when = "nothing stopped a job",
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
      .meaning = "Share of the cluster's GPU-time on trays that work and are in no job.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->spare; }},
    {{.name = "reclaimed_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the cluster's GPU-time on trays that their seller took back, which is not paid for.",
      .needs = metric_needs::training_job},
     [](const record& o) -> metric_value { return o.training->reclaimed; }},
    {{.name = "checkpoint_interval_s",
      .unit = metric_unit::second,
      .direction = better::neither,
      .meaning = "Time of work between two saves.",
      .needs = metric_needs::lone_job},
     [](const record& o) -> metric_value { return o.training->interval.base(); }},
    {{.name = "checkpoint_stall_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time for which a save stops the job.",
      .needs = metric_needs::lone_job},
     [](const record& o) -> metric_value { return o.training->stall.base(); }},
    {{.name = "time_to_train_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time until the job has done the steps of its token budget.",
      .null_when = "the job has no token budget, or the run ends before it is met",
      .needs = metric_needs::lone_job,
      .telling = 10},
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
    {{.name = "energy_at_meter_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of all racks at the site's meter until the job or the run ends: work, also redone, at "
                 "the power of a step or service; all other GPU-time idle.",
      .null_when = "the facility states no PUE",
      .needs = metric_needs::facility},
     [](const record& o) -> metric_value {
       return o.site->took.at_meter ? metric_value(o.site->took.at_meter->base()) : metric_value();
     }},
    {{.name = "water_L",
      .unit = metric_unit::litre,
      .direction = better::smaller,
      .meaning = "Water that the site uses for it.",
      .null_when = "the facility states no WUE",
      .needs = metric_needs::facility},
     [](const record& o) -> metric_value {
       return o.site->took.water_L ? metric_value(*o.site->took.water_L) : metric_value();
     }},
    {{.name = "carbon_g",
      .unit = metric_unit::gram,
      .direction = better::smaller,
      .meaning = "Carbon dioxide equivalent of that energy.",
      .null_when = "the facility states no carbon intensity of its grid",
      .needs = metric_needs::facility},
     [](const record& o) -> metric_value {
       return o.site->took.carbon_g ? metric_value(*o.site->took.carbon_g) : metric_value();
     }},
    {{.name = "bill_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning =
          "What is paid for all GPUs of the cluster until the job or the run ends, as the facility's money says, "
          "whatever came of the time. Spot GPUs that were taken back are not paid for.",
      .null_when = "the facility states no money",
      .needs = metric_needs::facility},
     [](const record& o) -> metric_value {
       return o.site->paid ? metric_value(o.site->paid->base()) : metric_value();
     }},
    {{.name = "bill_per_million_tokens_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning =
          "Cost of a million tokens of kept steps under the facility's price model: what is paid, over them.",
      .null_when = "the facility states no money, or no step was kept",
      .needs = metric_needs::facility},
     [](const record& o) -> metric_value {
       const double tokens = o.training ? o.training->tokens : 0;
       return o.site->bill && tokens > 0 ? metric_value(o.site->bill->base() / tokens * 1e6) : metric_value();
     }},
    {{.name = "rack_power_peak_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Highest power at the supplies of a rack while jobs work, smoothed as the facility says.",
      .null_when = "no job's step is known",
      .needs = metric_needs::facility},
     [](const record& o) { return power_figure(o, [](const power_figures& p) { return p.rack_peak.base(); }); }},
    {{.name = "site_power_peak_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Highest power at the site's meter when the jobs of the first seed drew most, their steps at "
                 "times of their own.",
      .null_when = "no job's step is known",
      .needs = metric_needs::facility},
     [](const record& o) { return power_figure(o, [](const power_figures& p) { return p.site_peak.base(); }); }},
    {{.name = "site_power_swing_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Highest less lowest power at the site's meter then.",
      .null_when = "no job's step is known",
      .needs = metric_needs::facility},
     [](const record& o) { return power_figure(o, [](const power_figures& p) { return p.site_swing.base(); }); }},
    {{.name = "site_power_change_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Largest change of that power within a second.",
      .null_when = "no job's step is known",
      .needs = metric_needs::facility},
     [](const record& o) {
       return power_figure(o, [](const power_figures& p) { return p.change_in_a_second.base(); });
     }},
    {{.name = "site_power_oscillation_W",
      .unit = metric_unit::watt,
      .direction = better::smaller,
      .meaning = "Root mean square of what oscillates in it at 0.1 to 20 Hz.",
      .null_when = "no job's step is known",
      .needs = metric_needs::facility},
     [](const record& o) { return power_figure(o, [](const power_figures& p) { return p.oscillation.base(); }); }},
    {{.name = "power_cap_slowdown_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning =
          "By how much a cap that the facility's limits impose lengthens the step of the job; the largest of "
          "several jobs.",
      .null_when = "no limit caps the GPUs",
      .needs = metric_needs::facility,
      .search = search_use::refused},
     [](const record& o) -> metric_value {
       return o.cap_slowdown ? metric_value(*o.cap_slowdown) : metric_value();
     }},
};

}  // namespace

std::span<const measured_metric<operation_metrics>> operation_table() {
  static const std::vector<measured_metric<operation_metrics>> all = [] {
    std::vector<measured_metric<operation_metrics>> rows(std::begin(operation_rows), std::end(operation_rows));
    rows.insert(rows.end(), queue_rows().begin(), queue_rows().end());
    return rows;
  }();
  return all;
}
bool applies(const metric& m, const operation_metrics& o) {
  if (m.needs == metric_needs::fleet) return o.fleet.has_value();
  if (m.needs == metric_needs::facility) return o.site.has_value();
  if (m.needs == metric_needs::queue) return o.queue.has_value();
  if (m.needs == metric_needs::services) return o.availability.has_value();
  if (m.needs == metric_needs::lone_job) return o.training && o.lone;
  return m.needs == metric_needs::nothing || (m.needs == metric_needs::training_job && o.training);
}

}  // namespace nvlsim
