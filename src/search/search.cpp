// Evaluates layouts on several threads. Keeps the best, the Pareto front and the reasons for pruned ones.
// [docs/search.md]
#include "nvlsim/search/search.hpp"

#include <fmt/format.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "nvlsim/analysis/compare.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/facility/facility.hpp"
#include "search/search_space.hpp"

namespace nvlsim {
namespace {

/// A layout's position in the space, and its metrics.
struct candidate {
  std::size_t group = 0, index = 0;
  std::vector<std::optional<double>> metrics;
};

/// Replaces numbers by N so that reasons of one kind compare equal.
std::string kind_of(std::string_view reason) {
  std::string out;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < reason.size(); ++i) {
    const bool begins =
        digit(reason[i]) &&
        (i == 0 || !(std::isalnum(static_cast<unsigned char>(reason[i - 1])) || reason[i - 1] == '_'));
    if (!begins) {
      out += reason[i];
      continue;
    }
    while (i + 1 < reason.size() &&
           (digit(reason[i + 1]) || (reason[i + 1] == '.' && i + 2 < reason.size() && digit(reason[i + 2]))))
      ++i;
    out += 'N';
  }
  return out;
}

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

/// A constraint. Constraints on parameters are checked before a layout is evaluated.
struct constraint {
  analysis::gate rule;
  bool on_parameter = false;
  std::size_t at = 0;
};

class searcher {
 public:
  searcher(const scenario& s, const search_options& o);
  search_result run();

 private:
  void read_ranking(diagnostics& problems);
  void read_constraints(diagnostics& problems);
  ranked_metric metric_named(const std::string& name, const char* option, diagnostics& problems) const;
  struct worker {
    keeper kept;
    pruning pruned;
    std::int64_t evaluated = 0;
  };
  void try_groups(worker& w);
  void try_group(worker& w, std::size_t group);
  void report(std::int64_t more);
  const constraint* broken(const std::vector<value>& parameters) const;
  const constraint* broken(const candidate& c) const;
  search_result collect(worker& all);
  std::string example_of(const pruning::entry& e) const;
  std::string hint_for(const metric& m) const;

  const scenario& scenario_;
  const search_options& options_;
  std::unique_ptr<search_space> space_;
  ranking ranking_;
  std::vector<std::string> front_names_;
  std::string objective_;
  bool smaller_ = true;
  std::vector<constraint> constraints_;
  bool parameter_constraints_ = false;
  bool in_full_ = false;            ///< evaluate all metrics, because a slow one is used
  std::vector<std::size_t> order_;  ///< order in which groups are visited
  std::atomic<std::size_t> next_ = 0;
  std::mutex reporting_;
  std::int64_t candidates_ = 0, done_ = 0;
};

std::unique_ptr<search_space> space_for(const scenario& s, const search_options& o, diagnostics& problems) {
  if (s.facility && s.facility->when_over == over_limit::cap)
    problems.add(s.file, "/facility/power/when_over",
                 "a search does not cap GPUs; use \"report\", or set /rack/power_cap of the platform");
  if (std::holds_alternative<training_workload>(s.workload)) return training_space(s, o, problems);
  if (std::holds_alternative<inference_workload>(s.workload)) return serving_space(s, o, problems);
  if (std::holds_alternative<post_training_case>(s.workload)) return post_training_space(s, o, problems);
  problems.add(s.file, "/workload/kind",
               "a collective has no layouts to search; use a training or inference scenario");
  return nullptr;
}

searcher::searcher(const scenario& s, const search_options& o) : scenario_(s), options_(o) {
  diagnostics problems;
  space_ = space_for(s, o, problems);
  if (!space_) problems.throw_if_any();
  read_ranking(problems);
  read_constraints(problems);
  problems.throw_if_any();
  const auto looks_at = [&](const std::string& metric) {
    return std::any_of(constraints_.begin(), constraints_.end(),
                       [&](const constraint& c) { return c.rule.metric == metric; }) ||
           std::find(front_names_.begin(), front_names_.end(), metric) != front_names_.end();
  };
  order_ = space_->visiting_order();
  in_full_ = space_->dear.empty() || std::any_of(space_->dear.begin(), space_->dear.end(), looks_at);
  for (std::size_t g = 0; g < space_->groups(); ++g) candidates_ += static_cast<std::int64_t>(space_->size(g));
}

std::string searcher::hint_for(const metric& m) const {
  if (m.unit == metric_unit::usd && !scenario_.platform.price.per_gpu)
    return " is not known: the platform has no price; give one, --set '/platform/price/per_gpu=4 USD/h'";
  const auto* w = std::get_if<training_workload>(&scenario_.workload);
  return w && m.needs == metric_needs::token_budget && !w->token_budget ? " needs /workload/token_budget" : "";
}

ranked_metric searcher::metric_named(const std::string& name, const char* option, diagnostics& problems) const {
  const auto at = std::find(space_->metrics.begin(), space_->metrics.end(), name);
  if (at == space_->metrics.end()) {
    if (find_metric(name) && find_metric(name)->direction == better::neither)
      problems.add(option, "", fmt::format("neither more nor less of \"{}\" is better", name));
    else problems.add(option, "", fmt::format("unknown metric \"{}\"", name), nearest(name, space_->metrics));
    return {};
  }
  const metric& m = *find_metric(name);
  if (const std::string hint = hint_for(m); !hint.empty()) problems.add(option, "", name + hint);
  return {static_cast<std::size_t>(at - space_->metrics.begin()), m.direction == better::smaller ? 1.0 : -1.0};
}

void searcher::read_ranking(diagnostics& problems) {
  const bool training = std::holds_alternative<training_workload>(scenario_.workload) ||
                        std::holds_alternative<post_training_case>(scenario_.workload);
  objective_ = !options_.objective.empty() ? options_.objective
               : training                  ? "step_time_s"
                                           : "output_tokens_per_s_per_gpu";
  ranking_.objective = metric_named(objective_, "--objective", problems);
  smaller_ = ranking_.objective.sign > 0;
  front_names_ = {objective_};
  std::vector<std::string> others = options_.pareto;
  if (others.empty()) others = {training ? "memory_peak_bytes" : "output_tokens_per_s_per_user"};
  for (const std::string& n : others)
    if (std::find(front_names_.begin(), front_names_.end(), n) == front_names_.end()) front_names_.push_back(n);
  for (const std::string& n : front_names_)
    ranking_.front.push_back(n == objective_ ? ranking_.objective : metric_named(n, "--pareto", problems));
}

/// Whether a parameter's values are words, not numbers.
static bool is_word(const search_space& space, std::size_t at) {
  return space.groups() > 0 && space.size(0) > 0 && !space.layout(0, 0)[at].integer();
}

void searcher::read_constraints(diagnostics& problems) {
  for (const std::string& text : options_.constraints) {
    diagnostics own;
    constraint c{analysis::parse_gate(text, own, "--constraint"), false, 0};
    for (const problem& p : own.sorted()) problems.add(p);
    if (!own.empty()) continue;
    if (c.rule.relative)
      problems.add("--constraint", "",
                   fmt::format("\"{}\": the bound must be a number without a per cent sign", text));
    const auto find = [&](const std::vector<std::string>& names) {
      const auto it = std::find(names.begin(), names.end(), c.rule.metric);
      c.at = static_cast<std::size_t>(it - names.begin());
      return it != names.end();
    };
    c.on_parameter = find(space_->parameters);
    if (!c.on_parameter && !find(space_->metrics)) {
      std::vector<std::string> names = space_->parameters;
      names.insert(names.end(), space_->metrics.begin(), space_->metrics.end());
      problems.add("--constraint", "", fmt::format("unknown parameter or metric \"{}\"", c.rule.metric),
                   nearest(c.rule.metric, names));
    }
    if (c.on_parameter && is_word(*space_, c.at))
      problems.add("--constraint", "",
                   fmt::format("\"{}\": {} is not a number; use --only {}=... to restrict it", text, c.rule.metric,
                               c.rule.metric));
    parameter_constraints_ |= c.on_parameter;
    constraints_.push_back(std::move(c));
  }
}

const constraint* searcher::broken(const std::vector<value>& parameters) const {
  for (const constraint& c : constraints_) {
    const std::int64_t* x = c.on_parameter ? parameters[c.at].integer() : nullptr;
    if (x && !analysis::holds(c.rule, static_cast<double>(*x))) return &c;
  }
  return nullptr;
}

const constraint* searcher::broken(const candidate& x) const {
  for (const constraint& c : constraints_)
    if (!c.on_parameter && !(x.metrics[c.at] && analysis::holds(c.rule, *x.metrics[c.at]))) return &c;
  return nullptr;
}

void searcher::try_group(worker& w, std::size_t group) {
  const std::size_t size = space_->size(group);
  if (const std::string reason = space_->group_reason(group); !reason.empty()) {
    w.pruned.add(kind_of(reason), reason, static_cast<std::int64_t>(size), group, 0);
    return;
  }
  const auto outside = [&](const constraint& c, std::size_t i) {
    w.pruned.add("constraint " + c.rule.text, "constraint " + c.rule.text, 1, group, i);
  };
  for (std::size_t i = 0; i < size; ++i) {
    if (parameter_constraints_)
      if (const constraint* c = broken(space_->layout(group, i))) {
        outside(*c, i);
        continue;
      }
    evaluation e = space_->evaluate_layout(group, i, in_full_);
    if (!e.reason.empty()) {
      w.pruned.add(kind_of(e.reason), e.reason, 1, group, i);
      continue;
    }
    ++w.evaluated;
    candidate x{group, i, std::move(e.metrics)};
    if (const constraint* c = broken(x)) outside(*c, i);
    else w.kept.add(std::move(x));
  }
}

void searcher::report(std::int64_t more) {
  if (!options_.report) return;
  const std::lock_guard lock(reporting_);
  done_ += more;
  options_.report(done_, candidates_);
}

void searcher::try_groups(worker& w) {
  // Small batches if there are few groups: each may take seconds, and every thread should get some.
  const std::size_t at_once = std::clamp<std::size_t>(order_.size() / 1024, 1, 8);
  for (std::size_t first; (first = next_.fetch_add(at_once)) < order_.size();) {
    std::int64_t tried = 0;
    if (options_.stop && options_.stop()) return;
    for (std::size_t i = first; i < std::min(first + at_once, order_.size()); ++i) {
      try_group(w, order_[i]);
      tried += static_cast<std::int64_t>(space_->size(order_[i]));
    }
    report(tried);
  }
}

search_result searcher::run() {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<worker> workers(static_cast<std::size_t>(std::max(1, options_.jobs)),
                              worker{keeper(ranking_, options_.top), {}, 0});
  std::vector<std::exception_ptr> failures(workers.size());
  std::vector<std::thread> threads;
  const auto guarded = [&](std::size_t i) {
    try {
      try_groups(workers[i]);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  for (std::size_t i = 1; i < workers.size(); ++i) threads.emplace_back(guarded, i);
  guarded(0);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& f : failures)
    if (f) std::rethrow_exception(f);
  for (std::size_t i = 1; i < workers.size(); ++i) {
    workers[0].kept.merge(workers[i].kept);
    workers[0].pruned.merge(workers[i].pruned);
    workers[0].evaluated += workers[i].evaluated;
  }
  search_result out = collect(workers[0]);
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

std::string searcher::example_of(const pruning::entry& e) const {
  std::string out = e.reason + ":";
  const std::vector<value> layout = space_->layout(e.group, e.index);
  for (std::size_t i = 0; i < layout.size(); ++i)
    if (const std::int64_t* x = layout[i].integer(); x && *x > 1)
      out += fmt::format(" {} {}", space_->parameters[i], *x);
  return out;
}

search_result searcher::collect(worker& all) {
  search_result out;
  out.scenario = scenario_.name;
  out.objective = objective_;
  out.gpus = options_.gpus;
  out.smaller_is_better = smaller_;
  out.parameters = space_->parameters;
  out.pointers = space_->pointers;
  out.everywhere = space_->everywhere;
  out.metrics = space_->metrics;
  out.front_metrics = front_names_;
  const auto found = [&](std::vector<candidate> from) {
    std::vector<found_layout> to;
    for (candidate& c : from)
      to.push_back({space_->layout(c.group, c.index),
                    in_full_ ? std::move(c.metrics) : space_->evaluate_layout(c.group, c.index, true).metrics});
    return to;
  };
  out.found = all.kept.found;
  out.best = found(all.kept.best());
  out.front = found(all.kept.front());
  out.candidates = candidates_;
  out.evaluated = all.evaluated;
  std::int64_t untried = candidates_ - out.found;
  for (const auto& [kind, e] : all.pruned.by_kind) {
    out.pruned.push_back({kind, e.count, example_of(e)});
    untried -= e.count;
  }
  if (untried > 0) out.pruned.push_back({"interrupted: not tried", untried, "interrupted"});
  std::stable_sort(out.pruned.begin(), out.pruned.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return out;
}

}  // namespace

search_result search_layouts(const scenario& s, const search_options& options) {
#ifdef __GLIBC__
  // Keeps the memory of freed plans (a few megabytes each) in the process.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
  return searcher(s, options).run();
}

}  // namespace nvlsim
