// The jobs on a cluster's nodes at one time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// A job on its nodes.
struct running_job {
  int job = 0;
  job_demand demand;
  double start = 0, limit_end = 0;  ///< `limit_end`: the latest time at which it ends
  std::size_t attempt = 0;          ///< index into queue_schedule::attempts
};

/// Free GPUs and jobs by node, and the sums that metrics need. The cost of a change depends only on what it
/// touches.
class cluster_state {
 public:
  explicit cluster_state(const queue_cluster& shape);

  const queue_cluster& shape() const { return shape_; }
  /// GPUs available to a new job, by node; 0 where the node is down.
  std::span<const std::int16_t> free() const { return free_; }
  bool down(int node) const { return down_[static_cast<std::size_t>(node)] > 0; }
  /// Whether enough nodes have enough free GPUs, in any racks.
  bool has_room(const job_demand& d) const;
  std::int64_t idle_gpus() const { return idle_; }
  std::int64_t down_gpus() const { return down_gpus_; }
  std::int64_t idle_gpus_of_idle_racks() const {
    return idle_racks_ * shape_.nodes_per_rack * shape_.gpus_per_node;
  }
  std::span<const int> jobs_on(int node) const { return jobs_[static_cast<std::size_t>(node)]; }

  /// Puts a job on nodes, or takes it off them.
  void hold(int job, int gpus_each, std::span<const int> nodes);
  void release(int job, int gpus_each, std::span<const int> nodes);
  /// Adds or removes a reason why a node is out of service. It is up when no reason is left.
  void take_down(int node);
  void bring_up(int node);

 private:
  void change(int node, int held, int down);
  void count(int node, int sign);

  queue_cluster shape_;
  std::vector<std::int16_t> held_, free_;
  std::vector<int> down_;
  std::vector<std::vector<int>> jobs_;
  std::vector<std::int64_t> nodes_with_;  ///< number of nodes, by free GPUs
  std::vector<int> busy_in_rack_;         ///< by rack: nodes that are down or hold a job
  std::int64_t idle_ = 0, down_gpus_ = 0, idle_racks_ = 0;
};

}  // namespace nvlsim
