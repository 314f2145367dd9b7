#include "nvlsim/post_training/loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/units/statistics.hpp"
#include "post_training/loop_state.hpp"

namespace nvlsim {
namespace {

constexpr double never = rollout_worker::never;
/// Spans that a record keeps for pictures.
constexpr std::size_t max_spans = 20'000;
/// Samples of a loop: minutes, and 1 GB.
constexpr double max_samples = 1 << 21;

/// Samples that a loop generates in its steps and warm-up.
double samples_of(const loop_settings& s) {
  const auto begun = static_cast<double>(std::max(s.prompts, s.round_prompts)) * (1 + s.oversample) / s.kept_share;
  return begun * static_cast<double>(s.samples) * static_cast<double>(s.steps + s.warmup);
}

/// Tokens of a sample: prompt, response and what tools answered.
std::int64_t length_of(const rollout_sample& s) { return s.prompt + s.response + (s.turns - 1) * s.tool_tokens; }

}  // namespace

std::string samples_problem(const loop_settings& s) {
  const double all = samples_of(s);
  if (all <= max_samples) return {};
  return fmt::format("{} steps, warm-up included, generate {:.3g} samples; at most {:.0f} can be simulated",
                     s.steps + s.warmup, all, max_samples);
}

post_training_loop::state::state(loop_settings s, loop_prices p) : set(std::move(s)), price(std::move(p)) {
  workers.reserve(static_cast<std::size_t>(price.workers));
  for (std::int64_t w = 0; w < price.workers; ++w) workers.emplace_back(price.engine, samples);
  load_of.assign(workers.size(), 0);
  for (std::size_t w = 0; w < workers.size(); ++w) load.insert({0, w});
  busy_since.assign(workers.size(), -1);
  date_of.assign(workers.size() + 1, never);
  for (std::size_t a = 0; a <= workers.size(); ++a) dates.insert({never, a});
}

void post_training_loop::state::retime(std::size_t who) {
  double at = never;
  if (who < workers.size()) at = workers[who].date();
  else {
    if (phase == trainer_phase::training || phase == trainer_phase::transferring) at = phase_end;
    if (!rewards.empty()) at = std::min(at, rewards.begin()->first);
  }
  if (at == date_of[who]) return;
  dates.erase({date_of[who], who});
  date_of[who] = at;
  dates.insert({at, who});
  changed.push_back(who);
}

void post_training_loop::state::span(std::size_t who, std::string name, double from, double to) {
  if (to > from && out.spans.size() < max_spans) out.spans.push_back({who, std::move(name), from, to});
}

double post_training_loop::state::busy() const {
  double sum = 0;
  for (const rollout_worker& w : workers) sum += w.busy_s();
  return sum;
}
double post_training_loop::state::tokens() const {
  double sum = 0;
  for (const rollout_worker& w : workers) sum += w.tokens();
  return sum;
}

/// The samples of a group that will not be trained have been scored all the same.
void post_training_loop::state::note_scored(std::int32_t number) {
  const std::int32_t first = groups[static_cast<std::size_t>(number)].first;
  for (std::int64_t k = 0; k < set.samples; ++k)
    scored_in_vain.push_back(length_of(samples[static_cast<std::size_t>(first + k)]));
}

/// Groups whose rewards are there join the batch, unless they teach nothing.
void post_training_loop::state::collect_rewards(double t) {
  while (!rewards.empty() && rewards.begin()->first <= t) {
    const std::int32_t number = rewards.begin()->second;
    rewards.erase(rewards.begin());
    const prompt_group& g = groups[static_cast<std::size_t>(number)];
    if (g.kept) {
      ready.insert(std::upper_bound(ready.begin(), ready.end(), number), number);
      continue;
    }
    note_scored(number);
    drop(number);
  }
}

/// Updates between the start of a group and its own, at most.
std::int64_t post_training_loop::state::max_age() const {
  return static_cast<std::int64_t>(std::ceil(set.staleness + set.oversample - 1e-9));
}

/// Whether the oldest finished groups may be trained next: those that still run can then be trained before they
/// are too old, with no more than a batch for each later step.
bool post_training_loop::state::leaves_none_too_old() const {
  if (!limits_staleness()) return true;
  const std::int64_t later = set.prompts - trained - unit();  // in this step
  std::int64_t older = 0;
  for (const auto& [began, count] : untrained) {
    if (began >= version) break;
    older += count;
    const auto end = std::partition_point(ready.begin(), ready.end(), [&, at = began](std::int32_t number) {
      return groups[static_cast<std::size_t>(number)].version <= at;
    });
    const auto finished = static_cast<std::int64_t>(end - ready.begin());
    const std::int64_t steps = std::max<std::int64_t>(0, began + max_age() - version);
    if (finished < older && older - std::min(finished, unit()) > steps * set.prompts + later) return false;
  }
  return true;
}

/// Drops groups that became too old to train: rounds of dynamic sampling may give more than the steps can use.
void post_training_loop::state::drop_too_old() {
  if (!limits_staleness()) return;
  auto end = ready.begin();
  while (end != ready.end() && groups[static_cast<std::size_t>(*end)].version < version - max_age()) {
    note_scored(*end);
    drop(*end++);
  }
  ready.erase(ready.begin(), end);
}

void post_training_loop::state::open_rollouts(double t) {
  open = true;
  for (const std::int32_t i : std::exchange(carried, {})) {
    ++in_flight;
    hand(i, load.begin()->second, t);
  }
  begin_groups(t);
}

/// Takes the batch, or the mini-batch, if it is there.
void post_training_loop::state::train(double t) {
  if (static_cast<std::int64_t>(ready.size()) < unit() || !leaves_none_too_old()) return;
  // A round of prompts is one call of the engines, which returns when all have ended.
  const bool rounds = set.colocated && set.admission == admission_policy::batch && set.oversample == 0;
  if (rounds && (in_flight > 0 || !rewards.empty())) return;
  const bool full = trained + unit() >= set.prompts;
  if (full) cut_tail(t);
  now.wait_s += t - wait_from;
  const std::int64_t chosen = set.trained_samples > 0 ? std::min(set.trained_samples, set.samples) : set.samples;
  std::vector<std::int64_t> lengths, scored = std::exchange(scored_in_vain, {});
  double began = t;
  std::vector<double> ends;
  for (std::int64_t i = 0; i < unit(); ++i) {
    const prompt_group& g = groups[static_cast<std::size_t>(ready[static_cast<std::size_t>(i)])];
    const auto stale = static_cast<std::size_t>(version - g.version);
    if (out.stale_samples.size() <= stale) out.stale_samples.resize(stale + 1);
    if (version >= set.warmup) out.stale_samples[stale] += chosen;
    now.staleness += static_cast<double>(stale) * static_cast<double>(chosen);
    began = std::min(began, g.began_s);
    ends.insert(ends.end(), g.ended_s.begin(), g.ended_s.end());
    for (std::int64_t k = 0; k < set.samples; ++k) {
      const rollout_sample& s = samples[static_cast<std::size_t>(g.first + k)];
      out.recomputed_tokens += static_cast<double>(s.recomputed);
      scored.push_back(length_of(s));
      // The best of a prompt are trained; which they are does not depend on their lengths.
      if (k >= chosen) {
        out.dropped_tokens += s.done;
        continue;
      }
      lengths.push_back(scored.back());
      lengths_now.push_back(s.response);
      now.response_tokens += static_cast<double>(s.response);
      now.tokens += static_cast<double>(lengths.back());
    }
  }
  now.nine_tenths_s = std::max(now.nine_tenths_s, share_below(ends, 0.9) - began);
  now.all_s = std::max(now.all_s, *std::max_element(ends.begin(), ends.end()) - began);
  for (std::int64_t i = 0; i < unit(); ++i) take_away(ready[static_cast<std::size_t>(i)]);
  ready.erase(ready.begin(), ready.begin() + unit());
  const auto count = static_cast<std::int64_t>(lengths.size());
  now.samples += count;
  const update_times u = price.train(lengths, scored);
  const double driver =
      price.sample_s * static_cast<double>(unit() * set.samples) + (trained == 0 ? price.step_s : 0);
  const double change = set.colocated && trained == 0 ? price.to_training_s : 0;
  now.change_s += change;
  now.driver_s += driver;
  now.logprobs_s += u.logprobs_s;
  now.update_s += u.update_s;
  trained += unit();
  if (set.colocated) open = false;
  phase = trainer_phase::training;
  double at = t;
  for (const auto& [name, time] : {std::pair<const char*, double>{"wake training", change},
                                   {"driver", driver},
                                   {"log-probabilities", u.logprobs_s},
                                   {"update", u.update_s}}) {
    span(trainer(), name, at, at + time);
    at += time;
  }
  phase_end = at;
}

void post_training_loop::state::end_training(double t) {
  wait_from = t;
  if (trained < set.prompts) {
    phase = trainer_phase::waiting;
    return;
  }
  if (!set.colocated && set.update == on_update::drain && in_flight > 0) {
    open = false;
    phase = trainer_phase::draining;
    return;
  }
  transfer(t);
}

void post_training_loop::state::transfer(double t) {
  now.wait_s += t - wait_from;
  now.transfer_s = price.transfer_s;
  phase = trainer_phase::transferring;
  const double change = set.colocated ? price.to_rollout_s : 0;
  now.change_s += change;
  phase_end = t + price.transfer_s + change;
  span(trainer(), "weights", t, t + price.transfer_s);
  span(trainer(), "wake rollouts", t + price.transfer_s, phase_end);
  if (set.colocated || set.update == on_update::drain) {
    open = false;
    return;
  }
  for (std::size_t w = 0; w < workers.size(); ++w) {
    workers[w].pause(t, price.transfer_s, set.update == on_update::recompute);
    retime(w);
  }
}

void post_training_loop::state::end_step(double t) {
  now.end_s = t;
  if (version >= set.warmup) {
    now.staleness /= static_cast<double>(std::max<std::int64_t>(1, now.samples));
    std::vector<double> lengths(lengths_now.begin(), lengths_now.end());
    now.length_p50 = share_below(lengths, 0.5);
    now.length_p99 = share_below(lengths, 0.99);
    now.length_max = share_below(lengths, 1);
    out.steps.push_back(now);
  }
  ++version;
  outstanding -= set.prompts;
  drop_too_old();
  trained = 0;
  lengths_now.clear();
  now = {};
  now.begin_s = wait_from = t;
  phase = trainer_phase::waiting;
  if (version == set.warmup) {
    busy_at_start = busy();
    tokens_at_start = tokens();
  }
  open_rollouts(t);
}

void post_training_loop::state::act_trainer(double t) {
  collect_rewards(t);
  if (phase == trainer_phase::training && phase_end <= t) end_training(t);
  else if (phase == trainer_phase::transferring && phase_end <= t) end_step(t);
}

post_training_loop::post_training_loop(loop_settings s, loop_prices p)
    : s_(std::make_unique<state>(std::move(s), std::move(p))) {
  s_->open_rollouts(0);
}
post_training_loop::~post_training_loop() = default;

std::size_t post_training_loop::actors() const { return s_->workers.size() + 1; }
double post_training_loop::date(std::size_t actor) const { return s_->date_of[actor]; }
double post_training_loop::next_date() const { return s_->dates.begin()->first; }
std::vector<std::size_t> post_training_loop::take_changed() { return std::exchange(s_->changed, {}); }
bool post_training_loop::done() const { return static_cast<std::int64_t>(s_->out.steps.size()) >= s_->set.steps; }

void post_training_loop::act(double t) {
  while (!done() && s_->dates.begin()->first <= t) {
    const std::size_t who = s_->dates.begin()->second;
    ++s_->out.decisions;
    if (who < s_->trainer()) s_->act_worker(who, t);
    else s_->act_trainer(t);
    s_->retime(who);
    // Lets other actors react: the trainer takes a batch, an empty pool begins another.
    if (s_->dates.begin()->first <= t || done()) continue;
    if (s_->phase == trainer_phase::waiting) s_->train(t);
    if (s_->phase == trainer_phase::draining && s_->in_flight == 0) s_->transfer(t);
    s_->begin_groups(t);
    s_->retime(s_->trainer());
  }
}

loop_record post_training_loop::close() && {
  state& s = *s_;
  loop_record out = std::move(s.out);
  out.measured_s = out.steps.back().end_s - out.steps.front().begin_s;
  out.all_steps = s.version;
  out.rollout_busy_s = s.busy() - s.busy_at_start;
  out.generated_tokens = s.tokens() - s.tokens_at_start;
  for (const step_record& x : out.steps) out.trainer_busy_s += x.step_s() - x.wait_s;
  for (const rollout_worker& w : s.workers) out.preempted += w.preempted();
  for (std::size_t w = 0; w < s.workers.size(); ++w)
    if (s.busy_since[w] >= 0) out.spans.push_back({w, "rollout", s.busy_since[w], out.steps.back().end_s});
  return out;
}

loop_record play_by_queue(const loop_settings& s, const loop_prices& p) {
  post_training_loop loop(s, p);
  while (!loop.done()) {
    const double t = loop.next_date();
    if (t == never) throw internal_error("a post-training loop waits for itself");
    loop.act(t);
    loop.take_changed();
  }
  return std::move(loop).close();
}

}  // namespace nvlsim
