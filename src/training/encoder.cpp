#include "training/encoder.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim {

std::optional<image_encoder> image_encoder_of(const model& m, const training_workload& w) {
  const auto at = std::find_if(m.towers.begin(), m.towers.end(),
                               [](const tower_spec& t) { return t.name == "vision" && t.layers > 0; });
  if (!w.images || !(w.images->count > 0) || at == m.towers.end()) return {};
  const tower_spec& t = *at;
  image_encoder e;
  const double samples = static_cast<double>(w.seq_length) / mean_length(sequences_of(w));  // packed in a window
  e.tokens = w.images->count * samples * static_cast<double>(w.images->tokens_each * w.micro_batch_size);
  e.projector = static_cast<double>(t.projector);
  e.joint = static_cast<double>(t.hidden) * t.patches_per_token;
  layer_spec l;
  l.heads = l.kv_heads = t.heads;
  l.head_dim = std::max<std::int64_t>(1, t.hidden / t.heads);
  l.ffn_hidden = t.ffn_hidden;
  l.gated_mlp = t.gated_mlp;
  l.bidirectional = true;
  e.net.name = m.name + ", " + t.name;
  e.net.hidden = t.hidden;
  e.net.layers.assign(static_cast<std::size_t>(t.layers), l);
  e.work.seq_length = std::max<std::int64_t>(1, std::llround(e.tokens * t.patches_per_token));
  e.work.global_batch_size = 1;
  e.work.packed = token_lengths{.mean = static_cast<double>(w.images->tokens_each) * t.patches_per_token};
  e.work.gemm_precision = bytes_per_element(w.gemm_precision) < 2 ? precision::bf16 : w.gemm_precision;
  e.work.sharding = data_parallel_sharding::replicated;
  e.work.recompute.full = w.recompute.full;
  e.work.graphs = w.graphs == cuda_graphs::full_iteration ? w.graphs : cuda_graphs::none;
  return e;
}

bool trains_towers(const training_workload& w) { return w.task != training_task::lora && !w.freeze_towers; }

}  // namespace nvlsim
