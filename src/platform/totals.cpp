#include "nvlsim/platform.hpp"

namespace nvlsim {
namespace {

/// At the supply's input, with every GPU and CPU at its cap.
watts rack_power(const platform& p) {
  const watts vm = p.vm.gpus * p.gpu.tdp + p.vm.cpus * p.cpu.max_power + p.rack.power_per_vm_other;
  const watts load = p.rack.vms * vm + p.rack.nvlink_switch_trays * p.rack.power_per_switch_tray;
  return load / p.rack.power_supply_efficiency;  // [docs/hardware.md#power]
}

}  // namespace

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
