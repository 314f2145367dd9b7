// Splits of GPUs between rollouts and training, with layouts of both.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/post_training_metrics.hpp"
#include "nvlsim/post_training/phases.hpp"
#include "search/search_space.hpp"

namespace nvlsim {
namespace {

/// What a layout of a loop says.
struct loop_layout {
  std::int64_t rollout_tp = 1, replicas = 1, rollout_ep = 1;
  std::int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  std::int64_t samples = 1, mini_batch = 1;
  double staleness = 0;
  std::string refused = {};  ///< why no scenario says this

  std::vector<value> values() const {
    return {value{rollout_tp}, value{replicas}, value{rollout_ep}, value{tp},        value{pp},
            value{dp},         value{ep},       value{samples},    value{mini_batch}};
  }
};

class post_training_layouts final : public search_space {
 public:
  post_training_layouts(const scenario& s, const search_options& o, diagnostics& problems)
      : machine_(s.platform), case_(std::get<post_training_case>(s.workload)),
        rollout_(std::get<inference_workload>(case_.rollout->workload)),
        training_(std::get<training_workload>(case_.training->workload)), own_(*case_.loop) {
    const std::int64_t domain = std::max(1, machine_.gpus_per_rack());
    // A pool may end in a part of a rack, and jobs use 64 of 72 GPUs.
    const std::int64_t each = default_segment(machine_, o.gpus);
    machine_.racks = std::max(machine_.racks, static_cast<int>((o.gpus + each - 1) / std::min(each, domain)));
    everywhere = {{"/platform/racks", machine_.racks}};
    add("rollout_tp", "/workload/rollout/workload/layout/tp", rollout_.tp);
    add("replicas", "/workload/rollout/workload/layout/replicas", rollout_.replicas);
    add("rollout_ep", "/workload/rollout/workload/layout/ep", rollout_.ep);
    add("tp", "/workload/training/workload/tp", training_.par.tp);
    add("pp", "/workload/training/workload/pp", training_.par.pp);
    add("dp", "/workload/training/workload/dp", training_.par.dp);
    add("ep", "/workload/training/workload/ep", training_.par.ep);
    add("samples_per_prompt", "/workload/samples_per_prompt", own_.loop.samples);
    add("mini_batch_size", "/workload/mini_batch_size", own_.mini_batch);
    if (!own_.loop.colocated)
      add("staleness", "/workload/staleness", static_cast<std::int64_t>(own_.loop.staleness), 0);
    for (const metric& m : metrics_of(metric_kind::post_training))
      if (m.direction != better::neither)
        for (std::string& n : flat_names(m)) metrics.push_back(std::move(n));
    const allowed_values allowed(o.restrictions, known_, problems);
    if (problems.empty()) list(o.gpus, allowed);
  }

  std::size_t groups() const override { return layouts_.size(); }
  std::size_t size(std::size_t) const override { return 1; }
  std::vector<value> layout(std::size_t group, std::size_t) const override {
    std::vector<value> out = layouts_[group].values();
    const double stale = layouts_[group].staleness;
    const bool whole = stale == std::floor(stale);
    if (!own_.loop.colocated) out.push_back(whole ? value{static_cast<std::int64_t>(stale)} : value{stale});
    return out;
  }
  std::string group_reason(std::size_t group) const override { return layouts_[group].refused; }

  evaluation evaluate_layout(std::size_t group, std::size_t, bool) const override {
    const loop_layout& l = layouts_[group];
    inference_workload rollout = rollout_;
    training_workload training = training_;
    post_training_workload loop = own_;
    rollout.tp = static_cast<int>(l.rollout_tp);
    rollout.replicas = static_cast<int>(l.replicas);
    rollout.ep = static_cast<int>(l.rollout_ep);
    training.par.tp = l.tp;
    training.par.pp = l.pp;
    training.par.dp = l.dp;
    training.par.ep = l.ep;
    training.par.sequence_parallel = l.tp > 1 && (training.par.sequence_parallel || training_.par.tp == 1);
    training.global_batch_size = l.dp * l.pp * training.micro_batch_size;
    training.place = {std::min<std::int64_t>(default_segment(machine_, training.par.gpus()), training.par.gpus())};
    loop.loop.samples = l.samples;
    rollout.requests = loop.loop.prompts * l.samples;
    loop.mini_batch = l.mini_batch;
    loop.loop.mini_batch_prompts = std::max<std::int64_t>(1, l.mini_batch / l.samples);
    if (!loop.loop.colocated) {
      loop.loop.staleness = l.staleness;
      loop.loop.warmup = std::max(loop.loop.warmup, static_cast<std::int64_t>(std::ceil(l.staleness)) + 3);
    }
    const post_training_run run = run_loop({machine_, case_.rollout->stack, case_.rollout->model, rollout,
                                            case_.training->stack, case_.training->model, training},
                                           loop);
    evaluation out;
    if (!run.reasons.empty()) {
      out.reason = run.reasons.front();
      return out;
    }
    value numbers{value::object{}};
    set_metrics(numbers, measure_post_training(machine_, run));
    for (const std::string& m : metrics) {
      const value* v = numbers.find(m);
      out.metrics.push_back(v && v->number() ? std::optional<double>(*v->number()) : std::nullopt);
    }
    return out;
  }

 private:
  void add(std::string name, std::string pointer, std::int64_t own, std::int64_t min = 1) {
    known_.push_back({name, std::to_string(own), {}, min});
    parameters.push_back(std::move(name));
    pointers.push_back(std::move(pointer));
  }

  /// Sizes about that of the scenario.
  static std::vector<std::int64_t> about(std::int64_t own) {
    std::vector<std::int64_t> out = {own, 2 * own};
    if (own % 2 == 0) out.push_back(own / 2);
    return out;
  }

  /// Eighths of the GPUs for rollouts, or all of them where pools take turns.
  void list(std::int64_t gpus, const allowed_values& allowed) {
    std::vector<std::int64_t> shares;
    for (std::int64_t k = 1; k < 8; ++k)
      if (gpus * k % 8 == 0) shares.push_back(gpus * k / 8);
    const std::vector<std::int64_t> rollout_sizes = allowed.integers("rollout_tp", about(rollout_.tp));
    // Numbers of engines that are asked for may be other shares.
    for (const std::int64_t replicas : allowed.integers("replicas", {}))
      for (const std::int64_t tp : rollout_sizes)
        if (const std::int64_t share = replicas * tp;
            share < gpus && std::find(shares.begin(), shares.end(), share) == shares.end())
          shares.push_back(share);
    if (own_.loop.colocated) shares = {gpus};
    for (const std::int64_t share : shares)
      for (const std::int64_t rollout_tp : rollout_sizes) {
        if (share % rollout_tp != 0 || !allowed.allows("replicas", share / rollout_tp)) continue;
        // Experts that are spread over an engine stay spread over all of it.
        const std::int64_t usual = rollout_.ep > 1 && rollout_.ep == rollout_.tp ? rollout_tp : rollout_.ep;
        for (const std::int64_t ep : allowed.integers("rollout_ep", {usual}))
          add_training({.rollout_tp = rollout_tp, .replicas = share / rollout_tp, .rollout_ep = ep},
                       own_.loop.colocated ? gpus : gpus - share, allowed);
      }
  }

  void add_training(loop_layout l, std::int64_t gpus, const allowed_values& allowed) {
    for (const std::int64_t tp : allowed.integers("tp", {training_.par.tp}))
      for (const std::int64_t pp : allowed.integers("pp", about(training_.par.pp))) {
        const std::int64_t each = tp * pp * training_.par.cp;
        if (gpus % each != 0 || !allowed.allows("dp", gpus / each)) continue;
        l.tp = tp;
        l.pp = pp;
        l.dp = gpus / each;
        for (const std::int64_t ep : allowed.integers("ep", {training_.par.ep})) {
          l.ep = ep;
          add_loops(l, allowed);
        }
      }
  }

  void add_loops(loop_layout l, const allowed_values& allowed) {
    for (const std::int64_t samples : allowed.integers("samples_per_prompt", {own_.loop.samples})) {
      l.samples = samples;
      // As many updates as the scenario has.
      const std::int64_t own = own_.mini_batch / std::max<std::int64_t>(1, own_.loop.samples) * samples;
      for (const std::int64_t mini : allowed.integers("mini_batch_size", {own})) {
        l.mini_batch = mini;
        l.refused = refusal(samples, mini);
        add_bounds(l, allowed);
      }
    }
  }
  /// Why a scenario with these would be refused.
  std::string refusal(std::int64_t samples, std::int64_t mini) const {
    const loop_settings& set = own_.loop;
    if (set.trained_samples > samples)
      return fmt::format("trained_samples {} exceeds samples_per_prompt", set.trained_samples);
    if (mini % samples != 0 || mini > set.prompts * samples)
      return fmt::format(
          "mini_batch_size must be a multiple of the {} samples of a prompt, and at most {} prompts' worth",
          samples, set.prompts);
    if (set.streaming && set.prompts % (mini / samples) != 0)
      return fmt::format("streaming needs mini-batches that divide the {} prompts of a step evenly", set.prompts);
    loop_settings sized = set;
    sized.samples = samples;
    return samples_problem(sized);
  }
  void add_bounds(loop_layout l, const allowed_values& allowed) {
    const auto own = static_cast<std::int64_t>(own_.loop.staleness);
    for (const std::int64_t stale : allowed.integers("staleness", {own})) {
      const bool kept = stale == own && !allowed.asks("staleness", std::to_string(own));
      l.staleness = kept ? own_.loop.staleness : static_cast<double>(stale);
      layouts_.push_back(l);
    }
  }

  platform machine_;
  const post_training_case& case_;
  const inference_workload& rollout_;
  const training_workload& training_;
  const post_training_workload& own_;
  std::vector<search_parameter> known_;
  std::vector<loop_layout> layouts_;
};

}  // namespace

std::unique_ptr<search_space> post_training_space(const scenario& s, const search_options& o,
                                                  diagnostics& problems) {
  return std::make_unique<post_training_layouts>(s, o, problems);
}

}  // namespace nvlsim
