#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <set>

#include "unit/model/reading.hpp"
#include "unit/model/shipped.hpp"

using namespace nvlsim;
using nvlsim::test::dense_layer;
using nvlsim::test::models_folder;
using nvlsim::test::outcome;
using nvlsim::test::read;
using nvlsim::test::shared_data;
using nvlsim::test::shipped;
using nvlsim::test::supported;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view small_llama = R"({
  "model_type": "llama", "hidden_size": 64, "intermediate_size": 192, "num_attention_heads": 4,
  "num_hidden_layers": 2, "vocab_size": 100)";
constexpr std::string_view small_gpt = R"({
  "schema": "nvlsim.model/1", "num_layers": 2, "hidden_size": 64, "ffn_hidden_size": 256, "num_attention_heads": 4,
  "vocab_size": 100)";

std::string with(std::string_view start, std::string_view rest) {
  return std::string(start) + std::string(rest) + "}";
}

}  // namespace

TEST_CASE("Hugging Face config takes the defaults of LlamaConfig and ignores what does not matter") {
  const outcome o = read(with(small_llama, R"(, "rope_scaling": {"factor": 8.0}, "torch_dtype": "bfloat16",
      "architectures": ["LlamaForCausalLM"])"));
  REQUIRE(o.problems.empty());
  CHECK(o.m.name == "m");
  CHECK(o.m.model_type == "llama");
  CHECK(o.m.hidden == 64);
  CHECK(o.m.vocab == 100);
  CHECK(o.m.max_positions == 2048);
  CHECK_FALSE(o.m.tied_embeddings);
  CHECK(o.m.layers == std::vector<layer_spec>(2, dense_layer(4, 4, 16, 192)));
  const value resolved = o.doc.resolved();
  CHECK(*resolved.find("head_dim") == value{16});
  CHECK(*resolved.find("num_key_value_heads") == value{4});
  const outcome nulls = read(with(small_llama, R"(, "head_dim": null, "num_key_value_heads": null)"));
  CHECK(nulls.problems.empty());
  CHECK(nulls.m.layers == o.m.layers);
}

TEST_CASE("Hugging Face config says grouped queries, head size and tying") {
  const outcome o =
      read(with(small_llama, R"(, "num_key_value_heads": 2, "head_dim": 32, "tie_word_embeddings": true,
      "max_position_embeddings": 512)"));
  REQUIRE(o.problems.empty());
  CHECK(o.m.layers.front() == dense_layer(4, 2, 32, 192));
  CHECK(o.m.tied_embeddings);
  CHECK(o.m.max_positions == 512);
}

TEST_CASE("Language model of a composite config is read from text_config") {
  const outcome o =
      read(R"({"model_type": "llava", "vision_config": {"hidden_size": 1024}, "tie_word_embeddings": true,
      "text_config": )" +
           with(small_llama, "") + "}");
  REQUIRE(o.problems.empty());
  CHECK(o.m.hidden == 64);
  CHECK(o.m.tied_embeddings);
  CHECK(read(R"({"model_type": "llava", "text_config": {"model_type": "phi"}})").problems ==
        "m.json#/text_config/model_type: model_type \"phi\" is not supported; " + supported() +
            "; \"phi3\" is another architecture\n");
}

TEST_CASE("Another model_type is refused by name") {
  const auto refused = [](const char* type) {
    return read(fmt::format(R"({{"model_type": "{}"}})", type)).problems;
  };
  const auto message = [](const char* type, const char* hint = "") {
    return fmt::format("m.json#/model_type: model_type \"{}\" is not supported; {}{}\n", type, supported(), hint);
  };
  CHECK(refused("cohere2") == message("cohere2"));
  CHECK(refused("") == message(""));
  CHECK(refused("lama") == message("lama", "; did you mean \"llama\"?"));
  CHECK(refused("minimax-m2") == message("minimax-m2", "; did you mean \"minimax_m2\"?"));
  // Another number or ending is another architecture and no slip.
  CHECK(refused("llama5") == message("llama5", "; \"llama\" is another architecture"));
  CHECK(refused("glm4") == message("glm4", "; \"glm4_moe\" is another architecture"));
  CHECK(refused("qwen3_moe_plus") == message("qwen3_moe_plus", "; \"qwen3_moe\" is another architecture"));
  CHECK(refused("step3p7") == message("step3p7", "; \"step3p5\" is another architecture"));
  CHECK(read(R"({"model_type": 3})").problems == "m.json#/model_type: expected a string, found integer 3\n");
  CHECK(read(R"({"hidden_size": 64})").problems ==
        "m.json#: neither \"schema\": \"nvlsim.model/1\" nor a Hugging Face \"model_type\"; " + supported() +
            "\n");
  CHECK(read(R"({"text_config": 1, "model_type": "llama"})").problems ==
        "m.json#/text_config: expected an object, found integer 1\n");
}

TEST_CASE("Every problem of a Hugging Face config is found at once") {
  CHECK(read(R"({"model_type": "llama", "hidden_size": "64", "intermediate_size": 0, "num_attention_heads": 4,
      "num_key_value_heads": 3, "num_hidden_layers": 1.5, "max_position_embeddings": -1, "head_dim": 1000000,
      "tie_word_embeddings": "no"})")
            .problems ==
        "m.json#: required member \"vocab_size\" is missing\n"
        "m.json#/head_dim: 1000000 is more than 8192\n"
        "m.json#/hidden_size: expected an integer, found string \"64\"\n"
        "m.json#/intermediate_size: 0 is less than 1\n"
        "m.json#/max_position_embeddings: -1 is less than 1\n"
        "m.json#/num_hidden_layers: expected an integer, found number 1.5\n"
        "m.json#/num_key_value_heads: num_attention_heads 4 is not a multiple of 3\n"
        "m.json#/tie_word_embeddings: expected true or false, found string \"no\"\n");
}

TEST_CASE("Head size must be given where it does not follow") {
  const std::string_view odd = R"({"model_type": "llama", "hidden_size": 100, "intermediate_size": 192,
      "num_attention_heads": 3, "num_hidden_layers": 2, "vocab_size": 100)";
  CHECK(read(with(odd, "")).problems ==
        "m.json#/num_attention_heads: hidden_size 100 is not a multiple of 3, so \"head_dim\" must be given\n");
  CHECK(read(with(odd, R"(, "head_dim": 32)")).problems.empty());
  CHECK(read(R"({"model_type": "llama", "hidden_size": 4, "intermediate_size": 192, "num_attention_heads": 8,
      "num_hidden_layers": 2, "vocab_size": 100})")
            .problems ==
        "m.json#/num_attention_heads: hidden_size 4 is not a multiple of 8, so \"head_dim\" must be given\n");
}

TEST_CASE("A broken field is not blamed on its neighbours") {
  CHECK(read(with(small_llama, R"(, "num_key_value_heads": 0)")).problems ==
        "m.json#/num_key_value_heads: 0 is less than 1\n");
  CHECK(read(R"({"model_type": "llama", "intermediate_size": 192, "num_attention_heads": true,
      "num_key_value_heads": 3, "num_hidden_layers": 2, "vocab_size": 100})")
            .problems ==
        "m.json#: required member \"hidden_size\" is missing\n"
        "m.json#/num_attention_heads: expected an integer, found boolean\n");
}

TEST_CASE("Native form reads Megatron's names") {
  const outcome o = read(with(small_gpt, R"(, "gated_mlp": false, "tied_embeddings": true, "source": "a paper")"));
  REQUIRE(o.problems.empty());
  CHECK(o.m.model_type == "gpt");
  CHECK(o.m.tied_embeddings);
  CHECK(o.m.max_positions == 0);
  CHECK(o.m.layers == std::vector<layer_spec>(2, dense_layer(4, 4, 16, 256, false)));
  const outcome p = read(with(small_gpt, R"(, "gated_mlp": true, "tied_embeddings": false, "num_query_groups": 2,
      "kv_channels": 8, "qk_layernorm": true, "max_position_embeddings": 77)"));
  REQUIRE(p.problems.empty());
  CHECK(p.m.layers.back() == dense_layer(4, 2, 8, 256, true, qk_norm_kind::per_head));
  CHECK_FALSE(p.m.tied_embeddings);
  CHECK(p.m.max_positions == 77);
}

TEST_CASE("Native form is strict") {
  CHECK(read(with(small_gpt, R"(, "gated_mpl": false, "hidden_act": "silu", "num_query_groups": 3)")).problems ==
        "m.json#: required member \"gated_mlp\" is missing\n"
        "m.json#: required member \"tied_embeddings\" is missing\n"
        "m.json#/gated_mpl: unknown member; did you mean \"gated_mlp\"?\n"
        "m.json#/hidden_act: unknown member\n"
        "m.json#/num_query_groups: num_attention_heads 4 is not a multiple of 3\n");
  CHECK(read(R"({"schema": "nvlsim.model/2", "layers": 3})").problems ==
        "m.json#/schema: expected \"nvlsim.model/1\", found \"nvlsim.model/2\"\n");
  CHECK(read(R"({"schema": ""})").problems == "m.json#/schema: expected \"nvlsim.model/1\", found \"\"\n");
  CHECK(read(R"({"schema": 1})").problems == "m.json#/schema: expected a string, found integer 1\n");
}

TEST_CASE("Every shipped model loads, is of the size its name says and says its source") {
  const auto names = config::names_in(models_folder);
  CHECK(names.size() >= 160);
  // Names that round their size.
  const std::set<std::string> rounded = {"mpt-1b",
                                         "mpt-3b",
                                         "mpt-70b",
                                         "qwen2-7b",
                                         "qwen2.5-7b",
                                         "qwen2.5-math-7b",
                                         "qwen2.5-omni-3b-thinker",
                                         "qwen2.5-omni-7b-talker",
                                         "qwen2.5-omni-7b-thinker",
                                         "ministral-3-8b",
                                         "nemotron-8b",
                                         "gpt3-5b"};
  for (const std::string& name : names) {
    INFO(name);
    const model m = shipped(name);
    CHECK(m.name == name);
    CHECK(parameters(m) > 4e8);
    CHECK(active_parameters(m) <= parameters(m));
    CHECK(m.mtp_block.empty() == (m.mtp_layers == 0));
    diagnostics problems;
    const config::document doc = config::load_named(models_folder, {"model", name, {}}, problems);
    const value* source = doc.root.find("source");
    REQUIRE(source);
    CHECK(source->string());
    std::smatch size;
    if (name.find("proxy") != std::string::npos || rounded.count(name) > 0 ||
        !std::regex_search(name, size, std::regex("-([0-9.]+)([bt])")))
      continue;
    const double said = std::stod(size[1]) * (size[2] == "t" ? 1e12 : 1e9);
    CHECK(static_cast<double>(parameters(m)) == Approx(said).epsilon(0.06));
  }
}

TEST_CASE("Every model of the tables beside the source is shipped, if there") {
  for (const char* file :
       {"models.csv", "training.csv", "inference.csv", "training-more.csv", "inference-more.csv"}) {
    for (auto& row : test::table(shared_data / file)) {
      INFO(file << " " << row["model"]);
      CHECK(fs::exists(models_folder / (row["model"] + ".json")));
    }
  }
}
