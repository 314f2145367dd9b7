#include "nvlsim/model/load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/families.hpp"
#include "nvlsim/model/checkpoint.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

struct architecture {
  std::string_view model_type;
  model (*read)(const model_file& f) = nullptr;  ///< nullptr: read_decoder, by `traits`
  decoder_traits traits = {};
};

constexpr decoder_traits llama{.defaults = {.positions = 2048}};  // of transformers' LlamaConfig
constexpr decoder_traits mistral{.windows = window_rule::stated};
constexpr decoder_traits qwen2{.windows = window_rule::when_used};
constexpr decoder_traits qwen3{
    .qk_norm = qk_norm_kind::per_head, .heads_follow = false, .windows = window_rule::when_used};
constexpr decoder_traits olmo2{.qk_norm = qk_norm_kind::joint};
constexpr decoder_traits olmo3{.qk_norm = qk_norm_kind::joint, .windows = window_rule::stated, .full_every = 4};
constexpr decoder_traits mimo{.predictors = "num_nextn_predict_layers"};
/// Published files leave out what transformers' Gemma3TextConfig has as defaults.
constexpr decoder_traits gemma3{
    .qk_norm = qk_norm_kind::per_head,
    .windows = window_rule::stated,
    .full_every = 6,
    .post_norms = true,
    .tied = true,
    .defaults = {.heads = 8, .kv_heads = 4, .head_dim = 256, .ffn = 9216, .vocab = 262208, .positions = 131072}};

/// Names that end in `_text` belong to the language model of a composite config.
constexpr architecture architectures[] = {
    {"llama", nullptr, llama},
    {"llama4", read_llama4},
    {"llama4_text", read_llama4},
    {"mistral", nullptr, mistral},
    {"mistral3", nullptr, mistral},
    {"ministral3", nullptr, mistral},
    {"mixtral", read_mixtral},
    {"qwen2", nullptr, qwen2},
    {"qwen2_vl", nullptr, qwen2},
    {"qwen2_vl_text", nullptr, qwen2},
    {"qwen2_5_vl", nullptr, qwen2},
    {"qwen2_5_vl_text", nullptr, qwen2},
    {"qwen2_5_omni_text", nullptr, qwen2},
    {"qwen2_5_omni_talker", read_omni_talker},
    {"qwen2_moe", read_qwen2_moe},
    {"qwen3", nullptr, qwen3},
    {"qwen3_vl_text", nullptr, qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"qwen3_vl_moe_text", read_qwen3_moe},
    {"qwen3_next", read_qwen3_5_moe},
    {"qwen3_5", read_qwen3_5},
    {"qwen3_5_text", read_qwen3_5},
    {"qwen3_5_moe", read_qwen3_5_moe},
    {"qwen3_5_moe_text", read_qwen3_5_moe},
    {"qwen4_exp_text", read_qwen4},
    {"deepseek_v2", read_deepseek_v3},
    {"deepseek_v3", read_deepseek_v3},
    {"deepseek_v32", read_deepseek_v32},
    {"deepseek_v4", read_deepseek_v4},
    {"deepseek_ref", read_deepseek_v4},  // SGLang's conversions of DeepSeek-V4
    {"deepseek_v41", read_deepseek_v41},
    {"deepseek_v41_text", read_deepseek_v41},
    {"kimi_k2", read_deepseek_v3},
    {"kimi_k25", read_deepseek_v3},
    {"kimi_linear", read_kimi_linear},
    {"glm4_moe", read_glm4_moe},
    {"glm4_moe_lite", read_deepseek_v3},
    {"glm_moe_dsa", read_deepseek_v32},
    {"glm5_next_text", read_glm5_next},
    {"minimax_m2", read_minimax_m2},
    {"minimax_m3", read_minimax_m3},
    {"minimax_m3_vl", read_minimax_m3},
    {"gemma3", nullptr, gemma3},
    {"gemma3_text", nullptr, gemma3},
    {"gemma4", read_gemma4},
    {"gemma4_text", read_gemma4},
    {"gemma4_unified_text", read_gemma4},
    {"gpt_oss", read_gpt_oss},
    {"nemotron_h", read_nemotron_h},
    {"nemotron-nas", read_nemotron_nas},
    {"ernie4_5_moe", read_ernie},
    {"step3p5", read_step},
    {"mimo", nullptr, mimo},
    {"mimo_v2_flash", read_mimo_v2},
    {"phi3", nullptr, mistral},
    {"olmo2", nullptr, olmo2},
    {"olmo3", nullptr, olmo3},
    {"seed_oss", nullptr, {}},
    {"bloom", read_bloom},
};

std::string without_digits(std::string_view s) {
  std::string out;
  std::copy_if(s.begin(), s.end(), std::back_inserter(out), [](char c) { return c < '0' || c > '9'; });
  return out;
}

/// What is near: a supported name of which `type` is a typing error, or that of a related architecture. "llama3"
/// and "qwen2_moe_x" are no typing errors: a number or a suffix makes another architecture.
struct near_type {
  std::string slip, related;
};
near_type near(std::string_view type) {
  const std::string hint = nearest(type, supported_model_types());
  if (type.empty()) return {};
  std::string longest;  // the supported name that shares most of its beginning, up to a separator
  for (const std::string& name : supported_model_types()) {
    const auto shared = static_cast<std::size_t>(
        std::mismatch(type.begin(), type.end(), name.begin(), name.end()).first - type.begin());
    const bool whole = shared == name.size() || shared == type.size();
    constexpr std::size_t least = 3;
    if (whole && shared >= least && shared > longest.size()) longest = name;
  }
  if (!longest.empty()) return {"", longest};
  if (!hint.empty() && without_digits(type) == without_digits(hint)) return {"", hint};
  return {hint, ""};
}

model read_hugging_face(config::reader& root, const diagnostics& problems) {
  auto text = root.find_child("text_config");
  config::reader& r = text ? *text : root;
  config::reader& named = r.has("model_type") ? r : root;  // older composite files state it outside only
  if (!named.has("model_type")) {
    r.fail("", fmt::format("neither \"schema\": \"{}\" nor a Hugging Face \"model_type\"; supported: {}",
                           native_schema, fmt::join(supported_model_types(), ", ")));
    return {};
  }
  const bool readable = named.raw("model_type")->string();
  if (!readable) named.string("model_type");
  if (!readable) return {};
  const std::string type = named.string("model_type");
  for (const architecture& a : architectures) {
    if (a.model_type != type) continue;
    const model_file f{root, r, problems};
    model m = a.read ? a.read(f) : read_decoder(f, a.traits);
    m.model_type = type;
    m.towers = read_towers(root, m);
    m.checkpoint = read_checkpoint(root, r, m);
    r.done_with_overrides();
    if (text) root.done_with_overrides();
    return m;
  }
  const near_type n = near(type);
  named.fail(
      "model_type",
      fmt::format("model_type {} is not supported; supported: {}{}", in_quotes(type),
                  fmt::join(supported_model_types(), ", "),
                  n.related.empty() ? "" : fmt::format("; {} is another architecture", in_quotes(n.related))),
      n.slip);
  return {};
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
