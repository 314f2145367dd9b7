#include "measurements/inference_catalogue.hpp"

#include <catch2/catch.hpp>

namespace nvlsim {
namespace {

TEST_CASE("Engine versions name the stack of their release") {
  CHECK(serving_stack_of("vLLM", "0.19.0") == "vllm-0.19");
  CHECK(serving_stack_of("vLLM", "v0.17.1") == "vllm-0.17");
  CHECK(serving_stack_of("vLLM", "0.12.0") == "vllm-0.12");
  CHECK(serving_stack_of("vLLM", "nightly-5b8c30d") == "vllm-0.19");
  CHECK(serving_stack_of("vLLM", "2023") == "vllm-2023");
  CHECK(serving_stack_of("SGLang", "0.5.10.post1") == "sglang-0.5.10");
  CHECK(serving_stack_of("SGLang", "0.5.6.post2") == "sglang-0.5.6");
  CHECK(serving_stack_of("SGLang", "0.5.1.post1") == "sglang-0.5.1");
  CHECK(serving_stack_of("SGLang", "nightly-dev") == "sglang");
  CHECK(serving_stack_of("vLLM", "0.26") == "vllm-0.21");
  CHECK(serving_stack_of("vLLM", "0.6.3.post2.dev308") == "vllm-0.7");
  CHECK(serving_stack_of("vLLM", "nightly, Feb 2026") == "vllm-0.16");
  CHECK(serving_stack_of("vLLM", "rocm/vllm-dev nightly 20260115") == "vllm-0.16");
  CHECK(serving_stack_of("vLLM", "July 2025") == "vllm-0.11");
  CHECK(serving_stack_of("SGLang", "0.4.2.post4") == "sglang-0.4");
  CHECK(serving_stack_of("SGLang", "0.5.19 rocm720") == "sglang-0.5.15");
  CHECK(serving_stack_of("SGLang", "Sept 2025") == "sglang-0.5.3");
  CHECK(serving_stack_of("SGLang", "Aug 2025") == "sglang-0.5.1");
  CHECK(serving_stack_of("SGLang", "main, June 2026") == "sglang-0.5.15");
  CHECK(serving_stack_of("SGLang", "2025-05") == "sglang-0.4");
  CHECK(serving_stack_of("SGLang", "nightly-dev-20260216-d3bae71e") == "sglang-0.5.9");
  CHECK(serving_stack_of("TRT-LLM", "1.0.0rc3") == "tensorrt-llm-1.0rc");
  CHECK(serving_stack_of("TRT-LLM", "1.0") == "tensorrt-llm-1.0");
  CHECK(serving_stack_of("TRT-LLM", "0.17") == "tensorrt-llm-0.17");
  CHECK(serving_stack_of("TRT-LLM", "0.14.0") == "tensorrt-llm-0.14");
  CHECK(serving_stack_of("TRT-LLM", "1.3.0rc1") == "tensorrt-llm-1.2");
  CHECK(serving_stack_of("TRT-LLM", "TensorRT 10.14, CUDA 13.1, cuDNN 9.17") == "tensorrt-llm-1.2");
  CHECK(serving_stack_of("TRT-LLM", "TensorRT 10.11, CUDA 12.9") == "tensorrt-llm-1.0");
  CHECK(serving_stack_of("TRT-LLM", "TensorRT 10.8, CUDA 12.8") == "tensorrt-llm-0.17");
  CHECK(serving_stack_of("TRT-LLM", "2025-03/05") == "tensorrt-llm-1.0");
  CHECK(serving_stack_of("TRT-LLM", "2026-02") == "tensorrt-llm-1.2");
  CHECK(serving_stack_of("TRT-LLM", "commit 3a89495") == "tensorrt-llm-1.2rc");
}

TEST_CASE("Layouts are read from launch files") {
  const auto dp = parse_layout("tp8 ep8 attention-dp");
  REQUIRE(dp);
  CHECK((dp->tp == 8 && dp->ep == 8 && dp->pp == 1 && dp->attention_dp && !dp->recipe));
  const auto stages = parse_layout("tp2 pp2");
  REQUIRE(stages);
  CHECK((stages->tp == 2 && stages->pp == 2 && !stages->attention_dp));
  const auto experts = parse_layout("TEP8");
  REQUIRE(experts);
  CHECK((experts->tp == 8 && experts->ep == 8 && !experts->attention_dp));
  for (const char* apart : {"dep8", "dp8 ep8", "tp8 dp8 ep8"}) {
    CAPTURE(apart);
    const auto ranks = parse_layout(apart);
    REQUIRE(ranks);
    CHECK((ranks->tp == 8 && ranks->ep == 8 && ranks->attention_dp));
  }
  const auto copies = parse_layout("2 x TP4+EP4");
  REQUIRE(copies);
  CHECK((copies->tp == 4 && copies->ep == 4));
  CHECK_FALSE(parse_layout(""));
  CHECK_FALSE(parse_layout("1P3D of tp2"));
  CHECK_FALSE(parse_layout("prefill 1x(tp4 ep1) decode 4x(tp4 ep1)"));
}

TEST_CASE("Checkpoints keep some parts in sixteen bit") {
  CHECK(formats_of("", "llama3.1-8b", false, false).dense == precision::bf16);
  CHECK(formats_of("fp8", "deepseek-r1", true, true).expert == precision::fp8_block);
  CHECK(formats_of("fp8", "llama3.3-70b", false, false).dense == precision::fp8);
  const weight_formats r1 = formats_of("fp4", "deepseek-r1", true, true);
  CHECK((r1.expert == precision::nvfp4 && r1.dense == precision::nvfp4 && r1.attention == precision::bf16));
  const weight_formats oss = formats_of("fp4", "gpt-oss-120b", true, false);
  CHECK((oss.expert == precision::mxfp4 && oss.attention == precision::bf16));
}

TEST_CASE("Builds for AMD's GPUs are releases of their own where rows tell them apart") {
  CHECK(rocm_stack("sglang-0.5.12") == "sglang-rocm-0.5.12");
  CHECK(rocm_stack("vllm-0.16") == "vllm-rocm-0.16");
  CHECK(rocm_stack("sglang-0.5.6") == "sglang-0.5.6");
  CHECK(rocm_stack("sglang") == "sglang");
}

}  // namespace
}  // namespace nvlsim
