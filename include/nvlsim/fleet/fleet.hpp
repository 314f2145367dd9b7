// Serving replicas that come and go with load and failures on shared racks. What a replica achieves at a load is
// passed in. [docs/fleet.md]
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// One replica at a steady load.
struct replica_point {
  double requests_per_s = 0;
  double attained = 1;  ///< share of the requests within every limit of the objective
  double ttft_s = 0;    ///< mean time to the first token
  double e2e_s = 0;     ///< mean time in the system
  double power_W = 0;   ///< of the replica, with its share of the rack, at the supplies
};

/// What one replica achieves by load, lightest first. The last load is all that it can serve.
struct replica_curve {
  std::vector<replica_point> points;
  double capacity() const { return points.empty() ? 0 : points.back().requests_per_s; }
  /// The highest load up to which `share` of the requests are within the objective; the first load if none is.
  double sustained(double share) const;
  /// Linear between the points, and constant beyond the first and the last. Requires points.
  replica_point at(double requests_per_s) const;
};

/// Requests a second at equal steps of time from the start, linear between them. The last is followed by the
/// first.
struct load_profile {
  std::vector<double> requests_per_s;
  double step_s = 3600;
  double at(double time_s) const;
  double peak() const;
};

enum class scaling_policy {
  fixed,     ///< always `most` replicas
  reactive,  ///< by the arrivals of the last `window_s`
  scheduled  ///< by the largest load from now until a replica that starts now is ready
};

struct autoscaler {
  scaling_policy policy = scaling_policy::fixed;
  std::int64_t least = 1, most = 1;  ///< replicas
  double target = 0.8;               ///< share of what a replica sustains that is used when all goes as planned
  double window_s = 60;              ///< over which arrivals are counted
  double cooldown_s = 300;           ///< replicas leave after this long without need
};

/// Weights that a replica reads from a store which all replicas share.
struct fleet_load {
  double bytes = 0;
  double most = 0;      ///< bytes a second that the replica's machines take
  double before_s = 0;  ///< from the decision to the first byte
  double after_s = 0;   ///< from the last byte to the first request
};

struct fleet_service {
  std::string name;
  std::int64_t gpus = 1;  ///< of a replica, in one rack
  replica_curve curve;
  load_profile load;
  autoscaler scaler;
  double start_s = 0;  ///< from the decision to the first request: a machine, the model's weights, warm-up;
                       ///< of a replica that loads alone
  std::optional<fleet_load> from_store;  ///< its start takes longer while others load
  double patience_s = 30;                ///< a request that waits longer for a replica is dropped
  std::optional<double> ttft_limit_s;    ///< of the objective
  double objective_share = 0;            ///< of the requests that have to keep it
};

/// Failures of GPUs, exponential on the wall clock. Each takes down its replica and its machine.
struct fleet_failures {
  double gpu_mtbf_s = 0;   ///< mean time between failures of one GPU in use; 0: none fail
  double detection_s = 0;  ///< until requests are sent elsewhere
  double repair_s = 0;     ///< until the machine is back
  std::int64_t machine_gpus = 1;
};

/// Services in order of priority: the first takes free GPUs first.
struct fleet_spec {
  std::vector<fleet_service> services;
  std::int64_t racks = 1, gpus_per_rack = 1;
  fleet_failures failures;
  double duration_s = 86400, tick_s = 10;
  double store_read = std::numeric_limits<double>::infinity();  ///< bytes a second, of all that load
  bool preempt = false;  ///< a service without room takes replicas of those behind it, down to their `least`
};

/// Every reason why this fleet cannot be; empty if it can.
std::vector<std::string> fleet_problems(const fleet_spec& f);

struct service_outcome {
  double requests = 0;  ///< that came, each once
  double served = 0, dropped = 0;
  double retried = 0;   ///< lost with a replica and sent again
  double attained = 0;  ///< within the objective, at the first try
  double ttft_s = 0;    ///< mean of the served, waiting for a replica included
  double ready_gpu_s = 0, starting_gpu_s = 0;
  double short_s = 0;     ///< time in which the load exceeds what ready replicas can serve
  double unplaced_s = 0;  ///< time in which a wanted replica finds no GPUs
  double energy_J = 0;    ///< of ready and starting replicas
  std::int64_t failures = 0, starts = 0, most_ready = 0;
  std::int64_t evicted = 0;  ///< replicas that gave way to a service before it

  double availability() const { return requests > 0 ? served / requests : 1; }
  double slo_share() const { return requests > 0 ? attained / requests : 1; }
};

/// A service at one time, for pictures.
struct fleet_sample {
  double time_s = 0, requests_per_s = 0, waiting = 0;
  std::int64_t ready = 0, starting = 0;
};

struct fleet_outcome {
  std::vector<service_outcome> services;
  std::vector<std::vector<fleet_sample>> samples;  ///< by service; at most `fleet_samples`
  double failed_gpu_s = 0;                         ///< of machines in repair
};
inline constexpr std::size_t fleet_samples = 288;

/// Plays the fleet. The same seed gives the same failures. Takes time in proportion to ticks and services, and
/// memory to replicas and racks. Requires a fleet without problems.
fleet_outcome play_fleet(const fleet_spec& f, std::uint64_t seed);

}  // namespace nvlsim
