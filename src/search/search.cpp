// Evaluates layouts on several threads. Keeps the best, the Pareto front and the reasons for pruned ones.
// [docs/search.md]
#include "nvlsim/search/search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "nvlsim/facility/facility.hpp"
#include "nvlsim/scenario/jobs.hpp"
#include "search/searcher.hpp"

namespace nvlsim {

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

namespace {

std::unique_ptr<search_space> space_for(const scenario& s, const search_options& o, diagnostics& problems) {
  if (s.facility && s.facility->when_over == over_limit::cap)
    problems.add(s.file, "/facility/power/when_over",
                 "a search does not cap GPUs; use \"report\", or set /rack/power_cap of the platform");
  if (std::holds_alternative<training_workload>(s.workload)) return training_space(s, o, problems);
  if (std::holds_alternative<inference_workload>(s.workload)) return serving_space(s, o, problems);
  if (std::holds_alternative<post_training_case>(s.workload)) return post_training_space(s, o, problems);
  if (std::holds_alternative<operation_case>(s.workload)) return operation_space(s, o, problems);
  problems.add(
      s.file, "/workload/kind",
      fmt::format("{} no layouts to search; use a training or inference scenario",
                  std::holds_alternative<shared_workload>(s.workload) ? "several jobs have" : "a collective has"));
  return nullptr;
}

}  // namespace

searcher::searcher(const scenario& s, const search_options& o) : scenario_(s), options_(o) {
  diagnostics problems;
  space_ = space_for(s, o, problems);
  if (!space_ || space_->metrics.empty()) problems.throw_if_any();  // nothing to rank by, whatever is asked
  read_ranking(problems);
  read_constraints(problems);
  problems.throw_if_any();
  const auto looks_at = [&](const std::string& metric) {
    return std::any_of(constraints_.begin(), constraints_.end(),
                       [&](const constraint& c) { return c.rule.metric == metric; }) ||
           std::find(front_names_.begin(), front_names_.end(), metric) != front_names_.end();
  };
  in_full_ = space_->dear.empty() || std::any_of(space_->dear.begin(), space_->dear.end(), looks_at);
  for (std::size_t g = 0; g < space_->groups(); ++g) candidates_ += space_->layouts_in(g);
}

std::string searcher::hint_for(const metric& m) const {
  const bool bill = m.unit == metric_unit::usd && m.name.starts_with("bill_");
  if (bill && scenario_.facility && !scenario_.facility->money)
    return " is not known: the facility states no costs; add them, --set /facility/money={...}";
  if (m.unit == metric_unit::usd && !bill && !scenario_.platform.price.per_gpu)
    return " is not known: the platform has no price; give one, --set '/platform/price/per_gpu=4 USD/h'";
  const auto* w = std::get_if<training_workload>(&scenario_.workload);
  return w && m.needs == metric_needs::token_budget && !w->token_budget ? " needs /workload/token_budget" : "";
}

/// "unknown metric "x"", with what is known where no name is near.
static std::string unknown(std::string_view what, const std::string& name, const std::vector<std::string>& names) {
  const std::string text = fmt::format("unknown {} \"{}\"", what, name);
  return nearest(name, names).empty() ? fmt::format("{}; known: {}", text, fmt::join(names, ", ")) : text;
}

ranked_metric searcher::metric_named(const std::string& name, const char* option, diagnostics& problems) const {
  const auto at = std::find(space_->metrics.begin(), space_->metrics.end(), name);
  if (at == space_->metrics.end()) {
    problems.add(option, "", unknown("metric", name, space_->metrics), nearest(name, space_->metrics));
    return {};
  }
  const metric& m = *find_metric(name);
  if (m.direction == better::neither)
    problems.add(
        option, "",
        fmt::format(
            "\"{}\" cannot be ranked, because neither larger nor smaller is better; it can be a constraint",
            name));
  if (const std::string hint = hint_for(m); !hint.empty()) problems.add(option, "", name + hint);
  return {static_cast<std::size_t>(at - space_->metrics.begin()), m.direction == better::smaller ? 1.0 : -1.0};
}

void searcher::read_ranking(diagnostics& problems) {
  const metric_kind kind = metric_kind_of(scenario_);
  objective_ = options_.objective;
  if (objective_.empty()) objective_ = metric_with(kind, search_use::objective).name;
  ranking_.objective = metric_named(objective_, "--objective", problems);
  smaller_ = ranking_.objective.sign > 0;
  front_names_ = {objective_};
  std::vector<std::string> others = options_.pareto;
  if (others.empty()) others.emplace_back(metric_with(kind, search_use::weighed).name);
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
    c.rule.metric = usual_parameter(c.rule.metric, space_->parameters);
    c.on_parameter = find(space_->parameters);
    if (!c.on_parameter && !find(space_->metrics)) {
      std::vector<std::string> names = space_->parameters;
      names.insert(names.end(), space_->metrics.begin(), space_->metrics.end());
      problems.add("--constraint", "", unknown("parameter or metric", c.rule.metric, names),
                   nearest(c.rule.metric, names));
    }
    const metric* m = c.on_parameter ? nullptr : find_metric(c.rule.metric);
    if (const std::string hint = m ? hint_for(*m) : ""; !hint.empty())
      problems.add("--constraint", "", c.rule.metric + hint);
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

void searcher::refuse_group(worker& w, std::size_t group, const std::string& reason) const {
  w.pruned.add(kind_of(reason), reason, space_->layouts_in(group), group, 0);
}

/// A layout that is found is also added to `seen`.
void searcher::try_layout(worker& w, std::size_t group, std::size_t index, keeper* seen) const {
  evaluation e = space_->evaluate_layout(group, index, in_full_);
  if (!e.reason.empty()) return w.pruned.add(kind_of(e.reason), e.reason, 1, group, index);
  ++w.evaluated;
  candidate x{group, index, std::move(e.metrics)};
  if (const constraint* c = broken(x))
    return w.pruned.add("constraint " + c->rule.text, "constraint " + c->rule.text, 1, group, index);
  if (seen) seen->add(x);
  w.kept.add(std::move(x));
}

const constraint* searcher::outside(worker& w, std::size_t group, std::size_t index) const {
  const constraint* c = parameter_constraints_ ? broken(space_->layout(group, index)) : nullptr;
  if (c) w.pruned.add("constraint " + c->rule.text, "constraint " + c->rule.text, 1, group, index);
  return c;
}

bool searcher::try_group(worker& w, std::size_t group) {
  if (const std::string reason = space_->group_reason(group); !reason.empty()) {
    refuse_group(w, group, reason);
    return false;
  }
  const std::size_t n = space_->size(group);
  for (std::size_t k = 0; k < n && !(options_.stop && options_.stop()); ++k) {
    const std::size_t i = space_->slow ? n - 1 - k : k;
    if (!outside(w, group, i)) try_layout(w, group, i);
    if (space_->slow) report(1);
  }
  return true;
}

void searcher::report(std::int64_t more, std::int64_t refused) {
  if (!options_.report) return;
  const std::lock_guard lock(reporting_);
  done_ += more;
  refused_ += refused;
  options_.report(done_, candidates_ - refused_);
}

void searcher::try_groups(worker& w) {
  // Small batches if there are few groups: each may take seconds, and every thread should get some.
  const std::size_t at_once = std::clamp<std::size_t>(order_.size() / 1024, 1, 8);
  for (std::size_t first; (first = next_.fetch_add(at_once)) < order_.size();) {
    std::int64_t tried = 0, refused = 0;
    if (options_.stop && options_.stop()) return;
    for (std::size_t i = first; i < std::min(first + at_once, order_.size()); ++i)
      (try_group(w, order_[i]) ? tried : refused) += space_->layouts_in(order_[i]);
    if (!space_->slow) report(tried, refused);
    else if (refused > 0) report(0, refused);
  }
}

searcher::worker searcher::in_threads(const std::function<void(worker&)>& body) {
  std::vector<worker> workers(static_cast<std::size_t>(std::max(1, options_.jobs)),
                              worker{keeper(ranking_, options_.top), {}, 0});
  std::vector<std::exception_ptr> failures(workers.size());
  std::vector<std::thread> threads;
  const auto guarded = [&](std::size_t i) {
    try {
      body(workers[i]);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  for (std::size_t i = 1; i < workers.size(); ++i) threads.emplace_back(guarded, i);
  guarded(0);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& f : failures)
    if (f) std::rethrow_exception(f);
  for (std::size_t i = 1; i < workers.size(); ++i) workers[0].merge(workers[i]);
  return std::move(workers[0]);
}

search_result searcher::run() {
  const auto begin = std::chrono::steady_clock::now();
  const auto in_order = [this] {
    order_ = space_->visiting_order();
    return space_->has_ceilings && !options_.exhaustive ? search_under_ceilings()
                                                        : in_threads([this](worker& w) { try_groups(w); });
  };
  worker all = can_bound() ? search_bounded() : in_order();
  search_result out = collect(all);
  add_bound(out);
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

search_result search_layouts(const scenario& s, const search_options& options) {
#ifdef __GLIBC__
  // Keeps the memory of freed plans (a few megabytes each) in the process; lists of requests are larger.
  if (std::holds_alternative<training_workload>(s.workload)) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
  }
#endif
  return searcher(s, options).run();
}

}  // namespace nvlsim
