// Saving the state of a training job: where to, how long it takes, and what is kept after a failure.
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

/// Where a save goes. `neighbour`: the host memory of a tray in another rack. `nvme`: the drives of the own tray.
/// `store`: a parallel file system or an object store.
/// Fastest first.
enum class save_place { neighbour, nvme, store };
inline const std::array<std::string, 3> save_place_names = {"neighbour", "nvme", "store"};

/// Who reads from a store what several GPUs hold alike, such as the weights of data-parallel replicas.
enum class copy_readers {
  one,  ///< one of them, which passes it on over the fabric
  all   ///< each of them
};
inline const std::array<std::string, 2> copy_readers_names = {"one", "all"};

/// How a copy of the state reaches a place and comes back.
struct save_tier {
  save_place to = save_place::store;
  constant<bandwidth> write, read;                 ///< of one tray
  std::optional<constant<bandwidth>> store_write;  ///< of all trays together; absent: no limit
  std::optional<constant<bandwidth>> store_read;
  constant<std::int64_t> every = 1;  ///< saves between two that go here
  bool asynchronous = true;          ///< the job waits for the copy into host memory only
  double draining = 1;               ///< speed of steps whose exchanges share the network with a copy
  bool operator==(const save_tier&) const = default;
};

struct save_policy {
  bytes state;   ///< of the whole job: weights and optimizer
  bytes frozen;  ///< weights that are loaded with it and never saved: those under adapters
  bytes held;    ///< of both on all GPUs, every copy counted; 0: there is one of each
  copy_readers readers = copy_readers::one;
  constant<seconds> plan_per_gpu;    ///< of a load from a store: who reads what, worked out anew for each GPU
  std::optional<bandwidth> network;  ///< that the platform's fabric carries to or from a tray; absent: no limit
  bool unchanged = false;            ///< nothing is saved and no work lost: a service, which only loads weights
  constant<bandwidth> to_host;       ///< of one GPU, for the copy that precedes an asynchronous save
  constant<seconds> pause;           ///< that a save stops the job for beside copying: barriers, metadata
  std::optional<seconds> interval;   ///< of work between two saves; absent: the best by Daly's exact form
  std::vector<save_tier> tiers;      ///< fastest first; at least one
  bool operator==(const save_policy&) const = default;
};

/// Times of a tier for a job on `trays`.
struct save_times {
  seconds stall;  ///< of the job
  seconds drain;  ///< from the end of the stall until the copy is complete
  seconds load;
  std::int64_t every = 1;
  cluster_part survives = cluster_part::process;  ///< the largest part whose loss leaves the copy readable
};
save_times times_of(const save_tier& t, const save_policy& p, std::int64_t trays, std::int64_t gpus);

/// What a tray writes there: its own rate, or what the fabric carries unless the drives are its own.
bandwidth written_by_tray(const save_tier& t, const save_policy& p);
/// What it reads from there.
bandwidth read_by_tray(const save_tier& t, const save_policy& p);
/// Time of a load, planning included: as long as the trays take to read, the store to serve them, or the fabric to
/// carry what is read and passed on, whichever is longest.
seconds load_time(const save_tier& t, const save_policy& p, std::int64_t trays, std::int64_t gpus);

/// The stall of a mean save, over all tiers.
seconds mean_stall(const std::vector<save_times>& tiers);

/// Progress of a job that works and saves in turn, in seconds of work at full speed. Times below are seconds.
struct work_clock {
  double interval = 0;  ///< of work between saves
  double stall = 0;     ///< of a save
  std::vector<save_times> tiers;

  double progress = 0;
  double in_cycle = 0;  ///< time since the last save ended: work, then the stall
  double saving = 0;    ///< time in saves so far
  std::int64_t saves = 0;
  /// Of each tier the last two copies: progress that they hold, and when they are complete.
  struct copy {
    double progress = 0, complete = 0;
  };
  std::vector<std::array<copy, 2>> copies;  ///< newest first
};

/// A clock at progress 0, which every tier holds. Saves are at least as far apart as a copy takes to drain.
work_clock start_clock(const std::vector<save_times>& tiers, seconds interval);
/// The times of saves from now on. `interval` as for `start_clock`.
void change_times(work_clock& c, const std::vector<save_times>& tiers, seconds interval);
/// Lets `dt` seconds pass from `now` on, at a share `speed` of the full speed. Constant time, whatever `dt`.
void work(work_clock& c, double now, double dt, double speed);
/// Time from now until the job has made `more` progress, saves included.
double time_for(const work_clock& c, double more, double speed);

/// What a restart finds after the loss of a part of kind `lost`: the newest complete copy that is left.
struct found_copy {
  double progress = 0;
  seconds load;
};
found_copy newest_copy(const work_clock& c, cluster_part lost, double now);
/// Goes back to `progress`; later copies are worthless, and the next save is an interval away.
void go_back(work_clock& c, double progress);

}  // namespace nvlsim
