#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

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

std::size_t repair_thread(const queue_cluster& c, int node) {
  return static_cast<std::size_t>(c.nodes_per_rack * c.gpus_per_node + node % c.nodes_per_rack) + 1;
}

/// A thread's name, or with tid 0 that of its process.
void append_name(std::string& text, std::size_t pid, std::size_t tid, const std::string& name) {
  std::string quoted;
  output::append_json_string(quoted, name);
  fmt::format_to(std::back_inserter(text), "{}{{\"ph\":\"M\",\"pid\":{},", text.ends_with('[') ? "\n" : ",\n",
                 pid);
  if (tid > 0) fmt::format_to(std::back_inserter(text), "\"tid\":{},", tid);
  fmt::format_to(std::back_inserter(text), "\"name\":\"{}_name\",\"args\":{{\"name\":{}}}}}",
                 tid > 0 ? "thread" : "process", quoted);
}

/// "\"ts\":..,\"dur\":.." in microseconds, of whole nanoseconds, so that what follows begins where this ends.
std::string when(double begin_s, double end_s) {
  const std::int64_t begin = std::llround(begin_s * 1e9), length = std::llround(end_s * 1e9) - begin;
  return fmt::format("\"ts\":{}.{:03},\"dur\":{}.{:03}", begin / 1000, begin % 1000, length / 1000, length % 1000);
}

/// A slice without arguments.
void append_slice(std::string& text, std::size_t pid, std::size_t tid, const state_track::stretch& x) {
  std::string name;
  output::append_json_string(name, x.what);
  fmt::format_to(std::back_inserter(text), ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},{},\"name\":{}}}", pid, tid,
                 when(x.begin_s, x.end_s), name);
}

/// Repairs of nodes on threads below those of their GPUs.
void append_repairs(std::string& text, const played_cluster& c) {
  for (const node_repair& x : c.repairs)
    append_slice(text, static_cast<std::size_t>(x.node / c.setting.cluster.nodes_per_rack) + 1,
                 repair_thread(c.setting.cluster, x.node), {x.begin_s, x.end_s, x.what});
}

/// Processes after the racks.
void append_lives(std::string& text, const played_cluster& c) {
  auto pid = static_cast<std::size_t>(c.setting.cluster.racks);
  for (const state_track& life : c.lives) {
    append_name(text, ++pid, 0, life.name);
    append_name(text, pid, 1, life.lane);
    for (const state_track::stretch& x : life.stretches) append_slice(text, pid, 1, x);
  }
}

void append_names(std::string& text, const played_cluster& played) {
  const queue_cluster& c = played.setting.cluster;
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
  std::set<int> repaired;
  for (const node_repair& x : played.repairs) repaired.insert(x.node);
  for (const int n : repaired)
    append_name(text, static_cast<std::size_t>(n / c.nodes_per_rack) + 1, repair_thread(c, n),
                fmt::format("node {:02} repairs", n % c.nodes_per_rack));
}

}  // namespace

void write_queue_trace(std::ostream& out, const played_cluster& played, const value& metadata) {
  constexpr std::size_t chunk = std::size_t{1} << 16;
  const job_list& jobs = played.jobs;
  const queue_schedule& schedule = played.schedule;
  const queue_cluster& c = played.setting.cluster;
  std::string text = to_json(metadata, 0);
  while (text.ends_with('\n')) text.pop_back();
  text = "{\"displayTimeUnit\":\"ns\",\"metadata\":" + text + ",\"traceEvents\":[";
  append_names(text, played);
  node_lanes lanes(c);
  const auto moves = moves_by_attempt(schedule);
  std::vector<std::pair<node_stay, std::size_t>> stays;  // with their attempts; lanes are taken in order of time
  for (std::size_t at = 0; at < schedule.attempts.size(); ++at)
    for (const node_stay& x : stays_of(schedule.attempts[at], moves[at])) stays.emplace_back(x, at);
  std::stable_sort(stays.begin(), stays.end(),
                   [](const auto& a, const auto& b) { return a.first.begin_s < b.first.begin_s; });
  for (const auto& [x, at] : stays) {
    const job_attempt& a = schedule.attempts[at];
    const batch_job& job = jobs.jobs[static_cast<std::size_t>(a.job)];
    std::string name;
    output::append_json_string(name, fmt::format("{} ({} GPUs)", job.name, job.gpus));
    std::string args = "{\"user\":";
    const auto user = static_cast<std::size_t>(job.user);
    output::append_json_string(args, user < jobs.users.size() ? jobs.users[user] : std::string());
    args += fmt::format(",\"wait_s\":{}}}", a.start_s - job.submit.base());
    const int n = x.node, tid = n % c.nodes_per_rack * c.gpus_per_node + lanes.take(x, a.gpus_each) + 1;
    fmt::format_to(std::back_inserter(text),
                   ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},{},\"name\":{},\"args\":{}}}",
                   n / c.nodes_per_rack + 1, tid, when(x.begin_s, x.end_s), name, args);
    if (text.size() > chunk) out << text, text.clear();
  }
  append_repairs(text, played);
  append_lives(text, played);
  out << text << "\n]}\n";
  if (!out.flush()) throw io_error("cannot write the trace");
}

}  // namespace nvlsim
