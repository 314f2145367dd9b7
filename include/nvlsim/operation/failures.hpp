// Which parts of a cluster fail, how often, and what each failure takes down.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Numbers of racks, trays and GPUs of a cluster, and how many of its trays share a leaf switch.
struct cluster_shape {
  std::int64_t racks = 0;
  std::int64_t trays_per_rack = 0;
  std::int64_t gpus_per_tray = 0;
  std::int64_t racks_per_row = 1;
  std::int64_t trays_per_leaf = 0;  ///< consecutive trays whose NICs a leaf has; 0: those of a rack
  std::int64_t rails = 1;           ///< leaves that these trays share, each with its rail of their NICs

  std::int64_t trays() const { return racks * trays_per_rack; }
  std::int64_t gpus() const { return trays() * gpus_per_tray; }
  std::int64_t rows() const { return (racks + racks_per_row - 1) / racks_per_row; }
  std::int64_t trays_of_leaf() const { return trays_per_leaf > 0 ? trays_per_leaf : trays_per_rack; }
  /// Groups of trays that share their leaves.
  std::int64_t leaf_groups() const { return (trays() + trays_of_leaf() - 1) / trays_of_leaf(); }
};

/// A part of the cluster: where a component sits, or what is down while it is broken. `process` is a job's
/// program: its failures take down no hardware, and its components are counted per GPU of the job. `leaf`: the
/// trays with a NIC on a leaf switch, as the platform's fabric says.
enum class cluster_part { process, gpu, tray, rack, leaf, row, site };
inline const std::array<std::string, 7> cluster_part_names = {"process", "gpu", "tray", "rack",
                                                              "leaf",    "row", "site"};

/// Effect of a broken component on a job that uses it.
enum class failure_effect {
  stops,     ///< the job dies and restarts from a saved copy
  slows,     ///< the job continues at reduced speed
  corrupts,  ///< the job continues and computes wrong numbers until they are noticed
  nothing    ///< the job continues
};
inline const std::array<std::string, 4> failure_effect_names = {"stops", "slows", "corrupts", "nothing"};

/// Remaining performance of a slow GPU and its ports, as shares.
struct part_health {
  constant<double> speed = 1, nvlink = 1, nic = 1;
  bool operator==(const part_health&) const = default;
};

/// A kind of component.
struct component {
  std::string name;
  cluster_part of = cluster_part::gpu;  ///< the kind of part it sits in
  constant<std::int64_t> each = 1;      ///< how many each such part has
  constant<seconds> mtbf;               ///< mean time between failures of one component; more than 0
  constant<double> shape =
      1;  ///< Weibull shape of the gaps between failures of all components of the kind; below 1: bursts
  bool ages = false;  ///< `shape` is that of each component's life, which restarts at its repair
  cluster_part takes_down =
      cluster_part::tray;  ///< the part that is down until the repair: the process, or at least a tray
  constant<std::int64_t> tolerated = 0;  ///< how many in one part may be broken at once without effect
  failure_effect effect = failure_effect::stops;
  constant<double> speed = 1;               ///< relative speed of a job that it slows
  std::optional<part_health> degraded;      ///< remaining hardware performance; pricing derives `speed` from it
  constant<seconds> repair;                 ///< mean time to repair
  bool repair_is_fixed = false;             ///< every repair takes the mean time; else times are exponential
  std::optional<constant<double>> watched;  ///< share of failures that health checks detect; absent: the policy's
  std::optional<constant<seconds>>
      detection;  ///< time until it is noticed, if neither health checks nor time-outs notice it
  /// Of a part that its seller takes back: the warning before it goes. It is not paid for until it is there again.
  std::optional<constant<seconds>> notice;
  bool operator==(const component&) const = default;
};

/// Trays that fail more often than the others.
struct lemon_trays {
  constant<double> share = 0;                ///< of all trays
  constant<double> failures = 0;             ///< their share of all failures of trays and GPUs
  constant<std::int64_t> removed_after = 0;  ///< failures after which a tray is replaced by a good one; 0: never
  bool operator==(const lemon_trays&) const = default;
};

/// Which time counts for failures: all wall time, or only the time in which the job runs.
enum class failure_clock { wall, up };
inline const std::array<std::string, 2> failure_clock_names = {"wall", "up"};

struct failure_model {
  std::vector<component> components;
  /// Scales the rates of all components to this number of job stops per 1,000 GPU-days; absent: no scaling.
  std::optional<constant<double>> stops_per_1000_gpu_days;
  failure_clock clock = failure_clock::wall;  ///< whether parts also fail while the job is stopped
  lemon_trays lemons;
  /// New parts fail more often: rates are multiplied by 1 + (early_factor - 1) e^(-t/early_period).
  constant<double> early_factor = 1;
  constant<seconds> early_period;
  constant<double> together = 0;  ///< share of tray and GPU failures that also take down another tray of the rack
  constant<double> together_leaf = 0, together_row = 0;  ///< the same of the leaf, and of the row
  bool operator==(const failure_model&) const = default;
};

/// Number of components of a kind in the cluster; for a process, `each` times the job's GPUs.
double count_of(const component& c, const cluster_shape& s, std::int64_t job_gpus);
/// Failures per day of all components of a kind, without early failures.
double failures_per_day(const component& c, const cluster_shape& s, std::int64_t job_gpus);
/// Failures per 1,000 GPU-days that stop a job on all GPUs of the cluster. Tolerated failures and parts that are
/// taken back do not count.
double stops_per_1000_gpu_days(const std::vector<component>& components, const cluster_shape& s);
/// The model with its mean times between failures scaled to `stops_per_1000_gpu_days`.
failure_model scaled(failure_model m, const cluster_shape& s);
/// Failure rate at time `t`, relative to the rate of old parts.
double early_rate(const failure_model& m, seconds t);

/// The trays of the part that contains `tray`: the first tray, and their number.
struct tray_range {
  std::int64_t first = 0, count = 0;
};
tray_range trays_of(cluster_part p, std::int64_t tray, const cluster_shape& s);
/// The part that is lost with `p`, as copies see it: a leaf within a rack is no more than a rack.
cluster_part part_lost(cluster_part p, const cluster_shape& s);

}  // namespace nvlsim
