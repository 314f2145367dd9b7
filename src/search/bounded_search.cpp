// Visits groups of layouts by their lower bounds, those that may be best first, and leaves out what cannot be
// among the best or on the front. [docs/search.md#bounds]
#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/searcher.hpp"

namespace nvlsim {
namespace {

/// Bounds and step times add the same numbers in another order.
constexpr double rounding = 1e-9;
/// Groups that are visited between two looks at what was found. The first are few, so that good layouts are known
/// early. Fixed, so that results do not depend on the number of threads.
constexpr std::size_t first_round = 4, largest_round = 512;
constexpr std::size_t bounded_at_once = 64;  // groups

constexpr const char* hopeless = "cannot be among the best or on the front, by lower bounds";
constexpr const char* too_large = "does not fit in GPU memory";

/// The parts of a list from 0 to `count` - 1, each once, those far apart one after another: the first few are a
/// sample of all.
std::vector<std::size_t> spread_out(std::size_t count) {
  std::size_t step = std::max<std::size_t>(1, static_cast<std::size_t>(0.618 * static_cast<double>(count)));
  while (std::gcd(step, count) > 1) ++step;
  std::vector<std::size_t> out(count);
  for (std::size_t i = 0, at = 0; i < count; ++i, at = (at + step) % count) out[i] = at;
  return out;
}

}  // namespace

/// What a layout has to beat.
struct searcher::limits {
  double seconds = HUGE_VAL;                     ///< of the last of the best
  std::vector<std::pair<double, double>> front;  ///< seconds and bytes: later ones take longer and need less

  bool slow(double s) const { return s * (1 - rounding) > seconds; }
  /// Whether a layout of the front is faster than `s` and needs no more than `size`.
  bool beaten(double s, double size) const {
    const auto later = std::lower_bound(front.begin(), front.end(), std::pair(s * (1 - rounding), -HUGE_VAL));
    return later != front.begin() && std::prev(later)->second <= size;
  }
};

/// The metric whose least value `floor_reader` knows in bytes.
static std::string_view memory_metric() { return metric_with(metric_kind::training, metric_parts::memory).name; }

bool searcher::can_bound() const {
  const auto by_time = [&](const std::string& metric) {
    return std::find(space_->by_time.begin(), space_->by_time.end(), metric) != space_->by_time.end();
  };
  return !options_.exhaustive && !in_full_ && by_time(objective_) && space_->floors() &&
         std::all_of(front_names_.begin(), front_names_.end(),
                     [&](const std::string& m) { return by_time(m) || m == memory_metric(); });
}

searcher::limits searcher::limits_of(const keeper& kept) const {
  limits out;
  if (const candidate* last = kept.last()) out.seconds = *last->metrics[seconds_at_];
  if (options_.top == 0) out.seconds = 0;
  for (const candidate& c : kept.front_so_far())
    out.front.emplace_back(*c.metrics[seconds_at_], bounds_bytes_ ? *c.metrics[bytes_at_] : 0);
  std::sort(out.front.begin(), out.front.end());
  double least = HUGE_VAL;  // layouts may be equal in one of the two
  for (auto& [s, b] : out.front) least = b = std::min(least, b);
  return out;
}

bool searcher::bound_groups(worker& all) {
  const std::vector<std::size_t> order = space_->bounding_order();
  const std::vector<std::size_t> parts = spread_out((order.size() + bounded_at_once - 1) / bounded_at_once);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  worker refused = in_threads([&](worker& w) {
    const std::unique_ptr<floor_reader> floors = space_->floors();
    for (std::size_t part; (part = next.fetch_add(1)) < parts.size();) {
      if (options_.stop && options_.stop()) stopped = true;
      if (stopped) return;
      const std::size_t first = parts[part] * bounded_at_once;
      std::int64_t refusals = 0;
      for (std::size_t i = first; i < std::min(first + bounded_at_once, order.size()); ++i) {
        const std::size_t g = order[i];
        if (const std::string reason = space_->group_reason(g); !reason.empty()) {
          refuse_group(w, g, reason);
          refusals += space_->layouts_in(g);
        } else {
          floor_[g] = floors->seconds(g);
        }
      }
      report(0, refusals);
    }
  });
  all.merge(refused);
  return !stopped;
}

void searcher::try_bounded(worker& w, floor_reader& floors, const limits& known, std::size_t group) const {
  const std::size_t size = space_->size(group);
  const double least = floors.bytes(group);
  const auto known_before = first_tried_.find(group);
  const std::size_t before = known_before == first_tried_.end() ? 0 : known_before->second.size();
  const auto all_are = [&](const char* why) {
    if (size > before) w.pruned.add(why, why, static_cast<std::int64_t>(size - before), group, 0);
  };
  if (!parameter_constraints_) {  // which are counted for themselves
    if (!floors.fits(least)) return all_are(too_large);
    const double s = floor_[group];
    if (known.slow(s) && known.beaten(s, bounds_bytes_ ? least : 0)) return all_are(hopeless);
  }
  for (std::size_t i = 0; i < size; ++i) {
    if ((before > 0 && already(group, i)) || outside(w, group, i)) continue;
    const double s = floors.seconds(group, i);
    if (!known.slow(s)) {
      try_layout(w, group, i);
      continue;
    }
    if (known.beaten(s, bounds_bytes_ ? floors.bytes(group, i) : 0)) {
      w.pruned.add(hopeless, hopeless, 1, group, i);
      continue;
    }
    const std::optional<double> memory = floors.memory(group, i);
    if (memory && known.beaten(s, *memory)) w.pruned.add(hopeless, hopeless, 1, group, i);
    else try_layout(w, group, i);
  }
}

searcher::worker searcher::search_bounded() {
  const auto place = [&](std::string_view metric) {
    return static_cast<std::size_t>(std::find(space_->metrics.begin(), space_->metrics.end(), metric) -
                                    space_->metrics.begin());
  };
  seconds_at_ = place(metric_with(metric_kind::training, metric_parts::gpu_time).name);
  bytes_at_ = place(memory_metric());
  bounds_bytes_ = std::find(front_names_.begin(), front_names_.end(), memory_metric()) != front_names_.end();
  floor_.assign(space_->groups(), HUGE_VAL);
  worker all{keeper(ranking_, options_.top), {}, 0};
  if (!try_first(all) || !bound_groups(all)) return all;
  std::vector<std::size_t> order;
  for (const std::size_t g : space_->bounding_order())
    if (std::isfinite(floor_[g])) order.push_back(g);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return floor_[a] < floor_[b]; });
  const auto stopped = [&] { return options_.stop && options_.stop(); };
  std::vector<char> tried(space_->groups());
  for (std::size_t begin = 0, round = first_round; begin < order.size();
       begin += round, round = std::min(2 * round, largest_round)) {
    const std::size_t end = std::min(begin + round, order.size());
    const limits known = limits_of(all.kept);
    std::atomic<std::size_t> next = begin;
    worker found = in_threads([&](worker& w) {
      const std::unique_ptr<floor_reader> floors = space_->floors();
      for (std::size_t i; (i = next.fetch_add(1)) < end;) {
        if (stopped()) return;
        try_bounded(w, *floors, known, order[i]);
        tried[order[i]] = 1;
        report(space_->layouts_in(order[i]));
      }
    });
    all.merge(found);
    if (stopped()) break;
  }
  for (const std::size_t g : order)
    if (!tried[g]) {
      untried_s_ = floor_[g];
      break;
    }
  return all;
}

/// Whether no layout under these ceilings can be among the best or on the front, given those that are known.
bool searcher::beaten(const keeper& known, std::size_t group, std::size_t index) const {
  const candidate* last = known.last();
  if (options_.top > 0 && !last) return false;
  const auto ceilings = space_->ceilings(group, index);
  const auto under = [&](const std::vector<std::optional<double>>& metrics) {
    const candidate ceiling{group, index, metrics};
    const auto worse_than = [&](const ranked_metric& m, const candidate& c) {
      return metrics[m.at] && m.cost(ceiling) > m.cost(c);
    };
    if (last && !worse_than(ranking_.objective, *last)) return false;
    return std::any_of(known.front_so_far().begin(), known.front_so_far().end(), [&](const candidate& f) {
      return std::all_of(ranking_.front.begin(), ranking_.front.end(),
                         [&](const ranked_metric& m) { return worse_than(m, f); });
    });
  };
  return !ceilings.empty() && std::all_of(ceilings.begin(), ceilings.end(), under);
}

void searcher::try_under_ceilings(worker& w, const keeper& known, std::size_t group) {
  if (const std::string reason = space_->group_reason(group); !reason.empty()) {
    refuse_group(w, group, reason);
    return report(0, space_->layouts_in(group));
  }
  keeper seen = known;
  for (std::size_t i = space_->size(group); i-- > 0 && !(options_.stop && options_.stop());) {
    if (outside(w, group, i)) continue;
    if (beaten(seen, group, i)) w.pruned.add(hopeless, hopeless, 1, group, i);
    else try_layout(w, group, i, &seen);
    report(1);
  }
}

searcher::worker searcher::search_under_ceilings() {
  worker all{keeper(ranking_, options_.top), {}, 0};
  for (std::size_t begin = 0, round = first_round; begin < order_.size();
       begin += round, round = std::min(2 * round, largest_round)) {
    const std::size_t end = std::min(begin + round, order_.size());
    std::atomic<std::size_t> next = begin;
    worker found = in_threads([&](worker& w) {
      for (std::size_t i; (i = next.fetch_add(1)) < end;) {
        if (options_.stop && options_.stop()) return;
        try_under_ceilings(w, all.kept, order_[i]);
      }
    });
    all.merge(found);
  }
  return all;
}

/// The least time of any layout over that of the best, as far as it is known.
std::optional<double> searcher::least_share(const search_result& r) const {
  const found_layout& best = r.best.front();
  if (untried_s_) return std::min(1.0, *untried_s_ / *best.metrics[seconds_at_]);
  if (std::none_of(r.pruned.begin(), r.pruned.end(),
                   [](const pruned_layouts& p) { return p.example == "interrupted"; }))
    return 1;
  // Stopped before all were bounded: no layout computes faster than the peak.
  const auto mfu = std::find(space_->metrics.begin(), space_->metrics.end(), "mfu");
  if (floor_.empty() || mfu == space_->metrics.end()) return std::nullopt;
  const std::optional<double>& share = best.metrics[static_cast<std::size_t>(mfu - space_->metrics.begin())];
  return share && *share < 1 ? share : std::nullopt;
}

void searcher::add_bound(search_result& r) const {
  if (r.best.empty()) return;
  const std::optional<double>& best = r.best.front().metrics[ranking_.objective.at];
  const std::optional<double> share = best ? least_share(r) : std::nullopt;
  if (share) r.bound = smaller_ ? *best * *share : *best / *share;
}

}  // namespace nvlsim
