// The state of a loop of rollouts and updates.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "nvlsim/post_training/loop.hpp"

namespace nvlsim {

/// The samples of one prompt.
struct prompt_group {
  std::int32_t first = 0;    ///< number of its first sample
  std::int64_t left = 0;     ///< samples that have not ended
  std::int64_t version = 0;  ///< version of the weights when it started
  double began_s = 0;
  double scored_s = 0;  ///< the last reward so far
  std::vector<double> ended_s;
  bool kept = true;  ///< its samples are useful for training
  bool dropped = false;
};

/// What the trainer is doing.
enum class trainer_phase { waiting, training, draining, transferring };

/// The workers, the trainer and the samples of a loop.
struct post_training_loop::state {
  loop_settings set;
  loop_prices price;
  std::vector<rollout_sample> samples;
  std::vector<prompt_group> groups;
  std::vector<rollout_worker> workers;
  std::set<std::pair<std::int64_t, std::size_t>> load;  ///< unfinished samples of workers
  std::vector<std::int64_t> load_of;
  std::set<std::pair<double, std::size_t>> dates;
  std::vector<double> date_of;
  std::vector<std::size_t> changed;                   ///< actors whose dates changed
  std::vector<std::int32_t> worker_of;                ///< by sample
  std::set<std::pair<double, std::int32_t>> rewards;  ///< groups by the date of their last reward
  std::vector<std::int32_t> ready;                    ///< finished groups, in the order of their begin
  std::vector<std::int32_t> carried;                  ///< samples to resume
  std::map<std::int64_t, std::int64_t> untrained;     ///< groups that may be trained, by version
  std::vector<std::int64_t> scored_in_vain;           ///< lengths of samples of prompts that taught nothing
  std::multiset<double> reward_slots;                 ///< when each has scored what it has
  std::vector<double> busy_since;                     ///< by worker; negative when idle
  std::int64_t outstanding = 0, in_flight = 0;        ///< groups not trained; samples that have not ended
  std::int64_t version = 0, trained = 0;              ///< updates; prompts of this step that are trained
  bool open = false;                                  ///< whether prompts may start
  trainer_phase phase = trainer_phase::waiting;
  double phase_end = 0, wait_from = 0;
  double busy_at_start = 0, tokens_at_start = 0;
  step_record now;
  std::vector<std::int64_t> lengths_now;
  loop_record out;

  state(loop_settings s, loop_prices p);
  std::size_t trainer() const { return workers.size(); }
  void retime(std::size_t who);
  void count_load(std::size_t worker, std::int64_t change);
  void note_busy(std::size_t worker, double t);
  void span(std::size_t who, std::string name, double from, double to);

  // rollouts
  std::int32_t new_group(double t);
  void begin_group(double t);
  void begin_groups(double t);
  void hand(std::int32_t sample, std::size_t worker, double t);
  double scored(double t);
  void end_sample(std::int32_t sample, double t);
  void act_worker(std::size_t w, double t);
  void cut_tail(double t);
  void take_away(std::int32_t group);
  void drop(std::int32_t group);

  // trainer
  std::int64_t unit() const { return set.streaming && !set.colocated ? set.mini_batch_prompts : set.prompts; }
  bool limits_staleness() const {
    return !set.colocated && (set.oversample == 0 || set.tail == tail_policy::resume);
  }
  std::int64_t max_age() const;
  bool leaves_none_too_old() const;
  void drop_too_old();
  void act_trainer(double t);
  void note_scored(std::int32_t number);
  void collect_rewards(double t);
  void open_rollouts(double t);
  void train(double t);
  void end_training(double t);
  void transfer(double t);
  void end_step(double t);
  double busy() const;
  double tokens() const;
};

}  // namespace nvlsim
