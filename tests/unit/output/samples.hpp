// Results that the tests of all formats share. The numbers are invented.
#pragma once

#include "nvlsim/analysis/result.hpp"

namespace nvlsim::test {

inline value memory_item(const char* name, double bytes, const char* reason) {
  return value::object{{"name", name}, {"bytes", bytes}, {"reason", reason}};
}

inline result training_result(const char* name = "llama3.1-405b-gb300-512", double step_time_s = 5.0131234567891) {
  result r;
  r.name = name;
  r.inputs = value::object{
      {"scenario", value::object{{"workload", value::object{{"tp", 2}, {"global_batch_size", 896}}}}},
      {"digest", "0123456789abcdef"}};
  r.metrics = value::object{{"step_time_s", step_time_s},
                            {"tokens_per_s", 1464012.25},
                            {"tokens_per_s_per_gpu", 2859.4},
                            {"model_tflops_per_gpu", 2601.5},
                            {"mfu", 0.1734},
                            {"bubble_fraction", 0.0566},
                            {"power_W_per_gpu", 1180.0},
                            {"memory_peak_bytes", 197.4e9},
                            {"energy_per_step_J", 3.5e6},
                            {"cost_per_step_usd", value{}},
                            {"time_to_train_s", 5.4e6},
                            {"gpus", 512}};
  const auto stage = [&](double gemm, double bubble) {
    return value::object{{"gemm_s", gemm}, {"tp_s", 0.6}, {"bubble_s", bubble}, {"step_time_s", step_time_s}};
  };
  r.breakdown =
      value::object{{"mean_over_gpus", stage(3.9, 0.5)},
                    {"by_stage", value::object{{"stage 0", stage(4.1, 0.3)}, {"stage 1", stage(3.7, 0.7)}}}};
  r.memory = value::object{
      {"where", "stage 0"},
      {"peak_bytes", 197.4e9},
      {"usable_bytes", 298013687808.0},
      {"items",
       value::array{memory_item("weights", 50.4e9, "2 B x 25.2 G parameters of the fullest stage"),
                    memory_item("activations", 120e9,
                                "15 microbatches in flight x 8 GB, nothing recomputed, sequence parallel"),
                    memory_item("reserve", 27e9, "CUDA context, NCCL buffers and workspace of the stack")}}};
  r.energy = value::object{{"gpus_J", 3.0e6}, {"cpus_J", 2.1e5}, {"per_token_J", 0.477}};
  r.cost = value::object{{"per_step_usd", value{}}};
  r.notes = {"no public price of this platform is known: contracts are private",
             "the stack was fitted on 26.04 to 26.08 releases; 26.06 is between them and its efficiency curves "
             "are interpolated"};
  r.bands = value::object{{"step_time_s", value::array{4.8, 5.2}}};
  r.simulation = value::object{{"wall_s", 0.08}, {"activities", 12345}};
  return r;
}

inline value distribution(double scale) {
  return value::object{{"mean", 1.2 * scale}, {"p50", 1.1 * scale}, {"p90", 1.9 * scale},
                       {"p95", 2.2 * scale},  {"p99", 3.5 * scale}, {"max", 9.25 * scale}};
}

inline result inference_result(const char* name = "llama2-70b-offline", double scale = 1) {
  result r;
  r.name = name;
  r.metrics = value::object{{"output_tokens_per_s", 123456.78 * scale},
                            {"output_tokens_per_s_per_gpu", 1714.68 * scale},
                            {"requests_per_s", 412.5 * scale},
                            {"kv_cache_used_fraction", 0.93},
                            {"energy_per_million_tokens_J", 9.1e5},
                            {"ttft_s", distribution(0.1 / scale)},
                            {"tpot_s", distribution(0.012 / scale)},
                            {"itl_s", value{}},
                            {"makespan_s", 460.0}};
  r.breakdown = value::object{
      {"mean_over_gpus", value::object{{"gemm_s", 345.0}, {"attention_s", 69.0}, {"makespan_s", 460.0}}}};
  r.notes = {"no public price of this platform is known: contracts are private"};
  return r;
}

inline result infeasible_result() {
  result r;
  r.name = "too, \"large\"";
  r.status = run_status::infeasible;
  r.reasons = {
      "stage 0 needs 412.1 GB of GPU memory and 298 GB are usable: weights 202.4 GB, activations 180 GB, "
      "reserve 29.7 GB"};
  r.memory = value::object{{"where", "stage 0"},
                           {"peak_bytes", 412.1e9},
                           {"usable_bytes", 298013687808.0},
                           {"items", value::array{memory_item("weights", 202.4e9, "2 B x 101.2 G parameters"),
                                                  memory_item("activations", 180e9, "no recompute"),
                                                  memory_item("reserve", 29.7e9, "runtime")}}};
  return r;
}

}  // namespace nvlsim::test
