#include <array>

#include "nvlsim/analysis/result.hpp"

namespace nvlsim {

std::string_view name(run_status s) {
  static constexpr std::array<std::string_view, 4> names = {"ok", "saturated", "infeasible", "error"};
  return names[static_cast<std::size_t>(s)];
}

}  // namespace nvlsim
