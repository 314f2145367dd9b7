// Files of the Hugging Face hub, where they lie beside the source.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "unit/model/reading.hpp"
#include "unit/model/shipped.hpp"

using namespace nvlsim;
using nvlsim::test::finish;
using nvlsim::test::outcome;
using nvlsim::test::shared_data;
using nvlsim::test::shipped;
using nvlsim::test::supported;
namespace fs = std::filesystem;

namespace {

const fs::path folder = shared_data / "hf-configs";

config::document load(const std::string& name, diagnostics& problems) {
  return config::load(folder / (name + ".json"), {"model", name}, problems, config::literals::python);
}

std::string type_of(const config::document& doc) {
  const value* text = doc.root.find("text_config");
  const value* type = (text ? *text : doc.root).find("model_type");
  return type ? *type->string() : "";
}

}  // namespace

TEST_CASE("Published Hugging Face files load or are refused by name, if beside the source") {
  if (!fs::exists(folder)) return;
  std::map<std::string, int> loaded, refused;
  for (const std::string& name : config::names_in(folder)) {
    INFO(name);
    diagnostics problems;
    config::document doc = load(name, problems);
    REQUIRE(problems.empty());
    const std::string type = type_of(doc);
    const outcome o = finish(std::move(doc), problems);
    const auto& known = supported_model_types();
    if (std::find(known.begin(), known.end(), type) != known.end()) {
      ++loaded[type];
      CHECK(o.problems == "");
      CHECK(parameters(o.m) > 1e8);
      continue;
    }
    ++refused[type];
    const bool quantisation_only = type.empty();
    CHECK(o.problems.find(quantisation_only ? "nor a Hugging Face \"model_type\"; " + supported()
                                            : "model_type \"" + type + "\" is not supported; " + supported()) !=
          std::string::npos);
  }
  CHECK(loaded.size() >= 24);
  CHECK(refused.count("step3p7") == 1);
}

TEST_CASE("Shapes that later tables name all load, if beside the source") {
  const fs::path shapes = shared_data / "model-shapes";
  if (!fs::exists(shapes)) return;
  const auto names = config::names_in(shapes);
  CHECK(names.size() == 57);
  for (const std::string& name : names) {
    INFO(name);
    diagnostics problems;
    config::document doc =
        config::load(shapes / (name + ".json"), {"model", name}, problems, config::literals::python);
    const outcome o = finish(std::move(doc), problems);
    CHECK(o.problems == "");
    CHECK(o.m.layers == shipped(name).layers);
    CHECK(o.m.lookup_tables == shipped(name).lookup_tables);
  }
}

TEST_CASE("Published files have the shape of the shipped ones, if beside the source") {
  if (!fs::exists(folder)) return;
  const std::pair<const char*, const char*> pairs[] = {
      {"meta-llama--Meta-Llama-3.1-8B", "llama3.1-8b"},
      {"meta-llama--Meta-Llama-3.1-70B", "llama3.1-70b"},
      {"meta-llama--Meta-Llama-3.1-405B", "llama3.1-405b"},
      {"meta-llama--Llama-4-Maverick-17B-128E-Instruct", "llama4-maverick"},
      {"meta-llama--Llama-4-Scout-17B-16E-Instruct", "llama4-scout"},
      {"mistralai--Mixtral-8x7B-v0.1", "mixtral-8x7b"},
      {"mistralai--Mixtral-8x22B-v0.1", "mixtral-8x22b"},
      {"Qwen--Qwen3-32B", "qwen3-32b"},
      {"Qwen--Qwen3-30B-A3B", "qwen3-30b-a3b"},
      {"Qwen--Qwen3-235B-A22B", "qwen3-235b-a22b"},
      {"nvidia--Qwen3-235B-A22B-NVFP4", "qwen3-235b-a22b"},
      {"Qwen--Qwen3.5-397B-A17B", "qwen3.5-397b-a17b"},
      {"deepseek-ai--DeepSeek-V3", "deepseek-v3"},
      {"deepseek-ai--DeepSeek-R1", "deepseek-r1"},
      {"nvidia--DeepSeek-V3.1-NVFP4", "deepseek-v3.1"},
      {"deepseek-ai--DeepSeek-V3.2", "deepseek-v3.2"},
      {"deepseek-ai--DeepSeek-V4-Flash", "deepseek-v4-flash"},
      {"deepseek-ai--DeepSeek-V4-Pro", "deepseek-v4-pro"},
      {"sgl-project--DeepSeek-V4-Pro-FP8", "deepseek-v4-pro"},
      {"moonshotai--Kimi-K2-Instruct", "kimi-k2"},
      {"moonshotai--Kimi-K2.5", "kimi-k2.5"},
      {"nvidia--Kimi-K2.5-NVFP4", "kimi-k2.5"},
      {"zai-org--GLM-5", "glm-5"},
      {"MiniMaxAI--MiniMax-M2.5", "minimax-m2.5"},
      {"openai--gpt-oss-120b", "gpt-oss-120b"},
      {"openai--gpt-oss-20b", "gpt-oss-20b"},
      {"nvidia--Nemotron-H-56B-Base-8K", "nemotron-h-56b"},
      {"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron-3-nano"},
      {"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", "nemotron-3-super"},
      {"nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4", "nemotron-3-ultra"},
      {"nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", "nemotron-3.5-lightning"},
  };
  const std::set<std::string> two_depths = {"nemotron-3-super",
                                            "nemotron-3-ultra"};  // as trained; the files say one
  for (const auto& [file, name] : pairs) {
    INFO(file);
    diagnostics problems;
    config::document doc = load(std::string(file) + "_config", problems);
    const outcome o = finish(std::move(doc), problems);
    REQUIRE(o.problems == "");
    const model mine = shipped(name);
    CHECK(o.m.layers == mine.layers);
    CHECK(o.m.mtp_block == mine.mtp_block);
    CHECK(o.m.mtp_layers == (two_depths.count(name) ? 1 : mine.mtp_layers));
    CHECK(o.m.hidden == mine.hidden);
    CHECK(o.m.vocab == mine.vocab);
    CHECK(o.m.max_positions == mine.max_positions);
    CHECK(o.m.tied_embeddings == mine.tied_embeddings);
    CHECK(o.m.residual_streams == mine.residual_streams);
  }
}
