// The costs that a serving fit may change, and their prior widths.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "nvlsim/stack/inference_profile.hpp"

namespace nvlsim {

/// A cost with the prior widths, in log, of the pool around its start and of an engine around the pool.
struct cost_knob {
  std::string_view field;
  double pooled, engine;
  bool routed_only = false;
};
inline constexpr std::array<cost_knob, 20> cost_knobs = {{{"step_host", 0.8, 0.4},
                                                          {"rank_host", 0.7, 0},
                                                          {"layer_time", 0.7, 0.4},
                                                          {"qk_norm_time", 0.4, 0},
                                                          {"prefill_layer_host", 0.3, 0},
                                                          {"sequence_host", 0.5, 0.3},
                                                          {"elementwise_vectors", 0.5, 0.2},
                                                          {"launch_factor", 0.5, 0.2},
                                                          {"stream_factor", 0.2, 0.1},
                                                          {"decode_factor", 0.2, 0.1},
                                                          {"attention_factor", 0.3, 0.1},
                                                          {"reduce_latency_factor", 0.5, 0.2},
                                                          {"reduce_rate_factor", 0.3, 0.1},
                                                          {"expert_layer_time", 0.5, 0.3, true},
                                                          {"expert_stream_factor", 0.3, 0.1, true},
                                                          {"exchange_time", 0.5, 0, true},
                                                          {"scan_layer_time", 0.7, 0},
                                                          {"indexer_layer_time", 0.7, 0},
                                                          {"expert_skew", 0.7, 0, true},
                                                          {"biased_expert_skew", 0.7, 0, true}}};
struct table_knob {
  std::string_view field;
  precision format;
  double pooled, engine;
};
inline constexpr std::array<table_knob, 10> table_knobs = {{{"gemm_factor", precision::bf16, 0.25, 0.1},
                                                            {"gemm_factor", precision::fp8, 0.25, 0.1},
                                                            {"gemm_factor", precision::fp8_block, 0.25, 0.1},
                                                            {"gemm_factor", precision::nvfp4, 0.25, 0.1},
                                                            {"expert_factor", precision::bf16, 0.3, 0.1},
                                                            {"expert_factor", precision::fp8, 0.3, 0.1},
                                                            {"expert_factor", precision::fp8_block, 0.3, 0.1},
                                                            {"expert_factor", precision::nvfp4, 0.3, 0.1},
                                                            {"expert_factor", precision::mxfp4, 0.3, 0.1},
                                                            {"expert_factor", precision::int4, 0.3, 0.1}}};

/// Reads a cost as a number in base units. A table entry needs its precision.
double get_cost(const engine_costs& c, std::string_view field, std::optional<precision> format = {});
void set_cost(engine_costs& c, std::string_view field, std::optional<precision> format, double x);

/// The engine stack that a release's stack builds on.
std::string engine_of(const std::string& stack_name);

}  // namespace nvlsim
