#include "output/nccl_table.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace nvlsim {
namespace {

/// nccl-tests' rule: as many of two decimals as fit the column.
std::string fitted(double x, int width) {
  int digits = 0;
  for (double limit = 1; x >= limit && digits < 300; limit *= 10) ++digits;
  const int decimals = digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0;
  return fmt::format("{:{}.{}f}", x, width, decimals);
}

bool reduces(collective c) {
  return c == collective::all_reduce || c == collective::reduce_scatter || c == collective::send_recv;
}

/// Elements of one rank's argument: all of the array, or a rank's share of it.
std::int64_t count(const nccl_table_head& head, bytes size) {
  const bool shared = head.kind == collective::all_gather || head.kind == collective::reduce_scatter ||
                      head.kind == collective::all_to_all;
  return static_cast<std::int64_t>(size.base() / head.type_bytes / (shared ? head.ranks : 1));
}

std::string algorithms(std::span<const nccl_row> rows) {
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i == 0 || rows[i].algorithm != rows[i - 1].algorithm)
      out += fmt::format("{}{} from {:.0f} B", i ? ", " : "", rows[i].algorithm, rows[i].size.base());
  return out;
}

constexpr std::string_view columns =
    "#\n"
    "#                                                              out-of-place                       in-place"
    "          \n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"
    "       \n";

}  // namespace

std::string nccl_table(const nccl_table_head& head, std::span<const nccl_row> rows) {
  std::string out = fmt::format("# simulated by nvlsim: {} of {} ranks; no GPU ran and no data were checked\n",
                                name(head.kind), head.ranks);
  out += columns;
  const std::string_view reduction = reduces(head.kind) ? head.reduction : "none";
  const int root = head.kind == collective::broadcast ? 0 : -1;
  double sum = 0;
  for (const nccl_row& r : rows) {
    const double algbw = r.time.base() > 0 ? (r.size / r.time).base() / 1e9 : 0;
    const double busbw = algbw * bus_factor(head.kind, head.ranks);
    sum += busbw;
    out += fmt::format("{:12.0f}  {:12}  {:>8}  {:>6}  {:>6}", r.size.base(), count(head, r.size), head.type,
                       reduction, root);
    const std::string half = fmt::format("  {}  {}  {}  {:>5}", fitted(r.time.base() * 1e6, 7), fitted(algbw, 6),
                                         fitted(busbw, 6), "N/A");
    out += half + half + '\n';
  }
  out += "# Out of bounds values : 0 OK\n";
  const double average = rows.empty() ? 0 : sum / static_cast<double>(rows.size());
  out += fmt::format("# Avg bus bandwidth    : {:g} \n#\n", average);
  if (!rows.empty()) out += fmt::format("# Algorithms           : {}\n", algorithms(rows));
  return out;
}

}  // namespace nvlsim
