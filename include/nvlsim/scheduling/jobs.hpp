// Jobs that wait in the queue of a cluster, and the cluster that they wait for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Racks of nodes of GPUs. Nodes are numbered rack by rack.
struct queue_cluster {
  int racks = 0;
  int nodes_per_rack = 0;  ///< compute trays of a rack
  int gpus_per_node = 0;

  int nodes() const { return racks * nodes_per_rack; }
  std::int64_t gpus() const { return std::int64_t{nodes()} * gpus_per_node; }
  bool operator==(const queue_cluster&) const = default;
};

/// How a job ends of itself, if the cluster lets it.
enum class job_outcome { completed, failed, cancelled };

struct batch_job {
  std::string name;
  int user = 0;   ///< index into job_list::users
  int queue = 0;  ///< index into job_list::queues
  seconds submit;
  seconds run;               ///< on its GPUs, undisturbed
  seconds limit;             ///< the time it asks for, after which it is stopped; 0: none
  std::int32_t gpus = 0;     ///< at least 1
  std::int32_t nodes = 0;    ///< over which its GPUs are spread evenly; 0: as few as hold them
  std::int32_t segment = 0;  ///< nodes that must share a rack, as `sbatch --segment`; 0: as the policy says
  job_outcome outcome = job_outcome::completed;

  bool operator==(const batch_job&) const = default;
};

/// Jobs by time of submission.
struct job_list {
  std::vector<batch_job> jobs;
  std::vector<std::string> users, queues;
  std::vector<std::string> notes;  ///< what was left out, and what was assumed

  bool operator==(const job_list&) const = default;
};

/// What a job takes of a cluster.
struct job_demand {
  int nodes = 0;
  int gpus_each = 0;  ///< GPUs that it takes of each node
  int segment = 0;    ///< nodes that must share a rack; 0: none need

  std::int64_t gpus() const { return std::int64_t{nodes} * gpus_each; }
  bool operator==(const job_demand&) const = default;
};

}  // namespace nvlsim
