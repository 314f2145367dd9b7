// What a user changes must move an iteration as physics says, with the fitted costs of every engine and GPU.
#include <fmt/format.h>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/units/precision.hpp"

namespace nvlsim {
namespace {

constexpr iteration_content few_decodes{.decodes = 8, .context = 8 * 4096};
constexpr iteration_content many_decodes{.decodes = 128, .context = 128 * 4096};
constexpr iteration_content prompts{
    .prompt_tokens = 8192, .prompt_pairs = 4 * 2048.0 * 1024, .prompts = 4, .finished_prompts = 4};

struct served {
  const platform& machine;
  const stack& engine;
  const model& net;
  std::string name;

  double seconds_of(const inference_workload& w, const iteration_content& it) const {
    return iteration_costs(machine, engine, net, w).time(it).base();
  }
};

inference_workload workload_of(precision weights, int tp) {
  inference_workload w;
  w.weights = weights;
  w.tp = tp;
  w.load = load_kind::closed_loop;
  w.concurrency = w.requests = 128;
  w.output.mean = 512;
  return w;
}

/// Calls `check` for every engine on every GPU with every model that it serves there.
void for_each_served(const std::function<void(const served&)>& check) {
  static input_cache inputs(folders_under(NVLSIM_SOURCE_DIR));
  for (const char* p : {"gb300-nvl72", "hgx-b200", "nd-h200-v5", "mi300x-v5", "mi355x"})
    for (const char* s : {"vllm", "sglang", "tensorrt-llm"})
      for (const char* m :
           {"llama3.3-70b", "qwen3-32b", "qwen3-235b-a22b", "deepseek-r1", "glm-5", "minimax-m2.5"}) {
        if (std::string(p).starts_with("mi") && std::string(s) == "tensorrt-llm") continue;
        check({inputs.platform_named(p), inputs.stack_named(s), inputs.model_named(m),
               fmt::format("{} on {} with {}", m, p, s)});
      }
}

bool has_kernels(const served& x, precision p) {
  return x.machine.gpu.dense_peak(p).has_value() && kernels_for(x.engine, x.machine.gpu).gemm.contains(p);
}

/// Times of the first over those of the second.
double ratio(const served& x, const inference_workload& a, const inference_workload& b,
             const iteration_content& it) {
  return x.seconds_of(a, it) / x.seconds_of(b, it);
}

}  // namespace

TEST_CASE("Narrower weights are faster with every engine, on every GPU") {
  // Casts before products cost a few per cent of prompts, and what a few decodes gain on many ranks. Kernels of
  // block-scaled FP8 take three times as long as others to fill, as measured, which counts in small products.
  constexpr double casts = 1.05, slow_fill = 1.15;
  const std::vector<std::pair<precision, precision>> narrower = {{precision::fp8, precision::bf16},
                                                                 {precision::fp8_block, precision::bf16},
                                                                 {precision::nvfp4, precision::fp8}};
  int compared = 0;
  for_each_served([&](const served& x) {
    for (const auto& [narrow, wide] : narrower) {
      if (!has_kernels(x, narrow) || !has_kernels(x, wide)) continue;
      INFO(fmt::format("{}: {} against {}", x.name, name(narrow), name(wide)));
      const int tp = has_routed_experts(x.net) ? 4 : 2;
      const inference_workload a = workload_of(narrow, tp), b = workload_of(wide, tp);
      CHECK(ratio(x, a, b, few_decodes) < casts);
      CHECK(ratio(x, a, b, many_decodes) < 1);
      CHECK(ratio(x, a, b, prompts) < (narrow == precision::fp8_block ? slow_fill : casts));
      ++compared;
    }
  });
  CHECK(compared > 150);
}

TEST_CASE("An 8-bit cache decodes faster with every engine, on every GPU") {
  for_each_served([](const served& x) {
    INFO(x.name);
    inference_workload wide = workload_of(precision::bf16, 8), narrow = wide;
    narrow.kv_cache = precision::fp8;
    CHECK(ratio(x, narrow, wide, many_decodes) < 1);
  });
}

TEST_CASE("More tensor parallelism makes an iteration shorter with every engine, on every GPU") {
  for_each_served([](const served& x) {
    INFO(x.name);
    const inference_workload four = workload_of(precision::bf16, 4), eight = workload_of(precision::bf16, 8);
    CHECK(ratio(x, eight, four, many_decodes) < 1);
    CHECK(ratio(x, eight, four, prompts) < 1);
    CHECK(ratio(x, eight, four, prompts) > 0.5);
  });
}

TEST_CASE("Larger chunks of prompts and CUDA graphs save time with every engine, on every GPU") {
  for_each_served([](const served& x) {
    INFO(x.name);
    const inference_workload w = workload_of(precision::bf16, 8);
    iteration_content part = prompts;
    for (double* of : {&part.prompt_tokens, &part.prompt_pairs, &part.prompts, &part.finished_prompts}) *of /= 4;
    CHECK(x.seconds_of(w, prompts) < 4 * x.seconds_of(w, part));
    inference_workload eager = w;
    eager.engine.cuda_graph_max_batch_size = 0;
    CHECK(ratio(x, eager, w, few_decodes) > 1);
  });
}

// DeepSeek-V3's router takes experts of 4 of 8 groups, of which each of four racks holds two.
TEST_CASE("Between domains, tokens of a router with groups go to fewer of them") {
  input_cache inputs(folders_under(NVLSIM_SOURCE_DIR));
  platform racks = inputs.platform_named("gb300-nvl72");
  racks.racks = 4;
  model net = inputs.model_named("deepseek-r1");
  inference_workload w = workload_of(precision::fp8, 1);
  w.attention_dp = w.ep = 256;
  const auto time = [&](std::int64_t groups) {
    for (layer_spec& l : net.layers) l.moe.top_groups = groups;
    return served{racks, inputs.stack_named("sglang-0.5.9"), net, ""}.seconds_of(w, many_decodes);
  };
  REQUIRE(net.layers.back().moe.groups == 8);
  CHECK(time(1) < time(4));
  CHECK(time(4) < time(8));
}

}  // namespace nvlsim
