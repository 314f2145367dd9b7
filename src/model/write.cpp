#include <algorithm>
#include <array>
#include <iterator>

#include "nvlsim/model/load.hpp"

namespace nvlsim {
namespace {

value written_layer(const layer_spec& l) {
  value out{value::array{}};
  const std::int64_t numbers[] = {static_cast<int>(l.attention),
                                  l.heads,
                                  l.kv_heads,
                                  l.head_dim,
                                  l.window,
                                  l.sparse_keys,
                                  l.index_heads,
                                  l.index_dim,
                                  l.mla.q_lora_rank,
                                  l.mla.kv_lora_rank,
                                  l.mla.qk_nope_dim,
                                  l.mla.qk_rope_dim,
                                  l.mla.v_head_dim,
                                  l.compressed.q_lora_rank,
                                  l.compressed.o_lora_rank,
                                  l.compressed.o_groups,
                                  l.compressed.ratio,
                                  l.scan.heads,
                                  l.scan.head_dim,
                                  l.scan.state,
                                  l.scan.groups,
                                  l.scan.key_heads,
                                  l.scan.conv_kernel,
                                  l.scan.chunk,
                                  l.ffn_hidden,
                                  l.gated_mlp,
                                  l.moe.experts,
                                  l.moe.top_k,
                                  l.moe.expert_ffn,
                                  l.moe.shared_ffn,
                                  l.moe.latent,
                                  l.moe.balanced_by_bias,
                                  static_cast<int>(l.qk_norm),
                                  l.attention_gate,
                                  l.biased_clamped_activation};
  for (const std::int64_t n : numbers) out.items()->emplace_back(n);
  // Parts of later architectures, only where there are any.
  const std::int64_t later[] = {l.v_head_dim,  static_cast<int>(l.kv), l.head_gate,      l.post_norms,
                                l.layer_input, l.scan.gate_rank,       l.moe.groups - 1, l.moe.top_groups - 1};
  if (std::any_of(std::begin(later), std::end(later), [](std::int64_t n) { return n != 0; }))
    for (const std::int64_t n : later) out.items()->emplace_back(n);
  return out;
}

value written_layers(const std::vector<layer_spec>& layers) {
  value out{value::array{}};
  for (const layer_spec& l : layers) out.items()->push_back(written_layer(l));
  return out;
}

}  // namespace

value content_of(const model& m) {
  value out{value::object{}};
  out.set("model_type", m.model_type);
  out.set("hidden", m.hidden);
  out.set("vocab", m.vocab);
  out.set("max_positions", m.max_positions);
  out.set("tied_embeddings", m.tied_embeddings);
  out.set("residual_streams", m.residual_streams);
  out.set("layers", written_layers(m.layers));
  out.set("mtp_layers", m.mtp_layers);
  out.set("mtp_block", written_layers(m.mtp_block));
  if (m.lookup_tables > 0) out.set("lookup_tables", m.lookup_tables);
  for (const tower_spec& t : m.towers) out.set(t.name + "_tower", t.parameters);
  for (const auto& [part, format] : {std::pair{"weights", m.checkpoint.weights},
                                     {"attention_weights", m.checkpoint.attention_weights},
                                     {"expert_weights", m.checkpoint.expert_weights},
                                     {"kv_cache", m.checkpoint.kv_cache}})
    if (format) out.set(part, name(*format));
  return out;
}

}  // namespace nvlsim
