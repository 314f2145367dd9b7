// Readers of config.json by family, and the native form of models with experts, on small shapes.
#include <catch2/catch.hpp>

#include "unit/model/reading.hpp"
#include "unit/model/shipped.hpp"

using namespace nvlsim;
using nvlsim::test::outcome;
using nvlsim::test::read;

namespace {

/// A config of that type with the members of any and `rest`.
outcome config_of(const std::string& type, const std::string& rest) {
  return read(R"({"model_type": ")" + type + R"(", "hidden_size": 64, "vocab_size": 100, )" + rest + "}");
}

const std::string heads = R"("num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16)";

/// The width of dense MLPs in order of the layers, 0 where experts are routed.
std::vector<std::int64_t> dense_widths(const model& m) {
  std::vector<std::int64_t> out;
  for (const layer_spec& l : m.layers) out.push_back(l.routed() ? 0 : l.ffn_hidden);
  return out;
}
std::vector<std::int64_t> windows(const model& m) {
  std::vector<std::int64_t> out;
  for (const layer_spec& l : m.layers) out.push_back(l.window);
  return out;
}
using widths = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("Mixtral routes every layer, and its window holds for all") {
  const std::string experts = R"("intermediate_size": 96, "num_local_experts": 8, "num_experts_per_tok": 2, )";
  const outcome o = config_of("mixtral", experts + heads + R"(, "num_hidden_layers": 3, "sliding_window": null)");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers.size() == 3);
  CHECK(o.m.layers.front().moe == moe_spec{8, 2, 96, 0});
  CHECK(o.m.layers.front().ffn_hidden == 0);
  CHECK(o.m.layers.front().gated_mlp);
  CHECK(windows(o.m) == widths{0, 0, 0});
  CHECK(windows(config_of("mixtral", experts + heads + R"(, "num_hidden_layers": 2, "sliding_window": 512)").m) ==
        widths{512, 512});
}

TEST_CASE("Experts are counted under three names, which must agree") {
  const std::string rest =
      R"("moe_intermediate_size": 32, "num_experts_per_tok": 2, "num_hidden_layers": 2, )" + heads;
  for (const char* name : {"n_routed_experts", "num_experts", "num_local_experts"})
    CHECK(config_of("qwen3_moe", rest + ", \"" + name + "\": 16").m.layers.front().moe.experts == 16);
  CHECK(config_of("qwen3_moe", rest + R"(, "n_routed_experts": 16, "num_experts": 16)").problems == "");
  CHECK(config_of("qwen3_moe", rest + R"(, "n_routed_experts": 16, "num_experts": 8)").problems ==
        "m.json#/num_experts: 8 differs from \"n_routed_experts\" 16\n");
  CHECK(config_of("qwen3_moe", rest).problems ==
        "m.json#: required member \"n_routed_experts\" is missing (nor \"num_experts\", \"num_local_experts\", "
        "\"moe_num_experts\")\n");
  CHECK(config_of("qwen3_moe", rest + R"(, "num_experts": 1)").problems ==
        "m.json#/num_experts_per_tok: 2 is more than the 1 experts\n");
}

TEST_CASE("Qwen3 says which layers are dense") {
  const std::string rest = R"("moe_intermediate_size": 32, "num_experts": 16, "num_experts_per_tok": 2,
      "num_hidden_layers": 4, )" +
                           heads;
  const outcome all = config_of("qwen3_moe", rest);
  REQUIRE(all.problems == "");
  CHECK(dense_widths(all.m) == widths{0, 0, 0, 0});
  CHECK(all.m.layers.front().qk_norm == qk_norm_kind::per_head);
  const std::string dense = rest + R"(, "intermediate_size": 256)";
  CHECK(dense_widths(config_of("qwen3_moe", dense + R"(, "mlp_only_layers": [0, 3])").m) ==
        widths{256, 0, 0, 256});
  CHECK(dense_widths(config_of("qwen3_moe", dense + R"(, "decoder_sparse_step": 2)").m) == widths{256, 0, 256, 0});
  CHECK(config_of("qwen3_moe", rest + R"(, "mlp_only_layers": [1.5])").problems ==
        "m.json#/mlp_only_layers: element 0: expected an integer from 0 to 8192\n");
  CHECK(config_of("qwen3_moe", rest + R"(, "decoder_sparse_step": 2)").problems ==
        "m.json#: required member \"intermediate_size\" is missing\n");
}

TEST_CASE("MiniMax-M2 says over what it normalises queries and keys") {
  const std::string rest = R"("intermediate_size": 32, "num_local_experts": 16, "num_experts_per_tok": 2,
      "num_hidden_layers": 2, )" +
                           heads;
  const auto norms = [&](const std::string& members) {
    const layer_spec l = config_of("minimax_m2", rest + members).m.layers.front();
    return l.qk_norm;
  };
  CHECK(norms("") == qk_norm_kind::none);
  CHECK(norms(R"(, "use_qk_norm": true)") == qk_norm_kind::per_head);
  CHECK(norms(R"(, "use_qk_norm": true, "qk_norm_type": "per_layer")") == qk_norm_kind::joint);
  CHECK(norms(R"(, "use_qk_norm": false, "qk_norm_type": "per_layer")") == qk_norm_kind::none);
  CHECK(config_of("minimax_m2", rest + R"(, "use_qk_norm": true, "qk_norm_type": "per_hat")").problems ==
        "m.json#/qk_norm_type: expected one of per_head, per_layer, found \"per_hat\"; did you mean "
        "\"per_head\"?\n");
}

TEST_CASE("Windows of dense models follow their own rules") {
  const std::string rest = R"("intermediate_size": 96, "num_hidden_layers": 3, "sliding_window": 8, )" + heads;
  CHECK(windows(config_of("mistral", rest).m) == widths{8, 8, 8});
  CHECK(windows(config_of("qwen2", rest).m) == widths{0, 0, 0});
  CHECK(windows(config_of("qwen2", rest + R"(, "use_sliding_window": true, "max_window_layers": 2)").m) ==
        widths{0, 0, 8});
  CHECK(windows(config_of("gemma3_text", rest + R"(, "sliding_window_pattern": 3)").m) == widths{8, 8, 0});
  CHECK(windows(config_of("olmo3", rest + R"(, "layer_types":
      ["full_attention", "sliding_attention", "full_attention"])")
                    .m) == widths{0, 8, 0});
  CHECK(config_of("olmo3", R"("intermediate_size": 96, "num_hidden_layers": 4, )" + heads).problems ==
        "m.json#: required member \"sliding_window\" is missing\n");
}

TEST_CASE("Gemma 3 has the sizes that its files leave out") {
  const outcome o = read(R"({"model_type": "gemma3", "vision_config": {"hidden_size": 8}, "text_config":
      {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
       "sliding_window": 1024}})");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers.front().heads == 8);
  CHECK(o.m.layers.front().kv_heads == 4);
  CHECK(o.m.layers.front().head_dim == 256);
  CHECK(o.m.layers.front().post_norms);
  CHECK(o.m.vocab == 262208);
  CHECK(o.m.tied_embeddings);
  CHECK(o.m.towers == std::vector<tower_spec>{{"vision", 0}});
  CHECK(static_cast<double>(parameters(o.m)) == Approx(3.88e9).epsilon(0.001));  // model card: 4B with vision
}

TEST_CASE("Gemma 4 has full layers of other heads, shared caches and inputs of every layer") {
  const std::string rest = R"("num_hidden_layers": 3, "intermediate_size": 96, "sliding_window": 8,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "global_head_dim": 32,
      "num_global_key_value_heads": 1, )" +
                           heads;
  const outcome o = config_of("gemma4_text", rest + R"(, "attention_k_eq_v": true, "num_kv_shared_layers": 1,
      "use_double_wide_mlp": true, "hidden_size_per_layer_input": 4)");
  REQUIRE(o.problems == "");
  CHECK(windows(o.m) == widths{8, 0, 8});
  CHECK(dense_widths(o.m) == widths{96, 96, 192});
  CHECK(o.m.layers[0].kv == kv_source::own);
  CHECK(o.m.layers[1].kv == kv_source::keys_are_values);
  CHECK(o.m.layers[2].kv == kv_source::shared);
  CHECK(o.m.layers[1].head_dim == 32);
  CHECK(o.m.layers[1].kv_heads == 1);
  CHECK(projected_kv(o.m.layers[0]) == 2 * 2 * 16);
  CHECK(projected_kv(o.m.layers[1]) == 32);
  CHECK(projected_kv(o.m.layers[2]) == 0);
  CHECK(o.m.lookup_tables == 100 * 3 * 4);
  // Cached: keys and values of the first two layers, of the last none.
  CHECK(kv_bytes_per_token(o.m, precision::bf16) == 2 * (2 * 2 * 16 + 2 * 32));
  const outcome moe = config_of("gemma4", rest + R"(, "enable_moe_block": true, "num_experts": 4,
      "top_k_experts": 2, "moe_intermediate_size": 24)");
  REQUIRE(moe.problems == "");
  CHECK(moe.m.layers[0].moe == moe_spec{.experts = 4, .top_k = 2, .expert_ffn = 24, .shared_ffn = 96});
}

TEST_CASE("Layers of Nemotron-NAS differ, and may lack a part") {
  const auto blocks = [](const char* list) {
    return read(std::string(R"({"model_type": "nemotron-nas", "hidden_size": 768, "vocab_size": 100,
        "num_attention_heads": 4, "num_hidden_layers": 2, "block_configs": )") +
                list + "}");
  };
  const outcome o = blocks(R"([{"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.1}},
      {"attention": {"no_op": true, "n_heads_in_group": null}, "ffn": {"ffn_mult": 2.5}}])");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers[0].kv_heads == 2);
  CHECK(o.m.layers[0].ffn_hidden == 768);  // 563, rounded up to a multiple of 256
  CHECK(o.m.layers[1].attention == attention_kind::none);
  CHECK(o.m.layers[1].ffn_hidden == 1280);
  CHECK(blocks("[]").problems == "m.json#/block_configs: has 0 elements for 2 layers\n");
}

TEST_CASE("Step-3.5 and MiMo-V2 have other heads in window layers") {
  const std::string sizes = R"("num_hidden_layers": 2, "intermediate_size": 96, "moe_intermediate_size": 16,
      "sliding_window": 8, )";
  const std::string step = sizes + R"("num_attention_heads": 4, "num_attention_groups": 2, "head_dim": 16,
      "layer_types": ["full_attention", "sliding_attention"], "use_head_wise_attn_gate": true,
      "attention_other_setting": {"num_attention_heads": 6, "num_attention_groups": 2, "head_dim": 16},
      "moe_num_experts": 8, "moe_top_k": 2, "share_expert_dim": 16, )";
  const outcome o = config_of("step3p5", step + R"("moe_layers_enum": "1")");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers[0].heads == 4);
  CHECK(o.m.layers[1].heads == 6);
  CHECK(gate_width(o.m.layers[1]) == 6);
  CHECK(dense_widths(o.m) == widths{96, 0});
  CHECK(config_of("step3p5", step + R"("moe_layers_enum": "1,2")").problems ==
        "m.json#/moe_layers_enum: expected layers from 0 to 1, separated by commas\n");
  const outcome mimo =
      config_of("mimo_v2_flash", sizes + heads + R"(, "v_head_dim": 8, "hybrid_layer_pattern": [0, 1],
      "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_head_dim": 16, "swa_v_head_dim": 8,
      "moe_layer_freq": [0, 1], "n_routed_experts": 8, "num_experts_per_tok": 2)");
  REQUIRE(mimo.problems == "");
  CHECK(mimo.m.layers[1].kv_heads == 4);
  CHECK(mimo.m.layers[1].window == 8);
  CHECK(value_dim(mimo.m.layers[1]) == 8);
  CHECK(kv_bytes_per_token(mimo.m, precision::bf16) == 2 * (2 * 24 + 4 * 24));
}

TEST_CASE("Kimi-Linear has delta attention in the layers that are not full") {
  const outcome o = config_of("kimi_linear", R"("num_hidden_layers": 2, "intermediate_size": 96,
      "num_attention_heads": 4, "kv_lora_rank": 8, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
      "first_k_dense_replace": 1, "num_experts": 8, "num_experts_per_token": 2, "num_shared_experts": 1,
      "moe_intermediate_size": 16,
      "linear_attn_config": {"full_attn_layers": [2], "num_heads": 4, "head_dim": 16, "short_conv_kernel_size": 4})");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers[0].attention == attention_kind::linear);
  CHECK(o.m.layers[0].scan.gate_rank == 16);
  CHECK(o.m.layers[1].attention == attention_kind::mla);
  CHECK(o.m.layers[1].moe.shared_ffn == 16);
  // Queries, keys, values and output of 64, a scalar a head, two pairs of narrow gates, the convolution, a norm.
  const std::int64_t mixer = 4 * 64 * 64 + 64 * 4 + 2 * 16 * (64 + 64) + 4 * 3 * 64 + 16;
  CHECK(layer_parameters(o.m, o.m.layers[0]) == mixer + 3 * 64 * 96 + 2 * 64);
}

TEST_CASE("MiniMax-M3 chooses blocks of keys in some layers") {
  const outcome o = config_of("minimax_m3", R"("num_hidden_layers": 2, "dense_intermediate_size": 96,
      "intermediate_size": 16, "num_local_experts": 8, "num_experts_per_tok": 2, "moe_layer_freq": [0, 1],
      "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_index_dim": 8, "sparse_topk_blocks": 4,
                                  "sparse_block_size": 32, "sparse_attention_freq": [0, 1]}, )" +
                                                heads);
  REQUIRE(o.problems == "");
  CHECK(dense_widths(o.m) == widths{96, 0});
  CHECK(o.m.layers[0].sparse_keys == 0);
  CHECK(o.m.layers[1].sparse_keys == 128);
  CHECK(layer_parameters(o.m, o.m.layers[1]) - layer_parameters(o.m, o.m.layers[0]) ==
        8 * 3 * 64 * 16 + 64 * 8 - 3 * 64 * 96 + 64 * (2 * 8 + 8));
}

TEST_CASE("Models say how training evened the loads of experts") {
  const auto by_bias = [](const char* name) { return test::shipped(name).layers.back().moe.balanced_by_bias; };
  for (const char* name :
       {"deepseek-v3", "deepseek-r1", "deepseek-v3.2", "deepseek-v4-pro", "kimi-k2.5", "glm-5", "minimax-m2.5"}) {
    CAPTURE(name);
    CHECK(by_bias(name));
  }
  for (const char* name : {"deepseek-v2", "mixtral-8x7b", "llama4-maverick", "qwen3-235b-a22b",
                           "qwen3.5-397b-a17b", "gpt-oss-120b"}) {
    CAPTURE(name);
    CHECK_FALSE(by_bias(name));
  }
}

TEST_CASE("Llama 4 interleaves experts and chunked attention") {
  const std::string rest = R"("intermediate_size": 32, "intermediate_size_mlp": 128, "num_local_experts": 4,
      "num_experts_per_tok": 1, "num_hidden_layers": 4, "attention_chunk_size": 256, )" +
                           heads;
  const outcome o = config_of("llama4_text", rest + R"(, "interleave_moe_layer_step": 2)");
  REQUIRE(o.problems == "");
  CHECK(dense_widths(o.m) == widths{128, 0, 128, 0});
  CHECK(o.m.layers.back().moe == moe_spec{4, 1, 32, 32});
  CHECK(windows(o.m) == widths{256, 256, 256, 0});
  CHECK(o.m.layers.back().qk_norm == qk_norm_kind::none);  // its norm has no weights
  const outcome lists = config_of("llama4", rest + R"(, "moe_layers": [0], "no_rope_layers": [0, 1, 1, 0])");
  REQUIRE(lists.problems == "");
  CHECK(dense_widths(lists.m) == widths{0, 128, 128, 128});
  CHECK(windows(lists.m) == widths{0, 256, 256, 0});
  CHECK(windows(config_of("llama4", rest + R"(, "layer_types": ["full_attention", "chunked_attention",
      "full_attention", "full_attention"])")
                    .m) == widths{0, 256, 0, 0});
  CHECK(config_of("llama4", rest + R"(, "no_rope_layers": [0], "moe_layers": [4])").problems ==
        "m.json#/moe_layers: element 0: expected an integer from 0 to 3\n"
        "m.json#/no_rope_layers: has 1 elements for 4 layers\n");
}

TEST_CASE("GPT-OSS alternates windows unless it lists them") {
  const std::string rest = R"("intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2,
      "num_hidden_layers": 3, "sliding_window": 128, )" +
                           heads;
  const outcome o = config_of("gpt_oss", rest);
  REQUIRE(o.problems == "");
  CHECK(windows(o.m) == widths{128, 0, 128});
  CHECK(o.m.layers.front().biased_clamped_activation);
  CHECK(windows(config_of("gpt_oss", rest + R"(, "layer_types": ["full_attention", "full_attention",
      "sliding_attention"])")
                    .m) == widths{0, 0, 128});
  CHECK(config_of("gpt_oss", rest + R"(, "layer_types": ["full_attention"])").problems ==
        "m.json#/layer_types: has 1 elements for 3 layers\n");
  CHECK(config_of("gpt_oss", rest + R"(, "layer_types": "full_attention")").problems ==
        "m.json#/layer_types: expected an array, found string\n");
  CHECK(config_of("gpt_oss", rest + R"(, "layer_types": ["full_attention", "linear", 3])").problems ==
        "m.json#/layer_types: element 1: expected one of full_attention, sliding_attention, found \"linear\"\n");
}

TEST_CASE("DeepSeek-V3 has latent attention, dense first layers, shared experts and prediction layers") {
  const std::string rest = R"("num_hidden_layers": 3, "num_attention_heads": 4, "kv_lora_rank": 32,
      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8,
      "num_experts_per_tok": 2,
      "moe_intermediate_size": 24, "n_shared_experts": 2)";
  const outcome o = config_of("deepseek_v3", rest + R"(, "q_lora_rank": 40, "first_k_dense_replace": 1,
      "intermediate_size": 200, "num_nextn_predict_layers": 1)");
  REQUIRE(o.problems == "");
  CHECK(dense_widths(o.m) == widths{200, 0, 0});
  const layer_spec& l = o.m.layers.back();
  CHECK(l.attention == attention_kind::mla);
  CHECK(l.mla == mla_spec{40, 32, 16, 8, 12});
  CHECK(l.heads == 4);
  CHECK(l.head_dim == 24);
  CHECK(l.moe == moe_spec{8, 2, 24, 48, 0, true});
  CHECK(o.m.mtp_layers == 1);
  CHECK(o.m.mtp_block == std::vector{l});
  const outcome plain = config_of("kimi_k2", rest + R"(, "q_lora_rank": null)");
  REQUIRE(plain.problems == "");
  CHECK(plain.m.layers.front().mla.q_lora_rank == 0);
  CHECK(plain.m.mtp_layers == 0);
  CHECK(plain.m.mtp_block.empty());
  CHECK(dense_widths(config_of("deepseek_v3", rest + R"(, "moe_layer_freq": 2, "intermediate_size": 99)").m) ==
        widths{0, 99, 0});
  // Queries straight from the hidden state, and the norm of the latent vector alone.
  CHECK(layer_parameters(plain.m, plain.m.layers.front()) ==
        64 * 4 * 24 + 64 * 40 + 32 * 4 * 28 + 4 * 12 * 64 + 3 * 64 * (8 * 24 + 48) + 64 * 8 + 2 * 64 + 32);
}

TEST_CASE("Sparse attention has an indexer, which layers may share") {
  const std::string rest =
      R"("num_hidden_layers": 2, "num_attention_heads": 4, "kv_lora_rank": 32, "q_lora_rank": 40,
      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8,
      "num_experts_per_tok": 2,
      "moe_intermediate_size": 24, "index_topk": 256, "index_n_heads": 6, "index_head_dim": 10)";
  const outcome o = config_of("glm_moe_dsa", rest + R"(, "indexer_types": ["full", "shared"],
      "mlp_layer_types": ["dense", "sparse"], "intermediate_size": 77)");
  REQUIRE(o.problems == "");
  CHECK(dense_widths(o.m) == widths{77, 0});
  for (const layer_spec& l : o.m.layers) CHECK(l.sparse_keys == 256);
  CHECK(o.m.layers[0].index_heads == 6);
  CHECK(o.m.layers[1].index_heads == 0);
  layer_spec without = o.m.layers[0];
  without.index_heads = without.index_dim = 0;
  CHECK(layer_parameters(o.m, o.m.layers[0]) - layer_parameters(o.m, without) ==
        40 * 6 * 10 + 64 * 10 + 64 * 6 + 10);
  CHECK(config_of("deepseek_v32", R"("num_hidden_layers": 1, "num_attention_heads": 4, "kv_lora_rank": 32,
      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12, "n_routed_experts": 8,
      "num_experts_per_tok": 2,
      "moe_intermediate_size": 24)")
            .problems ==
        "m.json#: required member \"index_head_dim\" is missing\n"
        "m.json#: required member \"index_n_heads\" is missing\n"
        "m.json#: required member \"index_topk\" is missing\n");
}

TEST_CASE("DeepSeek-V4 compresses by layer, and chooses among keys where it pools four") {
  const std::string rest =
      R"("num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32,
      "q_lora_rank": 40, "o_lora_rank": 20, "o_groups": 2, "sliding_window": 128, "n_routed_experts": 8,
      "num_experts_per_tok": 2, "moe_intermediate_size": 24, "index_topk": 256, "index_n_heads": 6,
      "index_head_dim": 10, "num_nextn_predict_layers": 1)";
  const outcome o = config_of("deepseek_v4", rest + R"(, "compress_ratios": [0, 4, 128, 4])");
  REQUIRE(o.problems == "");
  const layer_spec &first = o.m.layers[0], &chosen = o.m.layers[1], &pooled = o.m.layers[2];
  CHECK(first.attention == attention_kind::compressed);
  CHECK(first.compressed == compressed_spec{40, 20, 2, 0});
  CHECK(first.sparse_keys == 0);
  CHECK(chosen.sparse_keys == 256);
  CHECK(chosen.index_heads == 6);
  CHECK(pooled.compressed.ratio == 128);
  CHECK(pooled.sparse_keys == 0);
  CHECK(o.m.mtp_block == std::vector{chosen});
  constexpr std::int64_t plain = 40 * (64 + 128) + 64 * 32 + 128 * 20 + 2 * 20 * 64;
  CHECK(parameters_by_part(o.m).attention ==
        3 * plain + (2 * 64 * 64 + 2 * 64 * 20 + 40 * 60 + 64 * 6) + 2 * 64 * 32);
  CHECK(config_of("deepseek_v4", rest).problems == "m.json#: required member \"compress_ratios\" is missing\n");
  CHECK(config_of("deepseek_v4", rest + R"(, "compress_ratios": [0])").problems ==
        "m.json#/compress_ratios: has 1 elements for 3 layers\n");
}

TEST_CASE("Qwen3.5 has gated attention in every fourth layer and linear attention in the others") {
  const std::string rest = R"("num_hidden_layers": 4, "linear_num_value_heads": 8, "linear_value_head_dim": 16,
      "linear_num_key_heads": 2, "linear_key_head_dim": 24, "linear_conv_kernel_dim": 4, )" +
                           heads;
  const outcome o = config_of("qwen3_5_moe", rest + R"(, "num_experts": 8, "num_experts_per_tok": 2,
      "moe_intermediate_size": 24, "shared_expert_intermediate_size": 20, "mtp_num_hidden_layers": 1)");
  REQUIRE(o.problems == "");
  const layer_spec &linear = o.m.layers.front(), &full = o.m.layers.back();
  CHECK(linear.attention == attention_kind::linear);
  CHECK(linear.scan == scan_spec{8, 16, 24, 0, 2, 4, 64});
  CHECK(linear.moe == moe_spec{8, 2, 24, 20});
  CHECK(full.attention == attention_kind::grouped_query);
  CHECK(full.attention_gate);
  CHECK(o.m.mtp_block == std::vector{full});
  CHECK(parameters_by_part(o.m).attention ==
        3 * (64 * (2 * 48 + 2 * 128 + 16 + 128) + 4 * (2 * 48 + 128)) + 64 * 16 * (3 * 4 + 2 * 2));
  const outcome listed = config_of("qwen3_5_text", rest + R"(, "intermediate_size": 80, "attn_output_gate": false,
      "layer_types": ["full_attention", "linear_attention", "linear_attention", "linear_attention"])");
  REQUIRE(listed.problems == "");
  CHECK(listed.m.layers.front().attention == attention_kind::grouped_query);
  CHECK_FALSE(listed.m.layers.front().attention_gate);
  CHECK(dense_widths(listed.m) == widths{80, 80, 80, 80});
}

TEST_CASE("Nemotron-H says its layers in letters or words") {
  const std::string rest =
      heads + R"(, "mamba_num_heads": 8, "mamba_head_dim": 4, "ssm_state_size": 16, "n_groups": 2,
      "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 24, "moe_latent_size": 20,
      "moe_shared_expert_intermediate_size": 48, "intermediate_size": 90, "time_step_limit": [0.0, Infinity])";
  const outcome o = config_of("nemotron_h", rest + R"(, "hybrid_override_pattern": "M*-E", "num_hidden_layers": 4,
      "num_nextn_predict_layers": 2, "mtp_hybrid_override_pattern": "*E")");
  REQUIRE(o.problems == "");
  const layer_spec &mamba = o.m.layers[0], &attention = o.m.layers[1], &mlp = o.m.layers[2], &moe = o.m.layers[3];
  CHECK(mamba.attention == attention_kind::mamba);
  CHECK(mamba.scan == scan_spec{8, 4, 16, 2, 0, 4});
  CHECK(attention.heads == 4);
  CHECK(attention.ffn_hidden == 0);
  CHECK(mlp.attention == attention_kind::none);
  CHECK(mlp.ffn_hidden == 90);
  CHECK_FALSE(mlp.gated_mlp);
  CHECK(moe.moe == moe_spec{8, 3, 24, 48, 20, true});
  CHECK(o.m.mtp_layers == 2);
  CHECK(o.m.mtp_block == std::vector{attention, moe});
  // One norm a layer, and that of the gate in a Mamba layer.
  CHECK(parameters_by_part(o.m).norms == 5 * 64 + 32);
  CHECK(layer_parameters(o.m, mamba) == 64 * (2 * 32 + 2 * 32 + 8) + 4 * (32 + 64) + 32 * 64 + 64 + 32);
  CHECK(layer_parameters(o.m, moe) == 2 * 20 * 24 * 8 + 2 * 64 * 48 + 2 * 64 * 20 + 64 * 8 + 64);
  const outcome words =
      config_of("nemotron_h", rest + R"(, "layers_block_type": ["mamba", "attention", "mlp", "moe"])");
  CHECK(words.problems == "");
  CHECK(words.m.layers == o.m.layers);
}

TEST_CASE("A pattern of layers that is wrong is said so") {
  const std::string mamba = R"("mamba_num_heads": 8, "mamba_head_dim": 4, "ssm_state_size": 16, "n_groups": 2)";
  CHECK(config_of("nemotron_h", mamba + R"(, "hybrid_override_pattern": "MX")").problems ==
        "m.json#/hybrid_override_pattern: layer 1: expected one of M (mamba), * (attention), - (mlp), E (moe)\n");
  CHECK(config_of("nemotron_h", mamba).problems ==
        "m.json#: required member \"hybrid_override_pattern\" is missing (nor \"layers_block_type\")\n");
  CHECK(config_of("nemotron_h", mamba + R"(, "hybrid_override_pattern": "MM", "num_hidden_layers": 3)").problems ==
        "m.json#/num_hidden_layers: 3 differs from the 2 layers of the pattern\n");
  CHECK(config_of("nemotron_h", mamba + R"(, "layers_block_type": ["mamba", "rwkv"])").problems ==
        "m.json#/layers_block_type: element 1: expected one of mamba, attention, mlp, moe, found \"rwkv\"\n");
  CHECK(config_of("nemotron_h", mamba + ", \"hybrid_override_pattern\": \"" + std::string(8193, 'M') + "\"")
            .problems == "m.json#/hybrid_override_pattern: 8193 layers are more than 8192\n");
  CHECK(config_of("nemotron_h", mamba + R"(, "hybrid_override_pattern": "M", "num_nextn_predict_layers": 1)")
            .problems ==
        "m.json#: required member \"mtp_hybrid_override_pattern\" is missing (nor \"mtp_layers_block_type\")\n");
}

TEST_CASE("BLOOM's names and ties") {
  const outcome o = read(R"({"model_type": "bloom", "n_embed": 64, "n_layer": 2, "num_attention_heads": 4,
      "vocab_size": 100, "pretraining_tp": 4})");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers == std::vector<layer_spec>(2, test::dense_layer(4, 4, 16, 256, false)));
  CHECK(o.m.tied_embeddings);
  CHECK(o.m.max_positions == 2048);
  CHECK(
      read(R"({"model_type": "bloom", "hidden_size": 64, "num_hidden_layers": 1, "n_head": 4, "vocab_size": 100})")
          .problems == "");
}

TEST_CASE("Types whose heads do not follow from the hidden size must say them") {
  const std::string rest = R"("num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 128)";
  CHECK(config_of("llama", rest).problems == "");
  CHECK(config_of("qwen3", rest).problems ==
        "m.json#: required member \"head_dim\" is missing\n"
        "m.json#: required member \"num_key_value_heads\" is missing\n");
}

namespace {

outcome native(const std::string& rest) {
  return read(R"({"schema": "nvlsim.model/1", "num_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
      "vocab_size": 100, "gated_mlp": true, "tied_embeddings": false, )" +
              rest + "}");
}
const std::string experts = R"("num_moe_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 96)";

}  // namespace

TEST_CASE("A model's own form says how the loads of experts were evened") {
  CHECK_FALSE(native(experts).m.layers.front().moe.balanced_by_bias);
  CHECK(native(experts + R"(, "moe_router_enable_expert_bias": true)").m.layers.front().moe.balanced_by_bias);
  CHECK(native(R"("ffn_hidden_size": 128, "moe_router_enable_expert_bias": true)").problems ==
        "m.json#/moe_router_enable_expert_bias: unknown member\n");
}

TEST_CASE("Native form has experts, and dense layers by frequency or by layer") {
  const outcome o = native(experts + R"(, "moe_shared_expert_intermediate_size": 48)");
  REQUIRE(o.problems == "");
  CHECK(dense_widths(o.m) == widths{0, 0, 0, 0});
  CHECK(o.m.layers.front().moe == moe_spec{8, 2, 96, 48});
  const std::string dense = experts + R"(, "ffn_hidden_size": 200, "moe_layer_freq": )";
  CHECK(dense_widths(native(dense + "2").m) == widths{0, 200, 0, 200});
  CHECK(dense_widths(native(dense + "[0, 1, 1, 1]").m) == widths{200, 0, 0, 0});
  CHECK(native(dense + "[0, 1]").problems == "m.json#/moe_layer_freq: has 2 elements for 4 layers\n");
  CHECK(native(dense + "[0, 1, 2, 1]").problems ==
        "m.json#/moe_layer_freq: element 2: expected an integer from 0 to 1\n");
  CHECK(native(experts + R"(, "moe_layer_freq": 2)").problems ==
        "m.json#: required member \"ffn_hidden_size\" is missing\n");
  CHECK(native(R"("ffn_hidden_size": 128, "moe_router_topk": 2)").problems ==
        "m.json#/moe_router_topk: unknown member\n");
  CHECK(native(R"("num_moe_experts": 2, "moe_router_topk": 3, "moe_ffn_hidden_size": 96)").problems ==
        "m.json#/moe_router_topk: 3 is more than the 2 experts\n");
}

TEST_CASE("Native form limits a token to some groups of experts") {
  const std::string eight = R"("num_moe_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 96)";
  const outcome o = native(eight + R"(, "moe_router_num_groups": 4, "moe_router_group_topk": 1)");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers.front().moe.groups == 4);
  CHECK(o.m.layers.front().moe.top_groups == 1);
  CHECK(native(eight).m.layers.front().moe.groups == 1);
  CHECK(native(eight + R"(, "moe_router_num_groups": 3)").problems ==
        "m.json#/moe_router_num_groups: 3 does not divide 8 experts\n");
  CHECK(native(eight + R"(, "moe_router_num_groups": 4, "moe_router_group_topk": 5)").problems ==
        "m.json#/moe_router_group_topk: 5 is more than the 4 groups of experts\n");
  CHECK(native(eight + R"(, "moe_router_num_groups": 8, "moe_router_group_topk": 1)").problems ==
        "m.json#/moe_router_group_topk: 1 groups have 1 experts, fewer than the 2 of a token\n");
}

TEST_CASE("Native form has latent attention, prediction layers and windows") {
  const outcome o = native(experts + R"(, "q_lora_rank": 40, "kv_lora_rank": 32, "qk_head_dim": 16,
      "qk_pos_emb_head_dim": 8, "v_head_dim": 12, "mtp_num_layers": 1)");
  REQUIRE(o.problems == "");
  CHECK(o.m.layers.front().attention == attention_kind::mla);
  CHECK(o.m.layers.front().mla == mla_spec{40, 32, 16, 8, 12});
  CHECK(o.m.mtp_layers == 1);
  CHECK(o.m.mtp_block == std::vector{o.m.layers.back()});
  CHECK(native(R"("ffn_hidden_size": 128, "kv_lora_rank": 32, "num_query_groups": 2)").problems ==
        "m.json#: required member \"qk_head_dim\" is missing\n"
        "m.json#: required member \"qk_pos_emb_head_dim\" is missing\n"
        "m.json#: required member \"v_head_dim\" is missing\n"
        "m.json#/num_query_groups: unknown member\n");
  const std::string dense = R"("ffn_hidden_size": 128, "sliding_window": 512)";
  CHECK(windows(native(dense).m) == widths{512, 512, 512, 512});
  CHECK(windows(native(dense + R"(, "window_attn_skip_freq": 2)").m) == widths{512, 0, 512, 0});
}
