#include "nvlsim/model/checkpoint.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "unit/model/reading.hpp"

using namespace nvlsim;
using nvlsim::test::outcome;
using nvlsim::test::read;

namespace {

/// A Llama of four layers with this beside its dimensions.
outcome with(std::string_view rest) {
  return read(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 192, "num_attention_heads": 4,
                  "num_hidden_layers": 4, "vocab_size": 100, )" +
              std::string(rest) + "}");
}
outcome with_modelopt(std::string_view quantization) {
  return with(R"("hf_quant_config": {"producer": {"name": "modelopt"}, "quantization": )" +
              std::string(quantization) + "}");
}

struct stated {
  std::optional<precision> weights, attention, kv_cache;
  bool operator==(const stated&) const = default;
};
stated of(const outcome& o) {
  CHECK(o.problems == "");
  return {o.m.checkpoint.weights, o.m.checkpoint.attention_weights, o.m.checkpoint.kv_cache};
}

}  // namespace

TEST_CASE("Checkpoint of a plain config says nothing") {
  const outcome o = with(R"("torch_dtype": "bfloat16")");
  CHECK(of(o) == stated{});
  CHECK(o.m.checkpoint.source == "");
}

TEST_CASE("Checkpoint of hf_quant_config.json has ModelOpt's algorithms and cache") {
  const outcome o = with_modelopt(R"({"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16,
                                      "exclude_modules": ["lm_head"]})");
  CHECK(of(o) == stated{precision::nvfp4, {}, precision::fp8});
  CHECK(o.m.checkpoint.source == "hf_quant_config.json");
  CHECK(o.m.checkpoint.algorithm == "NVFP4");
  CHECK(of(with_modelopt(R"({"quant_algo": "FP8", "kv_cache_quant_algo": null})")) ==
        stated{precision::fp8, {}, precision::bf16});
  CHECK(of(with_modelopt(R"({"quant_algo": "W4A16_AWQ"})")).weights == precision::int4);
  CHECK(of(with_modelopt(R"({"quant_algo": null})")).weights == precision::bf16);
  // 16-bit activations over FP4 weights are not simulated.
  CHECK(of(with_modelopt(R"({"quant_algo": "W4A16_NVFP4"})")).weights == std::nullopt);
}

TEST_CASE("Checkpoint's own file comes before config.json") {
  const outcome o = with(R"("hf_quant_config": {"quantization": {"quant_algo": "NVFP4"}},
                            "quantization_config": {"quant_method": "fp8"})");
  CHECK(of(o).weights == precision::nvfp4);
}

TEST_CASE("Checkpoint of transformers goes by method") {
  CHECK(of(with(R"("quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]})")).weights ==
        precision::fp8_block);
  CHECK(of(with(R"("quantization_config": {"quant_method": "fp8"})")).weights == precision::fp8);
  CHECK(of(with(R"("quantization_config": {"quant_method": "awq", "bits": 4})")).weights == precision::int4);
  const outcome unknown = with(R"("quantization_config": {"quant_method": "bitsandbytes"})");
  CHECK(of(unknown).weights == std::nullopt);
  CHECK(unknown.m.checkpoint.algorithm == "bitsandbytes");
  // As openai/gpt-oss-120b.
  CHECK(of(with(R"("quantization_config": {"quant_method": "mxfp4",
                   "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]})")) ==
        stated{precision::mxfp4, precision::bf16, {}});
}

TEST_CASE("Checkpoint of compressed-tensors has groups of bits") {
  // As moonshotai/Kimi-K2.5.
  CHECK(
      of(with(
          R"("quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": null, "config_groups": {"group_0": {
                   "input_activations": null, "weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
                   "ignore": ["lm_head", "re:.*self_attn.*"]})")) == stated{precision::int4, precision::bf16, {}});
  // As nvidia/Kimi-K2.5-NVFP4, which has the algorithm beside the groups.
  CHECK(
      of(with(
          R"("quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {"group_0": {}},
                   "kv_cache_scheme": {"num_bits": 8, "type": "float"}, "ignore": ["language_model.lm_head"]})")) ==
      stated{precision::nvfp4, {}, precision::fp8});
  const std::string fp8 = R"({"num_bits": 8, "type": "float"})";
  CHECK(of(with(R"("quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {
                   "input_activations": )" +
                fp8 + R"(, "weights": )" + fp8 + "}}}"))
            .weights == precision::fp8);
}

TEST_CASE("Checkpoint's attention is what most query projections are") {
  const auto attention = [](const std::string& excluded) {
    return of(with_modelopt(R"({"quant_algo": "NVFP4", "exclude_modules": [)" + excluded + "]}")).attention;
  };
  CHECK(attention(R"("*.attn.*", "model.layers.*.self_attn*")") == precision::bf16);
  CHECK(attention(R"("language_model.model.layers.0.self_attn*", "language_model.model.layers.1.self_attn*",
                     "language_model.model.layers.2*")") == precision::bf16);
  CHECK(attention(R"("model.layers.0.self_attn*", "model.layers.1.self_attn*")") == std::nullopt);  // half of them
  CHECK(attention(R"("model.layers.*.self_attn.q_b_proj")") == precision::bf16);                    // DeepSeek
  CHECK(attention(R"("model.layers.*.self_attn.k_norm", "model.layers.*.mlp*", "lm_head")") == std::nullopt);
  CHECK(attention(R"("re:.*self_attn\\..*")") == precision::bf16);
  CHECK(attention(R"("re:.*(self_attn|mlp).*")") ==
        std::nullopt);  // more of a regular expression than is understood
}

TEST_CASE("Mixed checkpoint says what its experts are") {
  const auto experts = [](const std::string& layers) {
    const outcome o = with_modelopt(R"({"quant_algo": "MIXED_PRECISION", "quantized_layers": {)" + layers + "}}");
    CHECK(of(o).weights == std::nullopt);
    return o.m.checkpoint.expert_weights;
  };
  CHECK(
      experts(R"("layers.0.ffn.experts": {"quant_algo": "NVFP4"}, "layers.1.ffn.experts": {"quant_algo": "NVFP4"},
                   "layers.1.ffn.shared_experts": {"quant_algo": "FP8"})") == precision::nvfp4);
  CHECK(experts(
            R"("layers.0.ffn.experts": {"quant_algo": "NVFP4"}, "layers.1.ffn.experts": {"quant_algo": "FP8"})") ==
        std::nullopt);
}

TEST_CASE("Checkpoint reader tells what is wrong") {
  CHECK(with(R"("hf_quant_config": {"quantisation": {}})").problems ==
        "m.json#/hf_quant_config: required member \"quantization\" is missing\n");
  CHECK(with_modelopt(R"({"quant_algo": 4})")
            .problems.find("m.json#/hf_quant_config/quantization/quant_algo: expected a string") == 0);
  CHECK(with_modelopt(R"({"quant_algo": "FP8", "exclude_modules": ["lm_head", 3]})").problems ==
        "m.json#/hf_quant_config/quantization/exclude_modules: expected an array of module names\n");
  CHECK(with(R"("quantization_config": "fp8")").problems.find("m.json#/quantization_config: expected an object") ==
        0);
  CHECK(with(R"("quantization_config": {"bits": 4})").problems ==
        "m.json#/quantization_config: required member \"quant_method\" is missing\n");
  CHECK(with(R"("quantization_config": {"quant_method": "fp8", "kv_cache_scheme": 8})")
            .problems.find("m.json#/quantization_config/kv_cache_scheme: expected an object or a name") == 0);
}
