// Plays the queue of a cluster: which job ran where and when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/scheduling/jobs.hpp"
#include "nvlsim/scheduling/policy.hpp"

namespace nvlsim {

struct queue_setting {
  queue_cluster cluster;
  scheduling_policy policy;
  placement_policy placement;
  failure_rates failures;
  std::vector<maintenance_window> maintenance;
  seconds duration;        ///< when the simulation stops; 0: when all jobs are done
  std::uint64_t seed = 1;  ///< of failures
};

/// Why a job left its nodes.
enum class attempt_end { finished, time_limit, preempted, node_failed, maintenance, still_running };

/// A job's stay on nodes.
struct job_attempt {
  int job = 0;  ///< index into job_list::jobs
  double start_s = 0, end_s = 0;
  attempt_end how = attempt_end::still_running;
  int gpus_each = 0;
  std::vector<int> nodes;  ///< ascending; at its end, if it moved

  bool operator==(const job_attempt&) const = default;
};

/// GPU time by what it went to, in GPU-seconds. The members but the last two add up to GPUs x elapsed time.
struct gpu_time {
  double useful = 0;   ///< work that was kept
  double redone = 0;   ///< work that was lost with a node, or by preemption
  double surplus = 0;  ///< GPUs of whole nodes that the job did not ask for
  double down = 0;     ///< failed, or in maintenance
  double idle = 0;
  double idle_wanted = 0;    ///< of `idle`: while the first job that waited needed no more GPUs than were idle
  double idle_in_racks = 0;  ///< of `idle`: in racks that were wholly idle
};

/// A job goes on with other nodes.
struct node_move {
  int attempt = 0;
  double at_s = 0;
  std::vector<int> lost, gained;  ///< ascending

  bool operator==(const node_move&) const = default;
};

struct queue_schedule {
  std::vector<job_attempt> attempts;  ///< in order of their starts
  std::vector<node_move> moves;       ///< in order
  double elapsed_s = 0;
  gpu_time time;
  std::int64_t never = 0;  ///< jobs that fit no empty cluster
  std::int64_t preemptions = 0, failures = 0, requeues = 0;
  std::int64_t passes = 0;  ///< looks at the queue
};

/// A job's stay on a node.
struct node_stay {
  int job = 0, node = 0;
  double begin_s = 0, end_s = 0;
};
/// The stays of an attempt: those that moves ended, then those on its last nodes, ascending. `moves` are its own.
std::vector<node_stay> stays_of(const job_attempt& a, const std::vector<const node_move*>& moves);
/// The moves of each attempt.
std::vector<std::vector<const node_move*>> moves_by_attempt(const queue_schedule& s);

/// Runs all jobs. Jobs must be in order of submission. Equal inputs give equal schedules.
queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting);

}  // namespace nvlsim
