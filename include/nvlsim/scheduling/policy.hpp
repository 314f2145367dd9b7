// The rules by which a cluster starts jobs and gives them nodes.
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
  none,         ///< no job; strictly in order
  easy,         ///< one that does not delay the first job that waits
  conservative  ///< one that delays no job ahead of it, as Slurm's sched/backfill
};

/// Which nodes a job is given.
enum class placement_kind {
  tree,             ///< Slurm's topology/tree: the fullest rack that has room, else racks from the fullest on
  block,            ///< Slurm's topology/block: segments of nodes, each within a rack
  kueue_required,   ///< Kueue, `podset-required-topology`: one rack or none
  kueue_preferred,  ///< Kueue, `podset-preferred-topology`: one rack, else few racks
  pack,             ///< the fullest racks first, whatever the number of racks
  spread            ///< the emptiest rack first, node by node
};

/// Jobs of at least `from_gpus` GPUs come in segments of `nodes` nodes.
struct segment_rule {
  std::int64_t from_gpus = 0;
  int nodes = 0;
  bool operator==(const segment_rule&) const = default;
};

struct placement_policy {
  placement_kind kind = placement_kind::tree;
  bool whole_nodes = false;            ///< jobs share no node, as `--exclusive`
  std::vector<segment_rule> segments;  ///< for `block`; the last rule that a job meets counts
  bool operator==(const placement_policy&) const = default;
};

/// Weights of the factors of a job's priority, each factor between 0 and 1, as Slurm's priority/multifactor.
struct priority_policy {
  double age = 0, fair_share = 0, size = 0, queue = 0;
  seconds max_age = seconds::from_base(7 * 86400.0);    ///< Slurm's PriorityMaxAge
  seconds half_life = seconds::from_base(7 * 86400.0);  ///< of used GPU time; Slurm's PriorityDecayHalfLife
  seconds period = seconds::from_base(300);             ///< between computations; Slurm's PriorityCalcPeriod

  bool by_factors() const { return age != 0 || fair_share != 0 || size != 0 || queue != 0; }
  bool operator==(const priority_policy&) const = default;
};

/// Rules of one queue (Slurm's partition or QOS, Philly's virtual cluster).
struct queue_rules {
  std::string name;
  int tier = 0;               ///< jobs of a higher tier come first, and may preempt those of a lower one
  double priority = 0;        ///< factor of the weight `queue`, 0 to 1
  std::int64_t max_gpus = 0;  ///< that its running jobs may hold; 0: all
  seconds max_run = {};       ///< limit of its jobs; 0: none
  bool preemptible = false;
  bool operator==(const queue_rules&) const = default;
};

struct scheduling_policy {
  backfill_kind backfill = backfill_kind::conservative;
  seconds interval =
      seconds::from_base(1);  ///< between looks in order for new jobs; what ends is answered at once
  seconds backfill_interval = seconds::from_base(30);  ///< between backfill passes; Slurm's bf_interval
  /// Promises begin and end at whole multiples of this on the wall clock, at the last before their times, and last
  /// that long at least; Slurm's bf_resolution. 0: at their times.
  seconds backfill_resolution = seconds::from_base(60);
  seconds clock_offset;  ///< of the wall clock past such a multiple at time 0
  int depth = 500;       ///< jobs that a pass looks at; Slurm's bf_max_job_test
  priority_policy priority;
  std::vector<queue_rules> queues;  ///< queues that are not listed have no rules
  bool preempt = false;             ///< running jobs give way to those of a higher tier
  seconds preempt_after;            ///< run time before which a job is not preempted
  bool requeue = true;              ///< jobs that lost their nodes wait again; else they have failed
  seconds checkpoint_interval;      ///< of jobs; work since the last one is done again; 0: all of it
  bool operator==(const scheduling_policy&) const = default;
};

/// Nodes and racks fail with exponential times between failures, on wall time, whether they work or not.
struct failure_rates {
  seconds node_mtbf, node_repair;  ///< mean time between failures of one node; 0: none
  seconds rack_mtbf, rack_repair;
  bool operator==(const failure_rates&) const = default;
};

/// Racks that are out of service for a time that is known from the start. No job is started that may run into it.
struct maintenance_window {
  seconds start, length;
  int first_rack = 0, racks = 0;
  bool operator==(const maintenance_window&) const = default;
};

/// What a job takes of nodes with so many GPUs, under a policy.
job_demand demand_of(const batch_job& job, const queue_cluster& cluster, const placement_policy& policy);

/// The nodes for a job, ascending, or none if it has to wait. `free[n]` is how many GPUs of node n it may have.
/// The rules are those of docs/scheduling.md#placement. Time is linear in nodes.
std::vector<int> place_job(const queue_cluster& cluster, placement_kind kind, const job_demand& demand,
                           std::span<const std::int16_t> free);

/// Whether a job could be placed in an empty cluster.
bool can_ever_run(const queue_cluster& cluster, placement_kind kind, const job_demand& demand);

}  // namespace nvlsim
