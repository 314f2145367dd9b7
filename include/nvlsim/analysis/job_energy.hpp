// Energy of a job by consumer.
#pragma once

#include <cstdint>

#include "nvlsim/platform/platform.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct job_energy {
  joules gpus, cpus, trays_and_switches, supply_losses;
  joules total() const { return gpus + cpus + trays_and_switches + supply_losses; }
};

/// Adds the job's share of host, rack and power-supply energy to the energy of `gpus` GPUs over `time`. CPUs count
/// at idle power (they launch kernels and wait), trays and switches at their stated power.
job_energy energy_of_job(const platform& p, joules gpu_energy, std::int64_t gpus, seconds time);

}  // namespace nvlsim
