// Ranks of a parallel job and the GPUs they sit on.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Megatron-LM's parallel sizes. Rank order is Megatron's default, "tp-cp-ep-dp-pp": TP varies fastest, PP
/// slowest. Expert parallelism regroups the ranks of one pipeline stage: ETP fastest, then EP.
struct parallelism {
  std::int64_t tp = 1, pp = 1, vp = 1, cp = 1, dp = 1;
  std::int64_t ep = 1, etp = 1;
  bool sequence_parallel = false;

  std::int64_t gpus() const { return tp * pp * cp * dp; }
};

/// The GPU of every rank, by its number on the platform, where ranks do not follow each other through the domains.
class rank_table {
 public:
  rank_table(std::vector<std::int64_t> gpu_of_rank, std::int64_t gpus_per_domain)
      : gpus_(std::move(gpu_of_rank)), domain_(gpus_per_domain) {}

  std::int64_t ranks() const { return static_cast<std::int64_t>(gpus_.size()); }
  std::int64_t gpu_of(std::int64_t rank) const { return gpus_[static_cast<std::size_t>(rank)]; }
  std::int64_t domain_of(std::int64_t rank) const { return gpu_of(rank) / domain_; }
  /// `count` ranks starting at `first`, `stride` apart.
  comm_group group(std::int64_t first, std::int64_t stride, std::int64_t count) const;
  /// Of all such groups, the one that spans most domains.
  comm_group worst_group(std::int64_t stride, std::int64_t count) const;

 private:
  std::vector<std::int64_t> gpus_;
  std::int64_t domain_;
  mutable std::mutex lock_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, comm_group>
      worst_;  ///< every layer asks for the same ones
};

/// Where ranks sit: consecutive ranks fill `gpus_per_domain` GPUs of one NVLink domain, then go on in the next (64
/// of 72 GPUs is how MLPerf and Megatron-Bridge jobs place segments of 16 VMs on a rack of 18); or as `table`
/// says.
struct placement {
  std::int64_t gpus_per_domain = 0;
  std::shared_ptr<const rank_table> table = {};

  std::int64_t domain_of(std::int64_t rank) const {
    return table ? table->domain_of(rank) : rank / gpus_per_domain;
  }
};

/// Blocks of `block` consecutive ranks dealt to domains in turn, so that neighbouring blocks meet on one rail: to
/// as few domains as hold `ranks` at `gpus_per_domain` GPUs each. Requires a block to fit.
placement placed_by_rail(std::int64_t ranks, std::int64_t block, std::int64_t gpus_per_domain, const platform& p);

/// Hardware as a share of what the platform says, at most 1.
struct hardware_health {
  double speed = 1;   ///< of kernels
  double nvlink = 1;  ///< of a GPU's NVLink port
  double nic = 1;     ///< of a GPU's NIC
  friend auto operator<=>(const hardware_health&, const hardware_health&) = default;
};
/// Who waits for both.
hardware_health worse(const hardware_health& a, const hardware_health& b);

/// GPUs or whole racks, by their numbers on the platform, that are not as it says.
struct degradation {
  struct range {
    std::int64_t first = 0, last = 0;  ///< inclusive
  };
  std::vector<range> gpus, racks;
  hardware_health health;
};

/// Domain size a job of `gpus` fills by default: the whole domain when the job fits in one or the domain is a
/// power of two, else the largest power of two (64 of 72).
std::int64_t default_segment(const platform& p, std::int64_t gpus);

/// Why this job cannot sit on this platform, every reason; empty when it can.
std::vector<std::string> placement_problems(const parallelism& par, const placement& place, const platform& p);

/// `count` ranks starting at `first`, `stride` apart.
comm_group strided_group(const placement& place, std::int64_t first, std::int64_t stride, std::int64_t count);

/// The group of each kind that spans most domains, over all groups of that kind.
comm_group tensor_group(const parallelism& par, const placement& place);
comm_group context_group(const parallelism& par, const placement& place);
/// Data-parallel ranks with context-parallel ranks: who shares gradients of dense parameters. In `parts` groups of
/// consecutive ranks, one of them.
comm_group data_group(const parallelism& par, const placement& place, std::int64_t parts = 1);
/// Ranks that exchange tokens with each other's experts.
comm_group expert_group(const parallelism& par, const placement& place);
/// Ranks that hold copies of the same experts: who shares their gradients.
comm_group expert_data_group(const parallelism& par, const placement& place, std::int64_t parts = 1);
/// The ranks at the same place of each of these parts, of dense parameters and of experts.
comm_group data_parts_group(const parallelism& par, const placement& place, std::int64_t parts);
comm_group expert_parts_group(const parallelism& par, const placement& place, std::int64_t parts);
/// Whether the job takes more than one domain.
bool spans_domains(const parallelism& par, const placement& place);
/// Whether any rank of stage `from` sits in another domain than its neighbour of stage `to`.
bool stages_cross(const parallelism& par, const placement& place, std::int64_t from, std::int64_t to);

}  // namespace nvlsim
