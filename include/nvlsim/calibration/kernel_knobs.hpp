// The free parameters of each kernel family, for fits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

struct kernel_knob {
  std::string member;                                ///< member of the family's JSON object
  std::string unit;                                  ///< "" for a plain number
  bool per_gpu = false;                              ///< false: one value for all GPUs of an architecture
  double low = 0, high = 1;                          ///< bounds, in `unit`
  std::function<double(const kernel_profile&)> get;  ///< returns 0 if the kernels have no such part
  std::function<void(kernel_profile&, double)> set;
};

/// Parameters of a family such as "gemm/bf16", "moe/deepgemm_fp8_block" or "decode". The profile must have the
/// family.
std::vector<kernel_knob> knobs_of(const std::string& family);

}  // namespace nvlsim
