#include "nvlsim/scheduling/queue_summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nvlsim {
namespace {

std::optional<queue_spread> spread(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto at = [&](double share) { return values[static_cast<std::size_t>(std::ceil(share * count)) - 1]; };
  return queue_spread{std::accumulate(values.begin(), values.end(), 0.0) / count,
                      at(0.5),
                      at(0.9),
                      at(0.95),
                      at(0.99),
                      values.back()};
}

int racks_of(const queue_cluster& cluster, const std::vector<int>& nodes) {
  int racks = 0, last = -1;
  for (const int n : nodes)
    if (n / cluster.nodes_per_rack != last) ++racks, last = n / cluster.nodes_per_rack;
  return racks;
}

/// What one job got.
struct job_times {
  double first_start = -1, end = -1, held = 0;
};

std::vector<queue_share> shares(const std::vector<std::string>& names, const job_list& jobs,
                                const std::vector<job_times>& times, int batch_job::*member) {
  std::vector<queue_share> out(names.size());
  std::vector<std::int64_t> started(names.size());
  double all = 0;
  for (std::size_t n = 0; n < names.size(); ++n) out[n].name = names[n];
  for (std::size_t j = 0; j < jobs.jobs.size(); ++j) {
    const auto n = static_cast<std::size_t>(jobs.jobs[j].*member);
    if (n >= out.size()) continue;
    ++out[n].jobs;
    out[n].gpu_time += times[j].held;
    all += times[j].held;
    if (times[j].first_start < 0) continue;
    out[n].mean_wait_s += times[j].first_start - jobs.jobs[j].submit.base();
    ++started[n];
  }
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (all > 0) out[n].gpu_time /= all;
    if (started[n] > 0) out[n].mean_wait_s /= static_cast<double>(started[n]);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const queue_share& a, const queue_share& b) { return a.gpu_time > b.gpu_time; });
  return out;
}

}  // namespace

queue_summary summarise(const job_list& jobs, const queue_setting& setting, const queue_schedule& schedule) {
  constexpr double shortest = 10;  // seconds; the usual bound of a bounded slowdown
  const queue_cluster& c = setting.cluster;
  queue_summary out;
  out.jobs = static_cast<std::int64_t>(jobs.jobs.size());
  out.never = schedule.never;
  std::vector<job_times> times(jobs.jobs.size());
  double held = 0, racks = 0, spare = 0, last_end = 0;
  for (const job_attempt& a : schedule.attempts) {
    job_times& t = times[static_cast<std::size_t>(a.job)];
    if (t.first_start < 0) t.first_start = a.start_s;
    if (a.how == attempt_end::finished || a.how == attempt_end::time_limit) t.end = a.end_s;
    t.held += (a.end_s - a.start_s) * a.gpus_each * static_cast<double>(a.nodes.size());
    const int used = racks_of(c, a.nodes), fewest = (static_cast<int>(a.nodes.size()) - 1) / c.nodes_per_rack + 1;
    racks += used;
    spare += used - fewest;
    last_end = std::max(last_end, a.end_s);
  }
  std::vector<double> waits, slowdowns;
  for (std::size_t j = 0; j < times.size(); ++j) {
    const batch_job& job = jobs.jobs[j];
    held += times[j].held;
    if (times[j].first_start >= 0) waits.push_back(times[j].first_start - job.submit.base());
    if (times[j].end < 0) continue;
    ++out.finished;
    const double turnaround = times[j].end - job.submit.base(), run = std::max(job.run.base(), shortest);
    slowdowns.push_back(std::max(1.0, turnaround / run));
  }
  out.started = static_cast<std::int64_t>(waits.size());
  out.wait_s = spread(std::move(waits));
  out.slowdown = spread(std::move(slowdowns));
  const double all = static_cast<double>(c.gpus()) * schedule.elapsed_s;
  if (all > 0) out.utilisation = held / all, out.held_back = schedule.time.idle_wanted / all;
  if (schedule.time.idle > 0) out.fragmentation = 1 - schedule.time.idle_in_racks / schedule.time.idle;
  if (!schedule.attempts.empty()) {
    const auto starts = static_cast<double>(schedule.attempts.size());
    out.racks_per_job = racks / starts;
    out.spare_racks_per_job = spare / starts;
    out.makespan_s = last_end - jobs.jobs.front().submit.base();
  }
  out.users = shares(jobs.users, jobs, times, &batch_job::user);
  out.queues = shares(jobs.queues, jobs, times, &batch_job::queue);
  return out;
}

}  // namespace nvlsim
