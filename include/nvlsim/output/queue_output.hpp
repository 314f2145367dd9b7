// A cluster's queue as it was played: a table of jobs, and a trace with a process a rack.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scheduling/schedule.hpp"

namespace nvlsim {

/// The jobs as CSV, a line each in order of submission, which `read_jobs_text` reads again.
/// docs/scheduling.md#jobs-csv has the columns.
std::string jobs_csv(const job_list& jobs, const queue_setting& setting, const queue_schedule& schedule);

/// "r02n[00-05],r03n01": nodes as Slurm's hostlists write them.
std::string host_list(const queue_cluster& cluster, const std::vector<int>& nodes);

/// Chrome trace JSON: a process for each rack, a thread for each GPU of a node, and a slice for each stay of a job
/// on a node, on the first GPU that it has there. `metadata` has members of the document's metadata. Throws
/// io_error.
void write_queue_trace(std::ostream& out, const job_list& jobs, const queue_setting& setting,
                       const queue_schedule& schedule, const value& metadata);

}  // namespace nvlsim
