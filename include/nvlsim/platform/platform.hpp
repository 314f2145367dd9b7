// Hardware as data: GPU, CPU, VM (compute tray), rack (NVLink domain), scale-out fabric, power and price.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Tensor-core (or vector, for FP32 and FP64) peak of one number format, as the data sheet prints it.
struct peak_rate {
  flop_rate dense;
  std::optional<flop_rate> sparse;        ///< with 2:4 structured sparsity; used only if a scenario asks for it
  std::optional<energy_per_flop> energy;  ///< dynamic energy of one operation at the cap
};

struct gpu_spec {
  std::string name;          ///< "gb300": the key under which stacks keep measured efficiencies
  std::string architecture;  ///< "blackwell", "hopper": the key of pooled efficiencies
  bool ultra = false;        ///< the later version of the silicon of its architecture (Blackwell Ultra)
  std::array<std::optional<peak_rate>, all_precisions.size()> peaks;
  bytes hbm_nominal;        ///< as the vendor states it; not used to check whether a job fits
  bytes hbm_usable;         ///< available to a job
  bandwidth hbm_bandwidth;  ///< data sheet
  bandwidth hbm_stream;     ///< STREAM-like, measured
  bytes l2;
  int sm_count = 0;
  rate exponentials;  ///< exponentials per second in special-function units (softmax)
  watts tdp, idle_power;
  std::optional<watts> power_cap;  ///< if it differs from tdp
  energy_per_byte hbm_energy;      ///< of HBM traffic
  bandwidth nvlink;                ///< one direction
  int nvlink_generation = 0;
  int nvlink_links = 0;
  bandwidth c2c;  ///< one direction, to the CPU, of one GPU (NVLink-C2C or PCIe)

  watts cap() const { return power_cap ? std::min(*power_cap, tdp) : tdp; }  ///< a cap above tdp has no effect
  /// The entry of `peaks` for `p`: its own, else that of its `peak_format`; nullptr if the GPU has neither.
  const peak_rate* peak(precision p) const;
  /// Dense peak for `p`, as `peak` finds it; nothing if the GPU has none.
  std::optional<flop_rate> dense_peak(precision p) const;
};

struct cpu_spec {
  std::string name;
  int cores = 0;
  bytes memory;  ///< LPDDR or DDR of one CPU, nominal
  bandwidth memory_stream;
  watts max_power, idle_power;
};

struct vm_spec {
  std::string size;  ///< its name in the cloud
  int gpus = 0, cpus = 0, vcpus = 0;
  bytes memory;  ///< visible to the guest
  bytes nvme;
  bandwidth nvme_read, nvme_write;
  bandwidth front_end;  ///< Ethernet
};

struct rack_spec {
  int vms = 0;  ///< in one NVLink domain
  int nvlink_switch_trays = 0;
  int nvlink_planes = 0;        ///< switch ASICs, each with a link to every GPU
  int failed_switch_trays = 0;  ///< a loaded platform's `gpu_spec::nvlink` already accounts for them
  watts power_per_vm_other;     ///< NICs, DPUs, SSDs and fans of a tray
  watts power_per_switch_tray;
  double power_supply_efficiency = 1;
  std::optional<watts> provisioned_power;
  std::optional<watts>
      power_cap;  ///< what-if, at the supplies: the power left after CPUs, trays and switches caps the GPUs
};

struct switch_spec {
  std::string name;
  int ports = 0;
  bandwidth port_bandwidth;  ///< one direction
  seconds latency;           ///< one hop
  bool sharp = false;        ///< in-network reduction
};

/// How a fat tree routes packets. [docs/collectives.md#fabric-conditions]
enum class fabric_routing {
  adaptive,  ///< avoids full and broken links
  fixed,     ///< by destination: regular traffic does not collide; traffic of a broken cable is added to another
             ///< cable
  hashed,    ///< by a hash of each connection (ECMP): some cables carry several connections
};

struct fabric_spec {
  std::string name;             ///< "quantum-x800", "quantum-2": the key of collective profiles
  bandwidth nic_bandwidth;      ///< one GPU's share, one direction, nominal
  int gpus_per_nic = 1;         ///< GPUs of a VM that share a NIC of `gpus_per_nic` x `nic_bandwidth`
  double nic_efficiency = 1;    ///< share of the nominal bandwidth, for large messages
  seconds latency;              ///< one-way, GPU to GPU across the fabric
  switch_spec leaf;             ///< every level uses this switch
  double oversubscription = 1;  ///< leaf down-links over up-links; 1 is non-blocking
  int rails = 1;                ///< groups of leaves; each serves the NICs at one position of every VM
  fabric_routing routing = fabric_routing::adaptive;
  int connections = 1;                       ///< between two NICs, each hashed separately
  int failed_spines = 0, failed_cables = 0;  ///< top-level switches; up-links of the leaf that lost the most
  bool sharp = false;                        ///< collectives may use the reduction of the switches
  bool host_driven = false;                  ///< a host process moves every message: TCP, or no RDMA to the GPU
};

struct price_spec {
  std::optional<dollar_rate> per_gpu;  ///< on-demand list price; nothing if none is public
  std::string note;
};

struct platform {
  std::string name;
  std::string description;
  gpu_spec gpu;
  cpu_spec cpu;
  vm_spec vm;
  rack_spec rack;
  fabric_spec fabric;
  price_spec price;
  int racks = 1;

  int gpus_per_rack() const { return rack.vms * vm.gpus; }
  int gpus() const { return racks * gpus_per_rack(); }
};

/// Maximum number of GPUs of a platform, because counts are ints.
inline constexpr double most_gpus = 1e9;

/// CPU memory that a GPU can use to offload data: half of its share (assumed).
bytes cpu_room(const platform& p);

/// Power that `rack_power` leaves for each GPU while CPUs, trays and switches draw their maximum.
watts gpu_share_of(const platform& p, watts rack_power);

/// Sums over all racks of a platform.
struct platform_totals {
  int racks = 0, vms = 0, gpus = 0, cpus = 0;
  bandwidth nvlink;  ///< both directions
  bytes hbm_nominal, hbm_usable, lpddr, nvme;
  flop_rate fp4_dense, fp4_sparse;  ///< zero when the GPU has no FP4
  watts max_power;                  ///< GPUs and CPUs at their caps, trays, switches, supply losses
};
platform_totals totals(const platform& p);

/// A fat tree of equal switches, non-blocking or oversubscribed.
struct fat_tree {
  int levels = 0;
  std::vector<std::int64_t> switches;  ///< per level, leaves first
  std::int64_t cables = 0;             ///< between switches
};
/// The smallest tree for the NICs of `gpus`. With 144 ports and a NIC per GPU, 4,608 GPUs need 64 leaves and 32
/// spines, and more than 10,368 GPUs need a third level. Leaves are fully cabled, and only they are
/// oversubscribed. A NIC that is faster than a port takes several ports. Throws std::invalid_argument for fewer
/// than four ports, less than one GPU per NIC or an oversubscription below one.
fat_tree size_fat_tree(const fabric_spec& fabric, std::int64_t gpus);

}  // namespace nvlsim
