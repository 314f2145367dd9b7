#include "nvlsim/serving/pools.hpp"

#include <algorithm>

#include "nvlsim/serving/cache_format.hpp"
#include "nvlsim/serving/rank_weights.hpp"

namespace nvlsim {

inference_workload prefill_workload(const inference_workload& w) {
  inference_workload out = w;
  const pool_layout& pool = w.prefill_pool.value();
  out.prefill_pool.reset();
  static_cast<rank_counts&>(out) = pool;
  out.engine = pool.engine;
  out.usual = pool.usual;
  return out;
}

inference_workload decode_workload(const inference_workload& w) {
  inference_workload out = w;
  out.prefill_pool.reset();
  out.prompts_cached = false;
  return out;
}

int inference_workload::gpus() const {
  const int prefill = prefill_pool ? prefill_pool->gpus_per_replica() * prefill_pool->replicas : 0;
  return gpus_per_replica() * replicas + prefill;
}

// Each rank sends its part of the prompt's cache. Ranks with a latent cache all hold it whole and send a share
// each.
priced_transfer kv_transfer(const serving_case& c, double tokens, std::int64_t distance) {
  const auto& [p, s, m, w] = c;
  const inference_workload from = prefill_workload(w);
  double size = 0;
  for (const layer_slice& l : slice_layers(m, ranks_of(from))) {
    const double kept = l.windowed() ? std::min(tokens, static_cast<double>(l.spec.window)) : tokens;
    const bool shared = l.spec.attention == attention_kind::mla || l.spec.attention == attention_kind::compressed;
    const double share = shared ? from.tp : 1;
    size += l.layers * (kept * cached_bytes(l, w.kv_cache, s.inference->latents).all() / share + l.state_bytes);
  }
  const int domains = w.gpus() <= p.gpus_per_rack() ? 1 : 2;
  return price_transfer(s.collectives, p, collective::send_recv, bytes::from_base(size / from.pp),
                        {.ranks = 2, .domains = domains, .stride = distance});
}

}  // namespace nvlsim
