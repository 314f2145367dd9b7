// A training job on a cluster over days to months: failures, recoveries, and where each GPU-hour went.
//
// The decisions are here and have no clock: `begin_operation` and `happen` add orders ("tell me at that time"),
// and who keeps the time calls `happen` when they are due. `run_by_queue` keeps it in a queue of events;
// `run_operation_by_actors` of the engine keeps it with SimGrid, and gives the same to 1e-9.
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
  failure_model failures;  ///< scaled
  save_policy save;
  recovery_policy recovery;
  maintenance_plan maintenance;
  tray_request asked;
  std::int64_t replicas = 1;  ///< of the model, that can go on without each other
  seconds step_time;          ///< with all replicas at full speed, each with one shard of the batch
  double further_shard = 1;   ///< what another shard adds to a step, over the step with one
  double spread = 0;          ///< standard deviation of the time of a shard in a replica, over the step with one
  seconds duration;
  std::optional<seconds> work;  ///< at full speed, after which the job is done
  bool notes_racks = false;     ///< of a job alone: what each rack did is kept
};

/// What a GPU's time goes to.
enum class gpu_use {
  useful,        ///< steps that were kept
  redone,        ///< steps that a failure made worthless
  slow,          ///< waiting for slow parts
  copies,        ///< computing shards of the batch that others compute too, or in place of lost replicas
  saving,        ///< stopped by saves
  detecting,     ///< from a failure until it is noticed
  deciding,      ///< diagnosis and eviction
  waiting,       ///< for hardware
  readying,      ///< spare trays
  initialising,  ///< communicators
  loading,       ///< the saved state
  first_step,
  stalled,   ///< while a replica drops out
  left_out,  ///< up, in a replica that has dropped out
  maintenance,
  repair,    ///< broken
  spare,     ///< up, not in the job
  after_end  ///< the job is done
};
inline constexpr std::array<std::string_view, 18> gpu_use_names = {
    "useful",   "redone",   "slow",        "copies",       "saving",  "detecting",
    "deciding", "waiting",  "readying",    "initialising", "loading", "first_step",
    "stalled",  "left_out", "maintenance", "repair",       "spare",   "after_end"};

enum class operation_event_kind {
  failure,
  mended,
  phase_over,
  slow_found,
  slow_over,
  corruption_found,
  rejoin,
  maintenance,
  trays_free
};

/// Something that is to happen.
struct operation_event {
  operation_event_kind kind = operation_event_kind::failure;
  std::int32_t component = 0;
  std::int64_t index = 0;   ///< tray of a mended part, number of a slow part, replica
  std::uint64_t epoch = 0;  ///< of a phase or a rejoin: no longer valid if another has begun
};
struct operation_order {
  double at = 0;
  operation_event what;
};

/// What a kind of component did.
struct component_toll {
  std::int64_t failures = 0;
  std::int64_t stops = 0;       ///< of the job
  double lost_gpu_seconds = 0;  ///< of the job: redone and stopped
};

/// A stretch of the job's life, for pictures.
struct operation_span {
  double begin = 0, end = 0;
  gpu_use use = gpu_use::useful;
  std::int32_t component = -1;  ///< that caused it; -1: none
  double progress = 0;          ///< at its end
};

struct operation_outcome {
  std::array<double, gpu_use_names.size()>
      gpu_seconds{};             ///< of all GPUs of the cluster; their sum is all there is
  double progress = 0;           ///< useful work, seconds at full speed
  double began = 0;              ///< first start
  double wall = 0;               ///< from there to the end of the job or of the run
  std::int64_t stops = 0;        ///< failures that stopped the job, or replicas of it
  std::int64_t whole_stops = 0;  ///< those that stopped all of it
  std::int64_t failures = 0;     ///< of all components
  std::int64_t saves = 0;
  std::optional<double> finished;  ///< when the work was done
  double least_trays_up = 0;
  std::vector<component_toll> tolls;  ///< by component
  std::vector<operation_span> spans;  ///< the first ones, at most `most_spans`
  rack_log racks;                     ///< if the setup asks for it; `now` is empty

  double useful_share() const { return wall > 0 ? progress / wall : 0; }
};
inline constexpr std::size_t most_spans = 4000;

/// When each component of a kind fails, soonest first, and its number.
using life_queue = std::priority_queue<std::pair<double, std::int64_t>,
                                       std::vector<std::pair<double, std::int64_t>>, std::greater<>>;

/// The state of a run. Whoever keeps time takes `orders` after each call.
struct operation_state {
  const operation_setup* setup = nullptr;
  machine_state machine;
  work_clock clock;
  double now = 0;
  bool alone = true;                ///< the cluster is this job's: its spares and repairs count here
  bool absent = false;              ///< without trays: not started, or evicted
  gpu_use phase = gpu_use::useful;  ///< `useful`: it runs
  double phase_begin = 0;
  std::uint64_t epoch = 0;
  std::int32_t cause = -1;   ///< component of the last stop
  std::int64_t moved = 0;    ///< trays since the last step
  std::int64_t pending = 0;  ///< recoveries that wait for the present one
  double load = 0;           ///< seconds, of the copy to restart from
  double detection = 0;      ///< of the stop in hand

  std::vector<std::uint64_t> replica_epoch;  ///< of those that are out: of their restart
  std::vector<bool> replica_out, replica_restarts;
  std::int64_t out = 0;
  std::int64_t shards = 1;  ///< of the batch, that each replica computes

  struct slow_part {
    std::int64_t number = 0, tray = -1;
    double speed = 1;
  };
  std::vector<slow_part> slow;
  std::int64_t slow_parts = 0;
  std::int64_t corrupted = 0;                              ///< corruptions that nobody has noticed
  double clean = std::numeric_limits<double>::infinity();  ///< progress of the last copy before the first of them

  std::vector<std::mt19937_64> draws;  ///< by component, so that policies do not change what fails when
  std::vector<life_queue> lives;       ///< by component, of those that age
  std::vector<std::int64_t> lemons;    ///< trays
  std::map<std::int64_t, std::int64_t> lemon_failures;
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t>
      broken_of;  ///< component and part: how many are broken

  operation_outcome outcome;
  std::vector<operation_order> orders;
};

/// Save and load times of the tiers of a job.
std::vector<save_times> tiers_of(const operation_setup& s);
/// What the closed forms take: the mean over everything that stops the job. A failure is taken to find the copy of
/// the last tier.
restart_costs mean_costs(const operation_setup& s, const std::vector<save_times>& tiers);
/// The interval between saves: the given one, or the best for what stops the job; never less than a copy takes.
seconds save_interval(const operation_setup& s, const std::vector<save_times>& tiers);

operation_state begin_operation(const operation_setup& s, std::uint64_t seed);
void happen(operation_state& s, double now, const operation_event& e);
/// Accounts for the time until `end`, and returns what happened.
operation_outcome end_operation(operation_state& s, double end);

/// Keeps the time of a run in a queue of events. `setup` must outlive the call only.
operation_outcome run_by_queue(const operation_setup& setup, std::uint64_t seed);

}  // namespace nvlsim
