#include "nvlsim/analysis/job_energy.hpp"

namespace nvlsim {

job_energy energy_of_job(const platform& p, joules gpu_energy, std::int64_t gpus, seconds time) {
  const double vms = static_cast<double>(gpus) / p.vm.gpus;
  const double racks = vms / p.rack.vms;
  job_energy e;
  e.gpus = gpu_energy;
  e.cpus = p.cpu.idle_power * (vms * p.vm.cpus) * time;
  e.trays_and_switches =
      (p.rack.power_per_vm_other * vms + p.rack.power_per_switch_tray * (p.rack.nvlink_switch_trays * racks)) *
      time;
  const joules useful = e.gpus + e.cpus + e.trays_and_switches;
  e.supply_losses = useful / p.rack.power_supply_efficiency - useful;
  return e;
}

}  // namespace nvlsim
