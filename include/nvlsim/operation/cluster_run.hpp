// Many jobs on one cluster: training, services and batch jobs share trays, failures, spares and the queue.
//
// Each training job or service is an `operation_state` with its own view of the cluster: trays that other jobs
// hold count as broken, and free trays as spares. The queue (`schedule_jobs`) assigns trays, and takes them back
// for jobs of a higher tier. One source of failures affects all jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/operation/operation_run.hpp"
#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// A training job or a service.
struct cluster_member {
  std::string name;
  std::string queue;     ///< the queue whose rules apply; "": none
  bool service = false;  ///< runs to the end; its progress is the time its replicas serve
  seconds start;         ///< time of submission
  operation_setup life;  ///< includes the cluster's failures and shape
};

struct cluster_setup {
  std::vector<cluster_member> members;
  job_list batch;       ///< played by the queue; these jobs leave broken nodes at once
  queue_setting queue;  ///< without its own failures; requires a duration
  cluster_shape shape;
  failure_model failures;  ///< as returned by `scaled`
  maintenance_plan maintenance;
};

struct cluster_outcome {
  job_list jobs;                           ///< all jobs, by time of submission
  std::vector<std::int32_t> job_of;        ///< by member: its index in `jobs`
  queue_schedule schedule;                 ///< its `time` covers work of batch jobs, down time and idle time
  std::vector<operation_outcome> members;  ///< GPU-seconds of each member while it held trays
  operation_outcome cluster;               ///< failures by component, over all trays
  std::vector<tray_repair> repairs;        ///< in order of their starts
  std::int64_t repairs_left_out = 0;       ///< later ones
};

/// Simulates the cluster for the queue's duration. Equal inputs give equal outcomes.
cluster_outcome run_cluster(const cluster_setup& c, std::uint64_t seed);

}  // namespace nvlsim
