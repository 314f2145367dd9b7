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
  model (*read)(const model_file& f);
};
/// Names that end in `_text` belong to the language model of a composite config.
constexpr architecture architectures[] = {
    {"llama", read_llama},
    {"llama4", read_llama4},
    {"llama4_text", read_llama4},
    {"mixtral", read_mixtral},
    {"qwen3", read_qwen3},
    {"qwen3_vl_text", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"qwen3_vl_moe_text", read_qwen3_moe},
    {"qwen3_5", read_qwen3_5},
    {"qwen3_5_text", read_qwen3_5},
    {"qwen3_5_moe", read_qwen3_5_moe},
    {"qwen3_5_moe_text", read_qwen3_5_moe},
    {"deepseek_v3", read_deepseek_v3},
    {"deepseek_v32", read_deepseek_v32},
    {"deepseek_v4", read_deepseek_v4},
    {"deepseek_ref", read_deepseek_v4},  // SGLang's conversions of DeepSeek-V4
    {"kimi_k2", read_deepseek_v3},
    {"kimi_k25", read_deepseek_v3},
    {"glm_moe_dsa", read_deepseek_v32},
    {"minimax_m2", read_minimax_m2},
    {"gpt_oss", read_gpt_oss},
    {"nemotron_h", read_nemotron_h},
    {"bloom", read_bloom},
};

std::string without_digits(std::string_view s) {
  std::string out;
  std::copy_if(s.begin(), s.end(), std::back_inserter(out), [](char c) { return c < '0' || c > '9'; });
  return out;
}

/// The supported name of which `type` is a typing error. "llama3" and "qwen2" are other architectures, not typing
/// errors.
std::string slip_of(std::string_view type) {
  std::string hint = nearest(type, supported_model_types());
  if (type.starts_with(hint) || without_digits(type) == without_digits(hint)) hint.clear();
  return hint;
}

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
    model m = a.read({root, r, problems});
    m.model_type = type;
    m.checkpoint = read_checkpoint(root, r, m);
    r.done_with_overrides();
    if (text) root.done_with_overrides();
    return m;
  }
  r.fail("model_type",
         fmt::format("model_type {} is not supported; supported: {}", in_quotes(type),
                     fmt::join(supported_model_types(), ", ")),
         slip_of(type));
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
