#include "nvlsim/scenario/job_places.hpp"

#include <algorithm>

#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {
namespace {

placement place_of(const scenario& job) {
  const auto* t = std::get_if<training_workload>(&job.workload);
  return t ? t->place : std::get<collective_workload>(job.workload).place;
}

}  // namespace

std::int64_t ranks_of(const scenario& job) {
  const auto* t = std::get_if<training_workload>(&job.workload);
  return t ? t->par.gpus() : std::get<collective_workload>(job.workload).gpus;
}

std::int64_t racks_needed(const scenario& job) {
  const placement place = place_of(job);
  std::int64_t last = 0;
  for (std::int64_t r = 0, n = ranks_of(job); place.table && r < n; ++r) last = std::max(last, place.domain_of(r));
  return place.table ? last + 1 : (ranks_of(job) + place.gpus_per_domain - 1) / place.gpus_per_domain;
}

std::int64_t gpus_used_per_rack(const scenario& job) {
  return std::min(place_of(job).gpus_per_domain, ranks_of(job));
}

std::vector<std::int64_t> gpus_of(const cluster_job& job, const platform& p) {
  const placement place = place_of(*job.alone);
  const std::int64_t n = ranks_of(*job.alone), rack = p.gpus_per_rack();
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < n; ++r) {
    const std::int64_t within = place.table ? place.table->gpu_of(r) % rack : r % place.gpus_per_domain;
    out.push_back(job.racks.empty()
                      ? place.table->gpu_of(r)
                      : job.racks[static_cast<std::size_t>(place.domain_of(r))] * rack + job.first_gpu + within);
  }
  return out;
}

}  // namespace nvlsim
