// Reads rows of kernel tables.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"

namespace nvlsim {

/// Caches expert loads: rows repeat the same few hundred.
using load_cache = std::map<std::string, expert_load>;

struct kernel_row {
  validation_record record;              ///< keys filled; status ok until a problem is found
  std::string stack;                     ///< stack of the measured release
  precision operands = precision::bf16;  ///< precision of the computation
  std::optional<double> power;           ///< measured power, in W
  /// Location of its parameters in a kernel profile: "gemm/bf16", "moe/deepgemm_fp8_block". "" for communication,
  /// whose time is in `record.simulated`.
  std::string family;
  /// Computes the cost with a profile. Requires that the profile has the family.
  std::function<kernel_cost(const gpu_spec&, const kernel_profile&)> price;
};

/// Reads a row. Sets `record.status` and `reason` if it cannot be simulated.
kernel_row read_kernel_row(const csv_row& row, const std::string& id, const std::string& table,
                           input_cache& inputs, load_cache& loads);

/// The platform for a `system` of kernel tables. "" if unknown.
std::string_view platform_of_kernel_system(std::string_view system);

/// The parameter group used for a row's family. "attention/fp8" maps to "attention" if one kernel handles both
/// formats.
std::string parameter_group(const kernel_profile& k, const std::string& family);

/// Whether a profile has the parameters of `family`.
bool has_family(const kernel_profile& k, const std::string& family);

}  // namespace nvlsim
