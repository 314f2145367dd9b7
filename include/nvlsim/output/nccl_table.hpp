// Prints simulated collectives in the format of nccl-tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/config/value.hpp"

namespace nvlsim {

struct nccl_row {
  bytes size;  ///< size as in nccl-tests and `collective_time`
  seconds time;
  std::string_view algorithm;
  seconds time_in_place = {};  ///< 0: same as out of place
  bool derived = false;
  double low = 0, high = 0;  ///< 90 % of measured times lie between low * time and high * time; 0 if not measured
};

/// The algorithm and protocol used from a size on.
struct regime {
  bytes from;
  std::string_view algorithm;
};

struct nccl_table_head {
  collective kind = collective::all_reduce;
  int ranks = 1;
  std::string_view type = "float";
  int type_bytes = 4;
  std::string_view reduction = "sum";
  int root = 0;
  std::string operation = {};  ///< name as given by the user; empty: the collective's name
  std::string platform = {}, stack = {}, placement = {};
  double bus_factor = 0;  ///< busbw / algbw; 0: the collective's default
  std::vector<regime> regimes = {};
  // nccl-tests' "config".
  bytes begin = {}, end = {};
  std::int64_t factor = 1, step = 0, iterations = 20, warmup = 1;
};

/// The size nccl-tests uses for a requested `size`. Rounds to whole elements; if each rank holds a share of the
/// array, to equal shares that are multiples of 16 bytes. Returns `size` if the result would be 0.
bytes whole_elements(collective c, int ranks, int type_bytes, bytes size);

/// The table of nccl-tests. A first comment line names nvlsim, platform and stack. Error counts are `N/A`. Comment
/// lines at the end give the average bus bandwidth and the sizes where the algorithm changes. Rows that take no
/// time show a bandwidth of 0.
std::string nccl_table(const nccl_table_head& head, std::span<const nccl_row> rows);

/// The same as nccl-tests' JSON (`-J`), without dates, environment and NCCL version. Adds `simulated`, `platform`,
/// `stack`, `operation`, `config/ranks` and `regimes`, and per row `algorithm`, `derived` and `time_band`
/// (microseconds; contains 90 % of measured times; null if not measured). [docs/collectives.md#nccl-tests]
value nccl_json(const nccl_table_head& head, std::span<const nccl_row> rows);

}  // namespace nvlsim
