// Simulates a training job on a cluster over days to months: failures, recoveries, and the use of each GPU-hour.
//
// This module makes decisions and has no clock. `begin_operation` and `happen` add orders, each an event with a
// time. The caller keeps the time and calls `happen` when an order is due. `run_by_queue` uses a queue of events;
// `run_operation_by_actors` uses the simulation engine, SimGrid, and agrees with it to 1e-9.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/operation/checkpoint.hpp"
#include "nvlsim/operation/estimates.hpp"
#include "nvlsim/operation/failures.hpp"
#include "nvlsim/operation/machine.hpp"
#include "nvlsim/operation/rack_states.hpp"
#include "nvlsim/operation/recovery.hpp"

namespace nvlsim {

struct operation_setup {
  cluster_shape cluster;
  failure_model failures;  ///< as returned by `scaled`
  save_policy save;
  recovery_policy recovery;
  maintenance_plan maintenance;
  tray_request asked;
  std::int64_t replicas = 1;       ///< model replicas that can run without each other
  std::int64_t micro_batches = 1;  ///< of each replica in a step; matters only to a batch that is kept
  seconds step_time;               ///< all replicas at full speed, each computing one shard of the batch
  double further_shard = 1;        ///< time another shard adds to a step, relative to a one-shard step
  double spread = 0;               ///< standard deviation of a replica's shard time, relative to a one-shard step
  seconds duration;
  std::optional<seconds> work;  ///< work at full speed after which the job is done
  bool notes_racks = false;     ///< keeps what each rack did; for a job alone on the cluster
};

/// What a GPU spends its time on.
enum class gpu_use {
  useful,        ///< steps whose results were kept
  redone,        ///< steps that a failure made void
  slow,          ///< waiting for slow parts
  copies,        ///< computing shards that other replicas also compute, or shards of lost replicas
  saving,        ///< stopped by saves
  detecting,     ///< from a failure to its detection
  deciding,      ///< diagnosis and eviction
  waiting,       ///< waiting for hardware
  readying,      ///< preparing spare trays
  initialising,  ///< starting communicators
  loading,       ///< loading the saved state
  first_step,
  stalled,   ///< other replicas wait while one drops out
  left_out,  ///< up, but its replica has dropped out
  maintenance,
  repair,     ///< broken
  reclaimed,  ///< taken back by the seller, and not paid for
  spare,      ///< up, not used by the job
  after_end   ///< after the job is done
};
inline constexpr std::array<std::string_view, 19> gpu_use_names = {
    "useful",      "redone",   "slow",         "copies",  "saving",     "detecting", "deciding",
    "waiting",     "readying", "initialising", "loading", "first_step", "stalled",   "left_out",
    "maintenance", "repair",   "reclaimed",    "spare",   "after_end"};

enum class operation_event_kind {
  failure,
  mended,
  phase_over,
  slow_found,
  slow_over,
  corruption_found,
  rejoin,
  maintenance,
  trays_free,
  last_save,  ///< before a part is taken back
  reclaim
};

/// A future event.
struct operation_event {
  operation_event_kind kind = operation_event_kind::failure;
  std::int32_t component = 0;
  std::int64_t index = 0;   ///< tray of a mended part, number of a slow part, or replica
  std::uint64_t epoch = 0;  ///< of a phase or a rejoin; void once another has begun
};
struct operation_order {
  double at = 0;
  operation_event what;
};

/// Failures and losses due to one kind of component.
struct component_toll {
  std::int64_t failures = 0;
  std::int64_t stops = 0;       ///< of the job
  double lost_gpu_seconds = 0;  ///< of the job: redone work and stops
};

/// A time span of the job with one use, for charts.
struct operation_span {
  double begin = 0, end = 0;
  gpu_use use = gpu_use::useful;
  std::int32_t component = -1;  ///< its cause; -1: none
  double progress = 0;          ///< at its end
};

struct operation_outcome {
  std::array<double, gpu_use_names.size()>
      gpu_seconds{};             ///< by use, over all GPUs of the cluster; sums to all GPU time
  double progress = 0;           ///< useful work, seconds at full speed
  double began = 0;              ///< time of the first start
  double wall = 0;               ///< from `began` to the end of the job or of the run
  std::int64_t stops = 0;        ///< failures that stopped the job or some of its replicas
  std::int64_t whole_stops = 0;  ///< failures that stopped the whole job
  std::int64_t failures = 0;     ///< of all components
  std::int64_t saves = 0;
  std::optional<double> finished;  ///< when the work was complete
  double min_trays_up = 0;
  std::vector<component_toll> tolls;  ///< by component
  std::vector<operation_span> spans;  ///< the first ones, at most `max_spans`
  rack_log racks;                     ///< if `notes_racks`; `now` is empty

  double useful_share() const { return wall > 0 ? progress / wall : 0; }
};
inline constexpr std::size_t max_spans = 4000;

/// The failure time and number of each component of a kind, soonest first.
using life_queue = std::priority_queue<std::pair<double, std::int64_t>,
                                       std::vector<std::pair<double, std::int64_t>>, std::greater<>>;

/// The state of a run. The caller takes `orders` after each call.
struct operation_state {
  const operation_setup* setup = nullptr;
  machine_state machine;
  work_clock clock;
  double now = 0;
  bool alone = true;                ///< the job has the cluster to itself, and accounts for its spares and repairs
  bool absent = false;              ///< has no trays: not started, or evicted
  gpu_use phase = gpu_use::useful;  ///< `useful`: the job runs
  double phase_begin = 0;
  std::uint64_t epoch = 0;
  std::int32_t cause = -1;   ///< component of the last stop
  std::int64_t moved = 0;    ///< trays moved since the last step
  std::int64_t pending = 0;  ///< recoveries queued behind the current one
  double load = 0;           ///< seconds to load the copy to restart from
  double detection = 0;      ///< seconds, for the current stop

  std::vector<std::uint64_t> replica_epoch;  ///< by replica: identifies its restart under way
  std::vector<bool> replica_out, replica_restarts;
  std::int64_t out = 0;
  std::int64_t shards = 1;  ///< of the batch, computed by each replica

  struct slow_part {
    std::int64_t number = 0;
    tray_range trays;  ///< that it slows; empty: the job is slow on any tray
    double speed = 1;
  };
  std::vector<slow_part> slow;
  std::int64_t slow_parts = 0;
  /// A part that its seller is about to take back.
  struct departure {
    std::int32_t component = 0;
    std::int64_t tray = 0;
    double back = 0;  ///< seconds until it is there again
  };
  std::map<std::int64_t, departure> departures;  ///< by number
  std::int64_t warnings = 0;
  std::int64_t saves_for = -1;  ///< number of the departure that the job stops to save for
  std::int64_t gone = 0;        ///< trays that were taken back
  std::int64_t corrupted = 0;   ///< corruptions not noticed yet
  double clean = std::numeric_limits<double>::infinity();  ///< progress of the last copy before the first one

  std::vector<std::mt19937_64>
      random_sources;                ///< random sources by component, so that policies do not change failures
  std::vector<life_queue> lives;     ///< by component; empty unless it ages
  std::vector<std::int64_t> lemons;  ///< trays
  std::map<std::int64_t, std::int64_t> lemon_failures;
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t>
      broken_of;  ///< by component and part: number broken

  operation_outcome outcome;
  std::vector<operation_order> orders;
};

/// Save and load times of a job's tiers.
std::vector<save_times> tiers_of(const operation_setup& s);
/// Inputs of the closed forms: means over everything that stops the job. Assumes that a restart loads the copy of
/// the last tier.
restart_costs mean_costs(const operation_setup& s, const std::vector<save_times>& tiers);
/// The mean number of saves between two copies that survive a failure, over everything that stops the job. 1 if
/// every save survives all of it.
double saves_between_copies(const operation_setup& s, const std::vector<save_times>& tiers);
/// `mean_costs` of a job with this interval. Work redone because only an older tier has a copy counts as restart.
restart_costs costs_at(const operation_setup& s, const std::vector<save_times>& tiers, seconds interval);
/// How failures and saves of one tier meet.
struct tier_use {
  double failures_a_day = 0;        ///< that stop the job and leave no faster copy than those of this tier
  std::optional<seconds> interval;  ///< between copies that is best for the tier alone (Young); nothing: no
                                    ///< failure needs it
  std::int64_t every = 1;           ///< the best multiple of the fastest tier's interval, together with the others
};
/// By tier: the best intervals, nested. To first order a copy of tier t each n_t intervals of work D costs
/// stall_t / (n_t D) and rate_t n_t D / 2; n_t is a multiple of that of the tier before. Tiers that are slow to
/// drain take no copies sooner than they drain. `interval`: D, if it is given.
std::vector<tier_use> best_tiers(const operation_setup& s, const std::vector<save_times>& tiers,
                                 std::optional<seconds> interval);

/// The best interval by Daly's exact form, a day at most. Failures that find only each n-th copy count n times.
seconds best_interval(const operation_setup& s, const std::vector<save_times>& tiers);
/// The interval between saves: the given one, or the best for the job's failures; never shorter than a copy.
seconds save_interval(const operation_setup& s, const std::vector<save_times>& tiers);

/// Starts a run. `s` must outlive the state.
operation_state begin_operation(const operation_setup& s, std::uint64_t seed);
/// Handles an event that is due at `now`.
void happen(operation_state& s, double now, const operation_event& e);
/// Accounts for the time until `end` and returns the outcome.
operation_outcome end_operation(operation_state& s, double end);

/// Runs a job with a queue of events. `setup` need not outlive the call.
operation_outcome run_by_queue(const operation_setup& setup, std::uint64_t seed);

}  // namespace nvlsim
