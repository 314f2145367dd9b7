// What of a cluster fails, how often, and what it takes down.
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

/// Trays and racks of a cluster, in numbers.
struct cluster_shape {
  std::int64_t racks = 0;
  std::int64_t trays_per_rack = 0;
  std::int64_t gpus_per_tray = 0;
  std::int64_t racks_per_row = 1;

  std::int64_t trays() const { return racks * trays_per_rack; }
  std::int64_t gpus() const { return trays() * gpus_per_tray; }
  std::int64_t rows() const { return (racks + racks_per_row - 1) / racks_per_row; }
};

/// A part of the cluster: what a component belongs to, and what is out while it is broken. `process` is the
/// program of a job, which takes no hardware with it; components that belong to it are counted by the job's GPUs.
enum class cluster_part { process, gpu, tray, rack, row, site };
inline const std::array<std::string, 6> cluster_part_names = {"process", "gpu", "tray", "rack", "row", "site"};

/// What a broken component does to a job that uses it.
enum class failure_effect {
  stops,     ///< it dies, and restarts from what it saved
  slows,     ///< it goes on at a share of its speed
  corrupts,  ///< it goes on and computes wrong numbers until somebody notices
  nothing    ///< it goes on
};
inline const std::array<std::string, 4> failure_effect_names = {"stops", "slows", "corrupts", "nothing"};

/// What is left of a slow GPU or of its ports.
struct part_health {
  constant<double> speed = 1, nvlink = 1, nic = 1;
  bool operator==(const part_health&) const = default;
};

/// A kind of component.
struct component {
  std::string name;
  cluster_part of = cluster_part::gpu;  ///< where it is
  constant<std::int64_t> each = 1;      ///< of them in each such part
  constant<seconds> mtbf;               ///< of one of them; more than 0
  constant<double> shape = 1;  ///< Weibull shape of the gaps between failures of all of them; below 1: bursts
  bool ages = false;           ///< the shape is that of the life of each, which begins anew with its repair
  cluster_part takes_down =
      cluster_part::tray;  ///< which part is out until the repair; never less than a tray, or the process
  constant<std::int64_t> tolerated = 0;  ///< how many of them in one part may be broken at once without effect
  failure_effect effect = failure_effect::stops;
  constant<double> speed = 1;               ///< of a job that it slows
  std::optional<part_health> degraded;      ///< what it leaves of the hardware, from which `speed` is to be priced
  constant<seconds> repair;                 ///< mean time until it is whole again
  bool repair_is_fixed = false;             ///< every repair takes the mean; else exponential
  std::optional<constant<double>> watched;  ///< share of failures that health checks see; absent: as of all
  std::optional<constant<seconds>>
      detection;  ///< until it is noticed, where neither health check nor time-out is what notices it
  bool operator==(const component&) const = default;
};

/// Trays that fail more than the others.
struct lemon_trays {
  constant<double> share = 0;                ///< of the trays
  constant<double> failures = 0;             ///< share of the trays' and GPUs' failures that they have
  constant<std::int64_t> removed_after = 0;  ///< failures after which a tray is replaced by a good one; 0: never
  bool operator==(const lemon_trays&) const = default;
};

enum class failure_clock { wall, up };
inline const std::array<std::string, 2> failure_clock_names = {"wall", "up"};

struct failure_model {
  std::vector<component> components;
  /// What the rates of all components are scaled to, as stops of jobs per 1,000 GPU-days; absent: as they are.
  std::optional<constant<double>> stops_per_1000_gpu_days;
  failure_clock clock = failure_clock::wall;  ///< whether parts fail while the job is stopped
  lemon_trays lemons;
  /// New parts fail more: the rates are multiplied by 1 + (early_factor - 1) e^(-t/early_period).
  constant<double> early_factor = 1;
  constant<seconds> early_period;
  constant<double> together =
      0;  ///< share of failures of a tray or GPU that take another tray of the rack with them
  bool operator==(const failure_model&) const = default;
};

/// How many components of a kind the cluster has; of a process, how many GPUs the job has.
double count_of(const component& c, const cluster_shape& s, std::int64_t job_gpus);
/// Failures a day of all components of a kind, without early failures.
double failures_per_day(const component& c, const cluster_shape& s, std::int64_t job_gpus);
/// Failures that stop a job of all GPUs of the cluster, per 1,000 GPU-days. Tolerated failures do not.
double stops_per_1000_gpu_days(const std::vector<component>& components, const cluster_shape& s);
/// The model with the mean times between failures that `stops_per_1000_gpu_days` asks for.
failure_model scaled(failure_model m, const cluster_shape& s);
/// Failure rate at time `t`, relative to the rate of old parts.
double early_rate(const failure_model& m, seconds t);

/// The trays of the part that tray `tray` belongs to: the first, and their number.
struct tray_range {
  std::int64_t first = 0, count = 0;
};
tray_range trays_of(cluster_part p, std::int64_t tray, const cluster_shape& s);

}  // namespace nvlsim
