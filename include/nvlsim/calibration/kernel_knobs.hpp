// The free parameters of each family of kernels, as a fit sees them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

struct kernel_knob {
  std::string member;                                ///< of the family's JSON object
  std::string unit;                                  ///< "" for a plain number
  bool per_gpu = false;                              ///< else one value for all GPUs of an architecture
  double low = 0, high = 1;                          ///< in that unit
  std::function<double(const kernel_profile&)> get;  ///< zero where the kernels have no such part
  std::function<void(kernel_profile&, double)> set;
};

/// Those of "gemm/bf16", "moe/deepgemm_fp8_block", "decode" and so on; a profile must have the family.
std::vector<kernel_knob> knobs_of(const std::string& family);

}  // namespace nvlsim
