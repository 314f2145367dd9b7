// One replica of a rollout pool: which samples it decodes, and when the next one ends. A worker makes decisions
// and has no clock. Iterations between two decisions are equal and are simulated together.
// [docs/post-training.md#rollouts]
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// A response being generated: in one turn, or with tools in several turns of equal length.
struct rollout_sample {
  std::int64_t prompt = 0, response = 0;  ///< tokens
  std::int32_t group = 0;                 ///< samples of one prompt share its KV cache on a worker
  std::int32_t turns = 1;
  std::int64_t tool_tokens = 0;     ///< added to the context by a tool after each turn but the last
  std::vector<double> tool_s = {};  ///< time of each call, one less than turns
  double done = 0;                  ///< tokens generated so far
  std::int32_t turn = 0;            ///< turns ended so far
  std::int64_t recomputed = 0;      ///< tokens whose cache was lost and recomputed

  /// Tokens in its context after the prompt.
  double own_tokens() const { return done + static_cast<double>(turn * tool_tokens); }
};

/// Limits and iteration times of a worker, from the serving engine.
struct rollout_engine {
  /// Seconds per iteration, for `count` equal iterations.
  std::function<double(const iteration& it, std::int64_t count)> iteration_s;
  std::int64_t kv_tokens = 0;   ///< capacity of the KV cache
  std::int64_t max_batch = 1;   ///< sequences that run at once
  std::int64_t max_tokens = 1;  ///< per iteration
  double tokens_per_step = 1;   ///< per sequence, with speculative drafts
};

/// Schedules and times the samples of one replica.
class rollout_worker {
 public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// `engine` and `samples` must outlive the worker, which refers to its samples by index.
  rollout_worker(const rollout_engine& engine, std::vector<rollout_sample>& samples)
      : engine_(engine), samples_(samples) {}

  /// Time of the next event; `never` if there is none.
  double date() const;
  /// Does what is due at `t`, which must not be after `date()`. Appends samples that ended to `ended`.
  void act(double t, std::vector<std::int32_t>& ended);
  /// Adds a sample.
  void add(std::int32_t sample, double t);
  /// Pauses all samples for `length` seconds. Caches lost to a change of weights are recomputed.
  void pause(double t, double length, bool caches_lost);
  /// Removes and returns all samples; they keep their generated tokens.
  std::vector<std::int32_t> stop(double t);

  std::int64_t unfinished() const { return unfinished_; }
  double busy_s() const { return busy_s_; }  ///< time spent in iterations, until the last call
  bool idle() const { return !running_; }    ///< whether no iteration runs
  double tokens() const { return tokens_; }  ///< generated
  std::int64_t preempted() const { return preempted_; }

 private:
  const rollout_sample& sample(std::int32_t i) const { return samples_[static_cast<std::size_t>(i)]; }
  rollout_sample& sample(std::int32_t i) { return samples_[static_cast<std::size_t>(i)]; }
  void advance(double t);
  void plan(double t);
  bool admit();
  void plan_prompts(double t);
  bool plan_decodes(double t);
  void preempt();
  void end_turns(double t, std::vector<std::int32_t>& ended);
  void enter(std::int32_t i);
  void leave(std::int32_t i);
  double turn_left(const rollout_sample& s) const;
  void requeue_all();

  const rollout_engine& engine_;
  std::vector<rollout_sample>& samples_;
  std::deque<std::int32_t> queue_;                      ///< not admitted
  std::set<std::pair<double, std::int32_t>> active_;    ///< by the count of tokens at which their turn ends
  std::set<std::pair<double, std::int32_t>> at_tools_;  ///< by the date of their answer
  std::vector<std::int32_t> order_;                     ///< active ones, the latest admitted last; may list others
  std::unordered_map<std::int32_t, double> ends_at_;    ///< of active ones: their place in `active_`
  std::unordered_map<std::int32_t, double> cached_;     ///< own tokens in the cache, at the time of entry
  std::unordered_map<std::int32_t, int> residents_;     ///< by group: samples in the cache
  std::vector<std::int32_t> entering_;                  ///< whose prompts are being computed
  double prompt_tokens_ = 0, prompt_pairs_ = 0;         ///< of those
  double count_ = 0;                                    ///< tokens that a sample active from the start would have
  double context_ = 0, held_ = 0;                       ///< tokens: read by the active, and in the cache
  bool running_ = false;
  double begin_ = 0, end_ = never, ahead_ = 0;  ///< of what runs, and the tokens of each sample by its end
  double resume_ = 0;
  double busy_s_ = 0, tokens_ = 0;
  std::int64_t unfinished_ = 0, preempted_ = 0;
};

}  // namespace nvlsim
