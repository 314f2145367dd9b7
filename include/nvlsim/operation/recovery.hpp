// What happens between a failure and the next step of a training job.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// How a job goes on without a part of its hardware.
enum class recovery_mode {
  restart,   ///< the whole job restarts, on as much hardware as before; without spares it waits for a repair
  elastic,   ///< the whole job restarts; replicas without hardware are left out until a repair
  replica,   ///< the replicas that were hit drop out, the others stall shortly and go on
  redundant  ///< so too, and the others compute what the lost ones did, while somebody holds its shard
};
inline const std::array<std::string, 4> recovery_mode_names = {"restart", "elastic", "replica", "redundant"};
/// Whether replicas drop out alone.
inline bool drops_replicas(recovery_mode m) {
  return m == recovery_mode::replica || m == recovery_mode::redundant;
}

/// Which of the shards that a replica holds it computes in a step.
enum class shards_computed {
  held,   ///< all: every shard is computed by all that hold it
  needed  ///< as few as cover the batch, the same number in each replica
};
inline const std::array<std::string, 2> shards_computed_names = {"held", "needed"};

/// A redundant job splits the batch into one shard per replica. `copies` neighbouring replicas of a ring hold each
/// shard.
struct shard_copies {
  std::int64_t copies = 2;  ///< replicas that hold a shard; at least 1
  shards_computed computed = shards_computed::held;
  bool rejoin = true;  ///< a lost replica comes back after its own restart; else when the whole job restarts
  bool operator==(const shard_copies&) const = default;
};

/// What happens when a failure hits a job that is still recovering.
enum class second_failure {
  restart,  ///< the recovery begins anew: what Daly's exact form assumes
  queue     ///< recoveries follow each other, so that every failure costs its full stall
};
inline const std::array<std::string, 2> second_failure_names = {"restart", "queue"};

struct recovery_policy {
  recovery_mode mode = recovery_mode::restart;
  second_failure again = second_failure::restart;
  std::int64_t min_replicas = 1;    ///< of a job that does without some: with fewer it waits for repairs
  shard_copies shards;              ///< of a redundant job
  constant<double> watched = 1;     ///< share of failures that health checks see
  constant<seconds> health;         ///< until a health check sees a failure
  constant<seconds> watchdog;       ///< until a time-out does
  constant<seconds> decide;         ///< diagnosis and eviction
  constant<seconds> spare_ready;    ///< until a spare tray runs the job's software
  constant<seconds> init;           ///< communicators: this, and
  constant<seconds> init_per_gpu;   ///< this for each GPU of the job
  constant<seconds> first_step;     ///< warm-up of the first step
  constant<seconds> replica_stall;  ///< of the other replicas, when one drops out
  bool evict_slow = true;  ///< a slow part is replaced once it is found, after a save; else kept until the repair
  constant<seconds> find_slow;  ///< until it is found

  bool operator==(const recovery_policy&) const = default;

  seconds init_of(std::int64_t gpus) const {
    return init.read() + init_per_gpu.read() * static_cast<double>(gpus);
  }
  /// Detection to first step, without the load, at the mean over health checks and time-outs.
  seconds mean_restart(std::int64_t gpus) const {
    return health.read() * watched.read() + watchdog.read() * (1 - watched.read()) + decide.read() +
           init_of(gpus) + first_step.read();
  }
};

/// Planned stops of the whole cluster.
struct maintenance_plan {
  seconds every;  ///< from the end of one to the begin of the next; 0: never
  seconds lasts;
  bool operator==(const maintenance_plan&) const = default;
};

}  // namespace nvlsim
