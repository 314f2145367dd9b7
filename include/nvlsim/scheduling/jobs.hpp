// Jobs in the queue of a cluster, and the shape of the cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A cluster of racks. Nodes are numbered rack by rack.
struct queue_cluster {
  int racks = 0;
  int nodes_per_rack = 0;  ///< compute trays per rack
  int gpus_per_node = 0;

  int nodes() const { return racks * nodes_per_rack; }
  std::int64_t gpus() const { return std::int64_t{nodes()} * gpus_per_node; }
  bool operator==(const queue_cluster&) const = default;
};

/// How a job ends if the cluster does not interrupt it.
enum class job_outcome { completed, failed, cancelled };

/// A job with a known run time.
struct batch_job {
  std::string name;
  int user = 0;   ///< index into job_list::users
  int queue = 0;  ///< index into job_list::queues
  seconds submit;
  seconds run;               ///< run time without interruptions
  seconds limit;             ///< requested time, after which it is stopped; 0: none
  std::int32_t gpus = 0;     ///< at least 1
  std::int32_t nodes = 0;    ///< nodes that share its GPUs evenly; 0: as few as possible
  std::int32_t segment = 0;  ///< nodes that must share a rack, like `sbatch --segment`; 0: set by the policy
  job_outcome outcome = job_outcome::completed;

  bool operator==(const batch_job&) const = default;
};

/// Jobs in order of submission.
struct job_list {
  std::vector<batch_job> jobs;
  std::vector<std::string> users, queues;
  std::vector<std::string> notes;  ///< omissions and assumptions

  bool operator==(const job_list&) const = default;
};

/// Resources that a job takes.
struct job_demand {
  int nodes = 0;
  int gpus_each = 0;  ///< GPUs per node
  int segment = 0;    ///< nodes that must share a rack; 0: no constraint

  std::int64_t gpus() const { return std::int64_t{nodes} * gpus_each; }
  bool operator==(const job_demand&) const = default;
};

}  // namespace nvlsim
