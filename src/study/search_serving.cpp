// Layouts of a served model.
#include <algorithm>
#include <array>
#include <utility>

#include "analysis/sections.hpp"
#include "output/number.hpp"
#include "output/rows.hpp"
#include "study/search_space.hpp"
#include "workload/serving_lanes.hpp"

namespace nvlsim {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> axes = {{
    {"tp", "/workload/layout/tp"},
    {"pp", "/workload/layout/pp"},
    {"ep", "/workload/layout/ep"},
    {"attention_dp", "/workload/layout/attention_dp"},
    {"replicas", "/workload/layout/replicas"},
    {"max_batch_size", "/workload/engine/max_batch_size"},
    {"max_num_tokens", "/workload/engine/max_num_tokens"},
}};

struct split {
  int tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;
};

class space final : public search_space {
 public:
  space(const scenario& s, const search_options& o, diagnostics& problems) : base_(s), machine_(s.platform) {
    const auto& w = std::get<inference_workload>(s.workload);
    for (const auto& [name, pointer] : axes) {
      parameters.emplace_back(name);
      pointers.emplace_back(pointer);
    }
    machine_.racks = std::max(
        machine_.racks, static_cast<int>((o.gpus + machine_.gpus_per_rack() - 1) / machine_.gpus_per_rack()));
    everywhere = {{"/platform/racks", machine_.racks}};
    const engine_settings own = settings_of(*s.stack.inference, w);
    const allowed_values allowed(o.restrictions, own_values(w, own), problems);
    if (!problems.empty()) return;
    std::vector<std::int64_t> batches = {own.max_batch_size}, tokens = {own.max_num_tokens};
    for (std::int64_t b = 16; b <= 4096; b *= 2) batches.push_back(b);
    for (std::int64_t t = 1024; t <= 16384; t *= 2) tokens.push_back(t);
    batches_ = allowed.integers("max_batch_size", batches);
    tokens_ = allowed.integers("max_num_tokens", tokens);
    list_splits(o.gpus, allowed);
    name_metrics();
  }

  std::size_t groups() const override { return splits_.size(); }
  std::size_t size(std::size_t) const override { return batches_.size() * tokens_.size(); }

  std::vector<value> layout(std::size_t group, std::size_t index) const override {
    const inference_workload w = workload(group, index);
    return {w.tp, w.pp, w.ep, w.attention_dp, w.replicas, *w.engine.max_batch_size, *w.engine.max_num_tokens};
  }

  std::string group_reason(std::size_t group) const override {
    const auto all = serving_problems(machine_, base_.stack, base_.model, workload(group, 0));
    return all.empty() ? std::string() : all.front();
  }

  evaluation evaluate_layout(std::size_t group, std::size_t index, bool) const override {
    const inference_workload w = workload(group, index);
    evaluation out;
    inference_run run = plan_inference(machine_, base_.stack, base_.model, w);
    if (!run.reasons.empty()) {
      out.reason = run.reasons.front();
      return out;
    }
    split_lanes(run, machine_, base_.stack, base_.model, w, true);
    result r;
    add_inference_sections(r, machine_, w, run, evaluate(run.work));
    out.metrics.resize(metrics.size());
    for (const output::flat_metric& m : output::flat_metrics(r.metrics)) {
      const auto at = std::find(metrics.begin(), metrics.end(), m.name);
      double x = 0;
      if (at != metrics.end() && output::as_double(m.content, x))
        out.metrics[static_cast<std::size_t>(at - metrics.begin())] = x;
    }
    return out;
  }

 private:
  static std::vector<std::pair<std::string, std::string>> own_values(const inference_workload& w,
                                                                     const engine_settings& own) {
    return {{"tp", std::to_string(w.tp)},
            {"pp", std::to_string(w.pp)},
            {"ep", std::to_string(w.ep)},
            {"attention_dp", std::to_string(w.attention_dp)},
            {"replicas", std::to_string(w.replicas)},
            {"max_batch_size", std::to_string(own.max_batch_size)},
            {"max_num_tokens", std::to_string(own.max_num_tokens)}};
  }

  void list_splits(std::int64_t gpus, const allowed_values& allowed) {
    const bool routed = std::any_of(base_.model.layers.begin(), base_.model.layers.end(),
                                    [](const layer_spec& l) { return l.routed(); });
    for (const std::int64_t tp : divisors(gpus))
      for (const std::int64_t adp : divisors(gpus / tp)) {
        if (tp > 1 && adp > 1) continue;  // one of them: the other is not modelled
        for (const std::int64_t pp : divisors(gpus / tp / adp))
          for (const std::int64_t ep : routed ? divisors(tp * adp) : std::vector<std::int64_t>{1}) {
            const std::int64_t replicas = gpus / tp / adp / pp;
            if (tp * adp > machine_.gpus_per_rack() || !allowed.allows("tp", tp) ||
                !allowed.allows("attention_dp", adp) || !allowed.allows("pp", pp) || !allowed.allows("ep", ep) ||
                !allowed.allows("replicas", replicas))
              continue;
            splits_.push_back({static_cast<int>(tp), static_cast<int>(pp), static_cast<int>(ep),
                               static_cast<int>(adp), static_cast<int>(replicas)});
          }
      }
  }

  inference_workload workload(std::size_t group, std::size_t index) const {
    inference_workload w = std::get<inference_workload>(base_.workload);
    const split& s = splits_[group];
    w.tp = s.tp, w.pp = s.pp, w.ep = s.ep, w.attention_dp = s.attention_dp, w.replicas = s.replicas;
    w.engine.max_batch_size = batches_[index % batches_.size()];
    w.engine.max_num_tokens = tokens_[index / batches_.size()];
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
};

}  // namespace

std::unique_ptr<search_space> serving_space(const scenario& s, const search_options& o, diagnostics& problems) {
  return std::make_unique<space>(s, o, problems);
}

}  // namespace nvlsim
