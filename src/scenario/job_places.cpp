#include "nvlsim/scenario/job_places.hpp"

#include <algorithm>

#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/worker_health.hpp"

namespace nvlsim {
namespace {

placement place_of(const scenario& job) {
  const auto* t = std::get_if<training_workload>(&job.workload);
  return t ? t->place : std::get<collective_workload>(job.workload).place;
}

/// The GPUs of a server by worker, numbered from the first of its first rack.
std::vector<std::int64_t> gpus_of_server(const inference_workload& w, std::int64_t rack) {
  std::vector<std::int64_t> out;
  for (const bool prefills : {false, true})
    for (std::int64_t i = 0, n = workers_of(w, prefills); i < n; ++i) {
      const gpu_span span = worker_place(i, prefills, rack, w);
      for (std::int64_t g = span.first; g <= span.last(); ++g) out.push_back(g);
    }
  return out;
}

}  // namespace

std::int64_t ranks_of(const scenario& job) {
  if (const auto* i = std::get_if<inference_workload>(&job.workload)) return i->gpus();
  const auto* t = std::get_if<training_workload>(&job.workload);
  return t ? t->par.gpus() : std::get<collective_workload>(job.workload).gpus;
}

std::int64_t racks_needed(const scenario& job) {
  if (const auto* i = std::get_if<inference_workload>(&job.workload)) {
    const std::int64_t rack = job.platform.gpus_per_rack();
    std::int64_t last = 0;
    for (const std::int64_t g : gpus_of_server(*i, rack)) last = std::max(last, g / rack);
    return last + 1;
  }
  const placement place = place_of(job);
  std::int64_t last = 0;
  for (std::int64_t r = 0, n = ranks_of(job); place.table && r < n; ++r) last = std::max(last, place.domain_of(r));
  return place.table ? last + 1 : (ranks_of(job) + place.gpus_per_domain - 1) / place.gpus_per_domain;
}

std::int64_t gpus_used_per_rack(const scenario& job) {
  if (const auto* i = std::get_if<inference_workload>(&job.workload)) {
    const std::int64_t rack = job.platform.gpus_per_rack();
    std::int64_t last = 0;
    for (const std::int64_t g : gpus_of_server(*i, rack)) last = std::max(last, g % rack);
    return last + 1;
  }
  return std::min(place_of(job).gpus_per_domain, ranks_of(job));
}

std::vector<std::int64_t> gpus_of(const cluster_job& job, const platform& p) {
  const std::int64_t rack = p.gpus_per_rack();
  if (const auto* i = std::get_if<inference_workload>(&job.alone->workload)) {
    std::vector<std::int64_t> out = gpus_of_server(*i, rack);
    for (std::int64_t& g : out)
      g = job.racks[static_cast<std::size_t>(g / rack)] * rack + job.first_gpu + g % rack;
    return out;
  }
  const placement place = place_of(*job.alone);
  const std::int64_t n = ranks_of(*job.alone);
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
