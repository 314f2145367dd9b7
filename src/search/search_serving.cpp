// Layouts of a served model.
#include <algorithm>
#include <array>
#include <utility>

#include "nvlsim/analysis/sections.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/serving/worker_classes.hpp"
#include "search/search_space.hpp"

namespace nvlsim {
namespace {

/// Ranks of a worker and how many workers there are, with the other names that scenarios give them.
struct rank_axis {
  std::string_view name;
  std::array<std::string_view, 2> aliases;
  int pool_layout::*of;
};
constexpr std::array<rank_axis, 5> rank_axes = {
    {{"tp", {"tensor_parallel_size"}, &pool_layout::tp},
     {"pp", {"pipeline_parallel_size"}, &pool_layout::pp},
     {"ep", {"expert_parallel_size"}, &pool_layout::ep},
     {"attention_dp", {}, &pool_layout::attention_dp},
     {"replicas", {"data_parallel_size", "workers"}, &pool_layout::replicas}}};

/// Workers that decode, or do all, and the others.
struct split {
  pool_layout workers, prefill;
};
int gpus_of(const pool_layout& p) { return p.tp * p.pp * p.attention_dp; }

class space final : public search_space {
 public:
  space(const scenario& s, const search_options& o, diagnostics& problems) : base_(s), machine_(s.platform) {
    const auto& w = std::get<inference_workload>(s.workload);
    pooled_ = w.prefill_pool.has_value();
    name_ranks("", w.pooled() ? "/workload/layout/decode" : "/workload/layout");
    if (pooled_) name_ranks("prefill_", "/workload/layout/prefill");
    else
      add_parameters({{"max_batch_size", "/workload/engine/max_batch_size"},
                      {"max_num_tokens", "/workload/engine/max_num_tokens"}});
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

  /// Groups of one: each takes long, so that threads share them out and progress is told.
  std::size_t groups() const override { return splits_.size() * limits(); }
  std::size_t size(std::size_t) const override { return 1; }

  std::vector<value> layout(std::size_t group, std::size_t) const override {
    const split& s = splits_[group / limits()];
    std::vector<value> out;
    for (const rank_axis& a : rank_axes) out.emplace_back(s.workers.*a.of);
    for (const rank_axis& a : rank_axes)
      if (pooled_) out.emplace_back(s.prefill.*a.of);
    if (pooled_) return out;
    const std::size_t limit = group % limits();
    out.emplace_back(batches_[limit % batches_.size()]);
    out.emplace_back(tokens_[limit / batches_.size()]);
    return out;
  }

  std::string group_reason(std::size_t group) const override {
    const auto all = serving_problems(machine_, base_.stack, base_.model, workload(group));
    return all.empty() ? std::string() : all.front();
  }

  evaluation evaluate_layout(std::size_t group, std::size_t, bool) const override {
    const inference_workload w = workload(group);
    if (needs_clock(w)) return evaluate_served(w);
    evaluation out;
    inference_run run = plan_inference(machine_, base_.stack, base_.model, w);
    if (!run.reasons.empty()) {
      out.reason = run.reasons.front();
      return out;
    }
    split_lanes(run, {machine_, base_.stack, base_.model, w}, true);
    result r;
    add_inference_sections(r, machine_, w, run, evaluate(run.work));
    out.metrics = numbers_of(r);
    return out;
  }

 private:
  /// Loads whose batches depend on the clock.
  evaluation evaluate_served(const inference_workload& w) const {
    evaluation out;
    serving_run run = serve(machine_, base_.stack, base_.model, w);
    if (!run.reasons.empty()) {
      out.reason = run.reasons.front();
      return out;
    }
    result r;
    add_serving_sections(r, machine_, w, run);
    out.metrics = numbers_of(r);
    return out;
  }

  std::vector<std::optional<double>> numbers_of(const result& r) const {
    std::vector<std::optional<double>> out(metrics.size());
    for (const output::flat_metric& m : output::flat_metrics(r.metrics)) {
      const auto at = std::find(metrics.begin(), metrics.end(), m.name);
      double x = 0;
      if (at != metrics.end() && output::as_double(m.content, x))
        out[static_cast<std::size_t>(at - metrics.begin())] = x;
    }
    return out;
  }

  void add_parameters(const std::vector<std::pair<std::string, std::string>>& named) {
    for (const auto& [name, pointer] : named) {
      parameters.push_back(name);
      pointers.push_back(pointer);
    }
  }

  /// By the names that the scenario has for them.
  void name_ranks(const std::string& prefix, const std::string& layout) {
    const value* written = base_.inputs.at_pointer("/scenario" + layout);
    for (const rank_axis& a : rank_axes) {
      std::string_view used = a.name;
      for (const std::string_view alias : a.aliases)
        if (written && !alias.empty() && written->find(alias)) used = alias;
      add_parameters({{prefix + std::string(a.name), layout + '/' + std::string(used)}});
    }
  }

  std::vector<search_parameter> known_parameters(const inference_workload& w, const engine_settings& own) const {
    std::vector<search_parameter> out;
    const auto add = [&](std::string name, std::int64_t n) {
      out.push_back({std::move(name), std::to_string(n)});
    };
    const pool_layout workers{w.tp, w.pp, w.ep, w.attention_dp, w.replicas, {}, {}, {}};
    for (const rank_axis& a : rank_axes) add(std::string(a.name), workers.*a.of);
    for (const rank_axis& a : rank_axes)
      if (pooled_) add("prefill_" + std::string(a.name), (*w.prefill_pool).*a.of);
    if (pooled_) return out;
    add("max_batch_size", own.max_batch_size);
    add("max_num_tokens", own.max_num_tokens);
    return out;
  }

  bool allows(const allowed_values& allowed, const std::string& prefix, const pool_layout& p) const {
    return std::all_of(rank_axes.begin(), rank_axes.end(),
                       [&](const rank_axis& a) { return allowed.allows(prefix + std::string(a.name), p.*a.of); });
  }

  /// Workers of a pool: ranks by powers of two in a rack, with tensor parallelism or attention data parallelism,
  /// and experts on one rank each or on all.
  std::vector<pool_layout> workers_within(int gpus) const {
    const bool routed = has_routed_experts(base_.model);
    std::vector<pool_layout> out;
    for (int n = 1; n <= std::min(gpus, machine_.gpus_per_rack()); n *= 2)
      for (const int ep : n > 1 && routed ? std::vector<int>{1, n} : std::vector<int>{1}) {
        out.push_back({n, 1, ep, 1, 1, {}, {}, {}});
        if (n > 1) out.push_back({1, 1, ep, n, 1, {}, {}, {}});
      }
    return out;
  }

  /// Every pair of kinds of workers, and every way to share the GPUs out to them.
  void list_pools(int gpus, const allowed_values& allowed) {
    for (const pool_layout& prefill : workers_within(gpus - 1))
      for (const pool_layout& decode : workers_within(gpus - 1))
        for (split s{decode, prefill}; s.prefill.replicas * gpus_of(prefill) < gpus; ++s.prefill.replicas) {
          const int left = gpus - s.prefill.replicas * gpus_of(prefill);
          if (left % gpus_of(decode) != 0) continue;
          s.workers.replicas = left / gpus_of(decode);
          if (allows(allowed, "", s.workers) && allows(allowed, "prefill_", s.prefill)) splits_.push_back(s);
        }
  }

  void list_splits(std::int64_t gpus, const allowed_values& allowed) {
    const bool routed = has_routed_experts(base_.model);
    for (const std::int64_t tp : divisors(gpus))
      for (const std::int64_t adp : divisors(gpus / tp)) {
        if (tp > 1 && adp > 1) continue;  // one of them: the other is not modelled
        for (const std::int64_t pp : divisors(gpus / tp / adp))
          for (const std::int64_t ep : routed ? divisors(tp * adp) : std::vector<std::int64_t>{1}) {
            const std::int64_t replicas = gpus / tp / adp / pp;
            const auto n = [](std::int64_t x) { return static_cast<int>(x); };
            const pool_layout p{n(tp), n(pp), n(ep), n(adp), n(replicas), {}, {}, {}};
            if (tp * adp <= machine_.gpus_per_rack() && allows(allowed, "", p)) splits_.push_back({p, {}});
          }
      }
  }

  /// Pairs of batch limits that each split is tried with.
  std::size_t limits() const { return pooled_ ? 1 : batches_.size() * tokens_.size(); }

  inference_workload workload(std::size_t group) const {
    inference_workload w = std::get<inference_workload>(base_.workload);
    const split& s = splits_[group / limits()];
    const pool_layout& p = s.workers;
    w.tp = p.tp, w.pp = p.pp, w.ep = p.ep, w.attention_dp = p.attention_dp, w.replicas = p.replicas;
    for (const rank_axis& a : rank_axes)
      if (pooled_) (*w.prefill_pool).*a.of = s.prefill.*a.of;
    if (pooled_) return w;
    const std::size_t limit = group % limits();
    w.engine.max_batch_size = batches_[limit % batches_.size()];
    w.engine.max_num_tokens = tokens_[limit / batches_.size()];
    return w;
  }

  /// Those of a small load; which there are does not depend on the layout.
  void name_metrics() {
    metrics = {"output_tokens_per_s",
               "output_tokens_per_s_per_gpu",
               "total_tokens_per_s",
               "requests_per_s",
               "goodput_requests_per_s",
               "total_tokens_per_s_per_gpu",
               "output_tokens_per_s_per_user",
               "energy_per_million_tokens_J",
               "cost_per_million_tokens_usd",
               "power_W_per_gpu",
               "memory_peak_bytes",
               "kv_cache_used_fraction",
               "makespan_s"};
    for (const char* of : {"ttft_s", "tpot_s", "itl_s", "e2e_s", "queue_s"})
      for (const char* statistic : {"mean", "p50", "p90", "p95", "p99", "max"})
        metrics.push_back(std::string(of) + '.' + statistic);
  }

  const scenario& base_;
  platform machine_;
  std::vector<split> splits_;
  std::vector<std::int64_t> batches_, tokens_;
  bool pooled_ = false;  ///< prompts have workers of their own
};

}  // namespace

std::unique_ptr<search_space> serving_space(const scenario& s, const search_options& o, diagnostics& problems) {
  return std::make_unique<space>(s, o, problems);
}

}  // namespace nvlsim
