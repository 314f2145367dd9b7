// Interface for node failures and for jobs that control their own nodes.
#pragma once

#include <vector>

#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// What a world may do with the queue's cluster. Nodes and jobs are indices.
class queue_control {
 public:
  virtual ~queue_control() = default;
  /// Takes a node out of service. Jobs that the queue plays leave it; steered ones stay until they are moved.
  virtual void take_down(int node) = 0;
  /// Takes one reason away for which a node is out.
  virtual void bring_up(int node) = 0;
  /// A steered job is done.
  virtual void finish(int job) = 0;
  /// A steered job goes on without some nodes, and with others, which are free. Both ascending.
  virtual void move(int job, const std::vector<int>& lost, const std::vector<int>& gained) = 0;
  /// Evicts the jobs of a node if all of them are weaker than `job` and preemption is on. Whether it did.
  virtual bool clear_for(int job, int node) = 0;
};

/// Steers jobs and breaks nodes. Its own clock runs between those of the queue: at equal times it comes first.
class cluster_world {
 public:
  virtual ~cluster_world() = default;
  /// When something is to happen next, s; infinity: nothing.
  virtual double next() const = 0;
  /// Executes the event due at `next()`.
  virtual void happen(queue_control& q) = 0;
  /// Whether the world decides how long a job stays. The queue plays the others.
  virtual bool steers(int job) const = 0;
  /// A job got nodes, or left them. Must not call the queue.
  virtual void hold(int job, double now, const std::vector<int>& nodes) = 0;
  virtual void release(int job, double now, const std::vector<int>& nodes, attempt_end how) = 0;
};

/// `schedule_jobs` with a world, which outlives the call. The setting has no failures of its own.
queue_schedule schedule_jobs(const job_list& jobs, const queue_setting& setting, cluster_world& world);

}  // namespace nvlsim
