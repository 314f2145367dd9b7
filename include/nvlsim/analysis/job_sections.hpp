// Sections of the result of jobs that share a fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// A job that ran beside others and, on the same fabric, alone.
struct shared_job {
  std::string name, kind;  ///< "training" or "collective"
  std::int64_t gpus = 0;
  seconds start, time, alone;
  std::optional<seconds> exposed, exposed_alone;  ///< exposed communication, of training

  double slowdown() const { return alone > seconds{} ? time / alone : 1; }
};

/// Fills metrics and `breakdown.jobs`.
void add_jobs_sections(result& r, const std::vector<shared_job>& jobs, seconds makespan);

}  // namespace nvlsim
