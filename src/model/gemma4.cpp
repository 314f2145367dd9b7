// Gemma 4: window and full layers of different heads, keys that are values, shared caches, inputs of every layer.
#include "model/families.hpp"

namespace nvlsim {

model read_gemma4(const model_file& f) {
  constexpr std::int64_t full_every = 6;  // of transformers' Gemma4TextConfig
  outline o = read_outline(f, hugging_face());
  layer_spec& sliding = o.layer;
  sliding.qk_norm = qk_norm_kind::per_head;
  sliding.post_norms = true;
  const std::int64_t ffn = f.r.integer("intermediate_size", ffn_range);
  if (f.r.boolean_or("enable_moe_block", false)) {
    sliding.moe = read_experts(f, "moe_intermediate_size");
    sliding.moe.shared_ffn = ffn;  // the dense MLP runs beside the experts
  } else {
    sliding.ffn_hidden = ffn;
  }
  sliding.layer_input = f.r.integer_or("hidden_size_per_layer_input", 0, {0, hidden_range.high});
  layer_spec full = sliding;
  sliding.window = f.r.integer("sliding_window", positions_range);
  full.head_dim = f.r.integer_or("global_head_dim", sliding.head_dim, head_range);
  full.kv_heads = f.r.integer_or("num_global_key_value_heads", sliding.kv_heads, head_range);
  if (full.heads % full.kv_heads != 0)
    f.r.fail("num_global_key_value_heads", "does not divide num_attention_heads");
  if (f.r.boolean_or("attention_k_eq_v", false)) full.kv = kv_source::keys_are_values;
  const auto slides = read_sliding(f, o.layers, full_every);
  const std::int64_t own = o.layers.value - f.r.integer_or("num_kv_shared_layers", 0, {0, o.layers.value});
  const bool wide = f.r.boolean_or("use_double_wide_mlp", false);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    layer_spec l = slides[i] ? sliding : full;
    if (static_cast<std::int64_t>(i) >= own) {
      l.kv = kv_source::shared;
      if (wide) l.ffn_hidden *= 2;
    }
    o.m.layers.push_back(l);
  }
  if (sliding.layer_input > 0)
    o.m.lookup_tables = f.r.integer_or("vocab_size_per_layer_input", o.m.vocab, vocab_range) * o.layers.value *
                        sliding.layer_input;
  o.m.tied_embeddings = read_tied(f, true);
  return o.m;
}

}  // namespace nvlsim
