// Training runs that were published, each with a neighbour that differs in one setting.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "nvlsim/run/run.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

/// The result of a run on `machine` ("platform", "stack" and "model" of a scenario) with a training workload.
result published_run(const std::string& machine, const std::string& workload,
                     const std::vector<override_option>& sets = {}) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("published-step-" + std::to_string(::getpid()) + ".json");
  std::ofstream(file) << R"({"schema": "nvlsim.scenario/1", "name": "published", )" << machine
                      << R"(, "workload": {"kind": "training", )" << workload << "}}";
  const scenario s = load_scenario(file, sets, folders_under(root));
  std::filesystem::remove(file);
  return run_scenario(s).outcome;
}

double value_of_metric(const result& r, const char* name) {
  REQUIRE(r.reasons.empty());
  return *r.metrics.find(name)->number();
}
double published_step_s(const result& r) { return value_of_metric(r, "step_time_s"); }

constexpr double step_tolerance = 0.1;  // of measured times

TEST_CASE("Qwen3-8B fine-tuned in short windows takes as long as its host, on four GPUs and on eight") {
  // NVIDIA-NeMo/Megatron-Bridge examples/model_verification_cards/qwen3-8b/card.yaml, sft.H100: 7.424 s
  const std::string machine =
      R"("platform": {"use": "nd-h100-v5", "racks": 1}, "stack": "megatron-bridge-26.06", "model": "qwen3-8b")";
  const std::string workload =
      R"("seq_length": 2048, "global_batch_size": 32, "micro_batch_size": 1, "precision": "bf16", "tp": 4, "dp": 1,
         "task": "sft", "sequence_parallel": false, "cuda_graphs": "none")";
  const double four = published_step_s(published_run(machine, workload));
  CHECK(four == Approx(7.424).epsilon(step_tolerance));
  CHECK(published_step_s(published_run(machine, workload, {{"/workload/tp", "8"}})) == Approx(four).epsilon(0.05));
  CHECK(published_step_s(published_run(machine, workload, {{"/workload/cuda_graphs", "full_iteration"}})) <
        four / 2);
}

TEST_CASE("Qwen3-30B-A3B on 16 H100 with and without overlap of the exchange") {
  // NVIDIA-NeMo/Megatron-Bridge skills/nemo-mbridge-perf-expert-parallel-overlap (2026-07): 21.07 and 24.71 s
  const std::string machine =
      R"("platform": {"use": "nd-h100-v5", "racks": 2}, "stack": "megatron-bridge-26.06", "model": "qwen3-30b-a3b")";
  const std::string workload =
      R"("seq_length": 4096, "global_batch_size": 1024, "micro_batch_size": 1, "precision": "bf16", "ep": 16,
         "dp": 16, "overlap_moe_expert_parallel_comm": true, "cuda_graphs": "partial")";
  const double with = published_step_s(published_run(machine, workload));
  const double without = published_step_s(
      published_run(machine, workload, {{"/workload/overlap_moe_expert_parallel_comm", "false"}}));
  CHECK(with == Approx(21.07).epsilon(step_tolerance));
  CHECK(without == Approx(24.71).epsilon(step_tolerance));
  CHECK(with < 0.95 * without);
}

TEST_CASE("Steps of FSDP on Hopper by the frameworks that ran them") {
  // NVIDIA-NeMo/Automodel, performance summary: 21.773 s
  const result automodel = published_run(
      R"("platform": {"use": "nd-h100-v5", "racks": 1}, "stack": "pytorch-fsdp-automodel", "model": "qwen3-30b-a3b")",
      R"("seq_length": 4096, "global_batch_size": 512, "micro_batch_size": 4, "precision": "bf16", "ep": 8, "dp": 8,
         "data_parallel_sharding": "fsdp", "recompute": "full")");
  CHECK(published_step_s(automodel) == Approx(21.773).epsilon(step_tolerance));
  // pytorch/torchtitan benchmarks/llama3_8b_h200_2025-06 (Trainy, WhiteFiber): 10,938 tokens/s a GPU. It
  // recomputes by operator, about the MLP.
  const std::string machine =
      R"("platform": {"use": "nd-h200-v5", "racks": 4}, "stack": "pytorch-fsdp-torchtitan", "model": "llama3.1-8b")";
  const std::string workload =
      R"("seq_length": 8192, "global_batch_size": 64, "micro_batch_size": 2, "precision": "fp8", "dp": 32,
         "data_parallel_sharding": "fsdp")";
  for (const char* recompute : {"none", R"(["mlp"])"}) {
    const result r = published_run(machine, workload, {{"/workload/recompute", recompute}});
    CHECK(value_of_metric(r, "tokens_per_s_per_gpu") == Approx(10938).epsilon(0.13));
  }
}

TEST_CASE("Layouts that ran fit in memory, and what would hold more does not") {
  // NVIDIA-NeMo/Megatron-Bridge#4458: DeepSeek-V3 in NVFP4 ran on 256 B300 with PP 8, VP 2, EP 8, micro-batch 2
  const std::string b300 =
      R"("platform": {"use": "hgx-b300", "racks": 32}, "stack": "megatron-bridge-26.06", "model": "deepseek-v3")";
  const std::string nvfp4 =
      R"("seq_length": 4096, "global_batch_size": 4096, "micro_batch_size": 2, "precision": "nvfp4", "pp": 8, "vp": 2,
         "ep": 8, "dp": 32, "recompute": ["mla_up_proj"])";
  CHECK(published_run(b300, nvfp4).reasons.empty());
  CHECK_FALSE(published_run(b300, nvfp4, {{"/workload/micro_batch_size", "4"}}).reasons.empty());
  // deepseek-ai/profile-data#18, DeepSeek-V3 technical report: PP 16, EP 64, DualPipe in 80 GB
  const std::string h800 =
      R"("platform": {"use": "h800", "racks": 256}, "stack": "megatron-bridge-25.11", "model": "deepseek-v3")";
  const std::string dualpipe =
      R"("seq_length": 4096, "global_batch_size": 15360, "micro_batch_size": 1, "precision": "fp8_block", "pp": 16,
         "ep": 64, "dp": 128, "schedule": "dualpipe", "recompute": ["layernorm", "mla_up_proj", "moe_act"])";
  CHECK(published_run(h800, dualpipe).reasons.empty());
  CHECK_FALSE(published_run(h800, dualpipe, {{"/workload/recompute", "none"}}).reasons.empty());
  // NVIDIA-NeMo/Megatron-Bridge#3107: 70B fine-tuned with VP 5 ran out of memory in 30 to 60 % of 50 runs
  const std::string h100 =
      R"("platform": {"use": "nd-h100-v5", "racks": 4}, "stack": "megatron-bridge-26.04", "model": "llama3-70b")";
  const std::string sft =
      R"("seq_length": 4096, "global_batch_size": 32, "micro_batch_size": 1, "precision": "fp8", "tp": 4, "pp": 4,
         "vp": 5, "dp": 2, "task": "sft", "recompute": ["core_attn"])";
  const result r = published_run(h100, sft), fewer = published_run(h100, sft, {{"/workload/vp", "1"}});
  const auto share = [](const result& of) {
    return *of.memory.find("peak_bytes")->number() / *of.memory.find("usable_bytes")->number();
  };
  CHECK(share(r) == Approx(1).epsilon(0.05));
  CHECK(share(fewer) < share(r));
}

}  // namespace
}  // namespace nvlsim
