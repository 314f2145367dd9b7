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

}  // namespace nvlsim
