#include "nvlsim/measurements/input_cache.hpp"

#include <array>
#include <utility>

#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 30> platforms_of_systems = {{
    {"a100", "nd-a100-v4"},
    {"a100-40g", "nd-a100-v4"},
    {"a100-80g", "ndm-a100-v4"},
    {"h100", "nd-h100-v5"},
    {"h200", "nd-h200-v5"},
    {"h800", "h800"},
    {"b200", "hgx-b200"},
    {"b300", "hgx-b300"},
    {"gb200", "gb200-nvl72"},
    {"gb300", "gb300-nvl72"},
    {"gh200", "gh200"},
    {"h200-nvl", "h200-nvl"},
    {"h200_nvl", "h200-nvl"},
    {"v100", "nd40rs-v2"},
    {"mi300x", "mi300x-v5"},
    {"mi325x", "mi325x"},
    {"mi355x", "mi355x"},
    {"a100_sxm", "ndm-a100-v4"},
    {"h100_sxm", "nd-h100-v5"},
    {"vera-rubin", "vera-rubin-nvl72"},
    {"vr200", "vera-rubin-nvl72"},
    {"mi350x", "mi355x"},
    {"h20", "h20"},
    {"l20", "l20"},
    {"l40s", "l40s"},
    {"46 GB card", "l40s"},
    {"rtx3090", "rtx3090"},
    {"rtx4090", "rtx4090"},
    {"rtx5090", "rtx5090"},
    {"rtx-a5000", "rtx-a5000"},
}};

template <class T, class Load>
const T& cached(std::map<std::string, T>& cache, const std::string& name, Load load) {
  if (const auto it = cache.find(name); it != cache.end()) return it->second;
  diagnostics problems;
  loaded<T> in = load(problems);
  problems.throw_if_any();
  return cache.emplace(name, std::move(in.content)).first->second;
}

}  // namespace

const platform& input_cache::platform_named(const std::string& name) {
  const std::lock_guard lock(loading_);
  return cached(platforms_, name, [&](diagnostics& p) { return load_platform(name, data_, {}, {}, p); });
}
const stack& input_cache::stack_named(const std::string& name) {
  const std::lock_guard lock(loading_);
  return cached(stacks_, name, [&](diagnostics& p) { return load_stack({name}, data_, p); });
}
const model& input_cache::model_named(const std::string& name) {
  const std::lock_guard lock(loading_);
  return cached(models_, name, [&](diagnostics& p) { return load_model(name, data_, {}, {}, p); });
}

std::string_view platform_of_system(std::string_view system) {
  for (const auto& [from, to] : platforms_of_systems)
    if (from == system) return to;
  return {};
}

}  // namespace nvlsim
