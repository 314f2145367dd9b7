// Good layouts before anything is known about the rest: a few groups near what recipes use, then those that differ
// from the best so far in one choice, until no step gets shorter. [docs/search.md#bounds]
#include <algorithm>
#include <cmath>

#include "search/searcher.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t starts = 12;       // groups whose layouts are tried first
constexpr std::size_t usual_most = 384;  // of those near what recipes use, how many are looked at
constexpr std::size_t steps_most = 24;   // a descent ends here at the latest
constexpr std::size_t around = 2;        // groups whose neighbours are tried in a step
constexpr std::size_t probed_most = 48;  // groups of a step whose layouts are tried
constexpr std::size_t polished = 2;      // groups of which all layouts are tried at the end

/// Every so many of a list that `most` remain.
std::vector<std::size_t> thinned(const std::vector<std::size_t>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(all[i * all.size() / most]);
  return out;
}

}  // namespace

/// Of the groups that can run in less than `least_s` by their bounds, those with the lowest first. A stop is
/// heeded once there are `enough` of them.
std::vector<std::size_t> searcher::promising(const std::vector<std::size_t>& groups, double least_s,
                                             std::size_t enough) {
  std::vector<double> floors_s(groups.size(), HUGE_VAL);
  std::atomic<std::size_t> next = 0, able = 0;
  in_threads([&](worker&) {
    const std::unique_ptr<floor_reader> floors = space_->floors();
    for (std::size_t i; (i = next.fetch_add(1)) < groups.size();) {
      if (able >= enough && options_.stop && options_.stop()) return;
      const std::size_t g = groups[i];
      if (!space_->group_reason(g).empty() || !floors->fits(floors->bytes(g))) continue;
      if (const double s = floors->seconds(g); s < least_s) floors_s[i] = s, ++able;
    }
  });
  std::vector<std::size_t> at, out;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (std::isfinite(floors_s[i])) at.push_back(i);
  std::stable_sort(at.begin(), at.end(), [&](std::size_t a, std::size_t b) { return floors_s[a] < floors_s[b]; });
  for (const std::size_t i : at) out.push_back(groups[i]);
  return out;
}

/// Of layouts that differ in what they compute again, tries the one with the lowest bound that fits in memory; of
/// equal bounds the one that keeps most.
void searcher::try_bounded_part(worker& w, floor_reader& floors, std::size_t group, std::size_t first) const {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = first; i < std::min(first + space_->part_size(group), space_->size(group)); ++i)
    if (!parameter_constraints_ || !broken(space_->layout(group, i)))
      order.emplace_back(floors.seconds(group, i), i);
  std::sort(order.begin(), order.end());
  std::optional<std::size_t> chosen;
  double chosen_s = 0, most = 0;
  for (const auto& [s, i] : order) {
    if (chosen && s > chosen_s) break;
    const std::optional<double> memory = floors.memory(group, i);
    if (memory && (!chosen || *memory > most)) chosen = i, chosen_s = s, most = *memory;
  }
  if (!chosen) return;
  try_layout(w, group, *chosen);
  w.tried.push_back(*chosen);
}

/// Tries some layouts of each group; `taken` gets the shortest step of those that run. With
/// `need_one` a stop waits until one runs.
bool searcher::probe(worker& all, const std::vector<std::size_t>& groups, bool need_one,
                     std::map<std::size_t, double>& taken) {
  std::vector<worker> found(groups.size(), worker{keeper(ranking_, options_.top), {}, 0});
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> any = !need_one, stopped = false;
  in_threads([&](worker&) {
    const std::unique_ptr<floor_reader> floors = space_->floors();
    for (std::size_t i; (i = next.fetch_add(1)) < groups.size();) {
      if (options_.stop && options_.stop() && any) stopped = true;
      if (stopped) return;
      for (std::size_t part = 0; part < space_->size(groups[i]); part += space_->part_size(groups[i]))
        try_bounded_part(found[i], *floors, groups[i], part);
      if (found[i].kept.found > 0) any = true;
      report(0);
    }
  });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::size_t index : found[i].tried) first_tried_[groups[i]].insert(index);
    for (const candidate& c : found[i].kept.front_so_far()) {
      const double s = c.metrics[seconds_at_].value_or(HUGE_VAL);
      const auto [it, fresh] = taken.try_emplace(groups[i], s);
      if (!fresh) it->second = std::min(it->second, s);
    }
    all.merge(found[i]);
  }
  return !stopped;
}

/// Tries all layouts of a group that may take less than the best so far.
bool searcher::polish(worker& all, std::size_t group, double least_s) {
  std::vector<std::size_t> left;
  const std::unique_ptr<floor_reader> of_group = space_->floors();
  for (std::size_t i = 0; i < space_->size(group); ++i)
    if (!already(group, i) && of_group->seconds(group, i) < least_s &&
        (!parameter_constraints_ || !broken(space_->layout(group, i))))
      left.push_back(i);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::vector<char> tried(left.size());
  worker found = in_threads([&](worker& w) {
    for (std::size_t i; (i = next.fetch_add(1)) < left.size();) {
      if (options_.stop && options_.stop()) stopped = true;
      if (stopped) return;
      try_layout(w, group, left[i]);
      tried[i] = 1;
    }
  });
  for (std::size_t i = 0; i < left.size(); ++i)
    if (tried[i]) first_tried_[group].insert(left[i]);
  all.merge(found);
  return !stopped;
}

bool searcher::try_first(worker& all) {
  std::map<std::size_t, double> taken;  // by group
  const auto least_s = [&] {
    double out = HUGE_VAL;
    for (const auto& [group, s] : taken) out = std::min(out, s);
    return out;
  };
  const auto best_groups = [&](std::size_t count) {
    std::vector<std::pair<double, std::size_t>> order;
    for (const auto& [group, s] : taken) order.emplace_back(s, group);
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), count));
    return order;
  };
  std::vector<std::size_t> usual = space_->usual_groups();
  if (usual.empty()) usual = space_->visiting_order();
  usual = promising(thinned(usual, usual_most), HUGE_VAL, starts);
  for (std::size_t begin = 0; begin < usual.size() && taken.empty(); begin += starts) {
    const std::size_t end = std::min(begin + starts, usual.size());
    const std::vector<std::size_t> some(usual.begin() + static_cast<std::ptrdiff_t>(begin),
                                        usual.begin() + static_cast<std::ptrdiff_t>(end));
    if (!probe(all, some, begin == 0, taken)) return false;
  }
  std::set<std::size_t> seen(usual.begin(), usual.end()), left_from;
  for (std::size_t step = 0; step < steps_most; ++step) {
    std::vector<std::size_t> next;
    for (const auto& [s, group] : best_groups(around)) {
      if (!left_from.insert(group).second) continue;
      for (const std::size_t g : space_->groups_near(group))
        if (seen.insert(g).second) next.push_back(g);
    }
    if (next.empty()) break;
    next = promising(next, least_s(), 0);
    next.resize(std::min(next.size(), probed_most));
    if (!probe(all, next, false, taken)) return false;
  }
  for (const auto& [s, group] : best_groups(polished))
    if (!polish(all, group, least_s())) return false;
  return !(options_.stop && options_.stop());
}

}  // namespace nvlsim
