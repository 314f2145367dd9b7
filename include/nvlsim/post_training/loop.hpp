// Decisions in the loop of rollouts and updates. Its actors are the workers of the rollout pool and the trainer.
// The caller keeps the time, with SimGrid's actors or a queue of dates. [docs/post-training.md#loop]
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

/// What happens to samples in flight when new weights arrive. `drain`: the update waits until they end, and no
/// sample starts before it. `keep_cache`: they pause for the transfer and continue. `recompute`: as `keep_cache`,
/// but their caches are recomputed with the new weights.
enum class on_update { drain, keep_cache, recompute };
inline const std::array<std::string, 3> on_update_names = {"drain", "keep_cache", "recompute"};
/// What happens to unfinished samples when a batch is full: they are dropped, or resume in the next step.
enum class tail_policy { drop, resume };
inline const std::array<std::string, 2> tail_names = {"drop", "resume"};
/// When the next prompts start: one by one as soon as the staleness bound allows, or one batch at a time.
enum class admission_policy { prompt, batch };
inline const std::array<std::string, 2> admission_names = {"prompt", "batch"};

/// Tool calls of a response.
struct tool_settings {
  std::int64_t turns = 1;   ///< per response
  double mean_s = 0;        ///< per call; exponentially distributed
  std::int64_t tokens = 0;  ///< that an answer adds to the context
  bool operator==(const tool_settings&) const = default;
};

/// Sizes and policies of a loop.
struct loop_settings {
  std::int64_t prompts = 1, samples = 1;  ///< per step; per prompt
  std::int64_t trained_samples = 0;       ///< per prompt; the others are dropped. 0: all
  std::int64_t prompt_tokens = 1;
  response_lengths response;
  tool_settings tools;
  bool colocated = true;  ///< rollouts and updates take turns on the same GPUs
  double staleness = 0;   ///< how many batches generation may run ahead of training (split pools)
  admission_policy admission = admission_policy::prompt;
  on_update update = on_update::drain;
  bool streaming = false;  ///< the trainer takes each mini-batch as soon as it is complete; else whole batches
  std::int64_t mini_batch_prompts = 1;
  double oversample = 0;  ///< extra prompts that start, as a share of those of a step
  tail_policy tail = tail_policy::drop;
  double kept_share = 1;           ///< share of prompts with useful samples (dynamic sampling)
  std::int64_t round_prompts = 0;  ///< prompts that start together; 0: those of a step
  std::int64_t steps = 1, warmup = 0;
  std::uint64_t seed = 1;
};

/// Why a loop, with its warm-up, generates too many samples to simulate; empty if it does not.
std::string samples_problem(const loop_settings& s);

/// Trainer time for a set of sequences.
struct update_times {
  double logprobs_s = 0, update_s = 0;
};
/// Times of a loop's parts.
struct loop_prices {
  rollout_engine engine;
  std::int64_t workers = 1;
  /// Trainer time for sequences of these lengths, prompt and response together.
  /// `trained`: of the samples that are trained; `scored`: of all that were scored since the last time, those of
  /// dropped prompts included.
  std::function<update_times(const std::vector<std::int64_t>& trained, const std::vector<std::int64_t>& scored)>
      train;
  double reward_s = 0;                         ///< to score a sample
  std::int64_t reward_slots = 0;               ///< samples that are scored at once, in order; 0: all
  double sample_s = 0;                         ///< driver time per sample; samples are handled one after the other
  double step_s = 0;                           ///< driver time per step
  double to_training_s = 0, to_rollout_s = 0;  ///< times to switch a colocated pool: memory is freed and loaded
  double transfer_s = 0;                       ///< time to transfer new weights
};

/// One step of the trainer. Its parts add up to the step time.
struct step_record {
  double begin_s = 0, end_s = 0;
  double wait_s = 0;  ///< for rollouts and rewards; in a colocated loop, generation
  double logprobs_s = 0, update_s = 0;
  double transfer_s = 0;                   ///< weight transfer
  double change_s = 0;                     ///< switches between rollout and training, if colocated
  double driver_s = 0;                     ///< host work on samples and steps
  double tokens = 0, response_tokens = 0;  ///< trained tokens: of prompts and responses; of responses
  std::int64_t samples = 0;
  double staleness = 0;  ///< mean over samples, in updates
  double length_p50 = 0, length_p99 = 0, length_max = 0;
  double nine_tenths_s = 0;  ///< from a batch's first start to the end of 90 % of its samples
  double all_s = 0;          ///< from its first start to the end of all its samples
  double step_s() const { return end_s - begin_s; }
  double remainder_s() const { return transfer_s + change_s + driver_s; }
};
/// A time span of one actor, for traces.
struct loop_span {
  std::size_t actor = 0;  ///< worker; the trainer follows the workers
  std::string name;
  double begin_s = 0, end_s = 0;
};
/// What a loop did.
struct loop_record {
  std::vector<step_record> steps;           ///< measured steps
  std::vector<std::int64_t> stale_samples;  ///< trained samples, by the number of updates since they started
  double rollout_busy_s = 0;                ///< of all workers, in the measured time
  double trainer_busy_s = 0;
  double measured_s = 0;
  double generated_tokens = 0;  ///< in the measured time
  double dropped_tokens = 0;    ///< generated but not trained, in all steps
  double recomputed_tokens = 0;
  std::int64_t dropped_prompts = 0, preempted = 0;
  std::vector<loop_span> spans;
  std::int64_t all_steps = 0;  ///< including the warm-up
  std::int64_t decisions = 0;
};

/// Makes the loop's decisions in order of time.
class post_training_loop {
 public:
  post_training_loop(loop_settings settings, loop_prices prices);
  ~post_training_loop();
  post_training_loop(const post_training_loop&) = delete;
  post_training_loop& operator=(const post_training_loop&) = delete;

  std::size_t actors() const;
  /// When an actor next has something to do; infinity while it waits for others.
  double date(std::size_t actor) const;
  /// The earliest date of all actors.
  double next_date() const;
  /// Does everything due at `t`, in the order of actors. Requires `t` = `next_date()`.
  void act(double t);
  /// Actors whose dates have changed since the last call.
  std::vector<std::size_t> take_changed();
  /// Whether all steps are complete.
  bool done() const;
  /// Returns the record. Requires `done()`.
  loop_record close() &&;

 private:
  struct state;
  std::unique_ptr<state> s_;
};

/// Runs a loop with a queue of dates. Throws internal_error if all actors wait before it is done.
loop_record play_by_queue(const loop_settings& s, const loop_prices& p);
/// A way to run a loop.
using loop_player = std::function<loop_record(const loop_settings&, const loop_prices&)>;

}  // namespace nvlsim
