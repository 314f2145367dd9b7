// Jobs as they are read one by one.
#pragma once

#include <map>
#include <string>

#include "nvlsim/scheduling/traces.hpp"

namespace nvlsim {

/// GPUs of a job that are still believed.
constexpr long most_gpus = 10'000'000;

/// A job with the names of its user and queue, and its times in the file's own clock.
struct read_job {
  std::string name, user, queue;
  double submit = 0, run = 0, limit = 0;
  long gpus = 0, nodes = 0, segment = 0;
  job_outcome outcome = job_outcome::completed;
};

/// Collects jobs, gives names numbers and counts what is left out.
class job_builder {
 public:
  explicit job_builder(const job_file_options& options) : options_(options) {}

  void add(const read_job& j);
  /// A job that cannot be scheduled, and why: "without GPUs".
  void leave_out(const char* why) { ++left_out_[why]; }
  bool empty() const { return out_.jobs.empty() && left_out_.empty(); }
  /// The jobs in order of submission; `absolute`: times are from a calendar, and the first is moved to 0.
  job_list finish(bool absolute);

 private:
  static int number_of(const std::string& name, std::map<std::string, int>& known,
                       std::vector<std::string>& names);

  job_file_options options_;
  job_list out_;
  std::map<std::string, int> users_, queues_;
  std::map<std::string, long> left_out_;
};

/// "COMPLETED", "Pass", "CANCELLED by 0", "Terminated" and the like.
job_outcome outcome_of(std::string_view state);

/// Philly's `cluster_job_log`: an array of jobs with their attempts.
void read_philly(std::string_view text, const std::string& file, job_builder& out, diagnostics& problems);

}  // namespace nvlsim
