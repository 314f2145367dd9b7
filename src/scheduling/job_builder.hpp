// Builds a list of jobs that are read one by one.
#pragma once

#include <map>
#include <string>

#include "nvlsim/scheduling/traces.hpp"

namespace nvlsim {

/// The most GPUs of a job that is not treated as an error.
constexpr long max_gpus = 10'000'000;

/// A job with the names of its user and queue, and times by the file's clock.
struct read_job {
  std::string name, user, queue;
  double submit = 0, run = 0, limit = 0;
  long gpus = 0, nodes = 0, segment = 0;
  job_outcome outcome = job_outcome::completed;
};

/// Collects jobs, numbers the names, and counts omitted jobs.
class job_builder {
 public:
  explicit job_builder(const job_file_options& options) : options_(options) {}

  /// Adds a job, or leaves it out if it cannot be scheduled.
  void add(const read_job& j);
  /// Counts a job that cannot be scheduled, with the reason: "without GPUs".
  void leave_out(const char* why) { ++left_out_[why]; }
  bool empty() const { return out_.jobs.empty() && left_out_.empty(); }
  /// The jobs in order of submission. `absolute`: times are calendar times, and the first is moved to 0.
  job_list finish(bool absolute);

 private:
  static int number_of(const std::string& name, std::map<std::string, int>& known,
                       std::vector<std::string>& names);

  job_file_options options_;
  job_list out_;
  std::map<std::string, int> users_, queues_;
  std::map<std::string, long> left_out_;
};

/// The outcome for a state such as "COMPLETED", "Pass", "CANCELLED by 0" or "Terminated".
job_outcome outcome_of(std::string_view state);

/// Reads Philly's `cluster_job_log`: an array of jobs with their attempts.
void read_philly(std::string_view text, const std::string& file, job_builder& out, diagnostics& problems);

}  // namespace nvlsim
