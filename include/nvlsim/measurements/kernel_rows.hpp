// A row of a kernel table as something to price.
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

/// Loads drawn so far: rows repeat the same few hundred.
using load_cache = std::map<std::string, expert_load>;

struct kernel_row {
  validation_record record;              ///< keys filled; ok until something says otherwise
  std::string stack;                     ///< of the release it was measured with
  precision operands = precision::bf16;  ///< format that it computes in
  std::optional<double> power;           ///< read beside the latency, in W
  /// Where in a kernel profile its parameters stand: "gemm/bf16", "moe/deepgemm_fp8_block"; "" for communication,
  /// whose time stands in `record.simulated`.
  std::string family;
  /// Time with the parameters of a profile that has the family.
  std::function<kernel_cost(const gpu_spec&, const kernel_profile&)> price;
};

/// Reads a row. What cannot be priced sets `record.status` and `reason`.
kernel_row read_kernel_row(const csv_row& row, const std::string& id, const std::string& table,
                           input_cache& inputs, load_cache& loads);

/// Platform of a `system` of kernel tables; "" when there is none.
std::string_view platform_of_kernel_system(std::string_view system);

/// The family of a row as the group of parameters that prices it: "attention/fp8" is "attention" where one kernel
/// does both formats.
std::string parameter_group(const kernel_profile& k, const std::string& family);

/// Whether a profile has the parameters of `family`.
bool has_family(const kernel_profile& k, const std::string& family);

}  // namespace nvlsim
