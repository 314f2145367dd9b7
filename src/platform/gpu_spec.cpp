#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

const peak_rate* gpu_spec::peak(precision p) const {
  for (const precision format : {p, peak_format(p)})
    if (const auto& entry = peaks[static_cast<std::size_t>(format)]) return &*entry;
  return nullptr;
}

std::optional<constant<flop_rate>> gpu_spec::dense_peak(precision p) const {
  const peak_rate* entry = peak(p);
  return entry ? std::optional(entry->dense) : std::nullopt;
}

std::string_view link_name(const gpu_spec& gpu) {
  if (gpu.nvlink_generation.peek() > 0) return "NVLink";
  return gpu.nvlink.peek() > bandwidth{} ? "Infinity Fabric" : "PCIe";
}

std::string link_kind(const gpu_spec& gpu) {
  if (const int generation = gpu.nvlink_generation; generation > 0) return "nvlink" + std::to_string(generation);
  return gpu.nvlink.peek() > bandwidth{} ? "infinity_fabric" : "pcie";
}

std::string a_domain(const gpu_spec& gpu) {
  const std::string name(link_name(gpu));
  return (name == "PCIe" ? "a " : "an ") + name + " domain";
}

}  // namespace nvlsim
