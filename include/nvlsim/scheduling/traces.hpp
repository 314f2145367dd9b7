// Jobs out of files: what clusters recorded of their queues.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/scheduling/jobs.hpp"

namespace nvlsim {

/// Names of formats, as scenarios write them: "slurm", "swf", "philly", "helios", "acme", "openb", "spot" and
/// "nvlsim". They are described in docs/scheduling.md#traces.
const std::vector<std::string>& job_formats();

struct job_file_options {
  std::string format;  ///< one of `job_formats`; "": told by the file's beginning
  std::optional<double>
      limit_over_run;  ///< asked time over run time, where the file has no limits; none: no limits
};

/// Reads jobs from `text`, the content of a file that messages call `file`. The first submission is time 0, but
/// for files with `submit_s`. Jobs without GPUs, without a run or without a time are left out and counted in
/// notes. Bad lines are problems, of which at most 20 are reported.
job_list read_jobs_text(std::string_view text, const std::string& file, const job_file_options& options,
                        diagnostics& problems);

}  // namespace nvlsim
