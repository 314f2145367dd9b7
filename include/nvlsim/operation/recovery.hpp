// What happens between a failure and the next step of a training job.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// How a job recovers from the loss of hardware.
enum class recovery_mode {
  restart,   ///< the whole job restarts on as much hardware as before; without spares it waits for a repair
  elastic,   ///< the whole job restarts; replicas without hardware are left out until a repair
  replica,   ///< the affected replicas drop out; the others stall briefly and continue
  redundant  ///< as `replica`; the others also compute the lost shards, while any replica holds them
};
inline const std::array<std::string, 4> recovery_mode_names = {"restart", "elastic", "replica", "redundant"};
/// Whether single replicas can drop out.
inline bool drops_replicas(recovery_mode m) {
  return m == recovery_mode::replica || m == recovery_mode::redundant;
}

/// Which of its shards a replica computes in a step.
enum class shards_computed {
  held,   ///< all: all holders of a shard compute it
  needed  ///< the smallest number that covers the batch, equal for all replicas
};
inline const std::array<std::string, 2> shards_computed_names = {"held", "needed"};

/// A redundant job splits the batch into one shard per replica. `copies` neighbouring replicas of a ring hold each
/// shard.
struct shard_copies {
  std::int64_t copies = 2;  ///< replicas that hold a shard; at least 1
  shards_computed computed = shards_computed::held;
  bool rejoin = true;  ///< a lost replica returns after its own restart; otherwise when the whole job restarts
  bool operator==(const shard_copies&) const = default;
};

/// What happens when a failure hits a job that is still recovering.
enum class second_failure {
  restart,  ///< the recovery starts over, as Daly's exact form assumes
  queue     ///< recoveries run one after the other, so every failure costs its full stall
};
inline const std::array<std::string, 2> second_failure_names = {"restart", "queue"};

/// The batch of a step without the replicas that are out.
enum class short_batch {
  shrinks,  ///< each replica keeps its micro-batches: a step takes as long and has fewer sequences
  kept      ///< the others take over the micro-batches of those that are out: a step has as many and takes longer
};
inline const std::array<std::string, 2> short_batch_names = {"shrinks", "kept"};

struct recovery_policy {
  recovery_mode mode = recovery_mode::restart;
  second_failure again = second_failure::restart;
  std::int64_t min_replicas = 1;  ///< for a job that can lose replicas: with fewer, it waits for repairs
  shard_copies shards;            ///< for a redundant job
  short_batch batch = short_batch::shrinks;  ///< of a job that can lose replicas and is not redundant
  constant<double> watched = 1;              ///< share of failures that health checks detect
  constant<seconds> health;                  ///< until a health check detects a failure
  constant<seconds> watchdog;                ///< until a time-out detects a failure
  constant<seconds> decide;                  ///< diagnosis and eviction
  constant<seconds> spare_ready;             ///< until a spare tray runs the job's software
  constant<seconds> init;                    ///< start of communicators: this, plus
  constant<seconds> init_per_gpu;            ///< this per GPU of the job
  constant<seconds> first_step;              ///< warm-up of the first step
  constant<seconds> replica_stall;           ///< stall of the other replicas when one drops out
  bool evict_slow = true;       ///< a slow part is replaced after it is found and a save; else kept until repaired
  constant<seconds> find_slow;  ///< until a slow part is found

  bool operator==(const recovery_policy&) const = default;

  seconds init_of(std::int64_t gpus) const {
    return init.read() + init_per_gpu.read() * static_cast<double>(gpus);
  }
  /// Mean time from failure to first step, without the load, over health checks and time-outs.
  seconds mean_restart(std::int64_t gpus) const {
    return health.read() * watched.read() + watchdog.read() * (1 - watched.read()) + decide.read() +
           init_of(gpus) + first_step.read();
  }
};

/// Planned stops of the whole cluster.
struct maintenance_plan {
  seconds every;  ///< from the end of one to the start of the next; 0: never
  seconds lasts;  ///< duration of a stop
  bool operator==(const maintenance_plan&) const = default;
};

}  // namespace nvlsim
