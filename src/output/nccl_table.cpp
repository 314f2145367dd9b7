#include "nvlsim/output/nccl_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nvlsim {
namespace {

/// Formats as nccl-tests does: up to two decimals if they fit in the column, else an exponent.
std::string fitted(double x, int width) {
  int digits = 0;
  for (double limit = 1; x >= limit && digits < 300; limit *= 10) ++digits;
  if (digits > width) return fmt::format("{:{}.{}e}", x, width, width >= 7 ? 1 : 0);
  const int decimals = digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0;
  return fmt::format("{:{}.{}f}", x, width, decimals);
}

bool reduces(collective c) {
  return c == collective::all_reduce || c == collective::reduce_scatter || c == collective::send_recv ||
         c == collective::reduce;
}

/// Whether each rank holds a share of the array.
bool shared(collective c) {
  return c == collective::all_gather || c == collective::reduce_scatter || c == collective::all_to_all;
}

/// Number of elements in a rank's argument: the whole array or the rank's share.
std::int64_t count(const nccl_table_head& head, bytes size) {
  return static_cast<std::int64_t>(size.base() / head.type_bytes / (shared(head.kind) ? head.ranks : 1));
}

int root_of(const nccl_table_head& head) {
  return head.kind == collective::broadcast || head.kind == collective::reduce ? head.root : -1;
}

std::string_view operation_of(const nccl_table_head& head) {
  return head.operation.empty() ? name(head.kind) : std::string_view(head.operation);
}

/// The name that nccl-tests' program for the operation has or would have.
std::string program_of(const nccl_table_head& head) {
  const std::string_view word = operation_of(head);
  return fmt::format("{}_perf", word == "all_to_all" ? "alltoall" : word == "send_recv" ? "sendrecv" : word);
}

/// Time in microseconds and rates in GB/s.
struct rates {
  double time, algbw, busbw;
};
rates rates_of(const nccl_table_head& head, bytes size, seconds t) {
  const double algbw = t.base() > 0 ? (size / t).base() / 1e9 : 0;
  return {t.base() * 1e6, algbw,
          algbw * (head.bus_factor > 0 ? head.bus_factor : bus_factor(head.kind, head.ranks))};
}
rates in_place(const nccl_table_head& head, const nccl_row& r) {
  return rates_of(head, r.size, r.time_in_place > seconds{} ? r.time_in_place : r.time);
}

double average(const nccl_table_head& head, std::span<const nccl_row> rows) {
  double sum = 0;
  for (const nccl_row& r : rows) sum += rates_of(head, r.size, r.time).busbw + in_place(head, r).busbw;
  return rows.empty() ? 0 : sum / (2 * static_cast<double>(rows.size()));
}

constexpr std::string_view nccl_columns =
    "#\n"
    "#                                                              out-of-place                       in-place"
    "          \n"
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   "
    "busbw"
    "  #wrong \n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  "
    "(GB/s)"
    "         \n";

std::string title(const nccl_table_head& head) {
  std::string out = fmt::format("# simulated by nvlsim: {} of {} ranks", operation_of(head), head.ranks);
  if (!head.placement.empty()) out += fmt::format(" ({})", head.placement);
  if (!head.platform.empty()) out += fmt::format(" on {} with {}", head.platform, head.stack);
  out += "; no GPU ran and no data were checked\n";
  const bool by_factor = head.factor > 1;
  return out + fmt::format(
                   "# Collective test starting: {}\n"
                   "# nThread 1 nGpus 1 minBytes {:.0f} maxBytes {:.0f} step: {}({}) warmup iters: {} iters: {} "
                   "agg iters: 1 validation: 0 graph: 0 unalign: 0\n",
                   program_of(head), head.begin.base(), head.end.base(), by_factor ? head.factor : head.step,
                   by_factor ? "factor" : "bytes", head.warmup, head.iterations);
}

std::string closing(const nccl_table_head& head, std::span<const nccl_row> rows) {
  std::string out;
  for (const regime& r : head.regimes)
    out += fmt::format("# From {:>12.0f} B     : {}\n", r.from.base(), r.algorithm);
  const auto derived = std::count_if(rows.begin(), rows.end(), [](const nccl_row& r) { return r.derived; });
  if (derived > 0)
    out += fmt::format("# {} of {} rows use parameters derived from hardware specifications, not measured\n",
                       derived, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const nccl_row& r = rows[i];
    if (r.low <= 0 || (i > 0 && r.low == rows[i - 1].low && r.high == rows[i - 1].high)) continue;
    out +=
        fmt::format("# From {:>12.0f} B     : 90 % of measured times lie within {:+.0f} and {:+.0f} % of these\n",
                    r.size.base(), 100 * (r.low - 1), 100 * (r.high - 1));
  }
  return out;
}

value as_json(const rates& r) {
  value out{value::object{}};
  out.set("time", r.time);
  out.set("alg_bw", r.algbw);
  out.set("bus_bw", r.busbw);
  out.set("nwrong", value{});
  return out;
}

value config_of(const nccl_table_head& head) {
  value out{value::object{}};
  out.set("ranks", head.ranks);
  out.set("nthreads", 1);
  out.set("ngpus", 1);
  out.set("minimum_bytes", static_cast<std::int64_t>(head.begin.base()));
  out.set("maximum_bytes", static_cast<std::int64_t>(head.end.base()));
  if (head.factor > 1) out.set("step_factor", head.factor);
  else out.set("step_bytes", head.step);
  out.set("warmup_iters", head.warmup);
  out.set("iterations", head.iterations);
  out.set("aggregated_iterations", 1);
  out.set("validation", 0);
  out.set("graph", 0);
  for (const char* off : {"blocking_collectives", "per_iter_timing", "parallel_init"}) out.set(off, "false");
  out.set("devices", value{value::array{}});
  return out;
}

/// The nccl-tests arguments for this measurement.
value arguments_of(const nccl_table_head& head) {
  value out{value::array{program_of(head)}};
  const auto add = [&](const char* option, std::string text) {
    out.items()->emplace_back(option);
    out.items()->emplace_back(std::move(text));
  };
  add("-b", fmt::format("{:.0f}", head.begin.base()));
  add("-e", fmt::format("{:.0f}", head.end.base()));
  if (head.factor > 1) add("-f", fmt::format("{}", head.factor));
  else add("-i", fmt::format("{}", head.step));
  add("-w", fmt::format("{}", head.warmup));
  add("-n", fmt::format("{}", head.iterations));
  add("-d", std::string(head.type));
  add("-o", head.reduction.empty() ? "sum" : std::string(head.reduction));
  add("-r", fmt::format("{}", head.root));
  return out;
}

}  // namespace

std::string nccl_table(const nccl_table_head& head, std::span<const nccl_row> rows) {
  std::string out = title(head);
  out += nccl_columns;
  const std::string_view reduction = reduces(head.kind) ? head.reduction : "none";
  for (const nccl_row& r : rows) {
    out += fmt::format("{:12.0f}  {:12}  {:>8}  {:>6}  {:>6}", r.size.base(), count(head, r.size), head.type,
                       reduction, root_of(head));
    for (const rates& x : {rates_of(head, r.size, r.time), in_place(head, r)})
      out += fmt::format("  {}  {}  {}  {:>5}", fitted(x.time, 7), fitted(x.algbw, 6), fitted(x.busbw, 6), "N/A");
    out += '\n';
  }
  out += "# Out of bounds values : 0 OK\n";
  out += fmt::format("# Avg bus bandwidth    : {:g} \n#\n", average(head, rows));
  return out + closing(head, rows) + fmt::format("# Collective test concluded: {}\n", program_of(head));
}

bytes whole_elements(collective c, int ranks, int type_bytes, bytes size) {
  double each = std::floor(size.base() / type_bytes / (shared(c) ? ranks : 1));
  if (shared(c)) each -= std::fmod(each, std::max(1, 16 / type_bytes));
  const double moved = each * type_bytes * (shared(c) ? ranks : 1);
  return moved > 0 ? bytes::from_base(moved) : size;
}

value nccl_json(const nccl_table_head& head, std::span<const nccl_row> rows) {
  value results{value::array{}};
  for (const nccl_row& r : rows) {
    value x{value::object{}};
    x.set("size", static_cast<std::int64_t>(r.size.base()));
    x.set("count", count(head, r.size));
    x.set("type", head.type);
    x.set("redop", reduces(head.kind) ? head.reduction : "none");
    x.set("root", std::to_string(root_of(head)));
    x.set("out_of_place", as_json(rates_of(head, r.size, r.time)));
    x.set("in_place", as_json(in_place(head, r)));
    x.set("actual_iterations", head.iterations);
    x.set("experiment_name", operation_of(head));
    x.set("algorithm", r.algorithm);
    x.set("derived", r.derived);
    const double us = r.time.base() * 1e6;
    x.set("time_band", r.low > 0 ? value{value::array{us * r.low, us * r.high}} : value{});
    results.items()->push_back(std::move(x));
  }
  value regimes{value::array{}};
  for (const regime& g : head.regimes) {
    value x{value::object{}};
    x.set("from_bytes", static_cast<std::int64_t>(g.from.base()));
    x.set("algorithm", g.algorithm);
    regimes.items()->push_back(std::move(x));
  }
  value errors{value::object{}}, mean{value::object{}}, out{value::object{}};
  errors.set("count", 0);
  errors.set("okay", "true");  // nccl-tests writes a string here
  mean.set("bandwidth", average(head, rows));
  mean.set("okay", "unchecked");
  out.set("simulated", true);
  out.set("platform", head.platform);
  out.set("stack", head.stack);
  out.set("operation", operation_of(head));
  out.set("version", 2);
  out.set("args", arguments_of(head));
  out.set("config", config_of(head));
  out.set("results", std::move(results));
  out.set("out_of_bounds", std::move(errors));
  out.set("average_bus_bandwidth", std::move(mean));
  out.set("errors", value{value::array{}});
  out.set("regimes", std::move(regimes));
  return out;
}

}  // namespace nvlsim
