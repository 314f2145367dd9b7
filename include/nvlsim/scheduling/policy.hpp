// Rules for starting jobs and placing them on nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nvlsim/scheduling/jobs.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Which jobs may start before those ahead of them.
enum class backfill_kind {
  none,         ///< none: jobs start strictly in order
  easy,         ///< jobs that do not delay the first waiting job
  conservative  ///< jobs that delay no job ahead of them, as in Slurm's sched/backfill
};

/// Which nodes a job gets.
enum class placement_kind {
  tree,             ///< Slurm's topology/tree: the fullest rack with room, else several racks, fullest first
  block,            ///< Slurm's topology/block: segments of nodes, each within one rack
  kueue_required,   ///< Kueue, `podset-required-topology`: one rack or none
  kueue_preferred,  ///< Kueue, `podset-preferred-topology`: one rack if possible, else few racks
  pack,             ///< the fullest racks first, however many
  spread            ///< the emptiest rack first, node by node
};

/// Jobs with at least `from_gpus` GPUs are placed in segments of `nodes` nodes.
struct segment_rule {
  std::int64_t from_gpus = 0;
  int nodes = 0;
  bool operator==(const segment_rule&) const = default;
};

/// How nodes are chosen.
struct placement_policy {
  placement_kind kind = placement_kind::tree;
  bool whole_nodes = false;            ///< jobs do not share nodes, like `--exclusive`
  std::vector<segment_rule> segments;  ///< for `block`; the last matching rule applies
  bool operator==(const placement_policy&) const = default;
};

/// Weights of priority factors, as in Slurm's priority/multifactor. Each factor is between 0 and 1.
struct priority_policy {
  double age = 0, fair_share = 0, size = 0, queue = 0;
  seconds max_age = seconds::from_base(7 * 86400.0);    ///< Slurm's PriorityMaxAge
  seconds half_life = seconds::from_base(7 * 86400.0);  ///< for used GPU time; Slurm's PriorityDecayHalfLife
  seconds period = seconds::from_base(300);             ///< between updates; Slurm's PriorityCalcPeriod

  bool by_factors() const { return age != 0 || fair_share != 0 || size != 0 || queue != 0; }
  bool operator==(const priority_policy&) const = default;
};

/// Rules of one queue (Slurm's partition or QOS, Philly's virtual cluster).
struct queue_rules {
  std::string name;
  int tier = 0;               ///< jobs of a higher tier come first and may preempt jobs of a lower one
  double priority = 0;        ///< its `queue` factor, 0 to 1
  std::int64_t max_gpus = 0;  ///< most GPUs of its running jobs together; 0: no limit
  seconds max_run = {};       ///< time limit of its jobs; 0: none
  bool preemptible = false;
  bool operator==(const queue_rules&) const = default;
};

/// When jobs start, and which running jobs they may preempt.
struct scheduling_policy {
  backfill_kind backfill = backfill_kind::conservative;
  seconds interval =
      seconds::from_base(1);  ///< between in-order passes for new jobs; job ends trigger a pass at once
  seconds backfill_interval = seconds::from_base(30);  ///< between backfill passes; Slurm's bf_interval
  /// Reservations begin and end at multiples of this on the wall clock, rounded down, and last at least this long.
  /// Slurm's bf_resolution. 0: no rounding.
  seconds backfill_resolution = seconds::from_base(60);
  seconds clock_offset;  ///< wall clock past such a multiple at time 0
  int depth = 500;       ///< most jobs per pass; Slurm's bf_max_job_test
  priority_policy priority;
  std::vector<queue_rules> queues;  ///< unlisted queues have no rules
  bool preempt = false;             ///< jobs of a higher tier may evict running jobs
  seconds preempt_after;            ///< a job is not preempted before this run time
  bool requeue = true;              ///< jobs that lose their nodes wait again; else they fail
  seconds checkpoint_interval;      ///< work since the last checkpoint is redone; 0: all work is
  bool operator==(const scheduling_policy&) const = default;
};

/// Failures of nodes and racks. Times between failures are exponential in wall time, idle or not.
struct failure_rates {
  seconds node_mtbf, node_repair;  ///< mean time between failures of one node; 0: none
  seconds rack_mtbf, rack_repair;
  bool operator==(const failure_rates&) const = default;
};

/// Planned time out of service for some racks. No job starts on them that could still run at its start.
struct maintenance_window {
  seconds start, length;
  int first_rack = 0, racks = 0;
  bool operator==(const maintenance_window&) const = default;
};

/// Resources that a job takes on this cluster under a policy.
job_demand demand_of(const batch_job& job, const queue_cluster& cluster, const placement_policy& policy);

/// The nodes for a job, ascending; empty if it has to wait. `free[n]` is the number of available GPUs of node n.
/// docs/scheduling.md#placement gives the rules. Takes linear time in nodes.
std::vector<int> place_job(const queue_cluster& cluster, placement_kind kind, const job_demand& demand,
                           std::span<const std::int16_t> free);

/// Whether a job fits in an empty cluster.
bool can_ever_run(const queue_cluster& cluster, placement_kind kind, const job_demand& demand);

}  // namespace nvlsim
