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
  std::optional<flop_rate> sparse;  ///< with 2:4 structured sparsity; never used unless a scenario asks for it
  std::optional<energy_per_flop> energy;  ///< dynamic energy of one operation at the cap
};

struct gpu_spec {
  std::string name;          ///< "gb300": the key under which stacks keep measured efficiencies
  std::string architecture;  ///< "blackwell", "hopper": the key of pooled efficiencies
  bool ultra = false;        ///< the later make of its architecture's silicon (Blackwell Ultra)
  std::array<std::optional<peak_rate>, all_precisions.size()> peaks;
  bytes hbm_nominal;        ///< as the vendor prints it; never used for fitting memory
  bytes hbm_usable;         ///< what a job can allocate
  bandwidth hbm_bandwidth;  ///< data sheet
  bandwidth hbm_stream;     ///< STREAM-like, measured
  bytes l2;
  int sm_count = 0;
  rate exponentials;  ///< special-function exponentials a second (softmax)
  watts tdp, idle_power;
  std::optional<watts> power_cap;  ///< where it is set to something else than tdp
  energy_per_byte hbm_energy;      ///< of HBM traffic
  bandwidth nvlink;                ///< one direction
  int nvlink_generation = 0;
  int nvlink_links = 0;
  bandwidth c2c;  ///< one direction, to the CPU, of one GPU (NVLink-C2C or PCIe)

  watts cap() const {
    return power_cap ? std::min(*power_cap, tdp) : tdp;
  }  ///< nothing makes it draw more than tdp
  /// The entry of `peaks` that bounds `p`: its own, else that of its `peak_format`; nullptr when the GPU lacks it.
  const peak_rate* peak(precision p) const;
  /// Dense peak of the format that bounds `p`; nothing when the GPU lacks it.
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
  std::string size;  ///< the cloud's name of it
  int gpus = 0, cpus = 0, vcpus = 0;
  bytes memory;  ///< visible to the guest
  bytes nvme;
  bandwidth nvme_read, nvme_write;
  bandwidth front_end;  ///< Ethernet
};

struct rack_spec {
  int vms = 0;  ///< VMs in one NVLink domain
  int nvlink_switch_trays = 0;
  int nvlink_planes = 0;        ///< switch ASICs, each with a link to every GPU
  int failed_switch_trays = 0;  ///< `gpu_spec::nvlink` of a loaded platform is what the others leave
  watts power_per_vm_other;     ///< NICs, DPUs, SSDs, fans of a tray
  watts power_per_switch_tray;
  double power_supply_efficiency = 1;
  std::optional<watts> provisioned_power;
  std::optional<watts>
      power_cap;  ///< at the supplies, what-if: what is left after CPUs, trays and switches caps the GPUs
};

struct switch_spec {
  std::string name;
  int ports = 0;
  bandwidth port_bandwidth;  ///< one direction
  seconds latency;           ///< one hop
  bool sharp = false;        ///< in-network reduction
};

/// How packets find their way through a fat tree. [docs/collectives.md#fabric-conditions]
enum class fabric_routing {
  adaptive,  ///< around what is full or broken
  fixed,     ///< by destination: regular traffic meets no other, a broken cable's goes on top of another's
  hashed,    ///< by a hash of each connection (ECMP): some cables get several
};

struct fabric_spec {
  std::string name;             ///< "quantum-x800", "quantum-2": the key of collective profiles
  bandwidth nic_bandwidth;      ///< one GPU's share, one direction, nominal
  int gpus_per_nic = 1;         ///< GPUs of a VM that share a NIC of `gpus_per_nic` x `nic_bandwidth`
  double nic_efficiency = 1;    ///< of nominal, large messages
  seconds latency;              ///< one-way, GPU to GPU across the fabric
  switch_spec leaf;             ///< every level uses this switch
  double oversubscription = 1;  ///< leaf down-links over up-links; 1 is non-blocking
  int rails = 1;                ///< groups of leaves, each with the NICs of one place in every VM
  fabric_routing routing = fabric_routing::adaptive;
  int connections = 1;                       ///< between two NICs, each hashed for itself
  int failed_spines = 0, failed_cables = 0;  ///< switches of the top; up-links of the leaf that lost most
  bool sharp = false;                        ///< collectives may use the switches' reduction
  bool host_driven = false;  ///< a process on the host moves every message: TCP, or no RDMA into the GPU
};

struct price_spec {
  std::optional<dollar_rate> per_gpu;  ///< on-demand list price; nothing when none is public
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

/// GPUs of a platform: counts are ints.
inline constexpr double most_gpus = 1e9;

/// CPU memory that a GPU can keep things of its own in: half of its share (assumed).
bytes cpu_room(const platform& p);

/// What a rack's power leaves each of its GPUs while CPUs, trays and switches draw their most.
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

/// A non-blocking (or oversubscribed) fat tree of equal switches.
struct fat_tree {
  int levels = 0;
  std::vector<std::int64_t> switches;  ///< per level, leaves first
  std::int64_t cables = 0;             ///< between switches
};
/// The smallest tree for the NICs of `gpus`. With 144 ports and a NIC a GPU: 4,608 are 64 leaves and 32 spines; a
/// third level appears beyond 10,368. Leaves are cabled in full; only leaves are oversubscribed; a NIC faster than
/// a port takes several. Throws std::invalid_argument for fewer than four ports, less than one GPU a NIC or an
/// oversubscription below one.
fat_tree size_fat_tree(const fabric_spec& fabric, std::int64_t gpus);

}  // namespace nvlsim
