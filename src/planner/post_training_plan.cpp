#include "nvlsim/planner/post_training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/search/search.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/stack/engine_settings.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

using loop_members = std::vector<std::pair<std::string, value>>;
using loop_choices = std::vector<search_restriction>;

constexpr std::int64_t max_engine = 64;   ///< GPUs of a rollout engine
constexpr std::size_t engine_sizes = 3;   ///< that are tried, from the smallest that holds the model
constexpr double fullest_samples = 8;     ///< longest samples that an engine must hold at once
constexpr std::int64_t least_batch = 16;  ///< samples at once on an engine
constexpr double as_fast = 1.01;          ///< steps that differ by less are equal
constexpr const char* rollout_layout = "/workload/rollout/workload/layout";
constexpr const char* rollout_engine = "/workload/rollout/workload/engine";
constexpr const char* rollout_batch = "/workload/rollout/workload/engine/max_batch_size";
constexpr const char* trainer_layout = "/workload/training/workload";

double loop_number_at(const value& v, const std::string& pointer) {
  double x = 0;
  const value* at = v.at_pointer(pointer);
  return at && output::as_double(*at, x) ? x : 0;
}
std::int64_t loop_count_at(const value& v, const std::string& pointer, std::int64_t otherwise = 1) {
  const value* at = v.at_pointer(pointer);
  return at && at->integer() ? *at->integer() : otherwise;
}

/// The scenario with pools that take turns, or with pools of their own.
value with_pools(const value& text, bool split) {
  const value* own = text.at_pointer("/workload/pools");
  if ((own && own->string() && *own->string() == "split") == split) return text;
  loop_members more;
  if (split) {
    more = {{"/workload/pools", "split"}, {"/workload/staleness", 1}, {"/workload/on_update", "keep_cache"}};
    for (const char* m : {"sleep", "offload_training", "transfer"})
      more.emplace_back(fmt::format("/workload/{}", m), value{});
  } else {
    more = {{"/workload/pools", "colocated"}};
    for (const char* m : {"staleness", "on_update", "streaming", "transfer", "warmup"})
      more.emplace_back(fmt::format("/workload/{}", m), value{});
  }
  return with_members(text, more);
}

std::vector<std::string> words_of(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> out;
  for (const std::int64_t n : numbers) out.push_back(std::to_string(n));
  return out;
}

class loop_planner {
 public:
  loop_planner(const post_training_question& q, const plan_watch& watch)
      : q_(q), watch_(watch), base_(read_base(q.base)) {
    diagnostics problems;
    const auto* c = std::get_if<post_training_case>(&base_.workload);
    if (!c) problems.add(base_.file, "/workload/kind", "plan post-training needs a post_training workload");
    if (q.gpus < 2) problems.add("--gpus", "", "give the number of GPUs, at least 2");
    problems.throw_if_any();
    out_.model = c->training->model.name;
    out_.platform = base_.platform.name;
    out_.rollout_stack = c->rollout->stack.name;
    out_.training_stack = c->training->stack.name;
    out_.framework = c->loop->costs.name;
    out_.gpus = q.gpus;
    out_.more = q.more;
    engines_ = engines(*c);
    experts_ = expert_sizes(c->training->model);
  }

  post_training_plan run() {
    for (const bool split : {false, true})
      if (!watch_.stopped()) place(split, q_.gpus);
    std::sort(out_.others.begin(), out_.others.end(),
              [](const planned_loop& a, const planned_loop& b) { return a.step_time_s < b.step_time_s; });
    choose();
    if (out_.others.empty() && out_.pruned.empty()) {
      const std::string why =
          fmt::format("a rollout engine needs at least {} GPUs to hold the model and {:g} of the longest samples",
                      engines_.front(), fullest_samples);
      out_.pruned.push_back({why, 1, why});
    }
    if (q_.more > 0 && out_.best && !watch_.stopped()) add_more();
    out_.interrupted = watch_.stopped();
    return std::move(out_);
  }

 private:
  /// Sizes of engines, from the smallest that holds the model and some samples.
  std::vector<std::int64_t> engines(const post_training_case& c) const {
    inference_workload w = std::get<inference_workload>(c.rollout->workload);
    const loop_settings& l = c.loop->loop;
    const auto longest = static_cast<double>(l.prompt_tokens + l.response.max);
    const bool spread = w.ep > 1 && w.ep == w.tp;
    std::vector<std::int64_t> out;
    for (std::int64_t tp = 1; tp <= max_engine && out.size() < engine_sizes; tp *= 2) {
      w.tp = static_cast<int>(tp);
      w.replicas = 1;
      if (spread) w.ep = w.tp;
      if (!serving_problems(base_.platform, c.rollout->stack, c.rollout->model, w).empty()) continue;
      const serving_memory m = plan_serving_memory(base_.platform, c.rollout->stack, c.rollout->model, w);
      if (static_cast<double>(m.kv_capacity_tokens) >= fullest_samples * longest) out.push_back(tp);
    }
    if (out.empty()) out.push_back(w.tp);
    return out;
  }

  static std::vector<std::int64_t> expert_sizes(const model& m) {
    std::int64_t experts = 0;
    for (const layer_spec& l : m.layers) experts = std::max<std::int64_t>(experts, l.moe.experts);
    if (experts == 0) return {1};
    std::vector<std::int64_t> out;
    for (const std::int64_t ep : {1, 4, 8, 16, 32, 64})
      if (experts % ep == 0) out.push_back(ep);
    return out;
  }

  search_result search(const value& text, std::int64_t gpus, loop_choices only, const char* stage) {
    search_options o;
    o.gpus = gpus;
    o.objective = metric_with(metric_kind::post_training, search_use::objective).name;
    o.restrictions = std::move(only);
    o.top = 1'000;
    o.jobs = static_cast<int>(processors());
    if (watch_.report)
      o.report = [this, stage](std::int64_t done, std::int64_t all) { watch_.report(stage, done, all); };
    o.stop = watch_.stop;
    search_result r = search_layouts(read_base({text, q_.base.overrides, q_.base.data}), o);
    out_.evaluated += r.evaluated;
    out_.candidates += r.candidates;
    if (r.best.empty() && out_.pruned.empty()) out_.pruned = r.pruned;
    return r;
  }

  static loop_members members_of(const search_result& r, const found_layout& l) {
    loop_members out = r.everywhere;
    for (std::size_t i = 0; i < r.pointers.size(); ++i) out.emplace_back(r.pointers[i], l.parameters[i]);
    return out;
  }
  static std::string own(const value& text, const std::string& pointer) {
    return std::to_string(loop_count_at(text, pointer));
  }

  loop_choices all_trainers(std::int64_t rollout_tp, std::int64_t rollouts) const {
    return {{"rollout_tp", {std::to_string(rollout_tp)}},
            {"replicas", {std::to_string(std::max<std::int64_t>(1, rollouts / rollout_tp))}},
            {"tp", {"1", "2", "4", "8"}},
            {"pp", {"1", "2", "4", "8", "16"}},
            {"ep", words_of(experts_)}};
  }
  /// The trainer's layout; experts over fewer GPUs where a pool asks for that.
  loop_choices same_trainer(const value& text) const {
    const std::string of(trainer_layout);
    std::vector<std::int64_t> experts;
    for (const std::int64_t ep : experts_)
      if (ep <= loop_count_at(text, of + "/ep")) experts.push_back(ep);
    if (experts.empty()) experts.push_back(loop_count_at(text, of + "/ep"));
    return {{"tp", {own(text, of + "/tp")}}, {"pp", {own(text, of + "/pp")}}, {"ep", words_of(experts)}};
  }

  std::vector<std::string> staleness() const {
    return q_.stale.empty() ? std::vector<std::string>{"0", "1", "2"} : q_.stale;
  }

  /// The fastest; of those as fast, the least stale.
  void choose() {
    const planned_loop* best = nullptr;
    for (const planned_loop& l : out_.others)
      if (l.step_time_s <= as_fast * out_.others.front().step_time_s && (!best || l.staleness < best->staleness))
        best = &l;
    if (best) out_.best = *best;
  }

  /// The best loops of a placement join the others.
  void place(bool split, std::int64_t gpus) {
    value text = with_pools(q_.base.text, split);
    const std::int64_t rollouts = split ? gpus / 2 : gpus;
    // A trainer, beside an engine of middle size; then engines; then splits; then the trainer again.
    const std::size_t middle = std::min<std::size_t>(1, engines_.size() - 1);
    for (std::size_t i = middle;; --i) {
      const auto r = search(text, gpus, all_trainers(engines_[i], rollouts), "trainers");
      if (!r.best.empty()) {
        text = with_members(text, members_of(r, r.best.front()));
        break;
      }
      if (i == 0 || watch_.stopped()) return;
    }
    loop_choices only = same_trainer(text);
    only.push_back({"rollout_tp", words_of(engines_)});
    if (split) only.push_back({"staleness", staleness()});
    const auto r = search(text, gpus, std::move(only), split ? "engines, splits, staleness" : "engines");
    if (r.best.empty()) return;
    enter(text, r, split);
    if (watch_.stopped()) return;
    if (split) return refine(gpus);
    text = with_members(text, members_of(r, r.best.front()));
    const std::int64_t tp = loop_count_at(text, std::string(rollout_layout) + "/tp");
    const auto last = search(text, gpus, all_trainers(tp, gpus), "trainers of the best engine");
    if (!last.best.empty()) enter(text, last, split);
  }

  /// The fastest of each split and staleness of a search.
  void enter(const value& text, const search_result& r, bool split) {
    for (const found_layout& l : r.best) {
      const value whole = with_members(text, members_of(r, l));
      planned_loop p = described(whole, split);
      const auto same = std::find_if(out_.others.begin(), out_.others.end(), [&](const planned_loop& o) {
        return o.split == p.split && o.rollout_gpus == p.rollout_gpus && o.staleness == p.staleness;
      });
      const double step = step_of(r, l);
      if (same != out_.others.end() && same->step_time_s <= step) continue;
      p = finished(whole, std::move(p));
      if (!(p.step_time_s > 0)) continue;
      if (same == out_.others.end()) out_.others.push_back(std::move(p));
      else *same = std::move(p);
    }
  }

  static double step_of(const search_result& r, const found_layout& l) {
    const auto at = std::find(r.metrics.begin(), r.metrics.end(),
                              metric_with(metric_kind::post_training, search_use::objective).name);
    return at == r.metrics.end() ? 0 : l.metrics[static_cast<std::size_t>(at - r.metrics.begin())].value_or(0);
  }

  static planned_loop described(const value& text, bool split) {
    planned_loop out;
    out.split = split;
    out.text = text;
    const std::string of(trainer_layout), roll(rollout_layout);
    const std::int64_t rollout_tp = loop_count_at(text, roll + "/tp"),
                       replicas = loop_count_at(text, roll + "/replicas");
    out.rollout_gpus = rollout_tp * replicas;
    out.train_gpus = loop_count_at(text, of + "/tp") * loop_count_at(text, of + "/pp") *
                     loop_count_at(text, of + "/cp") * loop_count_at(text, of + "/dp");
    out.staleness = split ? loop_number_at(text, "/workload/staleness") : 0;
    out.layout = fmt::format("rollouts {} x tp {}", replicas, rollout_tp);
    if (const std::int64_t ep = loop_count_at(text, roll + "/ep"); ep > 1) out.layout += fmt::format(" ep {}", ep);
    out.layout += "; training";
    for (const char* part : {"tp", "pp", "cp", "ep", "dp"})
      if (const std::int64_t n = loop_count_at(text, fmt::format("{}/{}", of, part)); n > 1)
        out.layout += fmt::format(" {} {}", part, n);
    return out;
  }

  scenario read_text(const value& text) const { return read_base({text, q_.base.overrides, q_.base.data}); }
  static result run_of(const scenario& s) { return run_scenario(s, {.simulate = false}).outcome; }

  /// Engines whose cache overflows compute samples again: they get half of the batch while that is faster.
  void lower_batch(planned_loop& l, const scenario& now) const {
    if (loop_number_at(l.outcome.breakdown, "/preemptions") <= 0) return;
    const scenario& rollout = *std::get<post_training_case>(now.workload).rollout;
    std::int64_t batch =
        settings_of(*rollout.stack.inference, std::get<inference_workload>(rollout.workload)).max_batch_size;
    while (batch / 2 >= least_batch && loop_number_at(l.outcome.breakdown, "/preemptions") > 0) {
      loop_members half = {{rollout_batch, value{batch / 2}}};
      for (const std::string_view other : engine_field_named("max_batch_size").names().aliases)
        if (std::string name = pointer_to(rollout_engine, other); l.text.at_pointer(name))
          half.emplace_back(std::move(name), value{});
      value text = with_members(l.text, half);
      result r = run_of(read_text(text));
      const double step = loop_number_at(r.metrics, "/step_time_s");
      if (!(step > 0) || step >= loop_number_at(l.outcome.metrics, "/step_time_s")) break;
      batch /= 2;
      l.text = std::move(text);
      l.outcome = std::move(r);
    }
  }

  planned_loop finished(const value& text, planned_loop out) const {
    const scenario s = read_text(text);
    out.outcome = run_of(s);
    lower_batch(out, s);
    if (const std::int64_t batch = loop_count_at(out.text, rollout_batch, 0);
        batch != loop_count_at(q_.base.text, rollout_batch, 0))
      out.layout.insert(out.layout.find(';'), fmt::format(" batch {}", batch));
    const value& m = out.outcome.metrics;
    out.step_time_s = loop_number_at(m, "/step_time_s");
    out.tokens_per_s = loop_number_at(m, "/tokens_per_s");
    out.rollout_idle = loop_number_at(m, "/rollout_idle_fraction");
    out.training_idle = loop_number_at(m, "/training_idle_fraction");
    return out;
  }

  /// The best loop with more GPUs in one pool, or in both: any engine, and the trainer's layout searched again.
  void add_more() {
    const planned_loop& b = *out_.best;
    const auto grown = [&](const char* where, std::int64_t to_rollouts, std::int64_t to_training) {
      added_gpus a{where, {}, {}};
      const std::int64_t rollouts = b.rollout_gpus + to_rollouts, all = q_.gpus + q_.more;
      if (std::optional<planned_loop> l = best_of(b, rollouts, all, a.why, to_training > 0)) a.loop = std::move(l);
      out_.added.push_back(std::move(a));
    };
    if (!b.split) {
      grown("both, in turns", q_.more, q_.more);
      return;
    }
    grown("rollouts", q_.more, 0);
    grown("training", 0, q_.more);
    grown("half and half", q_.more / 2, q_.more - q_.more / 2);
  }

  /// The fastest loop with so many GPUs for rollouts, of all engines; with `trainers` also of all the trainer's
  /// layouts. Else `why` says why none runs.
  std::optional<planned_loop> best_of(const planned_loop& like, std::int64_t rollouts, std::int64_t all,
                                      std::string& why, bool trainers) {
    std::optional<planned_loop> best;
    const auto try_one = [&](const value& base, loop_choices only, const char* stage) {
      if (like.split) only.push_back({"staleness", {fmt::format("{:.0f}", like.staleness)}});
      const auto r = search(base, all, std::move(only), stage);
      if (r.best.empty()) {
        if (!r.pruned.empty()) why = r.pruned.front().example;
        return;
      }
      const value text = with_members(base, members_of(r, r.best.front()));
      planned_loop l = finished(text, described(text, like.split));
      if (l.step_time_s > 0 && (!best || l.step_time_s < best->step_time_s)) best = std::move(l);
    };
    for (const std::int64_t engine : engines_) {
      if (rollouts % engine != 0 || watch_.stopped()) continue;
      loop_choices only = same_trainer(like.text);
      only.push_back({"rollout_tp", {std::to_string(engine)}});
      only.push_back({"replicas", {std::to_string(rollouts / engine)}});
      try_one(like.text, std::move(only), "engines");
    }
    const std::int64_t engine = loop_count_at(best ? best->text : like.text, std::string(rollout_layout) + "/tp");
    if ((trainers || !best) && rollouts % engine == 0 && !watch_.stopped())
      try_one(like.text, all_trainers(engine, rollouts), "trainers");
    if (!best && watch_.stopped()) why = "not tried to its end: interrupted";
    if (!best && why.empty())
      why = fmt::format("{} GPUs are not divisible into engines of {} to {} GPUs", rollouts, engines_.front(),
                        engines_.back());
    return best;
  }

  /// The trainer's layout again for every number of GPUs.
  void refine(std::int64_t gpus) {
    std::set<std::int64_t> done;
    std::vector<planned_loop> first;  // the best bound of each split
    for (const planned_loop& l : out_.others)
      if (l.split && done.insert(l.rollout_gpus).second) first.push_back(l);
    for (const planned_loop& l : first) {
      if (watch_.stopped()) return;
      const std::int64_t tp = loop_count_at(l.text, std::string(rollout_layout) + "/tp");
      loop_choices again = all_trainers(tp, l.rollout_gpus);
      again.push_back({"staleness", {fmt::format("{:.0f}", l.staleness)}});
      const auto r = search(l.text, gpus, std::move(again), "trainers of each split");
      if (r.best.empty()) continue;
      enter(l.text, r, true);
      // Reuses the best layout of one staleness for the others.
      const value text = with_members(l.text, members_of(r, r.best.front()));
      const std::string of(trainer_layout);
      const auto others = search(text, gpus,
                                 {{"rollout_tp", {std::to_string(tp)}},
                                  {"replicas", {std::to_string(l.rollout_gpus / tp)}},
                                  {"tp", {own(text, of + "/tp")}},
                                  {"pp", {own(text, of + "/pp")}},
                                  {"ep", {own(text, of + "/ep")}},
                                  {"mini_batch_size", {own(text, "/workload/mini_batch_size")}},
                                  {"staleness", staleness()}},
                                 "bounds of each split");
      enter(text, others, true);
    }
  }

  const post_training_question& q_;
  const plan_watch& watch_;
  scenario base_;
  std::vector<std::int64_t> engines_, experts_;
  post_training_plan out_;
};

}  // namespace

post_training_plan plan_post_training(const post_training_question& q, const plan_watch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  post_training_plan out = loop_planner(q, watch).run();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace nvlsim
