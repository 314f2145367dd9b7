#include "training/pass_cache.hpp"

#include <utility>

namespace nvlsim {
namespace {

std::int64_t bits_of(const recompute_spec& r) {
  std::int64_t bits = 0;
  for (const bool on : {r.full, r.block, r.core_attention, r.layernorm, r.mlp, r.activation, r.mla_up_proj, r.moe,
                        r.shared_experts, r.hyper_connections})
    bits = 2 * bits + (on ? 1 : 0);
  return bits;
}

}  // namespace

pass_key key_of(const training_workload& w) {
  const parallelism& p = w.par;
  const bool fsdp = w.sharding == data_parallel_sharding::fsdp;
  const bool both_ends = fsdp && w.schedule == pipeline_schedule::dualpipe;  // in the group of gradients
  return {p.tp,
          p.pp,
          p.cp,
          p.dp,
          p.ep,
          p.etp,
          p.sequence_parallel ? 1 : 0,
          w.micro_batch_size,
          bits_of(w.recompute),
          w.offload_layers,
          as_deepseek(w) ? 1 : 0,
          (fsdp ? 1 : 0) + (both_ends ? 2 : 0),
          static_cast<std::int64_t>(w.gemm_precision),
          static_cast<std::int64_t>(w.task),
          w.place.gpus_per_domain,
          0,
          0,
          0};
}

std::shared_ptr<const costed_parts> pass_cache::pass(const training_context& c, std::int64_t kind, pass_kind what,
                                                     bool paired, const std::function<costed_parts()>& make) {
  pass_key key = key_of(c.workload);
  key[key.size() - 3] = kind;
  key[key.size() - 2] = static_cast<std::int64_t>(what);
  key[key.size() - 1] = paired ? 1 : 0;
  part& here = parts_[pass_key_hash()(key) % parts];
  {
    const std::lock_guard lock(here.using_it);
    if (const auto it = here.known.find(key); it != here.known.end()) return it->second;
  }
  auto made = std::make_shared<const costed_parts>(make());
  const std::lock_guard lock(here.using_it);
  if (here.known.size() >= max_passes_of_part) here.known.clear();
  ++here.priced;
  return here.known.insert_or_assign(key, std::move(made)).first->second;
}

layer_kinds pass_cache::kinds(const model& m, const training_workload& w) {
  const std::lock_guard lock(looking_up_);
  if (!kinds_) kinds_ = kinds_of(m, w);
  layer_kinds out = *kinds_;
  for (training_workload& x : out.workloads) {
    const precision format = x.gemm_precision;
    x = w;
    x.gemm_precision = format;
  }
  return out;
}

std::shared_ptr<const kernel_profile> pass_cache::kernels(const stack& s, const gpu_spec& gpu) {
  const std::lock_guard lock(looking_up_);
  if (!kernels_) kernels_ = std::make_shared<const kernel_profile>(kernels_for(s, gpu));
  return kernels_;
}

std::size_t pass_cache::priced() const {
  std::size_t all = 0;
  for (const part& p : parts_) {
    const std::lock_guard lock(p.using_it);
    all += p.priced;
  }
  return all;
}

}  // namespace nvlsim
