// Reads rows of collectives.csv and of the collective tables in kernels.csv.
#pragma once

#include <functional>
#include <string>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"

namespace nvlsim {

struct collective_row {
  validation_record record;  ///< keys filled; status ok until a problem is found
  /// Location of its parameters in a collective profile: "domain/nvlink5/all_reduce",
  /// "fabric/efa-3200/all_gather", "all_to_all/efa-3200", "custom/gb300",
  /// "expert_exchange/two_sided_dispatch_bf16".
  std::string family;
  std::string platform;
  int gpus = 0;
  bytes size;       ///< of library collectives
  std::string run;  ///< of library collectives: what was measured together
  /// Computes the time with a profile. Empty if the row cannot be simulated.
  std::function<seconds(const collective_profile&)> price;
};

/// Reads a row of collectives.csv. Sets `record.status` and `reason` if it cannot be simulated.
collective_row read_collective_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Reads a row of kernels.csv whose `table` is "nccl", "allreduce" or "alltoall". Throws exceptions that
/// record_failure() handles.
void read_collective_kernel(const csv_row& row, const platform& p, collective_row& out);

/// Sets the band of a record simulated with `c` from the spread of the row's family. No band if the profile has no
/// spread.
void set_band(const collective_row& row, const collective_profile& c, validation_record& r);

/// Location of a library collective's parameters in a profile.
std::string collective_family(const platform& p, collective kind, const communicator& g);

/// The stack whose collective profile represents the library.
inline constexpr const char* collective_stack = "nccl-2.29";

}  // namespace nvlsim
