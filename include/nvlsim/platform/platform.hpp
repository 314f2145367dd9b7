// Hardware as data: GPU, CPU, VM (compute tray), rack (NVLink domain), scale-out fabric, power and price.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/precision.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Tensor-core (or vector, for FP32 and FP64) peak of one number format, as the data sheet prints it.
struct peak_rate {
  constant<flop_rate> dense;
  std::optional<constant<flop_rate>>
      sparse;  ///< with 2:4 structured sparsity; never used unless a scenario asks for it
  std::optional<constant<energy_per_flop>> energy;  ///< dynamic energy of one operation at the cap
  friend bool operator==(const peak_rate&, const peak_rate&) = default;
};

struct gpu_spec {
  std::string name;          ///< "gb300": the key under which stacks keep measured efficiencies
  std::string architecture;  ///< "blackwell", "hopper": the key of pooled efficiencies
  bool ultra = false;        ///< the later version of the silicon of its architecture (Blackwell Ultra)
  std::array<std::optional<peak_rate>, all_precisions.size()> peaks;
  constant<bytes> hbm_nominal;        ///< as the vendor prints it; never used for fitting memory
  constant<bytes> hbm_usable;         ///< what a job can allocate
  constant<bandwidth> hbm_bandwidth;  ///< data sheet
  constant<bandwidth> hbm_stream;     ///< STREAM-like, measured
  constant<bytes> l2;
  constant<int> sm_count = 0;
  constant<rate> exponentials;  ///< special-function exponentials a second (softmax)
  constant<watts> tdp, idle_power;
  std::optional<constant<watts>> power_cap;  ///< where it is set to something else than tdp
  constant<energy_per_byte> hbm_energy;      ///< of HBM traffic
  constant<bandwidth> nvlink;                ///< one direction
  constant<int> nvlink_generation = 0;
  constant<int> nvlink_links = 0;
  constant<bandwidth> c2c;  ///< one direction, to the CPU, of one GPU (NVLink-C2C or PCIe)

  watts cap() const {
    return power_cap ? std::min<watts>(*power_cap, tdp) : tdp.read();
  }  ///< nothing makes it draw more than tdp
  /// The entry of `peaks` that bounds `p`: its own, else that of its `peak_format`; nullptr when the GPU lacks it.
  const peak_rate* peak(precision p) const;
  /// Dense peak of the format that bounds `p`; nothing when the GPU lacks it.
  std::optional<constant<flop_rate>> dense_peak(precision p) const;
  friend bool operator==(const gpu_spec&, const gpu_spec&) = default;
};

struct cpu_spec {
  std::string name;
  constant<int> cores = 0;
  constant<bytes> memory;  ///< LPDDR or DDR of one CPU, nominal
  constant<bandwidth> memory_stream;
  constant<watts> max_power, idle_power;
  friend bool operator==(const cpu_spec&, const cpu_spec&) = default;
};

struct vm_spec {
  std::string size;  ///< the cloud's name of it
  constant<int> gpus = 0, cpus = 0, vcpus = 0;
  constant<bytes> memory;  ///< visible to the guest
  constant<bytes> nvme;
  constant<bandwidth> nvme_read, nvme_write;
  constant<bandwidth> front_end;  ///< Ethernet
  friend bool operator==(const vm_spec&, const vm_spec&) = default;
};

struct rack_spec {
  constant<int> vms = 0;  ///< VMs in one NVLink domain
  constant<int> nvlink_switch_trays = 0;
  constant<int> nvlink_planes = 0;          ///< switched networks that reach every GPU; 0: links are direct
  constant<int> nvlink_levels = 1;          ///< of switches in a plane
  constant<int> nvlink_switch_ports = 0;    ///< of one switch ASIC; 0: not known
  constant<seconds> nvlink_switch_latency;  ///< one hop through a switch of a plane
  constant<int> mesh_peers = 0;  ///< without planes: GPUs with a direct link to a GPU; 0: all others of the domain
  constant<int> failed_switch_trays = 0;  ///< `gpu_spec::nvlink` of a loaded platform is what the others leave
  constant<watts> power_per_vm_other;     ///< NICs, DPUs, SSDs, fans of a tray
  constant<watts> power_per_switch_tray;
  constant<double> power_supply_efficiency = 1;
  std::optional<constant<watts>> provisioned_power;
  std::optional<constant<watts>>
      power_cap;  ///< at the supplies, what-if: what is left after CPUs, trays and switches caps the GPUs
  friend bool operator==(const rack_spec&, const rack_spec&) = default;
};

struct switch_spec {
  std::string name;
  constant<int> ports = 0;
  constant<bandwidth> port_bandwidth;  ///< one direction
  constant<seconds> latency;           ///< one hop
  bool sharp = false;                  ///< in-network reduction
  friend bool operator==(const switch_spec&, const switch_spec&) = default;
};

/// How a fat tree routes packets. [docs/collectives.md#fabric-conditions]
enum class fabric_routing {
  adaptive,  ///< avoids full and broken links
  fixed,     ///< by destination: regular traffic does not collide; traffic of a broken cable is added to another
             ///< cable
  hashed,    ///< by a hash of each connection (ECMP): some cables carry several connections
};

struct fabric_spec {
  std::string name;                       ///< "quantum-x800", "quantum-2": the key of collective profiles
  constant<bandwidth> nic_bandwidth;      ///< one GPU's share, one direction, nominal
  constant<int> gpus_per_nic = 1;         ///< GPUs of a VM that share a NIC of `gpus_per_nic` x `nic_bandwidth`
  constant<double> nic_efficiency = 1;    ///< of nominal, large messages
  constant<seconds> latency;              ///< one-way, GPU to GPU across the fabric
  switch_spec leaf;                       ///< every level uses this switch
  constant<double> oversubscription = 1;  ///< leaf down-links over up-links; 1 is non-blocking
  constant<int> pod_gpus = 0;             ///< GPUs whose leaves have spines of their own; 0: all have the same
  constant<double> pod_oversubscription = 1;  ///< links of a pod's spines down over up
  constant<int> rails = 1;                    ///< groups of leaves, each with the NICs of one place in every VM
  fabric_routing routing = fabric_routing::adaptive;
  constant<int> connections = 1;  ///< between two NICs, each hashed for itself
  constant<int> failed_spines = 0,
                failed_cables = 0;  ///< switches of the top; up-links of the leaf that lost most
  bool sharp = false;               ///< collectives may use the switches' reduction
  double busy = 1;                  ///< share of a leaf's NICs that may send at once; 1 unless all jobs are known
  double busy_of_pod = 1;           ///< the same of a pod's NICs
  bool host_driven = false;         ///< a process on the host moves every message: TCP, or no RDMA into the GPU
  friend bool operator==(const fabric_spec&, const fabric_spec&) = default;
};

struct price_spec {
  std::optional<constant<dollar_rate>> per_gpu;  ///< on-demand list price; nothing when none is public
  std::string note;
  friend bool operator==(const price_spec&, const price_spec&) = default;
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
  friend bool operator==(const platform&, const platform&) = default;
};

/// What people call the links of a GPU: "NVLink", "Infinity Fabric", or "PCIe" if it has none.
std::string_view link_name(const gpu_spec& gpu);
/// The key of stacks for the links of a GPU: "nvlink5", "infinity_fabric", "pcie".
std::string link_kind(const gpu_spec& gpu);
/// "an NVLink domain", "an Infinity Fabric domain", "a PCIe domain".
std::string a_domain(const gpu_spec& gpu);

/// Switch ASICs of all planes of one domain: one a plane, or two levels of them without oversubscription.
std::int64_t nvlink_switches(const rack_spec& rack, int gpus);

/// Maximum number of GPUs of a platform, because counts are ints.
inline constexpr double max_gpus = 1e9;

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
/// spines, and more than 10,368 GPUs need a third level. Leaves are fully cabled. Where the GPUs fill several
/// pods, each pod is such a tree whose spines have up-links to a level more. Only leaves and those spines are
/// oversubscribed. A NIC that is faster than a port takes several ports. Throws std::invalid_argument for fewer
/// than four ports, less than one GPU per NIC or an oversubscription below one.
fat_tree size_fat_tree(const fabric_spec& fabric, std::int64_t gpus);

}  // namespace nvlsim
