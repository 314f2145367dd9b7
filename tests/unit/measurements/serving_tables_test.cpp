// Tables of KV capacities and of pairs of runs.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "nvlsim/measurements/validate.hpp"
#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim {
namespace {

namespace fs = std::filesystem;

std::map<std::string, validation_record> records_of(const std::string& text) {
  const fs::path file = fs::temp_directory_path() / "nvlsim-serving-tables-test.csv";
  std::ofstream(file, std::ios::binary) << text;
  std::map<std::string, validation_record> out;
  for (validation_record& r : validate_table(file, folders_under(NVLSIM_SOURCE_DIR), {})) out.emplace(r.id, r);
  fs::remove(file);
  return out;
}

TEST_CASE("Rows of KV capacities give tokens or bytes, by what a row counts") {
  const auto records = records_of(
      "id,engine,version,model,system,gpus,tp,ep,dp,weight_precision,kv_dtype,memory_fraction,"
      "max_num_batched_tokens,max_model_len,kv_tokens,kv_tokens_scope,kv_GiB,notes,suspect\n"
      "all,vLLM,,llama3.1-8b,h100,1,1,,,bf16,,0.9,,,400000,engine,,,\n"
      "bytes,vLLM,,llama3.1-8b,h100,1,1,,,bf16,,0.9,,,,,50,,\n"
      "ranks,SGLang,,deepseek-v3.2,b200,8,8,,8,fp8,fp8,0.8,,,900000,per rank,,,\n"
      "shared,vLLM,,kimi-k2,h200,8,8,,,int4,,0.9,,,5700000,engine,,decode context parallel 8,\n"
      "whole,vLLM,,kimi-k2,h200,8,8,,,int4,,0.9,,,700000,engine,,,\n"
      "nowhere,vLLM,,llama3.1-8b,,1,1,,,bf16,,0.9,,,400000,engine,,,\n"
      "card,vLLM,,llama3.1-8b,rtx9999,1,1,,,bf16,,0.9,,,400000,engine,,,\n");
  const validation_record &all = records.at("all"), &size = records.at("bytes");
  REQUIRE(all.status == record_status::ok);
  CHECK(all.metric == "kv_tokens");
  CHECK(size.metric == "kv_GiB");
  // 32 layers of 8 KV heads of 128: 128 KiB a token.
  CHECK(*all.simulated * 131072 / 0x1p30 == Approx(*size.simulated).epsilon(1e-6));
  REQUIRE(records.at("ranks").status == record_status::ok);
  CHECK(records.at("ranks").notes.find("48068 B") != std::string::npos);
  CHECK(*records.at("shared").simulated == Approx(8 * *records.at("whole").simulated).epsilon(1e-3));
  CHECK(records.at("nowhere").status == record_status::excluded);
  CHECK(records.at("card").status == record_status::error);
}

TEST_CASE(
    "Weights of no stated format are in the one that their size tells, and tokens count as the engine does") {
  const std::string header =
      "id,engine,version,model,system,gpus,tp,ep,dp,weight_precision,kv_dtype,memory_fraction,"
      "max_num_batched_tokens,max_model_len,kv_tokens,kv_tokens_scope,kv_GiB,weights_GiB,notes,suspect\n";
  const auto records = records_of(header +
                                  "half,vLLM,,llama3.1-8b,h100,1,1,,,bf16,,0.9,,,,,50,,,\n"
                                  "eight,vLLM,,llama3.1-8b,h100,1,1,,,fp8,,0.9,,,,,50,,,\n"
                                  "small,vLLM,,llama3.1-8b,h100,1,1,,,,,0.9,,,,,50,8.5,,\n"
                                  "large,vLLM,,llama3.1-8b,h100,1,1,,,,,0.9,,,,,50,15,,\n"
                                  "window,vLLM,,gpt-oss-20b,h100,1,1,,,,bf16,0.9,4096,8192,100000,"
                                  "concurrency x max_model_len,,,,\n"
                                  "budget,vLLM,,gpt-oss-20b,h100,1,1,,,,bf16,0.9,1024,8192,100000,"
                                  "concurrency x max_model_len,,,,\n"
                                  "old,SGLang,,deepseek-v3.2,b200,8,8,,8,fp8,fp8,0.8,,,900000,per rank,,,"
                                  "before the change,\n"
                                  "hybrid,vLLM,,gpt-oss-20b,h100,1,1,,,,bf16,0.9,4096,,100000,"
                                  "concurrency x max_model_len,40,,,\n"
                                  "share,TRT-LLM,,llama3.1-8b,h100,1,1,,,fp8,,,,,400000,engine,,,,\n"
                                  "fits,vLLM,,qwen3-32b,rtx5090,1,1,,,,,0.9,,32768,40000,engine,,,,\n"
                                  "four,vLLM,,qwen3-32b,rtx5090,1,1,,,fp4,bf16,0.9,,32768,40000,engine,,,,\n");
  // Without the longest length the size of a pool is compared, and nothing where its share is a launch setting.
  CHECK(records.at("hybrid").metric == "kv_GiB");
  CHECK(records.at("window").metric == "kv_tokens");
  CHECK(records.at("share").status == record_status::excluded);
  // 16 and 8 bits leave no room for 32,768 tokens on this card.
  REQUIRE(records.at("fits").simulated);
  CHECK(*records.at("fits").simulated == Approx(*records.at("four").simulated));
  CHECK(*records.at("small").simulated == Approx(*records.at("eight").simulated));
  CHECK(*records.at("large").simulated == Approx(*records.at("half").simulated));
  // A window holds the budget of an iteration besides: with less budget a request takes less.
  CHECK(*records.at("budget").simulated > 1.2 * *records.at("window").simulated);
  CHECK(records.at("old").status == record_status::excluded);
}

TEST_CASE("Rows of cache tiers give TTFT with the tier over that without, of prompts that are all there") {
  const auto records = records_of(
      "id,engine,version,model,system,gpus,layout,weight_precision,kv_precision,tier,workload,input_tokens,"
      "output_tokens,load,hit_rate_with,hit_rate_without,ttft_with_ms,ttft_without_ms,ttft_stat,suspect\n"
      "whole,vLLM,Jan 2026,llama3.1-8b,h100,1,tp1,,,CPU DRAM,\"single request, whole prompt in CPU "
      "memory\",50000,,1 request,1,0,155,2290,single,\n"
      "longer,vLLM,Jan 2026,llama3.1-8b,h100,1,tp1,,,CPU DRAM,\"single request, whole prompt in CPU "
      "memory\",100000,,1 request,1,0,305,6855,single,\n"
      "input,vLLM,Jan 2026,llama3.1-8b,h100,1,tp1,,,CPU DRAM,many prompts,512,,10000 requests,0.5,,,,,\n"
      "share,SGLang,,deepseek-r1,h200,8,tp8,fp8,,device prefix cache,shared prefix,3275,800,concurrency "
      "64,,,7000,14000,mean,\n");
  const validation_record& r = records.at("whole");
  REQUIRE(r.status == record_status::ok);
  CHECK(*r.published == Approx(155.0 / 2290));
  CHECK(*r.simulated == Approx(*r.published).epsilon(0.33));
  CHECK(*records.at("longer").simulated < *r.simulated);  // computing grows with the square
  CHECK(records.at("input").status == record_status::excluded);
  CHECK(records.at("share").status == record_status::excluded);
}

TEST_CASE("Rows of pairs give the ratio of two runs that differ in one thing") {
  const auto records = records_of(
      "id,kind,engine,version,model,system,gpus,layout,weight_precision,isl,osl,load,what_changed,value_a_label,"
      "value_a,value_b_label,value_b,unit,ratio_b_over_a,acceptance,notes,suspect\n"
      "slope,fp8-kv,vLLM,0.19.1,llama3.1-8b,h100,1,tp1,bf16,,,\"batch 1, slope\",KV cache dtype,bf16,2,fp8,1,"
      "ms per context token per decode step,0.54,,,\n"
      "graph,cuda graph,vLLM,0.26,llama3.1-8b,h100,1,tp1,bf16,1000,100,concurrency 4,eager -> CUDA graph,eager,20,"
      "graph,8,TPOT ms,0.4,,,\n"
      "draft,eagle3,vLLM,,llama3.1-8b,h100,1,tp1,bf16,1000,500,concurrency 1,EAGLE-3 draft,none,100,EAGLE-3,200,"
      "tok/s,2,,,\n"
      "other,kernel,vLLM,,llama3.1-8b,h100,1,tp1,bf16,1000,500,concurrency 1,a "
      "kernel,before,1,after,2,tok/s,2,,,\n");
  REQUIRE(records.at("slope").status == record_status::ok);
  CHECK(*records.at("slope").simulated == Approx(0.54).epsilon(0.1));
  REQUIRE(records.at("graph").status == record_status::ok);
  CHECK(*records.at("graph").simulated < 0.6);
  REQUIRE(records.at("draft").status == record_status::ok);
  CHECK(*records.at("draft").simulated > 1.5);
  CHECK(*records.at("draft").simulated < 2.6);
  CHECK(records.at("other").status == record_status::excluded);
}

}  // namespace
}  // namespace nvlsim
