// Metrics of a training step as flat numbers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "nvlsim/analysis/training_metrics.hpp"

namespace nvlsim {

inline constexpr std::array<std::string_view, 16> training_metric_names = {"step_time_s",
                                                                           "tokens_per_s",
                                                                           "tokens_per_s_per_gpu",
                                                                           "model_tflops_per_gpu",
                                                                           "model_tflops_per_gpu_full_attention",
                                                                           "mfu",
                                                                           "bubble_fraction",
                                                                           "exposed_communication_s",
                                                                           "power_W_per_gpu",
                                                                           "memory_peak_bytes",
                                                                           "energy_per_step_J",
                                                                           "cost_per_step_usd",
                                                                           "time_to_train_s",
                                                                           "steps_to_train",
                                                                           "energy_to_train_J",
                                                                           "cost_to_train_usd"};
/// Whether the metric covers a whole training run and so needs its number of tokens.
constexpr bool needs_token_budget(std::string_view metric) { return metric.find("_to_train") != metric.npos; }

/// Values in the order of `training_metric_names`; unknown ones are empty.
using training_values = std::array<std::optional<double>, training_metric_names.size()>;
training_values values_of(const training_metrics& t, bytes memory_peak, std::optional<double> token_budget);

/// Whether a lower value is better ("step_time_s", "ttft_s.p99"). Empty for a metric without a better direction.
std::optional<bool> smaller_is_better(std::string_view metric);

}  // namespace nvlsim
