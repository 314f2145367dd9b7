// The free parameters of the training fit and the settings they write into stack files.
// [docs/accuracy.md#parameters-of-the-fit]
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibration/least_squares.hpp"
#include "nvlsim/measurements/training_rows.hpp"

namespace nvlsim {

inline constexpr const char* training_reference = "megatron-bridge-26.06";
/// The libraries of which the reference and all other training stacks are made.
inline constexpr const char* training_kernels = "training-kernels";
inline constexpr const char* training_library = "megatron-core";
/// The stack whose attention rates the fit scales.
inline constexpr const char* training_kernel_tables = "tensorrt-llm-1.3-kernels";
/// The other training stacks. Each has a time factor.
inline constexpr std::array<const char*, 11> fitted_releases = {
    "megatron-lm-2022",      "megatron-lm-papers",    "nemo-25.04",           "nemo-25.05",
    "mlperf-training-v4.1",  "mlperf-training-v5.0",  "mlperf-training-v5.1", "mlperf-training-v6.0",
    "megatron-bridge-25.11", "megatron-bridge-26.02", "megatron-bridge-26.04"};

/// Whether a row can be fitted: it runs, its configuration is complete, and it is not marked as suspect.
bool usable(const training_row& r);
/// Whether the training fit has the stack of a row. Other stacks are fitted as frameworks.
bool of_fitted_release(const training_row& r);

/// Whether a row's time can depend on a parameter. Other rows are not simulated again for its derivative.
using reach = std::function<bool(const training_row&)>;

struct training_parameter {
  free_parameter fitted;
  reach reaches;
};

/// All free parameters.
std::vector<training_parameter> training_parameters();

/// Parameter values by name.
class fitted_values {
 public:
  fitted_values(const std::vector<training_parameter>& list, const std::vector<double>& at) {
    for (std::size_t i = 0; i < list.size(); ++i) by_name_.emplace(list[i].fitted.name, at[i]);
  }
  double operator[](const std::string& name) const { return by_name_.at(name); }

 private:
  std::map<std::string, double> by_name_;
};

/// A setting in a stack file, from fitted parameters.
struct stack_setting {
  std::string stack, pointer, text;
};

/// All settings for a set of parameter values. `kernels` must be the stack `training_kernel_tables`.
std::vector<stack_setting> training_settings(const fitted_values& v, const stack& kernels);

}  // namespace nvlsim
