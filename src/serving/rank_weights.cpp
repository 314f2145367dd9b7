#include "nvlsim/serving/rank_weights.hpp"

#include <algorithm>

namespace nvlsim {

rank_layout ranks_of(const inference_workload& w) { return {w.tp, w.ep, w.tp * w.attention_dp, w.state_cache}; }

precision weights_of(const inference_workload& w, weight_role r) {
  switch (r) {
    case weight_role::dense:
      return w.weights;
    case weight_role::attention:
      return w.attention_weights.value_or(w.weights);
    case weight_role::expert:
      return w.expert_weights.value_or(w.weights);
    case weight_role::sixteen_bit:
      break;
  }
  return precision::bf16;
}

bool adapted(const rank_gemm& g) { return g.role == weight_role::dense || g.role == weight_role::attention; }

inference_workload draft_workload(const inference_workload& w) {
  inference_workload out = w;
  out.weights = precision::bf16;
  out.attention_weights.reset();
  out.expert_weights.reset();
  out.drafts = {};
  out.adapters = {};
  out.engine.cpu_offload_gb.reset();  // which is of the model's weights
  out.images.reset();
  out.ep = 1;
  return out;
}

model eagle_layer(const model& m) {
  constexpr std::int64_t head = 128, heads_per_kv_head = 4, vocabulary = 32000;
  constexpr double inner = 3.5;  // of the hidden size, as in Llama 3
  model out;
  out.name = "EAGLE-3 of " + m.name;
  out.model_type = "llama";
  out.hidden = m.hidden;
  out.vocab = std::min(m.vocab, vocabulary);
  layer_spec l;
  l.heads = std::max<std::int64_t>(1, m.hidden / head);
  l.kv_heads = std::max<std::int64_t>(1, l.heads / heads_per_kv_head);
  l.head_dim = head;
  l.ffn_hidden = static_cast<std::int64_t>(inner * static_cast<double>(m.hidden));
  out.layers.push_back(l);
  return out;
}

}  // namespace nvlsim
