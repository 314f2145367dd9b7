#include "nvlsim/run/step_bands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace nvlsim {

double error_beyond_fit(const scenario& s) {
  const auto* w = std::get_if<training_workload>(&s.workload);
  if (!w) return 1;
  const std::string measured_rate =
      fmt::format("{}/kernels/{}/gemm/{}/tensor_rate", s.stack_at, s.platform.gpu.name, name(w->gemm_precision));
  const auto at = constant_at(s, measured_rate);
  return !at || at->kind == "assumed" ? unmeasured_widening : 1;
}

step_band step_band_of(const scenario& s) {
  const constants_unrecorded errors;
  const step_band b = step_band_90(s.platform, s.stack, s.model, std::get<training_workload>(s.workload));
  const double wider = error_beyond_fit(s);
  return {std::pow(b.low, wider), std::pow(b.high, wider)};
}

}  // namespace nvlsim
