#include "nvlsim/analysis/metric_values.hpp"

#include <algorithm>

namespace nvlsim {

training_values values_of(const training_metrics& t, bytes memory_peak, std::optional<double> token_budget) {
  const double step = t.step_time.base(), gpus = static_cast<double>(t.gpus),
               per_second = t.tokens_per_step / step;
  training_values v;
  std::size_t next = 0;
  const auto put = [&](std::optional<double> x) { v[next++] = x; };
  put(step);
  put(per_second);
  put(per_second / gpus);
  put(t.model_flops_causal / step / gpus / 1e12);
  put(t.model_flops_full / step / gpus / 1e12);
  put(t.mfu);
  put(t.bubble_fraction);
  put(t.exposed_communication.base());
  put((t.mean.energy / t.step_time).base());
  put(memory_peak.base());
  put(t.energy.total().base());
  put(t.cost ? std::optional(t.cost->base()) : std::nullopt);
  if (!token_budget) return v;
  const double steps = *token_budget / t.tokens_per_step;
  put(steps * step);
  put(steps);
  put(steps * t.energy.total().base());
  put(t.cost ? std::optional(steps * t.cost->base()) : std::nullopt);
  return v;
}

std::optional<bool> smaller_is_better(std::string_view metric) {
  static constexpr std::array<std::string_view, 13> less = {
      "step_time_s",       "bubble_fraction",   "exposed_communication_s", "power_W_per_gpu", "memory_peak_bytes",
      "energy_per_step_J", "cost_per_step_usd", "time_to_train_s",         "steps_to_train",  "energy_to_train_J",
      "cost_to_train_usd", "makespan_s",        "kv_cache_used_fraction"};
  static constexpr std::array<std::string_view, 7> less_stems = {"ttft_s",
                                                                 "tpot_s",
                                                                 "itl_s",
                                                                 "e2e_s",
                                                                 "queue_s",
                                                                 "energy_per_million_tokens_J",
                                                                 "cost_per_million_tokens_usd"};
  if (metric == "mfu" || metric == "tokens_per_J" || metric.find("_per_s") != metric.npos ||
      metric.starts_with("model_tflops"))
    return false;
  const std::string_view stem = metric.substr(0, metric.find('.'));
  if (std::find(less.begin(), less.end(), metric) != less.end() ||
      std::find(less_stems.begin(), less_stems.end(), stem) != less_stems.end())
    return true;
  return std::nullopt;
}

}  // namespace nvlsim
