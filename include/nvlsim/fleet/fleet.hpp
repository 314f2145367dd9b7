// Serving replicas that start and stop with load and failures on shared racks. The caller supplies the performance
// of a replica at each load. [docs/fleet.md]
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Performance of one replica at a steady load.
struct replica_point {
  double requests_per_s = 0;
  double attained = 1;  ///< share of requests within all limits of the objective
  double ttft_s = 0;    ///< mean time to the first token
  double e2e_s = 0;     ///< mean time in the system
  double power_W = 0;   ///< drawn from the supplies by the replica and its share of the rack
};

/// Performance of one replica by load, lightest load first. The last load is its capacity.
struct replica_curve {
  std::vector<replica_point> points;
  /// The highest load it can serve, requests/s; 0 without points.
  double capacity() const { return points.empty() ? 0 : points.back().requests_per_s; }
  /// The highest load at which `share` of the requests meet the objective; the first load if none does.
  double sustained(double share) const;
  /// Performance at a load: linear between points, constant beyond the first and last. Requires points.
  replica_point at(double requests_per_s) const;
};

/// Requests per second at equal time steps from the start, linear between them. After the last value the profile
/// repeats.
struct load_profile {
  std::vector<double> requests_per_s;
  double step_s = 3600;
  double at(double time_s) const;
  double peak() const;
};

/// How the number of replicas is chosen.
enum class scaling_policy {
  fixed,     ///< always `max_replicas`
  reactive,  ///< from the arrivals of the last `window_s`
  scheduled  ///< from the largest load until a replica started now is ready
};

/// A scaling policy and its limits.
struct autoscaler {
  scaling_policy policy = scaling_policy::fixed;
  std::int64_t min_replicas = 1, max_replicas = 1;
  double target = 0.8;      ///< planned load of a replica as a share of its sustained load
  double window_s = 60;     ///< for counting arrivals
  double cooldown_s = 300;  ///< replicas stop after being unneeded for this long
};

/// Loading of a replica's weights from a store that all replicas share.
struct fleet_load {
  double bytes = 0;
  double most = 0;      ///< bytes per second that the replica's machines can read
  double before_s = 0;  ///< from the decision to the first byte
  double after_s = 0;   ///< from the last byte to the first request
};

/// A model served by replicas.
struct fleet_service {
  std::string name;
  std::int64_t gpus = 1;  ///< per replica, in one rack
  replica_curve curve;
  load_profile load;
  autoscaler scaler;
  double start_s = 0;  ///< from the decision to the first request, if no other replica loads: a machine, the
                       ///< model's weights, warm-up
  std::optional<fleet_load> from_store;  ///< starts take longer while other replicas load
  double patience_s = 30;                ///< requests that wait longer for a replica are dropped
  std::optional<double> ttft_limit_s;    ///< of the objective
  double objective_share = 0;            ///< share of requests that must meet the objective
};

/// GPU failures, exponential in wall time. A failure takes down the GPU's machine and every replica that has GPUs
/// there. Until it is noticed they get their share of the requests, which is lost and comes again, and nothing
/// starts in their place.
struct fleet_failures {
  double gpu_mtbf_s = 0;   ///< mean time between failures of one GPU that serves; 0: none fail
  double detection_s = 0;  ///< until a failure is noticed
  double repair_s = 0;     ///< from then on, until the machine is available again
};

/// Machines or racks that their seller takes back, exponential in wall time. A replica stops taking requests at
/// the notice, and what it has in flight that ends before the notice does is served.
struct fleet_evictions {
  double after_s = 0;  ///< mean time until one machine, or rack, in use is taken; 0: never
  double notice_s = 0;
  double back_s = 0;  ///< until it is there again
  bool takes_rack = false;
};

/// Services in order of priority. Free GPUs go to the first service first.
struct fleet_spec {
  std::vector<fleet_service> services;
  std::int64_t racks = 1, gpus_per_rack = 1;
  std::int64_t machine_gpus = 1;  ///< of a machine; the last of a rack may have fewer
  fleet_failures failures;
  fleet_evictions evictions;
  double duration_s = 86400, tick_s = 10;
  double store_read =
      std::numeric_limits<double>::infinity();  ///< bytes per second for all loading replicas together
  bool preempt = false;      ///< a service without room evicts replicas of later services, down to their `least`
  bool keeps_lives = false;  ///< the outcome has `lives`
};

/// All reasons why this fleet is impossible; empty if it is possible.
std::vector<std::string> fleet_problems(const fleet_spec& f);

/// Totals of one service.
struct service_outcome {
  double requests = 0;  ///< arrivals, each counted once
  double served = 0, dropped = 0;
  double retried = 0;                          ///< lost with a replica and retried
  double attained = 0;                         ///< met the objective at the first try
  double ttft_s = 0;                           ///< mean over served requests, including the wait for a replica
  double ready_gpu_s = 0, starting_gpu_s = 0;  ///< failed replicas that nobody noticed are among the ready ones
  double short_s = 0;                          ///< time in which the load exceeds the capacity of ready replicas
  double unplaced_s = 0;                       ///< time in which a needed replica finds no GPUs
  double energy_J = 0;                         ///< of ready and starting replicas
  std::int64_t failures = 0;                   ///< replicas that failed with a machine
  std::int64_t starts = 0, max_ready = 0;
  std::int64_t evicted = 0;    ///< replicas evicted by an earlier service
  std::int64_t reclaimed = 0;  ///< replicas that lost a machine to its seller

  double availability() const { return requests > 0 ? served / requests : 1; }
  double slo_share() const { return requests > 0 ? attained / requests : 1; }
};

/// State of a service at one time, for charts.
struct fleet_sample {
  double time_s = 0, requests_per_s = 0, waiting = 0;
  std::int64_t ready = 0, starting = 0;
};

/// How a replica's life ended; `stays`: at the end of the run.
enum class replica_end { stays, leaves, fails, evicted, reclaimed };

/// A replica from its start to its end, for pictures.
struct replica_life {
  std::size_t service = 0;
  std::int64_t rack = 0;
  double begin_s = 0;
  double ready_s = 0;  ///< not before `end_s` if it never served
  double end_s = 0;
  replica_end how = replica_end::stays;
};

/// Outcome of a fleet.
struct fleet_outcome {
  std::vector<service_outcome> services;
  std::vector<std::vector<fleet_sample>> samples;  ///< by service; at most `fleet_samples` each
  std::array<double, 24> energy_by_hour_J{};       ///< of all services, by the hour of each day from the start
  std::int64_t failed_machines = 0;
  double failed_gpu_s = 0;          ///< GPU time of failed machines until they are back
  double reclaimed_gpu_s = 0;       ///< GPU time of machines that were taken back
  std::vector<replica_life> lives;  ///< in order of their ends; the first `max_replica_lives`, if asked for
  std::int64_t lives_left_out = 0;  ///< later ones
};
inline constexpr std::size_t fleet_samples = 288;
inline constexpr std::size_t max_replica_lives = 20'000;

/// Simulates the fleet. Equal seeds give equal failures. Time is proportional to ticks and services, memory to
/// replicas and racks. Requires empty `fleet_problems`.
fleet_outcome play_fleet(const fleet_spec& f, std::uint64_t seed);

}  // namespace nvlsim
