// A cluster's queue as it was played: a table of jobs, and a trace with a process a rack.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// The jobs as CSV, a line each in order of submission, which `read_jobs_text` reads again.
/// docs/scheduling.md#jobs-csv has the columns.
std::string jobs_csv(const job_list& jobs, const queue_setting& setting, const queue_schedule& schedule);

/// "r02n[00-05],r03n01": nodes as Slurm's hostlists write them.
std::string host_list(const queue_cluster& cluster, const std::vector<int>& nodes);

/// A node out of service, and why.
struct node_repair {
  int node = 0;
  double begin_s = 0, end_s = 0;
  std::string what;
};

/// A cluster as it was played.
struct played_cluster {
  job_list jobs;
  queue_setting setting;
  queue_schedule schedule;
  std::vector<node_repair> repairs;  ///< those of a node follow each other
  std::vector<state_track> lives;    ///< of jobs that train and of services: what each did
  std::vector<std::string> left_out;
};

/// Chrome trace JSON: a process for each rack, a thread for each GPU of a node, and a slice for each stay of a job
/// on a node, on the first GPU that it has there; a thread for each node that was repaired; and a process for each
/// of `lives`. `metadata` has members of the document's metadata. Throws io_error.
void write_queue_trace(std::ostream& out, const played_cluster& c, const value& metadata);

}  // namespace nvlsim
