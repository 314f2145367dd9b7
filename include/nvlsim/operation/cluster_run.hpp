// Many jobs on one cluster: training, services and batch jobs share trays, failures, spares and the queue.
//
// Each training job or service is an `operation_state` whose machine is the cluster as it sees it: trays that
// others hold are out for it, free ones are its spares. The queue (`schedule_jobs`) gives trays, and takes them
// for jobs of a higher tier; failures come from one source and befall all.
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
  std::string queue;     ///< whose rules it has; "": none
  bool service = false;  ///< serves to the end: its progress is the time of its replicas
  seconds start;         ///< when it is submitted
  operation_setup life;  ///< with the failures and the shape of the cluster
};

struct cluster_setup {
  std::vector<cluster_member> members;
  job_list batch;       ///< that the queue plays: they leave broken nodes at once
  queue_setting queue;  ///< without failures of its own; its duration is given
  cluster_shape shape;
  failure_model failures;  ///< scaled
  maintenance_plan maintenance;
};

struct cluster_outcome {
  job_list jobs;                           ///< all, by submission
  std::vector<std::int32_t> job_of;        ///< by member: its index in `jobs`
  queue_schedule schedule;                 ///< its `time` has the batch jobs' work, what is down, and what is idle
  std::vector<operation_outcome> members;  ///< GPU-seconds of each while it held trays
  operation_outcome cluster;               ///< failures by component, over all trays
};

/// Plays the cluster for the queue's duration. Equal inputs give equal outcomes.
cluster_outcome run_cluster(const cluster_setup& c, std::uint64_t seed);

}  // namespace nvlsim
