#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "compute/smooth.hpp"

namespace nvlsim {
namespace {

using compute::cube;

// Sides of the output tiles in GEMM libraries. At least one side of a tile is 64, 128 or 256.
constexpr std::array sides = {16.0, 32.0, 64.0, 128.0, 192.0, 256.0};
constexpr auto wide = [](double side) { return side == 64 || side == 128 || side == 256; };

struct tile {
  std::uint8_t m, n;  // indices into `sides`
};

// Both orientations, each tile once.
constexpr auto tiles = [] {
  std::array<tile, 27> out{};
  std::size_t used = 0;
  for (std::uint8_t m = 0; m < sides.size(); ++m)
    for (std::uint8_t n = 0; n < sides.size(); ++n)
      if (wide(sides[m]) || wide(sides[n])) out.at(used++) = {m, n};
  return out;
}();

constexpr double split_element_bytes = 8;  // per element of a partial sum, written and read in FP32
constexpr std::array splits = {1.0, 2.0, 4.0, 8.0};

// Libraries choose tiles that fill the last wave well: the empty part of a wave costs only this share of its time.
constexpr double wave_rounding = 0.1;  // [docs/models-and-assumptions.md#gemm]

double waves(double items_per_sm) {
  if (items_per_sm <= 1) return 1;
  if (items_per_sm > 1e15) return items_per_sm;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(items_per_sm));
  const double up = items_per_sm > whole ? whole + 1 : whole;
  return items_per_sm + wave_rounding * (up - items_per_sm);
}

struct tile_work {
  std::array<double, tiles.size()> items_per_sm;  // output tiles per SM
  std::array<double, tiles.size()> step_cubed;    // time per unit of k of one tile, cubed
};

constexpr double sparse_index_bytes = 0.125;  // 2 bits for each of the two values kept of four

tile_work work_of(const gpu_spec& gpu, const gemm_params& p, const gemm_shape& s, double rate) {
  std::array<double, sides.size()> rows, columns;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    rows[i] = std::ceil(s.m / sides[i]);
    columns[i] = std::ceil(s.n / sides[i]);
  }
  const double per_sm = s.groups / gpu.sm_count;
  const double element_time = 2.0 * gpu.sm_count / rate;
  const double shortest = cube(p.step_time.base());
  tile_work w;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const auto [m, n] = tiles[t];
    w.items_per_sm[t] = rows[m] * columns[n] * per_sm;
    w.step_cubed[t] = shortest + cube(element_time * sides[m] * sides[n]);
  }
  return w;
}

// Cube of the time per unit of k of the best tile, if every tile is split into `split` parts along k.
double best_cubed(const tile_work& w, double split) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < tiles.size(); ++t)
    best = std::min(best, cube(waves(w.items_per_sm[t] * split)) * w.step_cubed[t]);
  return best;
}

struct product {
  double time = std::numeric_limits<double>::infinity();
  double compute = 0, memory = 0, bytes = 0;
};

// The fastest of all tiles and splits.
product best_product(const gpu_spec& gpu, const gemm_params& p, double element, const gemm_shape& s,
                     double speedup) {
  const tile_work w = work_of(gpu, p, s, p.tensor_rate.base() * speedup);
  const double hbm = gpu.hbm_bandwidth.base() * p.hbm_share;
  const double outputs = s.groups * s.m * s.n;
  double weight = s.weight_element_bytes > 0 ? s.weight_element_bytes : element;
  if (s.sparse) weight = weight / 2 + sparse_index_bytes;
  const double io = s.groups * (s.n * weight + s.m * element) * s.k + outputs * s.output_element_bytes;
  const double hot = s.repeated && io < compute::resident_share * gpu.l2.base() ? p.l2_speedup.read() : 1;
  product best;
  for (const double split : splits) {
    if (split > 1 && !p.split_time) break;
    product x;
    x.bytes = io + (split > 1 ? split_element_bytes * split * outputs : 0);
    x.memory = x.bytes / (hbm * hot);
    const double extra = split > 1 ? p.split_time->base() : 0;
    constexpr double rounding = 1e-12;
    if (x.memory * (1 - rounding) + extra >= best.time) break;  // further splits move more
    const double compute_cubed = best_cubed(w, split) * cube(s.k / split + p.fill_depth);
    x.time = std::cbrt(compute_cubed + cube(x.memory)) + extra;
    if (x.time >= best.time) continue;
    best = x;
    best.compute = compute_cubed;
  }
  best.compute = std::cbrt(best.compute);
  return best;
}

}  // namespace

// [docs/models-and-assumptions.md#gemm]
kernel_cost gemm_cost(const gpu_spec& gpu, const gemm_params& p, precision operands, const gemm_shape& s) {
  if (!(s.m > 0 && s.n > 0 && s.k > 0 && s.groups > 0)) return {};
  const double element = bytes_per_element(operands);
  const peak_rate* peak = gpu.peak(operands);
  const double speedup = s.sparse && peak && peak->sparse ? *peak->sparse / peak->dense : 1;
  const product best = best_product(gpu, p, element, s, speedup);
  const double cast_bytes = p.cast_passes * s.groups * s.m * s.k * (2 + element);
  const double rows_time = p.cast_passes > 0 ? p.cast_row_time.base() * s.groups * s.m : 0;
  const double cast_time = std::max(cast_bytes / (gpu.hbm_bandwidth.base() * p.hbm_share), rows_time);
  const double epilogue_bytes = p.output_bytes * s.groups * s.m * s.n;
  const double epilogue_time = epilogue_bytes / gpu.hbm_stream.base();
  const double time = p.launch.base() + best.time + cast_time + epilogue_time;
  return {.time = seconds::from_base(time),
          .flop = flops::from_base(2 * s.groups * s.m * s.n * s.k),
          .moved = bytes::from_base(best.bytes + cast_bytes + epilogue_bytes),
          .limit = compute::limit_of(p.launch.base(), best.compute, best.memory + cast_time + epilogue_time, time),
          .launch = p.launch};
}

}  // namespace nvlsim
