#include "nvlsim/platform/platform.hpp"

namespace nvlsim {
namespace {

/// Power at the input of the supplies, with every GPU and CPU at its cap.
// [docs/hardware.md#power]
watts power_beside_gpus(const platform& p) {
  return p.rack.vms * (p.vm.cpus * p.cpu.max_power + p.rack.power_per_vm_other) +
         p.rack.nvlink_switch_trays * p.rack.power_per_switch_tray;
}

watts rack_power(const platform& p) {
  return (p.gpus_per_rack() * p.gpu.tdp + power_beside_gpus(p)) / p.rack.power_supply_efficiency;
}

}  // namespace

std::int64_t nvlink_switches(const rack_spec& rack, int gpus) {
  const std::int64_t planes = rack.nvlink_planes, ports = rack.nvlink_switch_ports;
  if (rack.nvlink_levels < 2 || ports < 2) return planes;
  // Half of a leaf's ports lead to GPUs, and each up-link to a spine.
  const std::int64_t leaves = (gpus + ports / 2 - 1) / (ports / 2),
                     spines = (leaves * (ports / 2) + ports - 1) / ports;
  return planes * (leaves + spines);
}

bytes cpu_room(const platform& p) {
  constexpr double share = 0.5;
  return p.vm.gpus > 0 ? p.cpu.memory * (share * p.vm.cpus / p.vm.gpus) : bytes{};
}

watts gpu_share_of(const platform& p, watts rack_power) {
  return (rack_power * p.rack.power_supply_efficiency - power_beside_gpus(p)) / p.gpus_per_rack();
}

platform_totals totals(const platform& p) {
  platform_totals t;
  t.racks = p.racks;
  t.vms = p.racks * p.rack.vms;
  t.gpus = p.gpus();
  t.cpus = t.vms * p.vm.cpus;
  t.nvlink = 2.0 * t.gpus * p.gpu.nvlink;
  t.hbm_nominal = t.gpus * p.gpu.hbm_nominal;
  t.hbm_usable = t.gpus * p.gpu.hbm_usable;
  t.lpddr = t.cpus * p.cpu.memory;
  t.nvme = t.vms * p.vm.nvme;
  if (const peak_rate* fp4 = p.gpu.peak(precision::nvfp4)) {
    t.fp4_dense = t.gpus * fp4->dense;
    t.fp4_sparse = t.gpus * fp4->sparse.value_or(flop_rate{});
  }
  t.max_power = p.racks * rack_power(p);
  return t;
}

}  // namespace nvlsim
