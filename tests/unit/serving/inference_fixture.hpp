// A small machine, stack and model for the tests of inference.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim::test {

inline platform small_machine() {
  platform p;
  p.name = "small";
  p.gpu.name = "small-gpu";
  p.gpu.architecture = "small";
  const auto peak = [&](precision x, double tflops) {
    p.gpu.peaks[static_cast<std::size_t>(x)] = peak_rate{flop_rate::from_base(tflops * 1e12), {}, {}};
  };
  peak(precision::bf16, 1000);
  peak(precision::fp8, 2000);
  p.gpu.hbm_usable = p.gpu.hbm_nominal = 40.0_GB;
  p.gpu.hbm_bandwidth = p.gpu.hbm_stream = 2000.0_GBps;
  p.gpu.sm_count = 100;
  p.gpu.exponentials = rate::from_base(2e12);
  p.gpu.tdp = 1000.0_W;
  p.gpu.idle_power = 100.0_W;
  p.gpu.hbm_energy = energy_per_byte::from_base(100e-12);
  p.gpu.nvlink = 400.0_GBps;
  p.gpu.nvlink_generation = 5;
  p.vm.gpus = 4;
  p.rack.vms = 2;
  p.racks = 2;
  return p;
}

inline stack small_stack() {
  stack s;
  s.name = "small-engine";
  kernel_profile k;
  k.gpu = "small";
  for (const precision x : {precision::bf16, precision::fp8}) {
    gemm_params& g = k.gemm[x];
    g.tensor_rate = x == precision::bf16 ? 800.0_TFLOPS : 1600.0_TFLOPS;
    g.step_time = seconds::from_base(1e-9);
    g.fill_depth = 50;
    g.hbm_share = 0.8;
    g.launch = 3.0_us;
  }
  k.attention.tensor_rate = 500.0_TFLOPS;
  k.attention.exponential_share = 0.5;
  k.attention.item_time = 2.0_us;
  k.attention.launch = 10.0_us;
  k.decode = {.hbm_share = 0.8,
              .launch = 8.0_us,
              .item_time = 1.0_us,
              .head_time = {},
              .split_time = 1.0_us,
              .part_time = {},
              .chunk = 256,
              .part_rate = {}};
  k.stream = {.hbm_share = 0.9, .launch = 2.0_us};
  s.kernels["small"] = k;

  domain_collective d;
  d.ll = {10.0_us, 1.0_us, 50.0_GBps};
  d.simple = {20.0_us, 1.0_us, 300.0_GBps};
  d.local_copy = 1000.0_GBps;
  s.collectives.domain["nvlink5"]["all_reduce"] = d;

  inference_profile e;
  e.step_host = 200.0_us;
  e.sequence_host = 2.0_us;
  e.request_host = 100.0_us;
  e.layer_time = 5.0_us;
  e.prefill_layer_host = 50.0_us;
  e.elementwise_vectors = 10;
  e.reserve = 2.0_GB;
  e.settings.kv_fraction = 0.9;
  e.settings.kv_block_tokens = 16;
  s.inference = e;
  return s;
}

/// 3.4 G parameters: 16 equal layers, eight query heads a KV head.
inline model small_model() {
  model m;
  m.name = "small-model";
  m.hidden = 4096;
  m.vocab = 32000;
  m.max_positions = 4096;
  layer_spec l;
  l.heads = 32;
  l.kv_heads = 4;
  l.head_dim = 128;
  l.ffn_hidden = 11264;
  m.layers.assign(16, l);
  return m;
}

inline inference_workload small_workload() {
  inference_workload w;
  w.weights = precision::fp8;
  w.kv_cache = precision::fp8;
  w.engine.max_num_tokens = 1024;
  w.engine.max_batch_size = 64;
  w.requests = 40;
  w.input = {200, 0.5};
  w.output = {50, 0.5};
  return w;
}

/// One whose pools can send caches.
inline stack stack_with_sends() {
  stack s = small_stack();
  domain_collective d;
  d.simple = {5.0_us, 1.0_us, 300.0_GBps};
  s.collectives.domain["nvlink5"]["all_gather"] = d;
  return s;
}

}  // namespace nvlsim::test
