// Interface for node failures and for jobs that control their own nodes.
#pragma once

#include <vector>

#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// Operations of a world on the queue's cluster. Nodes and jobs are indices.
class queue_control {
 public:
  virtual ~queue_control() = default;
  /// Takes a node out of service. Jobs run by the queue leave it; steered jobs stay until they are moved.
  virtual void take_down(int node) = 0;
  /// Removes one of the reasons why a node is out of service.
  virtual void bring_up(int node) = 0;
  /// Ends a steered job.
  virtual void finish(int job) = 0;
  /// Replaces nodes of a steered job by free ones. Both lists are ascending.
  virtual void move(int job, const std::vector<int>& lost, const std::vector<int>& gained) = 0;
  /// Evicts the jobs of a node if preemption is on and `job` may preempt all of them. Returns whether it did.
  virtual bool clear_for(int job, int node) = 0;
};

/// Steers jobs and breaks nodes. Its events interleave with those of the queue; at equal times they come first.
class cluster_world {
 public:
  virtual ~cluster_world() = default;
  /// Time of the next event, s; infinity: none.
  virtual double next() const = 0;
  /// Executes the event due at `next()`.
  virtual void happen(queue_control& q) = 0;
  /// Whether the world decides how long a job runs. The queue runs all other jobs.
  virtual bool steers(int job) const = 0;
  /// Called when a job gets nodes or leaves them. Must not call the queue.
  virtual void hold(int job, double now, const std::vector<int>& nodes) = 0;
  virtual void release(int job, double now, const std::vector<int>& nodes, attempt_end how) = 0;
};

/// `schedule_jobs` with a world, which must outlive the call. Requires a setting without its own failures.
queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting, cluster_world& world);

}  // namespace nvlsim
