// Simulated collectives as nccl-tests prints measured ones.
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
  bytes size;  ///< nccl-tests' size, as `collective_time` takes it
  seconds time;
  std::string_view algorithm;
  seconds time_in_place = {};  ///< none: as out of place
  bool derived = false;
  double low = 0, high = 0;  ///< 90 % of measured times lie between these times `time`; 0 where nobody measured
};

/// From this size on another algorithm or protocol is taken.
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
  std::string operation = {};  ///< as it was asked for; the collective's name when empty
  std::string platform = {}, stack = {}, placement = {};
  double bus_factor = 0;  ///< busbw over algbw; the collective's own when 0
  std::vector<regime> regimes = {};
  // What nccl-tests calls its config.
  bytes begin = {}, end = {};
  std::int64_t factor = 1, step = 0, iterations = 20, warmup = 1;
};

/// What nccl-tests moves where it is asked for `size`: whole elements, and of an array of which each rank has a
/// share, as many to each, a multiple of 16 bytes. `size` where that is nothing.
bytes whole_elements(collective c, int ranks, int type_bytes, bytes size);

/// The table of nccl-tests: a first comment line that says what it is and of which platform and stack, `N/A`
/// errors, and comment lines with the average bus bandwidth and where other algorithms take over. Rows that take
/// no time show a bandwidth of 0.
std::string nccl_table(const nccl_table_head& head, std::span<const nccl_row> rows);

/// The same as nccl-tests' JSON (`-J`), without its dates, environment and NCCL version; and what that lacks:
/// `simulated`, `platform`, `stack`, `operation`, `config/ranks`, `regimes` and of each row `algorithm`, `derived`
/// and `time_band` (microseconds, in which 90 % of measured times lie; null where nobody measured).
/// [docs/collectives.md#nccl-tests]
value nccl_json(const nccl_table_head& head, std::span<const nccl_row> rows);

}  // namespace nvlsim
