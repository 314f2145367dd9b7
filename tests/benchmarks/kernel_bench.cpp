// One kernel of each class, from shape to cost.
#include <benchmark/benchmark.h>

#include "nvlsim/compute/compute.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

struct machine {
  gpu_spec gpu;
  kernel_profile kernels;
};

const machine& gb300() {
  static const machine m = [] {
    const scenario s = test::shipped_scenario("training/llama3.1-405b-gb300-8192");
    return machine{s.platform.gpu, kernels_for(s.stack, s.platform.gpu)};
  }();
  return m;
}

template <class Cost>
void price(benchmark::State& state, Cost cost) {
  const machine& m = gb300();
  double x = 1024;
  for (auto _ : state) {
    benchmark::DoNotOptimize(cost(m, x));
    x = x > 16384 ? 1024 : x + 64;
  }
}

void gemm_split(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return gemm_cost(m.gpu, m.kernels.gemm.at(precision::bf16), precision::bf16, {.m = x, .n = 8192, .k = 8192});
  });
}
BENCHMARK(gemm_split);

void gemm_block_scaled(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return gemm_cost(m.gpu, m.kernels.gemm.at(precision::nvfp4), precision::nvfp4, {.m = x, .n = 8192, .k = 8192});
  });
}
BENCHMARK(gemm_block_scaled);

void attention(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return attention_forward_cost(
        m.gpu, m.kernels,
        {.batch = 1, .heads = 16, .kv_heads = 2, .qk_dim = 128, .v_dim = 128, .queries = x, .pairs = x * x / 2});
  });
}
BENCHMARK(attention);

void decode(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return decode_attention_cost(m.gpu, m.kernels,
                                 {.batch = 64, .context = x, .heads = 16, .kv_heads = 2, .head_dim = 128});
  });
}
BENCHMARK(decode);

void latent_decode(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return mla_decode_cost(m.gpu, m.kernels.mla_decode.at(precision::fp8),
                           {.batch = 64, .context = x, .heads = 128});
  });
}
BENCHMARK(latent_decode);

void experts(benchmark::State& state) {
  const moe_params& p = gb300().kernels.moe.at("cutlass_nvfp4");
  price(state, [&p](const machine& m, double x) {
    const expert_routing r{.tokens = x, .topk = 8, .experts = 256, .ranks = 32};
    return moe_cost(m.gpu, p,
                    {.tokens = x, .local_experts = 8, .hidden = 7168, .inter = 2048, .load = balanced_load(r)});
  });
}
BENCHMARK(experts);

void stream(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return stream_cost(m.gpu, m.kernels.stream, bytes::from_base(x * 1e6));
  });
}
BENCHMARK(stream);

void power(benchmark::State& state) {
  price(state, [](const machine& m, double x) {
    return kernel_power(m.gpu, precision::bf16,
                        {.time = seconds::from_base(x * 1e-6),
                         .flop = flops::from_base(x * 1e9),
                         .moved = bytes::from_base(x * 1e6)});
  });
}
BENCHMARK(power);

}  // namespace
}  // namespace nvlsim
