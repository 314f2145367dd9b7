#include "nvlsim/planner/training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "nvlsim/output/number.hpp"
#include "nvlsim/run/operation_job.hpp"
#include "nvlsim/training/training.hpp"
#include "planner/training_search.hpp"

namespace nvlsim {
namespace {

constexpr double day_s = 86'400;
constexpr int max_sizes = 10;          // numbers of racks that are tried
constexpr double guessed_use = 0.35;   // of the dense peak, to begin with
constexpr double unknown_peak = 1e15;  // FLOP/s, to begin with
constexpr std::int64_t max_units = 100'000;

struct sized {
  std::int64_t units = 0;  ///< racks or servers
  found_training found;
};

class run_planner {
 public:
  run_planner(const training_question& q, const plan_watch& watch)
      : q_(q), watch_(watch), base_(read_base(q.base)) {
    check();
    domain_ = std::max(1, base_.platform.gpus_per_rack());
    tokens_ = std::get<training_workload>(base_.workload).token_budget.value_or(0);
  }

  training_plan run() {
    training_plan out;
    out.model = base_.model.name;
    out.platform = base_.platform.name;
    out.stack = base_.stack.name;
    out.tokens = tokens_;
    out.days = q_.days;
    out.goodput = q_.goodput;
    out.failures = q_.failures;
    if (q_.gpus > 0) try_gpus(q_.gpus);
    else find_size();
    for (auto& [gpus, f] : tried_) {
      out.evaluated += f.evaluated;
      out.candidates += f.candidates;
      if (f.best) out.sizes.push_back(*f.best);
    }
    choose(out);
    if (!out.best && !out.nearest && !tried_.empty() && !out.pruned.empty() && !watch_.stopped()) {
      const std::int64_t most = tried_.rbegin()->first;
      for (const training_place& at : places_of(base_, most)) {
        auto c = min_memory(q_.base, at, q_.flexible_batch, watch_);
        if (c && (!out.closest || c->needed_bytes < out.closest->needed_bytes)) out.closest = std::move(c);
      }
    }
    out.interrupted = watch_.stopped();
    return out;
  }

 private:
  void check() const {
    diagnostics problems;
    const auto* w = std::get_if<training_workload>(&base_.workload);
    if (!w) problems.add(base_.file, "/workload/kind", "plan training needs a training workload");
    else if (q_.days > 0 && !w->token_budget)
      problems.add("--tokens", "", "--days needs the tokens of the whole run");
    if (q_.gpus == 0 && q_.days == 0) problems.add("--days", "", "give --days or --gpus");
    problems.throw_if_any();
    if (!q_.failures.empty()) check_failures();
  }

  /// Refuses an operation profile that cannot be read, before anything is searched.
  void check_failures() const {
    try {
      months_of(q_.base.text, 1);
    } catch (const input_error& e) {  // of the rest, the layout is not known yet
      diagnostics problems;
      for (const problem& p : e.problems())
        if (p.pointer == "/workload/profile") problems.add(p);
      problems.throw_if_any();
    }
  }

  const found_training& try_gpus(std::int64_t gpus) {
    const auto at = tried_.find(gpus);
    if (at != tried_.end()) return at->second;
    found_training f = best_of_places(q_.base, base_, gpus, q_.flexible_batch, watch_);
    if (f.best && tokens_ > 0) f.best->days = tokens_ / f.best->tokens_per_s / day_s / q_.goodput;
    if (f.best && q_.goodput < 1) f.best->goodput = q_.goodput;
    if (f.best && !q_.failures.empty()) allow_for_failures(*f.best);
    if (f.best)
      if (const value* cost = f.best->outcome.metrics.find("cost_to_train_usd"); cost && cost->number())
        f.best->cost_usd = *cost->number() / f.best->goodput.value_or(1);
    return tried_.emplace(gpus, std::move(f)).first->second;
  }

  /// Plays the run through failures; a few seeds, over about its time.
  void allow_for_failures(planned_training& t) const {
    constexpr double shortest = 7, longest = 180;  // days
    const scenario s = months_of(t.text, std::clamp(t.days.value_or(30), shortest, longest));
    const priced_operation priced = price_alone(s);
    if (!priced.reasons.empty()) return;
    t.goodput = measure_alone(s, priced).training->ettr;
    if (t.days) *t.days *= q_.goodput / *t.goodput;
  }

  /// The training scenario `job` as a job that runs for so long, with the failures.
  scenario months_of(const value& job, double days) const {
    value text{value::object{{"schema", "nvlsim.scenario/1"}, {"name", "run"}}};
    text.set("platform", *job.find("platform"));
    text.set("workload", value::object{{"kind", "operation"},
                                       {"duration", fmt::format("{:.6g} d", days)},
                                       {"seeds", 20},
                                       {"profile", q_.failures}});
    value alone{value::object{{"name", "run"}}};
    for (const char* member : {"stack", "model", "workload", "placement"})
      if (const value* v = job.find(member)) alone.set(member, *v);
    text.set("jobs", value::array{std::move(alone)});
    plan_base months = q_.base;
    months.text = std::move(text);
    return read_base(months);
  }

  bool qualifies(const found_training& f) const {
    return f.best && (q_.days == 0 || (f.best->days && *f.best->days <= q_.days));
  }

  /// GPUs used of `units` racks: segments where a rack has more GPUs than a power of two.
  std::int64_t gpus_of(std::int64_t units) const {
    return units == 1 ? domain_
                      : units * std::min<std::int64_t>(domain_, default_segment(base_.platform, 2 * domain_));
  }

  std::int64_t first_guess() const {
    const auto& w = std::get<training_workload>(base_.workload);
    const double flops = 6 * static_cast<double>(active_parameters(base_.model)) * tokens_;
    const auto dense = base_.platform.gpu.dense_peak(w.gemm_precision);
    const double peak = dense ? dense->peek().base() : unknown_peak;
    const double gpus = flops / (q_.days * q_.goodput * day_s * peak * guessed_use);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(gpus / static_cast<double>(domain_))), 1,
                                    max_units);
  }

  /// Finds the fewest racks that are fast enough: between a number that is not and one that is.
  void find_size() {
    std::int64_t bad = 0, good = 0, at = first_guess();
    for (int i = 0; i < max_sizes && !watch_.stopped(); ++i) {
      const found_training& f = try_gpus(gpus_of(at));
      (qualifies(f) ? good : bad) = at;
      if (good > 0 && good - bad <= std::max<std::int64_t>(1, good / 100)) break;
      std::int64_t next = good > 0 && bad > 0 ? (good + bad) / 2 : (good > 0 ? at / 2 : 2 * at);
      if (f.best && f.best->days) {  // as if the rate a GPU stayed
        const double aim = static_cast<double>(at) * *f.best->days / q_.days;
        const auto aimed = static_cast<std::int64_t>(std::ceil(aim * (good > 0 && bad > 0 ? 1.0 : 1.01)));
        if (aimed > bad && (good == 0 || aimed < good)) next = aimed;
        else if (good > 0 && aimed >= good && bad == 0) next = good - 1;
      }
      if (next <= bad) next = bad + 1;
      if (good > 0 && next >= good) next = good - 1;
      if (next < 1 || next <= bad || next > max_units) break;
      at = next;
    }
    good = fewer_that_divide(good);
    // Whole racks may do with fewer.
    if (good > 1 && gpus_of(good) < good * domain_ && !watch_.stopped())
      for (std::int64_t units = good - 1; units >= std::max<std::int64_t>(1, good * gpus_of(2) / (2 * domain_));
           --units) {
        if (watch_.stopped() || !qualifies(try_gpus(units * domain_))) break;
      }
  }

  /// Which layouts divide the batch depends on the number of GPUs, so fewer racks may do although some of those
  /// between do not. Tries a few that were left out, the most divisible first, if the best rate of a GPU so far
  /// would be enough. Returns the fewest that do.
  std::int64_t fewer_that_divide(std::int64_t good) {
    constexpr std::size_t most = 4;
    double rate = 0;  // tokens per second of a GPU
    for (const auto& [gpus, f] : tried_)
      if (f.best) rate = std::max(rate, f.best->tokens_per_s / static_cast<double>(gpus));
    const double needed = tokens_ / (q_.days * q_.goodput * day_s);
    std::vector<std::pair<std::int64_t, std::int64_t>> left;  // power of two, racks
    for (std::int64_t units = good - 1; units > 0; --units) {
      const std::int64_t gpus = gpus_of(units);
      if (static_cast<double>(gpus) * rate < needed) break;
      if (!tried_.contains(gpus)) left.emplace_back(gpus & -gpus, units);
    }
    std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) {
      return std::pair(-a.first, a.second) < std::pair(-b.first, b.second);
    });
    left.resize(std::min(left.size(), most));
    for (const auto& [power, units] : left)
      if (units < good && !watch_.stopped() && qualifies(try_gpus(gpus_of(units)))) good = units;
    return good;
  }

  void choose(training_plan& out) const {
    const found_training* best = nullptr;
    const found_training* fastest = nullptr;
    for (const auto& [gpus, f] : tried_) {
      if (!f.best) {
        if (out.pruned.empty()) out.pruned = f.pruned;
        continue;
      }
      if (!fastest || f.best->tokens_per_s > fastest->best->tokens_per_s) fastest = &f;
      if (qualifies(f) &&
          (!best || f.best->racks < best->best->racks ||
           (f.best->racks == best->best->racks && f.best->tokens_per_s > best->best->tokens_per_s)))
        best = &f;
    }
    if (best) {
      out.best = best->best;
      out.lost = best->lost;
      out.pruned = best->pruned;
    } else if (fastest) {
      out.nearest = fastest->best;
      out.pruned = fastest->pruned;
    }
  }

  const training_question& q_;
  const plan_watch& watch_;
  scenario base_;
  std::int64_t domain_ = 1;
  double tokens_ = 0;
  std::map<std::int64_t, found_training> tried_;  ///< by GPUs
};

}  // namespace

training_plan plan_training_run(const training_question& q, const plan_watch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  training_plan out = run_planner(q, watch).run();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace nvlsim
