#include "model/families.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t llama_positions = 2048,
                       bloom_positions = 2048;  // of transformers' LlamaConfig; of its training

}  // namespace

model read_llama(const model_file& f) {
  outline o = read_outline(f, hugging_face_derived());
  o.layer.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  o.m.max_positions = f.r.integer_or("max_position_embeddings", llama_positions, positions_range);
  o.m.tied_embeddings = read_tied(f);
  o.repeat();
  return o.m;
}

model read_qwen3(const model_file& f) {
  outline o = read_outline(f, hugging_face());
  o.layer.ffn_hidden = f.r.integer("intermediate_size", ffn_range);
  o.layer.qk_norm = qk_norm_kind::per_head;
  o.m.tied_embeddings = read_tied(f);
  o.repeat();
  return o.m;
}

model read_bloom(const model_file& f) {
  static const spelling names = {{"n_layer", {"num_hidden_layers"}},
                                 {"hidden_size", {"n_embed"}},
                                 {"n_head", {"num_attention_heads"}},
                                 "num_key_value_heads",
                                 "head_dim",
                                 true};
  outline o = read_outline(f, names);
  o.layer.ffn_hidden = 4 * o.m.hidden;
  o.layer.gated_mlp = false;
  o.m.max_positions = f.r.integer_or("seq_length", bloom_positions, positions_range);
  o.m.tied_embeddings = read_tied(f, true);
  o.repeat();
  return o.m;
}

}  // namespace nvlsim
