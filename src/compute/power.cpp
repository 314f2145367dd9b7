#include <algorithm>

#include "nvlsim/compute/compute.hpp"

namespace nvlsim {
namespace {

// Without a measured energy, the dense peak is assumed to draw all the power between idle and the cap.
energy_per_flop energy_of(const gpu_spec& gpu, precision operands) {
  const peak_rate* peak = gpu.peak(operands);
  if (!peak) return {};
  if (peak->energy) return *peak->energy;
  return peak->dense.base() > 0 ? (gpu.tdp - gpu.idle_power) / peak->dense : energy_per_flop{};
}

}  // namespace

// [docs/models-and-assumptions.md#power]
watts kernel_power(const gpu_spec& gpu, precision operands, const kernel_cost& c) {
  if (!(c.time.base() > 0)) return gpu.idle_power;
  const watts memory = gpu.hbm_energy * (c.moved / c.time);
  const watts arithmetic = energy_of(gpu, operands) * (c.flop / c.time);
  const watts rest = (gpu.tdp - gpu.idle_power) * c.activity;
  // The clock of the SMs gives way at the cap. What a byte costs does not: memory that is faster than what was
  // measured draws more, unless a cap is asked for.
  const watts traffic = gpu.idle_power + memory;
  if (traffic > gpu.cap() && !gpu.power_cap) return traffic;
  return std::min(traffic + arithmetic + rest, gpu.cap());
}

}  // namespace nvlsim
