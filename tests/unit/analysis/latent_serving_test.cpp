// Kernels of latent attention and the dispatch of tokens in an iteration of a serving engine.
#include <catch2/catch.hpp>
#include <string>

#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/iteration_time.hpp"

namespace nvlsim {
namespace {

/// Seconds of the parts with a name in an iteration of 256 sequences a rank, with 8,192 tokens each, on eight
/// GPUs.
double time_of(const std::string& part, const std::string& engine) {
  const std::string root = NVLSIM_SOURCE_DIR;
  const scenario s =
      load_scenario(root + "/scenarios/inference/deepseek-r1-gb300-prefill-decode.json",
                    {{"/platform", "{\"use\": \"gb200-nvl72\"}"},
                     {"/stack", "tensorrt-llm"},
                     {"/workload/engine", engine},
                     {"/workload/layout", "{\"attention_dp\": 8, \"ep\": 8}"},
                     {"/workload/load",
                      "{\"kind\": \"offline\", \"requests\": 64, \"input\": {\"mean\": 8192}, \"output\": "
                      "{\"mean\": 64}}"}},
                    folders_under(root));
  iteration_costs costs(s.platform, s.stack, s.model, std::get<inference_workload>(s.workload));
  double out = 0;
  for (const operation_part& p : costs.price({.decodes = 2048, .context = 2048 * 8192}).parts)
    if (p.name == part) out += (p.duration * p.repeat).base();
  return out;
}

TEST_CASE("An 8-bit cache of latent vectors is read and multiplied faster") {
  const double sixteen = time_of("attention.decode", R"({"weights": "nvfp4", "kv_cache": "bf16"})");
  const double eight = time_of("attention.decode", R"({"weights": "nvfp4", "kv_cache": "fp8"})");
  CHECK(eight > 0.4 * sixteen);
  CHECK(eight < 0.65 * sixteen);
  // 2 x (576 + 512) operations a head and key on 128 heads in 61 layers, below the dense FP8 peak of 5 PFLOPS.
  CHECK(eight > 2.0 * 1088 * 128 * 256 * 8192 * 61 / 5e15);
}

TEST_CASE("Tokens are dispatched in the format of the experts' operands, and come back in 16 bits") {
  const double wide = time_of("ep.exchange", R"({"weights": "bf16", "kv_cache": "fp8"})");
  const double eight =
      time_of("ep.exchange", R"({"weights": "bf16", "expert_weights": "fp8_block", "kv_cache": "fp8"})");
  const double four =
      time_of("ep.exchange", R"({"weights": "bf16", "expert_weights": "nvfp4", "kv_cache": "fp8"})");
  CHECK(four < eight);
  CHECK(eight < wide);
  CHECK(four > 0.5 * wide);
}

}  // namespace
}  // namespace nvlsim
