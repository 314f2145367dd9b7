// Sections of the result of jobs that share a fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Means over the requests of a server, as its clients see them.
struct served_times {
  seconds request;                   ///< from the arrival to the last token
  seconds first_token;               ///< TTFT
  std::optional<seconds> per_token;  ///< TPOT; nothing if no output has two tokens
};

/// A job that ran beside others and, on the same fabric, alone.
struct shared_job {
  std::string name, kind;  ///< "training", "inference" or "collective"
  std::int64_t gpus = 0, repeat = 1;
  seconds start;
  seconds time, alone;                            ///< mean of the times that it runs
  std::optional<seconds> exposed, exposed_alone;  ///< exposed communication, of training

  std::optional<served_times> served, served_alone;  ///< of inference
  result own;  ///< of inference beside the others: metrics, status, reasons and notes as of a scenario of its own

  /// Of a server its requests' mean time over that alone, because a load that comes by itself ends when it ends.
  double slowdown() const {
    const seconds here = served ? served->request : time, there = served_alone ? served_alone->request : alone;
    return there > seconds{} ? here / there : 1;
  }
};

/// Fills metrics and `breakdown.jobs`. Each server has a status of its own.
void add_jobs_sections(result& r, const std::vector<shared_job>& jobs, seconds makespan);

}  // namespace nvlsim
