// What one kernel costs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/stack/stack.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The price of one kernel with the numbers it was computed from.
struct kernel_answer {
  std::string group;  ///< where its parameters stand: "gemm/fp8"
  std::string platform, gpu;
  std::string parameters_of;  ///< the GPU or architecture whose entry of the stack was used
  std::string formula, note;  ///< `note` is empty when there is nothing to say
  seconds time;
  flops work;
  bytes moved;
  std::optional<flop_rate> dense_peak;  ///< of the operands' format; nothing when the GPU has none
  bandwidth hbm_bandwidth;
  std::string_view bound;
  watts power;
  std::optional<kernel_spread> spread;                          ///< of measured kernels around the formula
  std::vector<std::pair<std::string, std::string>> parameters;  ///< name, value with unit
};

}  // namespace nvlsim
