#include "nvlsim/model/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace nvlsim {
namespace {

struct named_algorithm {
  std::string_view name;
  precision stored;
};
/// ModelOpt's algorithms that multiply in a format for which nvlsim has kernels. 16-bit activations with narrow
/// floating-point weights (W4A16_NVFP4) are not supported.
constexpr named_algorithm algorithms[] = {
    {"FP8", precision::fp8},
    {"FP8_PER_CHANNEL_PER_TOKEN", precision::fp8},
    {"FP8_PB_WO", precision::fp8_block},
    {"FP8_BLOCK_SCALES", precision::fp8_block},
    {"NVFP4", precision::nvfp4},
    {"NVFP4_AWQ", precision::nvfp4},
    {"W4A8_MXFP4_MXFP8", precision::mxfp4},
    {"W4A16", precision::int4},
    {"W4A16_AWQ", precision::int4},
    {"W4A16_GPTQ", precision::int4},
    {"NO_QUANT", precision::bf16},
};

std::optional<precision> stored_by(std::string_view algorithm) {
  for (const named_algorithm& a : algorithms)
    if (a.name == algorithm) return a.stored;
  return std::nullopt;
}

/// Matches a pattern in which `*` is any text, as in fnmatch.
bool globs(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// Supports only ".*" and "\." of regular expressions ("re:.*self_attn.*"); others match nothing.
std::string as_glob(std::string_view pattern) {
  if (!pattern.starts_with("re:")) return std::string(pattern);
  std::string out;
  for (std::size_t i = 3; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest.starts_with(".*")) out += '*', ++i;
    else if (rest.starts_with("\\.")) out += '.', ++i;
    else out += pattern[i];
  }
  return out;
}

/// Names of query projections in the families of models. The query projection represents the attention of its
/// layer.
constexpr std::string_view query_projections[] = {"self_attn.q_proj", "self_attn.q_b_proj",
                                                  "linear_attn.in_proj_qkv", "attn.wq_b", "mixer.q_proj"};

/// Whether the list names the query projection of layer `i` or a module that contains it.
bool names_attention(const std::vector<std::string>& globbed, std::size_t i) {
  const auto covers = [&](const std::string& pattern) {
    // Prefixes differ ("model.", "model.language_model.", "backbone."); all end at "layers.".
    const std::size_t at = pattern.find("layers.");
    const std::string_view tail =
        at == std::string::npos ? std::string_view(pattern) : std::string_view(pattern).substr(at);
    return std::any_of(std::begin(query_projections), std::end(query_projections), [&](std::string_view q) {
      const std::string module = fmt::format("layers.{}.{}", i, q);
      return globs(tail, module) || globs(std::string(tail) + ".*", module);
    });
  };
  return std::any_of(globbed.begin(), globbed.end(), covers);
}

/// Whether most layers with attention exclude it from quantisation.
bool leaves_attention(const std::vector<std::string>& excluded, const model& m) {
  std::vector<std::string> globbed;
  for (const std::string& e : excluded) globbed.push_back(as_glob(e));
  std::size_t with = 0, left = 0;
  for (std::size_t i = 0; i < m.layers.size(); ++i) {
    if (m.layers[i].attention == attention_kind::none || m.layers[i].attention == attention_kind::mamba) continue;
    ++with;
    left += names_attention(globbed, i) ? 1 : 0;
  }
  return 2 * left > with;
}

std::vector<std::string> read_names(config::reader& r, const char* key) {
  std::vector<std::string> out;
  const value* v = r.raw(key);
  if (!v || v->is_null()) return out;
  const value::array* items = v->items();
  const bool sound = items && std::all_of(items->begin(), items->end(), [](const value& i) { return i.string(); });
  if (!sound) r.fail(key, "expected an array of module names");
  else
    for (const value& i : *items) out.push_back(*i.string());
  return out;
}

/// `{"num_bits": 8, "type": "float"}`, or ModelOpt's name.
std::optional<precision> read_scheme(config::reader& r, const char* key) {
  const value* v = r.raw(key);
  if (!v || v->is_null()) return std::nullopt;
  if (v->string()) return stored_by(*v->string());
  if (!v->members()) {
    r.fail(key, fmt::format("expected an object or a name, found {}", v->type_name()));
    return std::nullopt;
  }
  config::reader s = r.child(key);
  const std::optional<std::int64_t> bits = s.find_integer("num_bits"), group = s.find_integer("group_size");
  const std::string type = s.find_string("type").value_or("float");
  if (bits == 8 && type == "float") return s.raw("block_structure") ? precision::fp8_block : precision::fp8;
  if (bits == 4 && type == "int") return precision::int4;
  if (bits == 4 && type == "float") return group == 32 ? precision::mxfp4 : precision::nvfp4;
  return std::nullopt;
}

/// The algorithm of the experts in a list of quantised layers.
std::optional<precision> read_expert_layers(config::reader& r) {
  std::optional<precision> out;
  std::string first;
  for (auto& [module, layer] : r.children("quantized_layers")) {
    const std::string algorithm = layer.find_string("quant_algo").value_or("");
    if (module.find("experts") == std::string::npos || module.find("shared_expert") != std::string::npos) continue;
    if (!first.empty() && algorithm != first) return std::nullopt;
    first = algorithm;
    out = stored_by(algorithm);
  }
  return out;
}

/// The form of ModelOpt, in its own file and in config.json.
void read_modelopt(config::reader& q, checkpoint_spec& c) {
  c.algorithm = q.find_string("quant_algo").value_or("NO_QUANT");
  c.weights = stored_by(c.algorithm);
  if (c.algorithm == "MIXED_PRECISION" && q.has("quantized_layers")) c.expert_weights = read_expert_layers(q);
}

checkpoint_spec read_quant_file(config::reader& file, const model& m) {
  checkpoint_spec c;
  config::reader q = file.child("quantization");
  c.source = "hf_quant_config.json";
  read_modelopt(q, c);
  const std::optional<std::string> kv = q.find_string("kv_cache_quant_algo");
  c.kv_cache = kv ? stored_by(*kv) : precision::bf16;
  const bool wide = leaves_attention(read_names(q, "exclude_modules"), m);
  if (wide && c.weights) c.attention_weights = precision::bf16;
  return c;
}

/// The form of transformers and vLLM, by method.
void read_method(config::reader& q, const std::string& method, checkpoint_spec& c) {
  c.algorithm = method;
  if (method == "fp8") c.weights = q.raw("weight_block_size") ? precision::fp8_block : precision::fp8;
  else if (method == "mxfp4") c.weights = precision::mxfp4;
  else if (method == "awq" || method == "gptq") c.weights = precision::int4;
  if (!q.has("config_groups")) return;
  auto groups = q.children("config_groups");
  if (groups.size() != 1) return;
  config::reader& group = groups.front().second;
  const std::optional<precision> stored = read_scheme(group, "weights");
  const value* activations = group.raw("input_activations");
  const bool wide =
      !activations || activations->is_null();  // quantises only weights: products have 16-bit activations
  if (stored == precision::int4 || !wide) c.weights = stored;
}

checkpoint_spec read_quantization_config(config::reader& q, const model& m) {
  checkpoint_spec c;
  c.source = "quantization_config";
  if (q.has("quant_algo")) read_modelopt(q, c);
  else read_method(q, q.string("quant_method"), c);
  if (q.has("kv_cache_scheme")) c.kv_cache = read_scheme(q, "kv_cache_scheme");
  std::vector<std::string> excluded = read_names(q, "ignore");
  for (std::string& s : read_names(q, "modules_to_not_convert")) excluded.push_back(std::move(s));
  if (c.weights && leaves_attention(excluded, m)) c.attention_weights = precision::bf16;
  return c;
}

}  // namespace

checkpoint_spec read_checkpoint(config::reader& root, config::reader& text, const model& m) {
  if (root.has(quant_file_member)) {
    config::reader file = root.child(quant_file_member);
    return read_quant_file(file, m);
  }
  for (config::reader* r : {&text, &root})
    if (r->has("quantization_config")) {
      config::reader q = r->child("quantization_config");
      return read_quantization_config(q, m);
    }
  return {};
}

}  // namespace nvlsim
