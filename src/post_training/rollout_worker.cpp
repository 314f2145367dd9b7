#include "nvlsim/post_training/rollout_worker.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

/// Two counts of tokens closer than this are equal.
constexpr double same = 1e-6;

}  // namespace

double rollout_worker::turn_left(const rollout_sample& s) const {
  const double until = static_cast<double>(s.response) * (s.turn + 1) / std::max(1, s.turns);
  return std::max(0.0, until - s.done);
}

double rollout_worker::date() const {
  const double tool = at_tools_.empty() ? never : at_tools_.begin()->first;
  return std::min(running_ ? end_ : never, tool);
}

/// Progress of what runs, up to `t`.
void rollout_worker::advance(double t) {
  if (!running_ || t <= begin_) return;
  const double to = std::min(t, end_);
  const double share = end_ > begin_ ? (to - begin_) / (end_ - begin_) : 1;
  const double tokens = ahead_ * share, decodes = static_cast<double>(active_.size());
  count_ += tokens;
  ahead_ -= tokens;
  context_ += tokens * decodes;
  held_ += tokens * decodes;
  tokens_ += tokens * decodes;
  busy_s_ += to - begin_;
  begin_ = to;
}

/// The sample's cache comes to the worker.
void rollout_worker::enter(std::int32_t i) {
  const rollout_sample& s = sample(i);
  if (residents_[s.group]++ == 0) held_ += static_cast<double>(s.prompt);
  held_ += s.own_tokens();
}

/// The sample's cache goes. It is not active.
void rollout_worker::leave(std::int32_t i) {
  const rollout_sample& s = sample(i);
  held_ -= s.own_tokens();
  const auto group = residents_.find(s.group);
  if (--group->second > 0) return;
  held_ -= static_cast<double>(s.prompt);
  residents_.erase(group);
}

/// Takes what fits from the queue. Caches of a prompt and of earlier turns are there already where they were kept.
bool rollout_worker::admit() {
  while (!queue_.empty()) {
    const std::int32_t i = queue_.front();
    const rollout_sample& s = sample(i);
    const auto running = static_cast<double>(active_.size() + entering_.size());
    if (static_cast<std::int64_t>(running) >= engine_.max_batch) break;
    const auto kept = cached_.find(i);
    const bool first = kept == cached_.end() && !residents_.contains(s.group);
    const double own = s.own_tokens() - (kept == cached_.end() ? 0 : kept->second);
    const double compute = own + (first ? static_cast<double>(s.prompt) : kept == cached_.end() ? 1 : 0);
    const double need = own + (first ? static_cast<double>(s.prompt) : 0);
    if (held_ + need + running + 1 > static_cast<double>(engine_.kv_tokens) && running > 0) break;
    queue_.pop_front();
    entering_.push_back(i);
    prompt_tokens_ += compute;
    const double all = static_cast<double>(s.prompt) + s.own_tokens();
    prompt_pairs_ += compute * (all - compute / 2);
    if (kept != cached_.end()) {
      held_ += own;
      cached_.erase(kept);
    } else {
      enter(i);
    }
  }
  return !entering_.empty();
}

/// The prompts of those that enter, in as many iterations as the token budget needs; the active decode beside
/// them.
void rollout_worker::plan_prompts(double t) {
  const auto decodes = static_cast<double>(active_.size());
  const double room = std::max(1.0, static_cast<double>(engine_.max_tokens) - decodes);
  const double count = std::max(1.0, std::ceil(prompt_tokens_ / room));
  const double prompts = static_cast<double>(entering_.size());
  iteration it;
  it.decodes = std::llround(decodes);
  it.context = std::llround(context_);
  it.prompt_tokens = std::max<std::int64_t>(1, std::llround(prompt_tokens_ / count));
  it.prompt_pairs = prompt_pairs_ / count;
  it.prompts = std::max<std::int64_t>(1, std::llround(prompts / count));
  it.finished_prompts = it.prompts;
  running_ = true;
  begin_ = t;
  end_ = t + count * engine_.iteration_s(it, std::llround(count));
  ahead_ = active_.empty() ? 0 : std::min(count * engine_.tokens_per_step, active_.begin()->first - count_);
}

/// Decodes until a turn ends or the cache is full. False if the cache is full now.
bool rollout_worker::plan_decodes(double t) {
  const auto decodes = static_cast<double>(active_.size());
  const double until_end = active_.begin()->first - count_;
  const double until_full = (static_cast<double>(engine_.kv_tokens) - held_) / decodes;
  if (until_full < 1 && until_end > until_full && active_.size() > 1) return false;
  ahead_ = active_.size() > 1 ? std::min(until_end, until_full) : until_end;
  const double steps = ahead_ / engine_.tokens_per_step;
  iteration it;
  it.decodes = std::llround(decodes);
  it.context = std::llround(context_ + decodes * ahead_ / 2);
  running_ = true;
  begin_ = t;
  end_ = t + steps * engine_.iteration_s(it, std::max<std::int64_t>(1, std::llround(steps)));
  return true;
}

/// The latest admitted sample gives its cache up and waits for its turn again.
void rollout_worker::preempt() {
  while (!order_.empty() && !ends_at_.contains(order_.back())) order_.pop_back();
  if (order_.empty()) throw internal_error("a rollout worker has nothing to preempt");
  const std::int32_t i = order_.back();
  order_.pop_back();
  const auto at = ends_at_.find(i);
  rollout_sample& s = sample(i);
  s.done += turn_left(s) - (at->second - count_);
  active_.erase({at->second, i});
  ends_at_.erase(at);
  context_ -= static_cast<double>(s.prompt) + s.own_tokens();
  leave(i);
  s.recomputed += std::llround(s.own_tokens());
  queue_.push_front(i);
  ++preempted_;
}

void rollout_worker::plan(double t) {
  running_ = false;
  end_ = never;
  t = std::max(t, resume_);
  if (admit()) return plan_prompts(t);
  while (!active_.empty() && !plan_decodes(t)) preempt();
}

void rollout_worker::end_turns(double t, std::vector<std::int32_t>& ended) {
  while (!active_.empty() && active_.begin()->first <= count_ + same) {
    const std::int32_t i = active_.begin()->second;
    active_.erase(active_.begin());
    ends_at_.erase(i);
    rollout_sample& s = sample(i);
    s.done += turn_left(s);
    context_ -= static_cast<double>(s.prompt) + s.own_tokens();
    if (s.turn + 1 >= s.turns) {
      leave(i);
      s.turn = s.turns;
      --unfinished_;
      ended.push_back(i);
      continue;
    }
    cached_[i] = s.own_tokens();
    at_tools_.insert({t + s.tool_s[static_cast<std::size_t>(s.turn)], i});
    ++s.turn;
  }
  if (active_.empty()) context_ = 0;
}

void rollout_worker::act(double t, std::vector<std::int32_t>& ended) {
  advance(t);
  const bool over = running_ && end_ <= t;
  if (over) {
    end_turns(t, ended);
    for (const std::int32_t i : entering_) {
      const rollout_sample& s = sample(i);
      const double at = count_ + turn_left(s);
      active_.insert({at, i});
      ends_at_[i] = at;
      order_.push_back(i);
      context_ += static_cast<double>(s.prompt) + s.own_tokens();
    }
    entering_.clear();
    prompt_tokens_ = prompt_pairs_ = 0;
  }
  bool returned = false;
  while (!at_tools_.empty() && at_tools_.begin()->first <= t) {
    queue_.push_back(at_tools_.begin()->second);
    at_tools_.erase(at_tools_.begin());
    returned = true;
  }
  if (over || !running_ || (returned && entering_.empty())) plan(t);
}

void rollout_worker::add(std::int32_t i, double t) {
  advance(t);
  queue_.push_back(i);
  ++unfinished_;
  // Prompts that are being computed end first.
  if (entering_.empty()) plan(t);
}

/// All caches are gone, and all samples that run wait in the queue.
void rollout_worker::requeue_all() {
  std::vector<std::int32_t> back;
  for (const auto& [at, i] : active_) {
    rollout_sample& s = sample(i);
    s.done += turn_left(s) - (at - count_);
    s.recomputed += std::llround(s.own_tokens());
    back.push_back(i);
  }
  back.insert(back.end(), entering_.begin(), entering_.end());
  std::sort(back.begin(), back.end());
  queue_.insert(queue_.begin(), back.begin(), back.end());
  active_.clear();
  ends_at_.clear();
  order_.clear();
  cached_.clear();
  residents_.clear();
  entering_.clear();
  prompt_tokens_ = prompt_pairs_ = context_ = held_ = 0;
}

void rollout_worker::pause(double t, double length, bool caches_lost) {
  advance(t);
  resume_ = t + length;
  if (caches_lost) {
    requeue_all();
    plan(t);
  } else if (running_) {
    begin_ += length;
    end_ += length;
  }
}

std::vector<std::int32_t> rollout_worker::stop(double t) {
  advance(t);
  requeue_all();
  std::vector<std::int32_t> out(queue_.begin(), queue_.end());
  for (const auto& [at, i] : at_tools_) out.push_back(i);
  queue_.clear();
  at_tools_.clear();
  unfinished_ = 0;
  running_ = false;
  end_ = never;
  return out;
}

}  // namespace nvlsim
