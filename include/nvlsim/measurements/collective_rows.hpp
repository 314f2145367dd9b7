// Rows of collectives.csv, and of the collective tables of kernels.csv, as something to price.
#pragma once

#include <functional>
#include <string>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"

namespace nvlsim {

struct collective_row {
  validation_record record;  ///< keys filled; ok until something says otherwise
  /// Where in a collective profile its parameters stand: "domain/nvlink5/all_reduce",
  /// "fabric/efa-3200/all_gather", "all_to_all/efa-3200", "custom/gb300",
  /// "expert_exchange/two_sided_dispatch_bf16".
  std::string family;
  std::string platform;
  int gpus = 0;
  /// Time with a profile; empty when the row cannot be priced.
  std::function<seconds(const collective_profile&)> price;
};

/// Reads a row of collectives.csv. What cannot be priced sets `record.status` and `reason`.
collective_row read_collective_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Reads a row of kernels.csv whose `table` is "nccl", "allreduce" or "alltoall". Throws what record_failure()
/// takes.
void read_collective_kernel(const csv_row& row, const platform& p, collective_row& out);

/// The band of a record that was simulated with `c`, of the row's family; none where the profile knows no spread.
void set_band(const collective_row& row, const collective_profile& c, validation_record& r);

/// Where the parameters of a library's collective stand.
std::string collective_family(const platform& p, collective kind, const comm_group& g);

/// The stack whose collective profile stands for the library's.
inline constexpr const char* collective_stack = "nccl-2.29";

}  // namespace nvlsim
