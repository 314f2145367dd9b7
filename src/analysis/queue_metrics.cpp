#include "nvlsim/analysis/queue_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

using record = operation_metrics;

/// Statistics of the seeds' distributions, each the mean over the seeds.
metric_value spread_over_seeds(const queue_study& s, std::optional<queue_spread> queue_summary::*of) {
  distribution d;
  double count = 0;
  for (const queue_outcome& o : s.runs) {
    const std::optional<queue_spread>& x = o.summary.*of;
    if (!x) continue;
    ++count;
    d.mean += x->mean, d.p50 += x->p50, d.p90 += x->p90, d.p95 += x->p95, d.p99 += x->p99, d.max += x->most;
  }
  if (count == 0) return {};
  for (double* x : {&d.mean, &d.p50, &d.p90, &d.p95, &d.p99, &d.max}) *x /= count;
  return d;
}

template <double queue_summary::*Of>
metric_value mean_of_summary(const record& o) {
  return mean_over_seeds(*o.queue, [](const queue_outcome& x) { return x.summary.*Of; });
}

template <std::int64_t queue_summary::*Of>
metric_value mean_count(const record& o) {
  return mean_over_seeds(*o.queue, [](const queue_outcome& x) { return static_cast<double>(x.summary.*Of); });
}

template <std::int64_t queue_outcome::*Of>
metric_value mean_events(const record& o) {
  return mean_over_seeds(*o.queue, [](const queue_outcome& x) { return static_cast<double>(x.*Of); });
}

template <double gpu_time::*Of>
double share_of_time(const queue_outcome& x) {
  return x.gpu_seconds > 0 ? x.time.*Of / x.gpu_seconds : 0;
}

constexpr metric row(std::string_view name, metric_unit unit, better direction, std::string_view meaning) {
  return {.name = name, .unit = unit, .direction = direction, .meaning = meaning, .needs = metric_needs::queue};
}

constexpr metric headline(metric m) {
  m.is_headline = true;
  return m;
}

constexpr metric spread_row(std::string_view name, metric_unit unit, std::string_view meaning,
                            std::string_view null_when) {
  metric m = row(name, unit, better::smaller, meaning);
  m.null_when = null_when;
  m.is_distribution = true;
  return m;
}

constexpr measured_metric<operation_metrics> rows[] = {
    {row("queue_jobs", metric_unit::count, better::neither, "Jobs that were submitted."),
     mean_count<&queue_summary::jobs>},
    {row("queue_finished_jobs", metric_unit::count, better::larger,
         "Jobs that ended in the time that is simulated."),
     mean_count<&queue_summary::finished>},
    {row("queue_impossible_jobs", metric_unit::count, better::smaller,
         "Jobs that do not fit in the cluster, even when it is empty."),
     mean_count<&queue_summary::never>},
    {spread_row("queue_time_s", metric_unit::second,
                "Time from the submission of a job to its first start, over jobs that started.", "no job started"),
     [](const record& o) -> metric_value { return spread_over_seeds(*o.queue, &queue_summary::wait_s); }},
    {spread_row("queue_slowdown", metric_unit::count,
                "Time from submission to end over the run time, at least 10 s, of jobs that ended; at least 1.",
                "no job ended"),
     [](const record& o) -> metric_value { return spread_over_seeds(*o.queue, &queue_summary::slowdown); }},
    {headline(row("queue_utilisation_fraction", metric_unit::fraction, better::larger,
                  "GPU-time that jobs held over that of all GPUs of the cluster.")),
     mean_of_summary<&queue_summary::utilisation>},
    {row("queue_fragmentation_fraction", metric_unit::fraction, better::smaller,
         "Share of idle GPU-time outside racks that were wholly idle."),
     mean_of_summary<&queue_summary::fragmentation>},
    {row("queue_held_back_fraction", metric_unit::fraction, better::smaller,
         "Share of GPU-time that was idle while the first job that waited needed no more GPUs than were idle."),
     mean_of_summary<&queue_summary::held_back>},
    {row("queue_redone_fraction", metric_unit::fraction, better::smaller,
         "Share of GPU-time whose work was lost with a node or by preemption."),
     [](const record& o) -> metric_value { return mean_over_seeds(*o.queue, share_of_time<&gpu_time::redone>); }},
    {row("queue_racks_per_job", metric_unit::count, better::smaller,
         "Racks that a job was spread over; mean over starts."),
     mean_of_summary<&queue_summary::racks_per_job>},
    {row("queue_spare_racks_per_job", metric_unit::count, better::smaller,
         "Racks beyond the fewest that hold the job; mean over starts."),
     mean_of_summary<&queue_summary::spare_racks_per_job>},
    {row("queue_preemptions", metric_unit::count, better::smaller, "Jobs evicted for those of a higher tier."),
     mean_events<&queue_outcome::preemptions>},
    {row("queue_requeues", metric_unit::count, better::smaller,
         "Times that a job lost its nodes and waited again."),
     mean_events<&queue_outcome::requeues>},
    {row("queue_node_failures", metric_unit::count, better::smaller,
         "Failures of nodes and racks of the cluster."),
     mean_events<&queue_outcome::failures>},
    {row("queue_makespan_s", metric_unit::second, better::smaller,
         "Time from the first submission to the last end of a job."),
     mean_of_summary<&queue_summary::makespan_s>},
};

value time_section(const queue_study& s) {
  struct part {
    const char* name;
    double (*share)(const queue_outcome&);
  };
  constexpr std::array<part, 5> parts = {{{"useful", share_of_time<&gpu_time::useful>},
                                          {"redone", share_of_time<&gpu_time::redone>},
                                          {"not asked for", share_of_time<&gpu_time::surplus>},
                                          {"down", share_of_time<&gpu_time::down>},
                                          {"idle", share_of_time<&gpu_time::idle>}}};
  const double all = mean_over_seeds(s, [](const queue_outcome& x) { return x.gpu_seconds; });
  value out{value::array{}};
  for (const part& p : parts) {
    const double share = mean_over_seeds(s, p.share);
    if (share > 0)
      out.items()->push_back(value::object{{"name", p.name}, {"gpu_hours", share * all / 3600}, {"share", share}});
  }
  return out;
}

value share_section(const std::vector<queue_share>& shares) {
  constexpr std::size_t most = 20;
  value out{value::array{}};
  for (std::size_t i = 0; i < std::min(most, shares.size()); ++i)
    out.items()->push_back(value::object{{"name", shares[i].name},
                                         {"jobs", shares[i].jobs},
                                         {"gpu_time_share", shares[i].gpu_time},
                                         {"queue_time_mean_s", shares[i].mean_wait_s}});
  return out;
}

/// 5 to 95 % of the seeds.
void set_band(result& r, const queue_study& s, const char* metric, double (*of)(const queue_outcome&)) {
  constexpr std::size_t enough = 10;
  if (s.runs.size() < enough) return;
  std::vector<double> values;
  for (const queue_outcome& o : s.runs) values.push_back(of(o));
  r.bands.set(metric, value::array{share_below(values, 0.05), share_below(values, 0.95)});
}

}  // namespace

double mean_over_seeds(const queue_study& s, double (*of)(const queue_outcome&)) {
  double sum = 0;
  for (const queue_outcome& o : s.runs) sum += of(o);
  return sum / static_cast<double>(s.runs.size());
}

std::span<const measured_metric<operation_metrics>> queue_rows() { return rows; }

void add_queue_sections(result& r, const queue_study& s) {
  const queue_summary& first = s.runs.front().summary;
  if (!r.breakdown.find("gpu_time")) r.breakdown.set("queue_gpu_time", time_section(s));
  r.breakdown.set("queue_users", share_section(first.users));
  r.breakdown.set("queue_queues", share_section(first.queues));
  for (const std::string& n : s.job_notes) r.notes.push_back("queue: " + n);
  if (const std::int64_t waiting = first.jobs - first.never - first.started; waiting > 0)
    r.notes.push_back(fmt::format("queue: {} did not start before the run ended; queue times leave {} out",
                                  waiting == 1 ? "1 job" : fmt::format("{} jobs", waiting),
                                  waiting == 1 ? "it" : "them"));
  if (first.never > 0)
    r.notes.push_back(fmt::format("queue: {} skipped, because even the empty cluster is too small",
                                  first.never == 1 ? "1 job was" : fmt::format("{} jobs were", first.never)));
  set_band(r, s, "queue_utilisation_fraction", [](const queue_outcome& o) { return o.summary.utilisation; });
  set_band(r, s, "queue_fragmentation_fraction", [](const queue_outcome& o) { return o.summary.fragmentation; });
  set_band(r, s, "queue_redone_fraction", share_of_time<&gpu_time::redone>);
}

}  // namespace nvlsim
