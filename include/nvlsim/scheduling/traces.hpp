// Reads jobs from files: recorded queues of clusters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/scheduling/jobs.hpp"

namespace nvlsim {

/// Format names in scenarios: "slurm", "swf", "philly", "helios", "acme", "openb", "spot" and "nvlsim".
/// docs/scheduling.md#traces describes them.
const std::vector<std::string>& job_formats();

/// How to read a job file.
struct job_file_options {
  std::string format;  ///< one of `job_formats`; "": detected from the file's beginning
  std::optional<double>
      limit_over_run;  ///< requested time over run time, for files without limits; none: no limits
};

/// Reads jobs from `text`, the content of a file that messages call `file`. The first submission is at time 0,
/// except in files with `submit_s`. Jobs without GPUs, run or submission time are left out and counted in `notes`.
/// Bad lines are reported in `problems`, at most 20 of them.
job_list read_jobs_text(std::string_view text, const std::string& file, const job_file_options& options,
                        diagnostics& problems);

}  // namespace nvlsim
