// How a training job saves its state: where, how long it takes, and what survives a failure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/operation/failures.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Where a save goes, fastest place first. `neighbour`: the host memory of a tray in another rack. `nvme`: the
/// tray's own drives. `store`: a parallel file system or an object store.
enum class save_place { neighbour, nvme, store };
inline const std::array<std::string, 3> save_place_names = {"neighbour", "nvme", "store"};

/// Which GPUs read data that several GPUs hold from a store, such as the weights of data-parallel replicas.
enum class copy_readers {
  one,  ///< one GPU, which passes the data on over the fabric
  all   ///< each GPU
};
inline const std::array<std::string, 2> copy_readers_names = {"one", "all"};

/// How the state is copied to one place and read back.
struct save_tier {
  save_place to = save_place::store;
  constant<bandwidth> write, read;                 ///< per tray
  std::optional<constant<bandwidth>> store_write;  ///< for all trays together; absent: no limit
  std::optional<constant<bandwidth>> store_read;
  constant<std::int64_t> every = 1;  ///< every n-th save goes here
  bool best_every = false;           ///< `every` is chosen for the job's failures, not given
  bool asynchronous = true;          ///< the job waits only for the copy into host memory
  double draining = 1;               ///< relative speed of steps while a copy uses the network
  bool operator==(const save_tier&) const = default;
};

struct save_policy {
  bytes state;   ///< saved by the whole job: weights and optimizer
  bytes frozen;  ///< weights that are loaded but never saved: those under adapters
  bytes held;    ///< `state` and `frozen` on all GPUs, every copy counted; 0: one copy of each
  copy_readers readers = copy_readers::one;
  constant<seconds> plan_per_gpu;    ///< added per GPU to a load from a store, to plan which GPU reads what
  std::optional<bandwidth> network;  ///< of the platform's fabric to or from a tray; absent: no limit
  bool unchanged = false;            ///< a service: it loads weights, saves nothing and loses no work
  constant<bandwidth> to_host;       ///< per GPU, for the copy that precedes an asynchronous save
  constant<seconds> pause;           ///< per save, in addition to copying: barriers, metadata
  std::optional<seconds> interval;   ///< work between two saves; absent: the best by Daly's exact form
  std::vector<save_tier> tiers;      ///< fastest first; at least one
  bool operator==(const save_policy&) const = default;
};

/// Times of saves and loads at one place.
struct save_times {
  seconds stall;  ///< how long a save stops the job
  seconds drain;  ///< from the end of the stall until the copy is complete
  seconds load;
  std::int64_t every = 1;
  cluster_part survives = cluster_part::process;  ///< the largest part whose loss leaves the copy readable
};
/// The times of tier `t` for a job on `trays` trays with `gpus` GPUs.
save_times times_of(const save_tier& t, const save_policy& p, std::int64_t trays, std::int64_t gpus);

/// Write bandwidth of a tray: the tier's rate, limited by the fabric unless the drives are the tray's own.
bandwidth written_by_tray(const save_tier& t, const save_policy& p);
/// Read bandwidth of a tray, limited in the same way.
bandwidth read_by_tray(const save_tier& t, const save_policy& p);
/// Time of a load, including planning. The slowest of three decides: the trays that read, the store that serves
/// them, or the fabric that carries what is read and passed on.
seconds load_time(const save_tier& t, const save_policy& p, std::int64_t trays, std::int64_t gpus);

/// Mean stall of a save, over all tiers.
seconds mean_stall(const std::vector<save_times>& tiers);

/// Progress of a job that alternates work and saves, in seconds of work at full speed. All times are in seconds.
struct work_clock {
  double interval = 0;  ///< work between saves
  double stall = 0;     ///< per save
  std::vector<save_times> tiers;

  double progress = 0;
  double in_cycle = 0;  ///< time since the last save ended: first work, then the stall
  double saving = 0;    ///< time in saves so far
  std::int64_t saves = 0;
  /// A copy: the progress it holds, and when it is complete.
  struct copy {
    double progress = 0, complete = 0;
  };
  std::vector<std::array<copy, 2>> copies;  ///< by tier: the last two, newest first
};

/// A clock at progress 0, which every tier holds. Two copies to a tier are at least its drain time apart.
work_clock start_clock(const std::vector<save_times>& tiers, seconds interval);
/// Changes the times of saves from now on. `interval` is as for `start_clock`.
void change_times(work_clock& c, const std::vector<save_times>& tiers, seconds interval);
/// Advances the clock from `now` by `dt` seconds, at `speed` times the full speed. Takes constant time for any
/// `dt`.
void advance(work_clock& c, double now, double dt, double speed);
/// Time from now until the job has made `more` progress, saves included.
double time_for(const work_clock& c, double more, double speed);

/// The newest complete copy that survives the loss of a part of kind `lost`.
struct found_copy {
  double progress = 0;
  seconds load;
};
found_copy newest_copy(const work_clock& c, cluster_part lost, double now);
/// Resets the job to `progress`. Later copies are discarded, and the next save is one interval away.
void go_back(work_clock& c, double progress);

}  // namespace nvlsim
