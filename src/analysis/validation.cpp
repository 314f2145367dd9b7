#include "nvlsim/analysis/validation.hpp"

#include <array>
#include <cstddef>

namespace nvlsim {
namespace {

constexpr std::array<std::string_view, 5> status_names = {"ok", "infeasible", "unsupported", "error", "excluded"};

}  // namespace

std::string_view name(record_status s) { return status_names[static_cast<std::size_t>(s)]; }

std::optional<double> validation_record::error() const {
  if (status != record_status::ok || !published || !simulated) return std::nullopt;
  return *simulated / *published - 1;
}

}  // namespace nvlsim
