#include "study/step_errors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace nvlsim {

double error_beyond_fit(const scenario& s) {
  constexpr double nobody_measured = 2;  // assumed, as for rows of which half the layout is not known
  const auto* w = std::get_if<training_workload>(&s.workload);
  if (!w) return 1;
  const std::string measured_rate = fmt::format("/stack/kernels/{}/gemm/{}/tensor_rate", s.platform.gpu.name, name(w->gemm_precision));
  const auto at = std::find_if(s.constants.begin(), s.constants.end(), [&](const input_constant& c) { return c.pointer == measured_rate; });
  return at == s.constants.end() || at->kind == "assumed" ? nobody_measured : 1;
}

}  // namespace nvlsim
