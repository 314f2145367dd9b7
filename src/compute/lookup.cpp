#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "nvlsim/compute.hpp"
#include "nvlsim/diagnostics.hpp"

namespace nvlsim {

std::string_view name(bound b) {
  constexpr std::array<std::string_view, 3> names = {"compute", "memory", "launch"};
  return names[static_cast<std::size_t>(b)];
}

const kernel_profile& kernels_for(const stack& s, const gpu_spec& gpu) {
  for (const std::string& wanted : {gpu.name, gpu.architecture})
    if (const auto it = s.kernels.find(wanted); it != s.kernels.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [name, profile] : s.kernels) known.push_back(name);
  std::string what =
      fmt::format("no kernel parameters for GPU \"{}\" of architecture \"{}\"; ", gpu.name, gpu.architecture);
  what += known.empty() ? "the stack has none" : fmt::format("the stack has {}", fmt::join(known, ", "));
  throw input_error({{fmt::format("stack {}", s.name), "/kernels", std::move(what), nearest(gpu.name, known)}});
}

}  // namespace nvlsim
