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

/// The GPU number of every rank, for ranks that do not fill the domains in order.
class rank_table {
 public:
  rank_table(std::vector<std::int64_t> gpu_of_rank, std::int64_t gpus_per_domain)
      : gpus_(std::move(gpu_of_rank)), domain_(gpus_per_domain) {}

  std::int64_t ranks() const { return static_cast<std::int64_t>(gpus_.size()); }
  std::int64_t gpu_of(std::int64_t rank) const { return gpus_[static_cast<std::size_t>(rank)]; }
  std::int64_t domain_of(std::int64_t rank) const { return gpu_of(rank) / domain_; }
  /// `count` ranks starting at `first`, `stride` apart.
  communicator group(std::int64_t first, std::int64_t stride, std::int64_t count) const;
  /// The one of all such groups that spans the most domains.
  communicator worst_group(std::int64_t stride, std::int64_t count) const;

 private:
  std::vector<std::int64_t> gpus_;
  std::int64_t domain_;
  mutable std::mutex lock_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, communicator>
      worst_;  ///< every layer needs the same ones
};

/// The placement of ranks. Consecutive ranks fill `gpus_per_domain` GPUs of one NVLink domain, then those of the
/// next. (MLPerf and Megatron-Bridge jobs use 64 of 72 GPUs: segments of 16 VMs on a rack of 18.) With a `table`,
/// ranks are placed as it says.
struct placement {
  std::int64_t gpus_per_domain = 0;
  std::shared_ptr<const rank_table> table = {};

  std::int64_t domain_of(std::int64_t rank) const {
    return table ? table->domain_of(rank) : rank / gpus_per_domain;
  }
};

/// Deals blocks of `block` consecutive ranks to domains in turn, so that neighbouring blocks share a rail. Uses
/// the fewest domains that hold `ranks` at `gpus_per_domain` GPUs each. Requires that a block fits in a domain.
placement placed_by_rail(std::int64_t ranks, std::int64_t block, std::int64_t gpus_per_domain, const platform& p);

/// Performance of degraded hardware as a share of the platform's, at most 1.
struct hardware_health {
  double speed = 1;   ///< of kernels on a GPU
  double nvlink = 1;  ///< of a GPU's NVLink port
  double nic = 1;     ///< of a GPU's NIC
  friend auto operator<=>(const hardware_health&, const hardware_health&) = default;
};
/// The lower of two healths, member by member, for work that waits for both.
hardware_health worse(const hardware_health& a, const hardware_health& b);

/// Degraded GPUs or racks, by their numbers on the platform.
struct degradation {
  struct range {
    std::int64_t first = 0, last = 0;  ///< inclusive
  };
  std::vector<range> gpus, racks;
  hardware_health health;
};

/// The default number of GPUs that a job of `gpus` uses per domain: all if the job fits in one domain or the
/// domain is a power of two, else the largest power of two (64 of 72).
std::int64_t default_segment(const platform& p, std::int64_t gpus);

/// Every reason why this job does not fit on this platform; empty if it fits.
std::vector<std::string> placement_problems(const parallelism& par, const placement& place, const platform& p);

/// `count` ranks starting at `first`, `stride` apart.
communicator strided_group(const placement& place, std::int64_t first, std::int64_t stride, std::int64_t count);

/// Of all groups of a kind, the one that spans the most domains.
communicator tensor_group(const parallelism& par, const placement& place);
communicator context_group(const parallelism& par, const placement& place);
/// The data-parallel and context-parallel ranks, which share gradients of dense parameters. If `parts` is more
/// than 1, one of that many groups of consecutive ranks.
communicator data_group(const parallelism& par, const placement& place, std::int64_t parts = 1);
/// Ranks that exchange tokens with each other's experts.
communicator expert_group(const parallelism& par, const placement& place);
/// Ranks that hold copies of the same experts, and share their gradients.
communicator expert_data_group(const parallelism& par, const placement& place, std::int64_t parts = 1);
/// The ranks at the same position in each of `parts` groups, for dense parameters and for experts.
communicator data_parts_group(const parallelism& par, const placement& place, std::int64_t parts);
communicator expert_parts_group(const parallelism& par, const placement& place, std::int64_t parts);
/// Whether the job needs more than one domain.
bool spans_domains(const parallelism& par, const placement& place);
/// Whether any rank of stage `from` is in another domain than its peer in stage `to`.
bool stages_cross(const parallelism& par, const placement& place, std::int64_t from, std::int64_t to);

}  // namespace nvlsim
