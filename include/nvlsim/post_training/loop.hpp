// The loop of rollouts and updates: what its actors decide. They are the workers of the rollout pool and the
// trainer. Time is kept by whoever plays it: SimGrid's actors, or a queue of dates. [docs/post-training.md#loop]
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/post_training/response_lengths.hpp"
#include "nvlsim/post_training/rollout_worker.hpp"

namespace nvlsim {

/// What happens to samples in flight when new weights are there. `drain`: the update waits until they end, and
/// none begins before. `keep_cache`: they stop for the transfer and go on. `recompute`: the same, and their caches
/// are computed again with the new weights.
enum class on_update { drain, keep_cache, recompute };
inline const std::array<std::string, 3> on_update_names = {"drain", "keep_cache", "recompute"};
/// What happens to samples that are not needed when a batch is full: they are lost, or go on in the next step.
enum class tail_policy { drop, resume };
inline const std::array<std::string, 2> tail_names = {"drop", "resume"};
/// When the next prompts begin: one by one as soon as the bound of staleness lets them, or a batch at a time.
enum class admission_policy { prompt, batch };
inline const std::array<std::string, 2> admission_names = {"prompt", "batch"};

struct tool_settings {
  std::int64_t turns = 1;   ///< of a response
  double mean_s = 0;        ///< of a call; exponentially distributed
  std::int64_t tokens = 0;  ///< that an answer adds to the context
  bool operator==(const tool_settings&) const = default;
};

/// Who does what when.
struct loop_settings {
  std::int64_t prompts = 1, samples = 1;  ///< of a step; of a prompt
  std::int64_t prompt_tokens = 1;
  response_lengths response;
  tool_settings tools;
  bool colocated = true;  ///< rollouts and updates take turns on the same GPUs
  double staleness = 0;   ///< of a split pool: batches that may be generated before the one they are trained after
  admission_policy admission = admission_policy::prompt;
  on_update update = on_update::drain;
  bool streaming = false;  ///< the trainer takes a mini-batch as soon as it is there, else whole batches
  std::int64_t mini_batch_prompts = 1;
  double oversample = 0;  ///< prompts that begin beyond those of a step, as a share of them
  tail_policy tail = tail_policy::drop;
  double kept_share = 1;           ///< of prompts whose samples teach anything (dynamic sampling)
  std::int64_t round_prompts = 0;  ///< that begin together; 0: those of a step
  std::int64_t steps = 1, warmup = 0;
  std::uint64_t seed = 1;
};

/// Why a loop generates too many samples to be simulated, steps and warm-up together; empty if it does not.
std::string samples_problem(const loop_settings& s);

/// Seconds of the trainer for some sequences.
struct update_times {
  double logprobs_s = 0, update_s = 0;
};
struct loop_prices {
  rollout_engine engine;
  std::int64_t workers = 1;
  /// Of sequences with these lengths, prompt and response.
  std::function<update_times(const std::vector<std::int64_t>& lengths)> train;
  double reward_s = 0;                         ///< from the end of a sample to its reward
  double sample_s = 0;                         ///< of the driver for a sample, one after the other
  double step_s = 0;                           ///< of the driver for a step
  double to_training_s = 0, to_rollout_s = 0;  ///< of a colocated change: memory freed and loaded
  double transfer_s = 0;                       ///< of new weights
};

/// One step of the trainer. The parts add up to the step.
struct step_record {
  double begin_s = 0, end_s = 0;
  double wait_s = 0;  ///< for rollouts and rewards: generation, where they take turns
  double logprobs_s = 0, update_s = 0;
  double transfer_s = 0;                   ///< of weights
  double change_s = 0;                     ///< between rollout and training, colocated
  double driver_s = 0;                     ///< host work on samples
  double tokens = 0, response_tokens = 0;  ///< trained: prompts and responses; responses
  std::int64_t samples = 0;
  double staleness = 0;  ///< mean over samples, in updates
  double length_p50 = 0, length_p99 = 0, length_max = 0;
  double nine_tenths_s = 0;  ///< of a batch: from its first start to the end of 90 % of its samples
  double all_s = 0;          ///< to the end of all
  double step_s() const { return end_s - begin_s; }
  double remainder_s() const { return transfer_s + change_s + driver_s; }
};
struct loop_span {
  std::size_t actor = 0;  ///< worker; the trainer follows the workers
  std::string name;
  double begin_s = 0, end_s = 0;
};
struct loop_record {
  std::vector<step_record> steps;           ///< measured
  std::vector<std::int64_t> stale_samples;  ///< trained samples, by the number of updates since they began
  double rollout_busy_s = 0;                ///< of all workers, in the measured time
  double trainer_busy_s = 0;
  double measured_s = 0;
  double generated_tokens = 0;  ///< in the measured time
  double dropped_tokens = 0;    ///< of all steps: generated and not trained
  double recomputed_tokens = 0;
  std::int64_t dropped_prompts = 0, preempted = 0;
  std::vector<loop_span> spans;
  std::int64_t all_steps = 0;  ///< with those before the measured ones
  std::int64_t decisions = 0;
};

/// The decisions, in order of time.
class post_training_loop {
 public:
  post_training_loop(loop_settings settings, loop_prices prices);
  ~post_training_loop();
  post_training_loop(const post_training_loop&) = delete;
  post_training_loop& operator=(const post_training_loop&) = delete;

  std::size_t actors() const;
  /// When an actor has something to do next; infinity if it waits for others.
  double date(std::size_t actor) const;
  /// When the first has.
  double next_date() const;
  /// Everything that is due at `t`, in the order of actors. `t` is `next_date()`.
  void act(double t);
  /// Actors whose dates have changed since the last call.
  std::vector<std::size_t> take_changed();
  /// All steps are there.
  bool done() const;
  /// Requires `done()`.
  loop_record close() &&;

 private:
  struct state;
  std::unique_ptr<state> s_;
};

/// Plays a loop with a queue of dates. Throws internal_error if nothing is left to do before it is done.
loop_record play_by_queue(const loop_settings& s, const loop_prices& p);
using loop_player = std::function<loop_record(const loop_settings&, const loop_prices&)>;

}  // namespace nvlsim
