#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <string_view>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/queue_output.hpp"
#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

constexpr std::array<std::string_view, 3> outcomes = {"COMPLETED", "FAILED", "CANCELLED"};

/// Slurm's name of a job's state.
std::string_view state_of(const batch_job& job, const job_attempt* last) {
  if (!last) return "PENDING";
  switch (last->how) {
    case attempt_end::finished:
      return outcomes[static_cast<std::size_t>(job.outcome)];
    case attempt_end::time_limit:
      return "TIMEOUT";
    case attempt_end::still_running:
      return "RUNNING";
    case attempt_end::preempted:
      return "PREEMPTED";
    case attempt_end::node_failed:
    case attempt_end::maintenance:
      break;
  }
  return "NODE_FAIL";
}

std::string name_in(const std::vector<std::string>& names, int at) {
  return static_cast<std::size_t>(at) < names.size() ? output::csv_cell(names[static_cast<std::size_t>(at)])
                                                     : std::string();
}

}  // namespace

std::string host_list(const queue_cluster& cluster, const std::vector<int>& nodes) {
  const int per = cluster.nodes_per_rack;
  std::string out;
  for (std::size_t i = 0; i < nodes.size();) {
    const int rack = nodes[i] / per;
    std::string ranges;
    std::size_t count = 0;
    for (; i < nodes.size() && nodes[i] / per == rack; ++count) {
      std::size_t last = i;
      while (last + 1 < nodes.size() && nodes[last + 1] == nodes[last] + 1 && nodes[last + 1] / per == rack)
        ++last;
      ranges += fmt::format("{}{:02}", ranges.empty() ? "" : ",", nodes[i] % per);
      if (last > i) ranges += fmt::format("-{:02}", nodes[last] % per), ++count;
      i = last + 1;
    }
    if (count > 1) ranges = '[' + ranges + ']';
    out += fmt::format("{}r{:02}n{}", out.empty() ? "" : ",", rack, ranges);
  }
  return out;
}

std::string jobs_csv(const job_list& jobs, const queue_setting& setting, const queue_schedule& schedule) {
  std::vector<const job_attempt*> first(jobs.jobs.size()), last(jobs.jobs.size());
  std::vector<int> starts(jobs.jobs.size());
  for (const job_attempt& a : schedule.attempts) {
    const auto j = static_cast<std::size_t>(a.job);
    if (!first[j]) first[j] = &a;
    last[j] = &a;
    ++starts[j];
  }
  std::string out =
      "job,user,queue,submit_s,run_s,limit_s,gpus,nodes,segment,state,start_s,end_s,wait_s,starts,gpus_held,"
      "node_list\n";
  for (std::size_t j = 0; j < jobs.jobs.size(); ++j) {
    const batch_job& job = jobs.jobs[j];
    const job_demand d = demand_of(job, setting.cluster, setting.placement);
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},", output::csv_cell(job.name),
                   name_in(jobs.users, job.user), name_in(jobs.queues, job.queue), job.submit.base(),
                   job.run.base());
    if (job.limit.base() > 0) fmt::format_to(std::back_inserter(out), "{}", job.limit.base());
    fmt::format_to(std::back_inserter(out), ",{},{},{},{},", job.gpus, d.nodes, d.segment, state_of(job, last[j]));
    if (!last[j]) {
      out += ",,,0,0,\n";
      continue;
    }
    fmt::format_to(std::back_inserter(out), "{},", first[j]->start_s);
    if (last[j]->how != attempt_end::still_running) fmt::format_to(std::back_inserter(out), "{}", last[j]->end_s);
    fmt::format_to(std::back_inserter(out), ",{},{},{},{}\n", first[j]->start_s - job.submit.base(), starts[j],
                   d.gpus(), output::csv_cell(host_list(setting.cluster, last[j]->nodes)));
  }
  return out;
}

namespace {

/// GPUs of a node as lanes: a job takes the lowest that are free.
class node_lanes {
 public:
  explicit node_lanes(const queue_cluster& c)
      : per_(c.gpus_per_node),
        busy_until_(static_cast<std::size_t>(c.nodes()) * static_cast<std::size_t>(per_), -1) {}

  /// The first lane that a stay has.
  int take(const node_stay& x, int gpus) {
    int first = -1, left = gpus;
    for (int lane = 0; lane < per_ && left > 0; ++lane) {
      double& until = busy_until_[static_cast<std::size_t>(x.node) * static_cast<std::size_t>(per_) +
                                  static_cast<std::size_t>(lane)];
      if (until > x.begin_s) continue;
      until = x.end_s;
      --left;
      if (first < 0) first = lane;
    }
    return std::max(0, first);
  }

 private:
  int per_;
  std::vector<double> busy_until_;
};

void append_names(std::string& text, const queue_cluster& c) {
  for (int r = 0; r < c.racks; ++r) {
    fmt::format_to(std::back_inserter(text),
                   "{}{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"rack {:02}\"}}}}",
                   r == 0 ? "\n" : ",\n", r + 1, r);
    for (int t = 0; t < c.nodes_per_rack * c.gpus_per_node; ++t)
      fmt::format_to(
          std::back_inserter(text),
          ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"node {:02} "
          "GPU {}\"}}}}",
          r + 1, t + 1, t / c.gpus_per_node, t % c.gpus_per_node);
  }
}

}  // namespace

void write_queue_trace(std::ostream& out, const job_list& jobs, const queue_setting& setting,
                       const queue_schedule& schedule, const value& metadata) {
  constexpr std::size_t chunk = std::size_t{1} << 16;
  constexpr double us = 1e6;
  const queue_cluster& c = setting.cluster;
  std::string text = to_json(metadata, 0);
  while (text.ends_with('\n')) text.pop_back();
  text = "{\"displayTimeUnit\":\"ns\",\"metadata\":" + text + ",\"traceEvents\":[";
  append_names(text, c);
  node_lanes lanes(c);
  const auto moves = moves_by_attempt(schedule);
  for (std::size_t at = 0; at < schedule.attempts.size(); ++at) {
    const job_attempt& a = schedule.attempts[at];
    const batch_job& job = jobs.jobs[static_cast<std::size_t>(a.job)];
    std::string name;
    output::append_json_string(name, fmt::format("{} ({} GPUs)", job.name, job.gpus));
    std::string args = "{\"user\":";
    const auto user = static_cast<std::size_t>(job.user);
    output::append_json_string(args, user < jobs.users.size() ? jobs.users[user] : std::string());
    args += fmt::format(",\"wait_s\":{}}}", a.start_s - job.submit.base());
    for (const node_stay& x : stays_of(a, moves[at])) {
      const int n = x.node, tid = n % c.nodes_per_rack * c.gpus_per_node + lanes.take(x, a.gpus_each) + 1;
      fmt::format_to(
          std::back_inserter(text),
          ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":{},\"args\":{}}}",
          n / c.nodes_per_rack + 1, tid, x.begin_s * us, (x.end_s - x.begin_s) * us, name, args);
    }
    if (text.size() > chunk) out << text, text.clear();
  }
  out << text << "\n]}\n";
  if (!out.flush()) throw io_error("cannot write the trace");
}

}  // namespace nvlsim
