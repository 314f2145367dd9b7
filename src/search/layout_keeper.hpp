// The layouts that a search keeps, and why it left out the others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nvlsim {

/// A layout's position in the space, and its metrics.
struct candidate {
  std::size_t group = 0, index = 0;
  std::vector<std::optional<double>> metrics;
};

/// Counts reasons for pruned layouts, with an example of each kind.
struct pruning {
  struct entry {
    std::int64_t count = 0;
    std::size_t group = 0, index = 0;
    std::string reason;
  };
  std::map<std::string, entry> by_kind;

  void add(const std::string& kind, const std::string& reason, std::int64_t count, std::size_t group,
           std::size_t index) {
    entry& e = by_kind[kind];
    if (e.count == 0 || std::tie(group, index) < std::tie(e.group, e.index))
      e.group = group, e.index = index, e.reason = reason;
    e.count += count;
  }
  void merge(const pruning& other) {
    for (const auto& [kind, e] : other.by_kind) add(kind, e.reason, e.count, e.group, e.index);
  }
};

/// A metric as a cost: larger is worse.
struct ranked_metric {
  std::size_t at = 0;
  double sign = 1;

  /// An unknown metric has the highest cost.
  double cost(const candidate& c) const { return c.metrics[at] ? sign * *c.metrics[at] : HUGE_VAL; }
};

struct ranking {
  ranked_metric objective;
  std::vector<ranked_metric> front;

  bool better(const candidate& a, const candidate& b) const {
    const double x = objective.cost(a), y = objective.cost(b);
    return std::tie(x, a.group, a.index) < std::tie(y, b.group, b.index);
  }
  /// Whether `a` dominates `b`: no worse in all front metrics and better in one, or equal and earlier.
  bool beats(const candidate& a, const candidate& b) const {
    bool better_somewhere = false;
    for (const ranked_metric& m : front) {
      const double x = m.cost(a), y = m.cost(b);
      if (x > y) return false;
      better_somewhere |= x < y;
    }
    return better_somewhere || std::tie(a.group, a.index) < std::tie(b.group, b.index);
  }
};

/// The best layouts and the Pareto front among those one thread evaluated.
class keeper {
 public:
  keeper(const ranking& r, std::size_t top) : ranking_(r), top_(top) {}

  void add(candidate c) {
    ++found;
    add_to_front(c);
    add_to_best(std::move(c));
  }
  void merge(keeper& other) {
    found += other.found;
    for (const candidate& c : other.front_) add_to_front(c);
    for (candidate& c : other.best_) add_to_best(std::move(c));
  }
  std::vector<candidate> best() {
    std::sort(best_.begin(), best_.end(),
              [this](const candidate& a, const candidate& b) { return ranking_.better(a, b); });
    return std::move(best_);
  }
  std::vector<candidate> front() {
    std::sort(front_.begin(), front_.end(),
              [this](const candidate& a, const candidate& b) { return ranking_.better(a, b); });
    return std::move(front_);
  }

  /// The worst of the best, once there are as many as wanted.
  const candidate* last() const { return best_.size() == top_ && top_ > 0 ? &best_.front() : nullptr; }
  const std::vector<candidate>& front_so_far() const { return front_; }

  std::int64_t found = 0;

 private:
  void add_to_best(candidate c) {
    if (top_ == 0 || (best_.size() == top_ && !ranking_.better(c, best_.front()))) return;
    const auto worse_last = [this](const candidate& a, const candidate& b) { return ranking_.better(a, b); };
    if (best_.size() == top_) {
      std::pop_heap(best_.begin(), best_.end(), worse_last);
      best_.pop_back();
    }
    best_.push_back(std::move(c));
    std::push_heap(best_.begin(), best_.end(), worse_last);
  }
  void add_to_front(const candidate& c) {
    for (const candidate& f : front_)
      if (ranking_.beats(f, c)) return;
    std::erase_if(front_, [&](const candidate& f) { return ranking_.beats(c, f); });
    front_.push_back(c);
  }

  const ranking& ranking_;
  std::size_t top_;
  std::vector<candidate> best_;  ///< a heap with the worst on top
  std::vector<candidate> front_;
};

}  // namespace nvlsim
