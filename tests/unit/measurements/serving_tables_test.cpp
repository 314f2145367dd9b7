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
