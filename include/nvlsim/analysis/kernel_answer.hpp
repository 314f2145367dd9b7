// The cost of one kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/stack/stack.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The time of one kernel and the numbers it was computed from.
struct kernel_answer {
  std::string group;  ///< parameter group in the stack, such as "gemm/fp8"
  std::string platform, gpu;
  std::string parameters_of;  ///< the GPU or architecture whose stack entry was used
  std::string formula, note;  ///< `note` may be empty
  seconds time;
  flops flop;
  bytes moved;
  std::optional<flop_rate>
      dense_peak;  ///< in the operands' format; empty when the GPU has no tensor-core peak for it
  bandwidth hbm_bandwidth;
  std::string_view resource;
  watts power;
  std::optional<kernel_spread> spread;                          ///< spread of measured kernels around the formula
  std::vector<std::pair<std::string, std::string>> parameters;  ///< name, value with unit
};

}  // namespace nvlsim
