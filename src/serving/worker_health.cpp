#include "nvlsim/serving/worker_health.hpp"

#include <algorithm>

namespace nvlsim {
namespace {

/// First GPU of a replica of `each` GPUs among those that begin at the GPU `base`.
std::int64_t first_gpu(std::int64_t replica, std::int64_t each, std::int64_t rack, std::int64_t base) {
  const std::int64_t in_rack = rack / each;
  if (in_rack == 0) return (base + rack - 1) / rack * rack + replica * ((each + rack - 1) / rack) * rack;
  const std::int64_t there = (base % rack + each - 1) / each;  // places of this rack that are taken
  const std::int64_t place = base / rack * in_rack + std::min(there, in_rack) + replica;
  return place / in_rack * rack + place % in_rack * each;
}

const rank_counts& ranks_of_pool(const inference_workload& w, bool prefills) {
  return prefills ? static_cast<const rank_counts&>(*w.prefill_pool) : w;
}

}  // namespace

std::int64_t workers_of(const inference_workload& w, bool prefills) {
  if (prefills && !w.prefill_pool) return 0;
  const rank_counts& pool = ranks_of_pool(w, prefills);
  return std::int64_t{pool.replicas} * pool.pp;
}

gpu_span replica_of(std::int64_t worker, bool prefills, std::int64_t rack, const inference_workload& w) {
  const rank_counts& pool = ranks_of_pool(w, prefills);
  const std::int64_t base =
      prefills ? first_gpu(w.replicas - 1, w.gpus_per_replica(), rack, 0) + w.gpus_per_replica() : 0;
  return {first_gpu(worker / pool.pp, pool.gpus_per_replica(), rack, base), pool.gpus_per_replica()};
}

gpu_span worker_place(std::int64_t worker, bool prefills, std::int64_t rack, const inference_workload& w) {
  const rank_counts& pool = ranks_of_pool(w, prefills);
  const std::int64_t stage = std::int64_t{pool.tp} * pool.attention_dp;
  return {replica_of(worker, prefills, rack, w).first + worker % pool.pp * stage, stage};
}

hardware_health health_of(std::int64_t worker, bool prefills, const platform& p, const inference_workload& w) {
  if (w.degraded.empty()) return {};
  const std::int64_t rack = p.gpus_per_rack();
  const gpu_span replica = replica_of(worker, prefills, rack, w);
  const std::int64_t first = replica.first, last = replica.last();
  const auto meets = [](const std::vector<degradation::range>& ranges, std::int64_t a, std::int64_t b) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) { return r.first <= b && a <= r.last; });
  };
  hardware_health out;
  for (const degradation& d : w.degraded)
    if (meets(d.gpus, first, last) || meets(d.racks, first / rack, last / rack)) out = worse(out, d.health);
  return out;
}

platform seen_with(const hardware_health& h, const platform& p) {
  platform out = p;
  out.gpu.nvlink = p.gpu.nvlink * h.nvlink;
  out.fabric.nic_bandwidth = p.fabric.nic_bandwidth * h.nic;
  return out;
}

}  // namespace nvlsim
