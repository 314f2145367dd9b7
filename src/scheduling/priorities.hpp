// The order of waiting jobs.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// Orders jobs by tier, then by priority, then by submission. Priorities are those of Slurm's
/// priority/multifactor: a weighted sum of age, fair share, size and queue.
class job_order {
 public:
  job_order(const job_list& jobs, const queue_setting& setting);

  /// Inserts a job by its priority.
  void insert(std::vector<int>& waiting, int job, double now);
  /// Updates priorities and sorts, if an update is due.
  void sort(std::vector<int>& waiting, double now);
  /// Accounts for GPUs that a job took, or gave back if `gpus` is negative.
  void hold(int job, std::int64_t gpus, double now);

 private:
  struct user_time {
    double used = 0;  ///< decayed GPU-seconds up to `since`
    double gpus = 0;
    double since = 0;
  };
  void bring_up_to(user_time& u, double now) const;
  double priority_of(int job, double now) const;
  bool before(int a, int b) const;

  const std::vector<batch_job>& jobs_;
  priority_policy policy_;
  double decay_ = 0;              ///< decay rate of used time, per second
  double gpus_ = 0;               ///< GPUs of the cluster
  std::vector<int> tier_;         ///< by queue
  std::vector<double> of_queue_;  ///< factor by queue
  std::vector<user_time> users_;
  std::vector<double> fair_share_;  ///< factor by user
  std::vector<double> priority_;    ///< by job
  double sorted_at_ = -1;
};

}  // namespace nvlsim
