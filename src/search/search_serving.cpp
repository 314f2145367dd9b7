// Serving layouts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/serving/serving.hpp"
#include "search/offline_ceiling.hpp"
#include "search/search_space.hpp"

namespace nvlsim {
namespace {

/// Ranks of a worker and how many workers there are.
struct rank_axis {
  std::string name;
  engine_rank of;
};
const std::vector<rank_axis> rank_axes = [] {
  std::vector<rank_axis> out;
  for (const engine_field& f : engine_fields)
    if (const auto* of = std::get_if<engine_rank>(&f.member)) out.push_back({std::string(f.name), *of});
  return out;
}();

/// Decode or combined workers, and prefill workers.
struct worker_split {
  rank_counts workers, prefill;
};

/// A run under a step of a ceiling. Not a number: what a ceiling does not know.
served_metrics at_ceiling(const offline_ceiling& known, const ceiling_step& s, int gpus, double per_user) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  served_metrics out;
  out.seen.kv_cache_used_fraction = out.seen.requests_in_flight = unknown;
  out.seen.time_in_system_s = out.seen.prefix_cache_hit_fraction = unknown;
  out.seen.output_tokens_per_s = known.output_tokens / s.run_s;
  out.seen.output_tokens_per_s_per_gpu = known.output_tokens / s.run_s / gpus;
  out.seen.total_tokens_per_s = known.total_tokens / s.run_s;
  out.seen.total_tokens_per_s_per_gpu = known.total_tokens / s.run_s / gpus;
  out.seen.requests_per_s = known.requests / s.run_s;
  out.seen.output_tokens_per_s_per_user = per_user;
  out.seen.tpot_s = distribution{1 / per_user, unknown, unknown, unknown, unknown, unknown};
  const distribution none{unknown, unknown, unknown, unknown, unknown, unknown};
  out.seen.ttft_s = out.seen.queue_s = out.seen.e2e_s = none;
  out.makespan = seconds::from_base(s.run_s);
  out.output_tokens = unknown;
  out.memory_peak = bytes::from_base(unknown);
  return out;
}

class serving_layouts final : public search_space {
 public:
  serving_layouts(const scenario& s, const search_options& o, diagnostics& problems)
      : base_(s), machine_(s.platform) {
    const auto& w = std::get<inference_workload>(s.workload);
    pooled_ = w.prefill_pool.has_value();
    slow = true;  // runs under wide limits often stand for those under narrower ones
    has_ceilings = has_ceiling(w);
    const std::string layout = w.pooled() ? "/workload/layout/decode" : "/workload/layout";
    for (const rank_axis& a : rank_axes) add_parameter(a.name, pointer_in(layout, a.name));
    for (const rank_axis& a : rank_axes)
      if (pooled_) add_parameter("prefill_" + a.name, pointer_in("/workload/layout/prefill", a.name));
    for (const std::string name : {"max_batch_size", "max_num_tokens"})
      if (!pooled_) add_parameter(name, pointer_in(spelling(layout, name) ? layout : "/workload/engine", name));
    machine_.racks = std::max(
        machine_.racks, static_cast<int>((o.gpus + machine_.gpus_per_rack() - 1) / machine_.gpus_per_rack()));
    everywhere = {{"/platform/racks", machine_.racks}};
    name_metrics();
    const engine_settings own = settings_of(*s.stack.inference, w);
    const allowed_values allowed(o.restrictions, known_parameters(w, own), problems);
    if (!problems.empty()) return;
    std::vector<std::int64_t> batches = {own.max_batch_size}, tokens = {own.max_num_tokens};
    for (std::int64_t b = 16; b <= 4096; b *= 2) batches.push_back(b);
    for (std::int64_t t = 1024; t <= 16384; t *= 2) tokens.push_back(t);
    if (pooled_) {
      list_pools(static_cast<int>(o.gpus), allowed);
    } else {
      batches_ = allowed.integers("max_batch_size", batches);
      tokens_ = allowed.integers("max_num_tokens", tokens);
      list_splits(o.gpus, allowed);
    }
  }

  /// Groups differ in how the GPUs are divided, the layouts of a group in batch limits.
  std::size_t groups() const override { return splits_.size(); }
  std::size_t size(std::size_t) const override { return limits(); }

  std::vector<value> layout(std::size_t group, std::size_t limit) const override {
    const worker_split& s = splits_[group];
    std::vector<value> out;
    for (const rank_axis& a : rank_axes) out.emplace_back(s.workers.*a.of);
    for (const rank_axis& a : rank_axes)
      if (pooled_) out.emplace_back(s.prefill.*a.of);
    if (pooled_) return out;
    out.emplace_back(batches_[limit % batches_.size()]);
    out.emplace_back(tokens_[limit / batches_.size()]);
    return out;
  }

  std::string group_reason(std::size_t group) const override {
    const auto all = serving_problems(machine_, base_.stack, base_.model, workload(group, 0));
    return all.empty() ? std::string() : all.front();
  }

  evaluation evaluate_layout(std::size_t group, std::size_t limit, bool) const override {
    const inference_workload w = workload(group, limit);
    evaluation out;
    group_runs& known = runs_of(group, w);
    const serving_run run =
        serve(machine_, base_.stack, base_.model, w, {.traced = false, .shared = known.shared.get()});
    if (!run.reasons.empty()) {
      out.reason = run.reasons.front();
      return out;
    }
    if (!run.same_as) {
      known.measured.push_back(measure_served(machine_, w, run, base_.facility.get()));
      out.metrics = numbers_of(known.measured.back());
    } else {
      served_metrics m = known.measured[*run.same_as];
      use_memory_of(m, run);
      out.metrics = numbers_of(m);
    }
    return out;
  }

  std::vector<std::vector<std::optional<double>>> ceilings(std::size_t group, std::size_t limit) const override {
    const inference_workload w = workload(group, limit);
    const serving_case c{machine_, base_.stack, base_.model, w};
    group_runs& of = runs_of(group, w);
    if (!of.ceiling) name_ceilings(of, c);
    const std::vector<ceiling_step>& steps = of.ceiling->steps;
    const double most = largest_batch(*of.ceiling, c), least = least_batch(*of.ceiling, c);
    const auto first =
        std::partition_point(steps.begin(), steps.end(), [&](const ceiling_step& s) { return s.batch < least; });
    auto end = std::partition_point(first, steps.end(), [&](const ceiling_step& s) { return s.batch < most; });
    if (end != steps.end()) ++end;
    const auto at = [&](auto step) { return of.under.begin() + (step - steps.begin()); };
    return {at(first), at(end)};
  }

 private:
  /// What the layouts of a group share.
  struct group_runs {
    std::size_t group = 0;
    std::shared_ptr<shared_runs> shared;
    std::vector<served_metrics> measured;  ///< by run
    std::optional<offline_ceiling> ceiling;
    std::vector<std::vector<std::optional<double>>> under = {};  ///< metrics by step of it
  };
  /// The ceilings of a group, whatever its limits.
  void name_ceilings(group_runs& of, const serving_case& c) const {
    of.ceiling = ceiling_of(c);
    double per_user = of.ceiling->steps.empty() ? 0 : of.ceiling->steps.front().per_user;
    for (const ceiling_step& s : of.ceiling->steps) {
      of.under.push_back(known_numbers_of(at_ceiling(*of.ceiling, s, c.workload.gpus(), per_user)));
      per_user = s.per_user;
    }
  }
  /// Of the group that the calling thread is at.
  group_runs& runs_of(std::size_t group, const inference_workload& w) const {
    const std::lock_guard lock(sharing_);
    group_runs& out = at_[std::this_thread::get_id()];
    if (!out.shared || out.group != group)
      out = {group, runs_of_layout({machine_, base_.stack, base_.model, w}), {}, {}};
    return out;
  }

  std::vector<std::optional<double>> numbers_of(const served_metrics& served) const {
    value all{value::object{}};
    set_metrics(all, served);
    std::vector<std::optional<double>> out(metrics.size());
    for (const output::flat_metric& m : output::flat_metrics(all)) {
      const auto at = std::find(metrics.begin(), metrics.end(), m.name);
      double x = 0;
      if (at != metrics.end() && output::as_double(m.content, x))
        out[static_cast<std::size_t>(at - metrics.begin())] = x;
    }
    return out;
  }

  /// The same without what is not a number, and without a page of text for each: ceilings are many.
  std::vector<std::optional<double>> known_numbers_of(const served_metrics& served) const {
    std::vector<std::optional<double>> out(metrics.size());
    for (const auto& row : inference_table()) {
      if (!applies(row.about, served)) continue;
      const metric_value v = row.value(served);
      const auto put = [&](std::string_view statistic, double x) {
        if (std::isnan(x)) return;
        const std::string name = fmt::format("{}{}{}", row.about.name, statistic.empty() ? "" : ".", statistic);
        const auto at = std::find(metrics.begin(), metrics.end(), name);
        if (at != metrics.end()) out[static_cast<std::size_t>(at - metrics.begin())] = x;
      };
      if (const auto* d = std::get_if<distribution>(&v))
        for (const statistic& s : statistics) put(s.name, d->*s.of);
      else if (const auto x = number_of(v)) put({}, *x);
    }
    return out;
  }

  void add_parameter(std::string name, std::string pointer) {
    parameters.push_back(std::move(name));
    pointers.push_back(std::move(pointer));
  }

  /// Under which of its names the scenario has a setting in that object.
  std::optional<std::string> spelling(const std::string& object, const std::string& setting) const {
    const value* members = base_.inputs.at_pointer("/scenario" + object);
    const config::key names = engine_field_named(setting).names();
    if (members && members->find(names.canonical)) return setting;
    for (const std::string_view alias : names.aliases)
      if (members && members->find(alias)) return std::string(alias);
    return std::nullopt;
  }
  std::string pointer_in(const std::string& object, const std::string& setting) const {
    return object + '/' + spelling(object, setting).value_or(setting);
  }

  std::vector<search_parameter> known_parameters(const inference_workload& w, const engine_settings& own) const {
    std::vector<search_parameter> out;
    const auto add = [&](std::string name, std::int64_t n) {
      out.push_back({std::move(name), std::to_string(n)});
    };
    for (const rank_axis& a : rank_axes) add(a.name, w.*a.of);
    for (const rank_axis& a : rank_axes)
      if (pooled_) add("prefill_" + a.name, (*w.prefill_pool).*a.of);
    if (pooled_) return out;
    add("max_batch_size", own.max_batch_size);
    add("max_num_tokens", own.max_num_tokens);
    return out;
  }

  bool allows(const allowed_values& allowed, const std::string& prefix, const rank_counts& p) const {
    return std::all_of(rank_axes.begin(), rank_axes.end(),
                       [&](const rank_axis& a) { return allowed.allows(prefix + a.name, p.*a.of); });
  }

  /// Workers of a pool: ranks by powers of two in a rack, with tensor parallelism or attention data parallelism,
  /// and experts on one rank each or on all.
  std::vector<rank_counts> workers_within(int gpus) const {
    const bool routed = has_routed_experts(base_.model);
    std::vector<rank_counts> out;
    for (int n = 1; n <= std::min(gpus, machine_.gpus_per_rack()); n *= 2)
      for (const int ep : n > 1 && routed ? std::vector<int>{1, n} : std::vector<int>{1}) {
        out.push_back({n, 1, ep, 1, 1});
        if (n > 1) out.push_back({1, 1, ep, n, 1});
      }
    return out;
  }

  /// Every pair of worker layouts with every division of the GPUs between the pools.
  void list_pools(int gpus, const allowed_values& allowed) {
    for (const rank_counts& prefill : workers_within(gpus - 1))
      for (const rank_counts& decode : workers_within(gpus - 1))
        for (worker_split s{decode, prefill}; s.prefill.replicas * prefill.gpus_per_replica() < gpus;
             ++s.prefill.replicas) {
          const int left = gpus - s.prefill.replicas * prefill.gpus_per_replica();
          if (left % decode.gpus_per_replica() != 0) continue;
          s.workers.replicas = left / decode.gpus_per_replica();
          if (allows(allowed, "", s.workers) && allows(allowed, "prefill_", s.prefill)) splits_.push_back(s);
        }
  }

  void list_splits(std::int64_t gpus, const allowed_values& allowed) {
    const bool routed = has_routed_experts(base_.model);
    for (const std::int64_t tp : divisors(gpus))
      for (const std::int64_t adp : divisors(gpus / tp)) {
        if (tp > 1 && adp > 1) continue;  // tp and attention dp together are not modelled
        for (const std::int64_t pp : divisors(gpus / tp / adp))
          for (const std::int64_t ep : routed ? divisors(tp * adp) : std::vector<std::int64_t>{1}) {
            const std::int64_t replicas = gpus / tp / adp / pp;
            const auto n = [](std::int64_t x) { return static_cast<int>(x); };
            const rank_counts p{n(tp), n(pp), n(ep), n(adp), n(replicas)};
            if (tp * adp <= machine_.gpus_per_rack() && allows(allowed, "", p)) splits_.push_back({p, {}});
          }
      }
  }

  /// Number of batch-limit pairs tried with each split.
  std::size_t limits() const { return pooled_ ? 1 : batches_.size() * tokens_.size(); }

  inference_workload workload(std::size_t group, std::size_t limit) const {
    inference_workload w = std::get<inference_workload>(base_.workload);
    const worker_split& s = splits_[group];
    static_cast<rank_counts&>(w) = s.workers;
    if (pooled_) static_cast<rank_counts&>(*w.prefill_pool) = s.prefill;
    if (pooled_) return w;
    w.engine.max_batch_size = batches_[limit % batches_.size()];
    w.engine.max_num_tokens = tokens_[limit / batches_.size()];
    return w;
  }

  /// Those that are better one way or the other.
  void name_metrics() {
    for (const metric& m : metrics_of(metric_kind::inference))
      for (std::string& n : flat_names(m)) metrics.push_back(std::move(n));
  }

  const scenario& base_;
  platform machine_;
  std::vector<worker_split> splits_;
  std::vector<std::int64_t> batches_, tokens_;
  bool pooled_ = false;  ///< separate prefill workers
  mutable std::mutex sharing_;
  mutable std::map<std::thread::id, group_runs> at_;
};

}  // namespace

std::unique_ptr<search_space> serving_space(const scenario& s, const search_options& o, diagnostics& problems) {
  return std::make_unique<serving_layouts>(s, o, problems);
}

}  // namespace nvlsim
