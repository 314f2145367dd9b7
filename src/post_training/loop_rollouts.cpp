// What the rollout pool of a loop decides.
#include <algorithm>
#include <cmath>

#include "nvlsim/units/random.hpp"
#include "post_training/loop_state.hpp"

namespace nvlsim {
namespace {

/// A seed of its own for each prompt.
std::uint64_t seed_of(std::uint64_t seed, std::size_t group) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15 + group + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

void post_training_loop::state::count_load(std::size_t worker, std::int64_t change) {
  load.erase({load_of[worker], worker});
  load_of[worker] += change;
  load.insert({load_of[worker], worker});
}

void post_training_loop::state::note_busy(std::size_t worker, double t) {
  double& since = busy_since[worker];
  const bool busy = workers[worker].unfinished() > 0;
  if (busy && since < 0) since = t;
  if (!busy && since >= 0) {
    span(worker, "rollout", since, t);
    since = -1;
  }
}

std::int32_t post_training_loop::state::new_group(double t) {
  std::mt19937_64 random(seed_of(set.seed, groups.size()));
  prompt_group g;
  g.first = static_cast<std::int32_t>(samples.size());
  g.left = set.samples;
  g.version = version;
  g.began_s = t;
  g.kept = set.kept_share >= 1 || uniform(random) < set.kept_share;
  const auto number = static_cast<std::int32_t>(groups.size());
  for (const std::int64_t length : sample_responses(set.response, 1, set.samples, random())) {
    rollout_sample s;
    s.prompt = set.prompt_tokens;
    s.response = length;
    s.group = number;
    s.turns = static_cast<std::int32_t>(std::min(set.tools.turns, length));
    s.tool_tokens = set.tools.tokens;
    for (std::int32_t i = 1; i < s.turns; ++i) s.tool_s.push_back(set.tools.mean_s * exponential(random));
    samples.push_back(std::move(s));
  }
  worker_of.resize(samples.size(), -1);
  groups.push_back(std::move(g));
  return number;
}

void post_training_loop::state::hand(std::int32_t sample, std::size_t worker, double t) {
  worker_of[static_cast<std::size_t>(sample)] = static_cast<std::int32_t>(worker);
  count_load(worker, 1);
  workers[worker].add(sample, t);
  note_busy(worker, t);
  retime(worker);
}

/// Samples of a prompt stay together as far as workers get equal shares of a step.
void post_training_loop::state::begin_group(double t) {
  const std::int32_t g = new_group(t);
  const auto count = static_cast<std::int64_t>(workers.size());
  const std::int64_t share = (set.prompts * set.samples + count - 1) / count;
  const std::int64_t together = std::clamp<std::int64_t>(share, 1, set.samples);
  const std::int32_t first = groups[static_cast<std::size_t>(g)].first;
  ++outstanding;
  ++untrained[version];
  in_flight += set.samples;
  for (std::int64_t i = 0; i < set.samples; i += together) {
    const std::size_t worker = load.begin()->second;
    for (std::int64_t k = i; k < std::min(set.samples, i + together); ++k)
      hand(first + static_cast<std::int32_t>(k), worker, t);
  }
}

/// Begins prompts as far as the bound of staleness lets them.
void post_training_loop::state::begin_groups(double t) {
  if (!open) return;
  const double stale = set.colocated ? 0 : set.staleness;
  const auto extra = std::llround(set.oversample * static_cast<double>(set.prompts));
  const auto most = static_cast<std::int64_t>(std::floor((1 + stale) * static_cast<double>(set.prompts) + 1e-9));
  if (set.admission == admission_policy::prompt) {
    while (outstanding < most + extra) begin_group(t);
    return;
  }
  // A round of dynamic sampling that gave too little is followed by another; so is a tail that was carried over.
  const std::int64_t round = (set.round_prompts > 0 ? set.round_prompts : set.prompts) + extra;
  const bool room = outstanding + set.prompts <= most || (outstanding < most && (set.kept_share < 1 || extra > 0));
  if (in_flight > 0 || !rewards.empty() || !room) return;
  for (std::int64_t i = 0; i < round; ++i) begin_group(t);
}

/// When a sample that ends at `t` has its reward: it waits for the first free slot.
double post_training_loop::state::scored(double t) {
  if (price.reward_slots == 0 || price.reward_s == 0) return t + price.reward_s;
  if (static_cast<std::int64_t>(reward_slots.size()) < price.reward_slots)
    return *reward_slots.insert(t + price.reward_s);
  const double free = *reward_slots.begin();
  reward_slots.erase(reward_slots.begin());
  return *reward_slots.insert(std::max(t, free) + price.reward_s);
}

void post_training_loop::state::end_sample(std::int32_t sample, double t) {
  const auto worker = static_cast<std::size_t>(worker_of[static_cast<std::size_t>(sample)]);
  count_load(worker, -1);
  const std::int32_t number = samples[static_cast<std::size_t>(sample)].group;
  prompt_group& g = groups[static_cast<std::size_t>(number)];
  --in_flight;
  g.ended_s.push_back(t);
  g.scored_s = std::max(g.scored_s, scored(t));
  if (--g.left > 0) return;
  rewards.insert({g.scored_s, number});
  retime(trainer());
}

void post_training_loop::state::act_worker(std::size_t w, double t) {
  std::vector<std::int32_t> ended;
  workers[w].act(t, ended);
  for (const std::int32_t i : ended) end_sample(i, t);
  note_busy(w, t);
  retime(w);
}

/// The group is trained or dropped.
void post_training_loop::state::take_away(std::int32_t number) {
  const auto at = untrained.find(groups[static_cast<std::size_t>(number)].version);
  if (--at->second == 0) untrained.erase(at);
}

/// What the group has generated is lost.
void post_training_loop::state::drop(std::int32_t number) {
  prompt_group& g = groups[static_cast<std::size_t>(number)];
  if (g.dropped) return;
  g.dropped = true;
  take_away(number);
  --outstanding;
  ++out.dropped_prompts;
  for (std::int64_t k = 0; k < set.samples; ++k)
    out.dropped_tokens += samples[static_cast<std::size_t>(g.first + k)].done;
}

/// The batch is full: what still runs is lost, or goes on later.
void post_training_loop::state::cut_tail(double t) {
  const bool drops = set.tail == tail_policy::drop;
  const bool in_turns = set.colocated || (set.staleness == 0 && set.oversample > 0 && drops);
  if (!in_turns) return;
  std::vector<std::int32_t> lost;
  if (in_flight > 0) {
    for (std::size_t w = 0; w < workers.size(); ++w) {
      for (const std::int32_t i : workers[w].stop(t)) {
        count_load(w, -1);
        (drops ? lost : carried).push_back(i);
      }
      note_busy(w, t);
      retime(w);
    }
    in_flight = 0;
  }
  if (!drops) return;
  open = false;  // the next prompts begin with the new weights
  for (const std::int32_t i : lost) drop(samples[static_cast<std::size_t>(i)].group);
  for (const auto& [at, number] : rewards) drop(number);
  rewards.clear();
  for (std::size_t i = static_cast<std::size_t>(unit()); i < ready.size(); ++i) drop(ready[i]);
  if (ready.size() > static_cast<std::size_t>(unit())) ready.resize(static_cast<std::size_t>(unit()));
}

}  // namespace nvlsim
