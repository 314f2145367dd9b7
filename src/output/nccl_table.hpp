// Simulated collectives as nccl-tests prints measured ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nvlsim/collectives.hpp"

namespace nvlsim {

struct nccl_row {
  bytes size;  ///< nccl-tests' size, as `collective_time` takes it
  seconds time;
  std::string_view algorithm;
};

struct nccl_table_head {
  collective kind = collective::all_reduce;
  int ranks = 1;
  std::string_view type = "float";
  int type_bytes = 4;
  std::string_view reduction = "sum";
};

/// The table of nccl-tests: a first comment line that says what it is, in-place columns equal to the out-of-place
/// ones, `N/A` errors, and comment lines with the average bus bandwidth and the algorithms by size. Rows that take no time
/// show a bandwidth of 0.
std::string nccl_table(const nccl_table_head& head, std::span<const nccl_row> rows);

}  // namespace nvlsim
