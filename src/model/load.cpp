#include "model/load.hpp"

#include <fmt/format.h>

#include "config/reader.hpp"
#include "nvlsim/units_text.hpp"

namespace nvlsim {
namespace {

constexpr std::string_view native_schema = "nvlsim.model/1";
constexpr std::int64_t default_positions = 2048;  // of transformers' LlamaConfig

/// Bounds far above any model, at which no count overflows 64 bits.
constexpr config::range<std::int64_t> layer_range{1, 1 << 13};
constexpr config::range<std::int64_t> hidden_range{1, 1 << 18};
constexpr config::range<std::int64_t> head_range{1, 1 << 13};
constexpr config::range<std::int64_t> ffn_range{1, 1 << 22};
constexpr config::range<std::int64_t> vocab_range{1, 1 << 26};
constexpr config::range<std::int64_t> positions_range{1, 1 << 30};

/// How a form of model file spells the dimensions.
struct spelling {
  const char *layers, *hidden, *ffn, *heads, *kv_heads, *head_dim;
};
constexpr spelling hugging_face = {"num_hidden_layers",   "hidden_size",         "intermediate_size",
                                   "num_attention_heads", "num_key_value_heads", "head_dim"};
constexpr spelling megatron = {"num_layers",          "hidden_size",      "ffn_hidden_size",
                               "num_attention_heads", "num_query_groups", "kv_channels"};

/// An integer, and whether it was read without a problem: only then is it compared with others.
struct checked {
  std::int64_t value = 0;
  bool sound = false;
};

checked read_integer(config::reader& r, const char* name, config::range<std::int64_t> bounds,
                     const diagnostics& problems) {
  const std::size_t before = problems.sorted().size();
  const std::int64_t v = r.integer(name, bounds);
  return {v, problems.sorted().size() == before};
}

std::int64_t read_kv_heads(config::reader& r, const spelling& s, checked heads, const diagnostics& problems) {
  if (!r.has(s.kv_heads)) return r.integer_or(s.kv_heads, heads.value);
  const checked kv = read_integer(r, s.kv_heads, head_range, problems);
  if (heads.sound && kv.sound && heads.value % kv.value != 0)
    r.fail(s.kv_heads, fmt::format("{} {} is not a multiple of {}", s.heads, heads.value, kv.value));
  return kv.value;
}

std::int64_t read_head_dim(config::reader& r, const spelling& s, checked hidden, checked heads) {
  if (r.has(s.head_dim)) return r.integer(s.head_dim, head_range);
  if (hidden.sound && heads.sound && hidden.value % heads.value != 0)
    r.fail(s.heads, fmt::format("{} {} is not a multiple of {}, so \"{}\" must be given", s.hidden, hidden.value,
                                heads.value, s.head_dim));
  return r.integer_or(s.head_dim, hidden.value / heads.value);
}

/// The dimensions that both forms have, all layers alike.
void read_shape(model& m, config::reader& r, const spelling& s, const diagnostics& problems) {
  const std::int64_t layers = r.integer(s.layers, layer_range);
  const checked hidden = read_integer(r, s.hidden, hidden_range, problems);
  const checked heads = read_integer(r, s.heads, head_range, problems);
  layer_spec l;
  l.heads = heads.value;
  l.kv_heads = read_kv_heads(r, s, heads, problems);
  l.head_dim = read_head_dim(r, s, hidden, heads);
  l.ffn_hidden = r.integer(s.ffn, ffn_range);
  m.hidden = hidden.value;
  m.vocab = r.integer("vocab_size", vocab_range);
  m.layers.assign(static_cast<std::size_t>(layers), l);
}

model read_llama(config::reader& root, config::reader& r, const diagnostics& problems) {
  model m;
  read_shape(m, r, hugging_face, problems);
  m.max_positions = r.integer_or("max_position_embeddings", default_positions, positions_range);
  // A composite config says this beside its text_config.
  config::reader& with_tie = r.has("tie_word_embeddings") ? r : root;
  m.tied_embeddings = with_tie.boolean_or("tie_word_embeddings", false);
  return m;
}

struct architecture {
  std::string_view model_type;
  model (*read)(config::reader& root, config::reader& r, const diagnostics& problems);
};
constexpr architecture architectures[] = {
    {"llama", read_llama},
};

model read_hugging_face(config::reader& root, const diagnostics& problems) {
  auto text = root.find_child("text_config");
  config::reader& r = text ? *text : root;
  if (!r.has("model_type")) {
    r.fail("", fmt::format("neither \"schema\": \"{}\" nor a Hugging Face \"model_type\"; supported: {}",
                           native_schema, fmt::join(supported_model_types(), ", ")));
    return {};
  }
  const bool readable = r.raw("model_type")->string();
  const std::string type = r.string("model_type");
  if (!readable) return {};
  for (const architecture& a : architectures) {
    if (a.model_type != type) continue;
    model m = a.read(root, r, problems);
    m.model_type = type;
    return m;
  }
  // "llama4" is another architecture and no slip for "llama".
  std::string hint = nearest(type, supported_model_types());
  if (type.starts_with(hint)) hint.clear();
  r.fail("model_type",
         fmt::format("model_type {} is not supported; supported: {}", in_quotes(type),
                     fmt::join(supported_model_types(), ", ")),
         hint);
  return {};
}

model read_native(config::reader& r, const diagnostics& problems) {
  model m;
  const bool readable = r.raw("schema")->string();
  const std::string schema = r.string("schema");
  if (schema != native_schema) {
    if (readable) r.fail("schema", fmt::format("expected \"{}\", found {}", native_schema, in_quotes(schema)));
    return m;
  }
  r.ignore("base");
  r.ignore("source");
  m.model_type = "gpt";
  read_shape(m, r, megatron, problems);
  const bool gated = r.boolean("gated_mlp");
  const bool qk_norm = r.boolean_or("qk_layernorm", false);
  for (layer_spec& l : m.layers) {
    l.gated_mlp = gated;
    l.qk_norm = qk_norm;
  }
  m.tied_embeddings = r.boolean("tied_embeddings");
  m.max_positions = r.find_integer("max_position_embeddings", positions_range).value_or(0);
  r.done();
  return m;
}

}  // namespace

const std::vector<std::string>& supported_model_types() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const architecture& a : architectures) all.emplace_back(a.model_type);
    return all;
  }();
  return names;
}

model read_model(config::document& doc, std::string name, diagnostics& problems) {
  config::reader r(doc, problems);
  model m = r.has("schema") ? read_native(r, problems) : read_hugging_face(r, problems);
  m.name = std::move(name);
  return m;
}

}  // namespace nvlsim
