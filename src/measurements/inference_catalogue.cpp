// Maps names in inference.csv to stacks, precisions and layouts.
#include "measurements/inference_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <utility>

#include "nvlsim/measurements/csv.hpp"

namespace nvlsim {
namespace {

struct release_range {
  int major, minor, patch;  ///< first release that the stack represents
  const char* stack;
};
constexpr std::array<release_range, 5> tensorrt_releases = {{{1, 2, 0, "tensorrt-llm-1.2"},
                                                             {1, 1, 0, "tensorrt-llm-1.1"},
                                                             {1, 0, 0, "tensorrt-llm-1.0"},
                                                             {0, 17, 0, "tensorrt-llm-0.17"},
                                                             {0, 0, 0, "tensorrt-llm-0.14"}}};
constexpr std::array<release_range, 7> vllm_releases = {{{0, 21, 0, "vllm-0.21"},
                                                         {0, 18, 0, "vllm-0.19"},
                                                         {0, 17, 0, "vllm-0.17"},
                                                         {0, 14, 0, "vllm-0.16"},
                                                         {0, 12, 0, "vllm-0.12"},
                                                         {0, 8, 0, "vllm-0.11"},
                                                         {0, 0, 0, "vllm-0.7"}}};
constexpr std::array<release_range, 8> sglang_releases = {{{0, 5, 15, "sglang-0.5.15"},
                                                           {0, 5, 11, "sglang-0.5.12"},
                                                           {0, 5, 10, "sglang-0.5.10"},
                                                           {0, 5, 7, "sglang-0.5.9"},
                                                           {0, 5, 4, "sglang-0.5.6"},
                                                           {0, 5, 2, "sglang-0.5.3"},
                                                           {0, 5, 0, "sglang-0.5.1"},
                                                           {0, 0, 0, "sglang-0.4"}}};

/// MLPerf submissions name the TensorRT version of a TensorRT-LLM release.
constexpr std::array<release_range, 4> tensorrt_of_releases = {{{10, 14, 0, "tensorrt-llm-1.2"},
                                                                {10, 13, 0, "tensorrt-llm-1.1"},
                                                                {10, 9, 0, "tensorrt-llm-1.0"},
                                                                {0, 0, 0, "tensorrt-llm-0.17"}}};
/// First month in which each release was used, for rows that give only a date.
constexpr std::array<release_range, 4> tensorrt_by_date = {{{2026, 1, 0, "tensorrt-llm-1.2"},
                                                            {2025, 11, 0, "tensorrt-llm-1.1"},
                                                            {2025, 3, 0, "tensorrt-llm-1.0"},
                                                            {2024, 1, 0, "tensorrt-llm-0.17"}}};
constexpr std::array<release_range, 7> vllm_by_date = {{{2026, 5, 0, "vllm-0.21"},
                                                        {2026, 4, 0, "vllm-0.19"},
                                                        {2026, 3, 0, "vllm-0.17"},
                                                        {2026, 1, 0, "vllm-0.16"},
                                                        {2025, 12, 0, "vllm-0.12"},
                                                        {2025, 4, 0, "vllm-0.11"},
                                                        {2024, 1, 0, "vllm-0.7"}}};
constexpr std::array<release_range, 8> sglang_by_date = {{{2026, 6, 0, "sglang-0.5.15"},
                                                          {2026, 5, 0, "sglang-0.5.12"},
                                                          {2026, 4, 0, "sglang-0.5.10"},
                                                          {2026, 1, 0, "sglang-0.5.9"},
                                                          {2025, 11, 0, "sglang-0.5.6"},
                                                          {2025, 9, 0, "sglang-0.5.3"},
                                                          {2025, 7, 0, "sglang-0.5.1"},
                                                          {2024, 1, 0, "sglang-0.4"}}};

std::optional<int> number_at(std::string_view& text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with('.')) text.remove_prefix(1);
  return n;
}

template <std::size_t N>
std::string newest_before(const std::array<release_range, N>& list, std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto major = number_at(version);
  const auto minor = major ? number_at(version) : std::nullopt;
  if (!minor) return {};
  const int patch = number_at(version).value_or(0);
  for (const release_range& r : list)
    if (std::tie(*major, *minor, patch) >= std::tie(r.major, r.minor, r.patch)) return r.stack;
  return {};
}

/// A date as "2025.03": of "2025-03/05", "Sept 2025", "nightly, Feb 2026", "May 18 2026" or "nightly 20260115".
std::string dotted(const std::string& version) {
  static constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::size_t at = version.find("20");
  if (at == std::string::npos || (at > 0 && version[at - 1] != ' ' && version[at - 1] != '-')) return {};
  std::string_view rest = std::string_view(version).substr(at);
  std::string_view year = rest.substr(0, 4);
  if (year.size() < 4 || !std::all_of(year.begin(), year.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {};
  rest.remove_prefix(4);
  if (rest.starts_with('-')) rest.remove_prefix(1);
  if (rest.size() >= 2 && rest[0] >= '0' && rest[0] <= '1') return fmt::format("{}.{}", year, rest.substr(0, 2));
  for (std::size_t m = 0; m < months.size(); ++m)
    if (version.substr(0, at).find(months[m]) != std::string::npos) return fmt::format("{}.{:02}", year, m + 1);
  return {};
}

bool starts(const std::string& s, std::initializer_list<const char*> any) {
  return std::any_of(any.begin(), any.end(), [&](const char* p) { return s.starts_with(p); });
}

}  // namespace

std::string serving_stack_of(const std::string& engine, const std::string& version) {
  // For these engines the version is Dynamo's.
  if (engine == "Dynamo+TRT-LLM") return "tensorrt-llm-dynamo";
  if (engine == "Dynamo+SGLang") return "sglang-dynamo";
  if (engine == "Dynamo+vLLM") return "vllm-dynamo";
  if (engine.find("vLLM") != std::string::npos || engine == "llm-d") {
    if (version.starts_with("2023")) return "vllm-2023";
    if (version.starts_with("run 2025")) return "vllm-0.11";
    const std::size_t at = version.find("vLLM v");
    if (const std::string dated = newest_before(vllm_by_date, dotted(version)); !dated.empty()) return dated;
    const std::string named =
        newest_before(vllm_releases, at == std::string::npos ? version : version.substr(at + 5));
    return named.empty() ? "vllm-0.19" : named;
  }
  if (engine.find("SGLang") != std::string::npos || engine.starts_with("DeepSeek")) {
    if (version.starts_with("run 2025")) return "sglang-0.5.5";
    std::string named = newest_before(sglang_by_date, dotted(version));
    if (named.empty()) named = newest_before(sglang_releases, version);
    return named.empty() ? "sglang" : named;
  }
  if (version.starts_with("1.0.0rc")) return "tensorrt-llm-1.0rc";
  if (version.starts_with("run 20")) return "tensorrt-llm-1.2rc";
  if (version.starts_with("TensorRT ")) return newest_before(tensorrt_of_releases, version.substr(9));
  if (version.starts_with("v4.1")) return "tensorrt-llm-1.0";
  if (const std::string dated = newest_before(tensorrt_by_date, dotted(version)); !dated.empty()) return dated;
  const std::string named = newest_before(tensorrt_releases, version);
  return named.empty() ? "tensorrt-llm-1.2rc" : named;
}

std::string rocm_stack(const std::string& named) {
  static constexpr std::array<std::string_view, 6> built = {"sglang-0.5.9",  "sglang-0.5.10", "sglang-0.5.12",
                                                            "sglang-0.5.15", "vllm-0.16",     "vllm-0.19"};
  if (std::find(built.begin(), built.end(), named) == built.end()) return named;
  const std::size_t dash = named.find('-');
  return fmt::format("{}-rocm{}", named.substr(0, dash), named.substr(dash));
}

std::string generic_serving_stack(const std::string& engine) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 3> stacks = {
      {{"vLLM", "vllm"}, {"SGLang", "sglang"}, {"TRT-LLM", "tensorrt-llm"}}};
  for (const auto& [name, stack] : stacks)
    if (engine.find(name) != std::string::npos) return stack;
  throw cell_error(fmt::format("engine: \"{}\" is unknown", engine));
}

weight_formats formats_of(const std::string& cell, const std::string& model_name, bool routed, bool latent) {
  const precision half = precision::bf16;
  const bool gpt_oss = model_name.starts_with("gpt-oss");
  weight_formats f{half, half, half};
  const bool four_bit = cell == "fp4" || cell == "mxfp4";
  if (gpt_oss && (cell == "fp8" || four_bit)) {
    f.expert = precision::mxfp4;
  } else if (four_bit && model_name.starts_with("deepseek-v4")) {  // as published: experts alone have 4 bits
    f.dense = f.attention = precision::fp8_block;
    f.expert = precision::mxfp4;
  } else if (cell == "fp8") {
    // Checkpoints of these families use block scaling.
    const bool block =
        starts(model_name, {"deepseek", "minimax", "qwen3", "glm", "kimi"}) && model_name != "qwen3-32b";
    f.dense = f.attention = f.expert = block ? precision::fp8_block : precision::fp8;
  } else if (cell == "int4") {
    f.expert = precision::int4;
    if (!routed) f.dense = f.attention = precision::int4;
  } else if (four_bit) {
    f.dense = f.attention = f.expert = precision::nvfp4;
    // Published quantization exclusion lists keep these parts in 16 bits.
    if (latent || starts(model_name, {"minimax", "qwen3.5"})) {
      f.attention = half;
      if (!model_name.starts_with("deepseek")) f.dense = half;
    }
  }
  return f;
}

std::optional<double> mlperf_prompt_of(const std::string& model_name) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> prompts = {{{"llama2-70b", 195},
                                                                                  {"llama3.1-405b", 9700},
                                                                                  {"llama3.1-8b", 900},
                                                                                  {"mixtral-8x7b", 600},
                                                                                  {"deepseek-r1", 400},
                                                                                  {"gpt-oss-120b", 6000}}};
  for (const auto& [name, tokens] : prompts)
    if (name == model_name) return tokens;
  return std::nullopt;
}

std::optional<named_layout> parse_layout(std::string_view given) {
  std::string lower(given);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::string_view text = lower;
  named_layout out;
  int dp = 1;
  bool any = false;
  const auto take = [&](std::string_view word, std::string_view key, std::initializer_list<int*> to) {
    if (!word.starts_with(key)) return;
    word.remove_prefix(key.size());
    if (const auto n = number_at(word); n && word.empty())
      for (int* x : to) *x = *n, any = true;
  };
  if (text.starts_with("prefill") || text.starts_with("decode") || text.find("1p") != text.npos)
    return std::nullopt;
  out.attention_dp = text.find("attention-dp") != std::string_view::npos;
  out.recipe = text.find("recipe") != std::string_view::npos;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" +,"), text.size());
    const std::string_view word = text.substr(0, end);
    take(word, "tp", {&out.tp});
    take(word, "pp", {&out.pp});
    take(word, "ep", {&out.ep});
    take(word, "dp", {&dp});
    take(word, "tep", {&out.tp, &out.ep});  // experts on tensor-parallel ranks
    take(word, "dep", {&dp, &out.ep});      // experts on ranks with sequences of their own
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!any) return std::nullopt;
  if (dp > 1) out.attention_dp = true, out.tp = std::max(out.tp, dp);
  return out;
}

}  // namespace nvlsim
