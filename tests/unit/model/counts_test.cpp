#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/model/shipped.hpp"

using namespace nvlsim;
using nvlsim::test::dense_layer;
using nvlsim::test::shared_data;
using nvlsim::test::shipped;
using nvlsim::test::small_model;

namespace {

/// Parameters (embeddings in, norms out) and training FLOPs per token, as derived with Megatron-Bridge's
/// flop_utils.py (v0.3.1) by whoever collected the published runs; blank where the vocabulary is not published.
struct published {
  std::string model, parameters, active, causal_4096, causal_8192, full_8192;
};
const published published_counts[] = {
    {"llama3-8b", "8.03e+09", "8.03e+09", "4.82492e+10", "5.14704e+10", "5.79129e+10"},
    {"llama3-70b", "7.0552e+10", "7.0552e+10", "4.33116e+11", "4.49223e+11", "4.81435e+11"},
    {"llama3.1-405b", "4.0585e+11", "4.0585e+11", "2.47322e+12", "2.52396e+12", "2.62542e+12"},
    {"llama2-70b", "6.8975e+10", "6.8975e+10", "4.28385e+11", "4.44491e+11", "4.76704e+11"},
    {"gpt3-175b", "1.7458e+11", "1.7458e+11", "1.07644e+12", "1.10543e+12", "1.16342e+12"},
    {"deepseek-v3", "6.7103e+11", "3.7551e+10", "2.59993e+11", "2.91199e+11", "3.5361e+11"},
    {"deepseek-v3-nomtp", "6.7103e+11", "3.7551e+10", "2.49812e+11", "2.80514e+11", "3.41919e+11"},
    {"kimi-k2", "1.0264e+12", "3.286e+10", "2.04477e+11", "2.19829e+11", "2.50531e+11"},
    {"qwen3-30b-a3b", "3.0532e+10", "3.3528e+09", "2.30063e+10", "2.78381e+10", "3.75018e+10"},
    {"qwen3-235b-a22b", "2.3509e+11", "2.219e+10", "1.48035e+11", "1.6696e+11", "2.04809e+11"},
    {"gpt-oss-120b", "1.1679e+11", "5.7102e+09", "3.25755e+10", "3.43875e+10", "3.8068e+10"},
    {"grok1-314b", "3.1645e+11", "8.4526e+10", "5.12071e+11", "5.21735e+11", "5.41062e+11"},
    {"nemotron4-15b", "1.5628e+10", "1.5628e+10", "8.91625e+10", "9.39944e+10", "1.03658e+11"},
    {"nemotron4-340b", "3.4102e+11", "3.4102e+11", "2.06131e+12", "2.10479e+12", "2.19177e+12"},
    {"llama4-maverick", "4.0071e+11", "1.7184e+10", "1.02844e+11", "1.08883e+11", "1.20963e+11"},
    {"sc21-gpt-1.7b", "1.6468e+09", "1.6468e+09", "1.12397e+10", "1.25986e+10", "1.53165e+10"},
    {"sc21-gpt-3.6b", "3.5547e+09", "3.5547e+09", "2.3593e+10", "2.58579e+10", "3.03877e+10"},
    {"sc21-gpt-7.5b", "7.4575e+09", "7.4575e+09", "4.83687e+10", "5.19926e+10", "5.92403e+10"},
    {"sc21-gpt-18b", "1.8434e+10", "1.8434e+10", "1.16644e+11", "1.22683e+11", "1.34763e+11"},
    {"sc21-gpt-39b", "3.9074e+10", "3.9074e+10", "2.44108e+11", "2.53772e+11", "2.731e+11"},
    {"sc21-gpt-76b", "7.6022e+10", "7.6022e+10", "4.7123e+11", "4.8633e+11", "5.16529e+11"},
    {"sc21-gpt-145b", "1.4558e+11", "1.4558e+11", "8.97665e+11", "9.21824e+11", "9.70143e+11"},
    {"sc21-gpt-310b", "3.1008e+11", "3.1008e+11", "1.89911e+12", "1.93777e+12", "2.01508e+12"},
    {"sc21-gpt-530b", "5.2953e+11", "5.2953e+11", "3.23003e+12", "3.28288e+12", "3.38858e+12"},
    {"sc21-gpt-1t", "1.0079e+12", "1.0079e+12", "6.12819e+12", "6.20872e+12", "6.36978e+12"},
    {"korth-gpt-22b", "2.2058e+10", "2.2058e+10", "1.39595e+11", "1.46843e+11", "1.61338e+11"},
    {"korth-gpt-175b", "1.7458e+11", "1.7458e+11", "1.07644e+12", "1.10543e+12", "1.16342e+12"},
    {"korth-gpt-530b", "5.2953e+11", "5.2953e+11", "3.23003e+12", "3.28288e+12", "3.38858e+12"},
    {"korth-gpt-1t", "1.0079e+12", "1.0079e+12", "6.12819e+12", "6.20872e+12", "6.36978e+12"},
    {"mcore-gpt-1.7b", "1.7448e+09", "1.7448e+09", "1.00663e+10", "1.12743e+10", "1.36902e+10"},
    {"mcore-gpt-7.1b", "7.1135e+09", "7.1135e+09", "4.24799e+10", "4.54998e+10", "5.15396e+10"},
    {"mcore-gpt-16b", "1.6106e+10", "1.6106e+10", "9.66368e+10", "1.01469e+11", "1.11132e+11"},
    {"mcore-gpt-32b", "3.1474e+10", "3.1474e+10", "1.91663e+11", "2.00119e+11", "2.1703e+11"},
    {"mcore-gpt-70b", "6.9793e+10", "6.9793e+10", "4.29228e+11", "4.4614e+11", "4.79963e+11"},
    {"mcore-gpt-119b", "1.1845e+11", "1.1845e+11", "7.25782e+11", "7.48935e+11", "7.9524e+11"},
    {"mcore-gpt-177b", "1.7717e+11", "1.7717e+11", "1.08233e+12", "1.11132e+12", "1.1693e+12"},
    {"mcore-gpt-314b", "3.1353e+11", "3.1353e+11", "1.90697e+12", "1.94562e+12", "2.02293e+12"},
    {"mcore-gpt-462b", "4.6144e+11", "4.6144e+11", "2.80488e+12", "2.85562e+12", "2.95708e+12"},
    {"megascale-175b", "1.7395e+11", "1.7395e+11", "", "", ""},
    {"megascale-530b", "5.2848e+11", "5.2848e+11", "", "", ""},
    {"llama3.1-405b-proxy8", "2.9704e+10", "2.9704e+10", "1.68838e+11", "1.72059e+11", "1.78501e+11"},
    {"llama3.1-405b-proxy30", "9.9833e+10", "9.9833e+10", "5.98468e+11", "6.10548e+11", "6.34707e+11"},
    {"llama3.1-405b-proxy62", "2.0184e+11", "2.0184e+11", "1.22339e+12", "1.24835e+12", "1.29828e+12"},
    {"grok1-proxy2", "1.1416e+10", "4.1682e+09", "2.05825e+10", "2.08845e+10", "2.14885e+10"},
    {"grok1-proxy4", "2.1256e+10", "6.7604e+09", "3.6437e+10", "3.70409e+10", "3.82489e+10"},
    {"grok1-proxy8", "4.0936e+10", "1.1945e+10", "6.81459e+10", "6.93539e+10", "7.17698e+10"},
    {"grok1-proxy16", "8.0295e+10", "2.2313e+10", "1.31564e+11", "1.3398e+11", "1.38812e+11"},
    {"grok1-proxy32", "1.5901e+11", "4.3051e+10", "2.584e+11", "2.63231e+11", "2.72895e+11"},
};

void check_row(const published& row) {
  INFO(row.model);
  const model m = shipped(row.model);
  if (row.causal_4096.empty()) {
    const parameter_parts p = parameters_by_part(m);
    CHECK(fmt::format("{:.5g}", static_cast<double>(p.attention + p.mlp)) == row.parameters);
    return;
  }
  const auto norms = parameters_by_part(m).norms;
  CHECK(fmt::format("{:.5g}", static_cast<double>(parameters(m) - norms)) == row.parameters);
  CHECK(fmt::format("{:.5g}", static_cast<double>(active_parameters(m) - norms)) == row.active);
  CHECK(fmt::format("{:.6g}", training_flops_per_token(m, 4096, true)) == row.causal_4096);
  CHECK(fmt::format("{:.6g}", training_flops_per_token(m, 8192, true)) == row.causal_8192);
  CHECK(fmt::format("{:.6g}", training_flops_per_token(m, 8192, false)) == row.full_8192);
}

const layer_spec mha = dense_layer(8, 8, 16, 512, false);

}  // namespace

TEST_CASE("Counts reproduce the published digits of every model") {
  for (const published& row : published_counts) check_row(row);
}

TEST_CASE("Counts reproduce models.csv beside the source, if there") {
  const std::filesystem::path path = shared_data / "models.csv";
  if (!std::filesystem::exists(path)) return;
  std::size_t printed = 0;
  for (auto& row : test::table(path)) {
    if (row["params_total_derived"].empty()) continue;
    ++printed;
    check_row({row["model"], row["params_total_derived"], row["params_active_derived"],
               row["train_flops_per_token_causal_s4096"], row["train_flops_per_token_causal_s8192"],
               row["train_flops_per_token_noncausal_s8192"]});
  }
  CHECK(printed >= std::size(published_counts));
}

TEST_CASE("Parameters are those of the published checkpoints") {
  CHECK(parameters(shipped("llama2-7b")) == 6'738'415'616);
  CHECK(parameters(shipped("llama2-70b")) == 68'976'648'192);
  CHECK(parameters(shipped("llama3-8b")) == 8'030'261'248);
  CHECK(parameters(shipped("llama3.1-8b")) == 8'030'261'248);
  CHECK(parameters(shipped("llama3.3-70b")) == 70'553'706'496);
  CHECK(parameters(shipped("llama3.1-405b")) == 405'853'388'800);
  CHECK(parameters(shipped("qwen3-32b")) == 32'762'123'264);
  CHECK(parameters(shipped("qwen3-30b-a3b")) == 30'532'122'624);
  CHECK(parameters(shipped("qwen3-235b-a22b")) == 235'093'634'560);
  CHECK(parameters(shipped("mixtral-8x7b")) == 46'702'792'704);
  CHECK(parameters(shipped("mixtral-8x22b")) == 140'620'634'112);
}

TEST_CASE("Parameters and what they leave out are those of the published checkpoints") {
  // Biases of the router that balance load, one an expert; the checkpoint repeats embedding and output for MTP.
  const model v3 = shipped("deepseek-v3");
  CHECK(parameters(v3) + 58 * 256 == 671'026'419'200);
  CHECK(parameters(v3) + mtp_parameters(v3) + 59 * 256 + 2 * v3.vocab * v3.hidden == 684'489'845'504);
  CHECK(parameters(shipped("kimi-k2")) + 60 * 384 == 1'026'408'232'448);
  // Biases of queries, keys, values, output, router and experts, and a sink a head.
  constexpr std::int64_t attention_biases = 4096 + 2 * 512 + 2880 + 64, expert_biases = 3 * 2880;
  CHECK(parameters(shipped("gpt-oss-120b")) + 36 * (attention_biases + 128 + 128 * expert_biases) ==
        116'829'156'672);
  CHECK(parameters(shipped("gpt-oss-20b")) + 24 * (attention_biases + 32 + 32 * expert_biases) == 20'914'757'184);
  // The bias of the convolution, and A, D and the bias of the step of every head.
  CHECK(parameters(shipped("nemotron-3-nano")) + 23 * (64 * 64 + 2 * 8 * 128 + 3 * 64) == 31'577'937'344);
  // Its QK norms have a gain for every head, not one for all.
  CHECK(parameters(shipped("minimax-m2.5")) == 228'689'748'992);
}

TEST_CASE("Parameters of later architectures are those their sources state") {
  struct row {
    const char* model;
    double total, active;  ///< billions; 0: not stated
  };
  // Counts of checkpoints or cards, less what they have beside the text model (prediction modules, towers).
  const row rows[] = {
      {"qwen2.5-32b", 32.764, 0},           {"qwen2-57b-a14b", 57.41, 14.25},
      {"qwen3-next-80b-a3b", 79.67, 3.87},  {"mistral-small-24b", 23.572, 0},
      {"ministral-3-14b", 13.51, 0},        {"glm-4.5-air", 106.852, 13.42},
      {"glm-4.5", 352.80, 33.63},           {"glm-4.7-flash", 29.943, 3.897},
      {"kimi-linear-48b-a3b", 49.12, 3.48}, {"minimax-m3", 426.175, 25.96},
      {"ernie-4.5-21b-a3b", 21.825, 3.35},  {"step-3.5-flash", 196.956, 11.99},
      {"nemotron-super-49b", 49.87, 0},     {"nemotron-ultra-253b", 253.40, 0},
      {"mimo-v2.6-flash", 308.78, 15.45},   {"gemma4-12b", 11.907, 0},
      {"gemma4-26b-a4b", 25.233, 3.82},     {"gemma4-31b", 30.697, 0},
      {"gemma4-e2b", 4.629, 2.28},          {"gemma4-e4b", 7.463, 4.64},
      {"glm-5.3-flash", 313.327, 17.37},    {"qwen3.8-flash-next", 176.25, 6.63},
      {"deepseek-v4.1-flash", 748.12, 0},   {"qwen3-8b", 8.191, 0},
      {"glm-5.2", 743.377, 41.25},          {"moonlight-16b-a3b", 15.96, 0},
  };
  for (const row& r : rows) {
    INFO(r.model);
    const model m = shipped(r.model);
    CHECK(static_cast<double>(parameters(m)) / 1e9 == Approx(r.total).epsilon(0.001));
    if (r.active > 0) CHECK(static_cast<double>(active_parameters(m)) / 1e9 == Approx(r.active).epsilon(0.003));
  }
  // Nemotron 3 Nano 4B, whole: biases of convolutions, and three scalars a head.
  CHECK(parameters(shipped("nemotron-3-nano-4b")) + 21 * (96 * 80 + 2 * 8 * 128 + 3 * 96) == 3'973'556'832);
  // Delta attention with vectors of decay has 137,732,288 in the tensor headers: also a bias of every decay and a
  // scalar a head.
  const model next = shipped("glm-5.3-flash");
  const std::int64_t mlp = 3 * next.hidden * next.layers[0].ffn_hidden, norms = 2 * next.hidden;
  CHECK(layer_parameters(next, next.layers[0]) - mlp - norms + 64 * 128 + 64 == 137'732'288);
}

TEST_CASE("Towers are counted where their sizes are stated") {
  const auto vision = [](const char* name) { return shipped(name).towers.at(0); };
  CHECK(vision("qwen3.6-27b").name == "vision");
  CHECK(static_cast<double>(vision("qwen3.6-27b").parameters) == Approx(0.46e9).epsilon(0.01));  // 27.78 - 27.32
  CHECK(static_cast<double>(vision("gemma4-26b-a4b").parameters) == Approx(0.577e9).epsilon(0.03));
  CHECK(tower_parameters(shipped("qwen3-8b")) == 0);
}

TEST_CASE("Active parameters are those its authors state") {
  const auto stated = [](const char* name, double total, double active, bool embedding) {
    INFO(name);
    const model m = shipped(name);
    CHECK(static_cast<double>(parameters(m)) / 1e9 == Approx(total).margin(0.5));
    const std::int64_t counted = active_parameters(m) - (embedding ? 0 : parameters_by_part(m).embedding);
    CHECK(static_cast<double>(counted) / 1e9 == Approx(active).margin(0.51));
  };
  stated("deepseek-v3", 671, 37, false);  // DeepSeek-V3 report
  stated("kimi-k2", 1026, 32, false);     // model card: 1T, 32B
  stated("glm-5", 744, 40.5, false);      // 744B, 40B
  stated("deepseek-v4-flash", 284, 13, false);
  stated("deepseek-v4-pro", 1573, 49, false);  // model card: 1.6T, 49B
  stated("nemotron-3-super", 120.6, 12.7, true);
  stated("nemotron-3-nano", 31.6, 3.6, true);
  stated("qwen3.5-397b-a17b", 396.5, 17, true);
  stated("llama4-maverick", 400.7, 17, true);
  stated("mixtral-8x7b", 46.7, 12.9, true);
  // OpenAI's model card counts the output but not the embedding, and prints 5.13B and 3.61B.
  const auto without_embedding = [](const model& m) {
    return active_parameters(m) - parameters_by_part(m).embedding;
  };
  CHECK(static_cast<double>(without_embedding(shipped("gpt-oss-120b"))) == Approx(5.13e9).margin(5e6));
  CHECK(static_cast<double>(without_embedding(shipped("gpt-oss-20b"))) == Approx(3.61e9).margin(5e6));
}

TEST_CASE("Training FLOPs are what published TFLOP/s over tokens/s imply") {
  struct row {
    const char* model;
    std::int64_t sequence;
    bool causal;
    flop_rules rules;
    double flops, within;
  };
  constexpr auto now = flop_rules::since_26_06, before = flop_rules::before_26_06;
  const row rows[] = {
      // Megatron-Bridge performance summaries by release; NVIDIA's benchmark recipes v25.05.05.
      {"gpt-oss-120b", 4096, true, now, 32.58e9, 0.001},      // 26.06: 943 / 28947
      {"gpt-oss-120b", 4096, true, before, 27.17e9, 0.002},   // 26.04: 433 / 15938
      {"gpt-oss-120b", 8192, true, before, 30.80e9, 0.003},   // 25.11: 565 / 18347
      {"deepseek-v3", 4096, true, now, 260.0e9, 0.002},       // 26.04: 732 / 2815
      {"deepseek-v4-flash", 4096, true, now, 90.9e9, 0.003},  // 26.08: 748 / 8224 and 706 / 7776
      {"nemotron-3-super", 8192, true, now, 84.94e9, 0.004},  // 26.06.01: 598 / 7040
      {"nemotron-3-ultra", 8192, true, now, 360.6e9, 0.002},  // 26.08: 1281 / 3552
      {"nemotron-h-56b", 8192, false, now, 343.7e9, 0.002},   // 558.7 / 1625.5
      {"llama4-maverick", 8192, true, now, 108.9e9, 0.001},   // 1171.1 / 10755.95
  };
  for (const row& r : rows) {
    INFO(r.model << " " << r.sequence);
    CHECK(training_flops_per_token(shipped(r.model), r.sequence, r.causal, r.rules) ==
          Approx(r.flops).epsilon(r.within));
  }
  // Megatron-Bridge takes 2h for the inner width of a scan; that of Nemotron 3 Nano is 4096 and not 5376.
  CHECK(training_flops_per_token(shipped("nemotron-3-nano"), 8192, true) ==
        Approx(22.28e9).epsilon(0.001));  // 26.04: 729 / 32727
}

TEST_CASE("Counts of a small GPT follow the textbook formulas") {
  const model m = small_model(3, mha);  // h = 128, f = 4h, multi-head: 12 h^2 a layer
  CHECK(layer_parameters(m, mha) == 12 * 128 * 128 + 2 * 128);
  CHECK(parameters(m) == 3 * (12 * 128 * 128 + 2 * 128) + 2 * 1000 * 128 + 128);
  // 72 L h^2 (1 + s/6h + V/12Lh) with full attention, arXiv 2205.05198 equation 7.
  const double h = 128, s = 64, v = 1000, layers = 3;
  const double korthikanti = 72 * layers * h * h * (1 + s / (6 * h) + v / (12 * layers * h));
  CHECK(training_flops_per_token(m, 64, false) == Approx(korthikanti).epsilon(1e-14));
  CHECK(kv_bytes_per_token(m, precision::bf16) == 3 * 2 * 128 * 2);
  CHECK(weight_bytes(m, precision::bf16) == 2.0 * static_cast<double>(parameters(m)));
}

TEST_CASE("Parts of the parameters add up, and a tied output layer has none") {
  for (const bool tied : {false, true}) {
    model m = small_model(2, dense_layer(8, 2, 16, 512, true, qk_norm_kind::per_head));
    m.tied_embeddings = tied;
    const parameter_parts p = parameters_by_part(m);
    CHECK(p.embedding + p.attention + p.mlp + p.norms + p.output == parameters(m));
    CHECK(p.output == (tied ? 0 : 128'000));
    CHECK(p.norms == 2 * (2 * 128 + 2 * 16) + 128);
    CHECK(p.mlp == 2 * 3 * 128 * 512);
    CHECK(p.attention == 2 * 2 * 128 * (128 + 32));
  }
}

TEST_CASE("Training FLOPs per token are affine in the sequence, and logits count when tied") {
  for (const char* name : {"llama3-8b", "gpt3-175b", "qwen3-32b"}) {
    model m = shipped(name);
    for (const bool causal : {false, true}) {
      const double step = training_flops_per_token(m, 2048, causal) - training_flops_per_token(m, 1024, causal);
      CHECK(training_flops_per_token(m, 5120, causal) - training_flops_per_token(m, 4096, causal) == Approx(step));
      CHECK(step > 0);
    }
    for (const std::int64_t s : {1, 128, 8192, 1 << 20}) {
      CHECK(training_flops_per_token(m, s, false) > training_flops_per_token(m, s, true));
      CHECK(training_flops_per_token(m, s, false) == training_flops_per_token(m, 2 * s, true));
    }
    const double untied = training_flops_per_token(m, 4096, true);
    m.tied_embeddings = !m.tied_embeddings;
    CHECK(training_flops_per_token(m, 4096, true) == untied);
  }
}

TEST_CASE("KV bytes scale with layers, KV heads and precision, not with query heads") {
  const layer_spec l = dense_layer(32, 8, 128, 4096);
  CHECK(kv_bytes_per_token(small_model(6, l), precision::bf16) ==
        3 * kv_bytes_per_token(small_model(2, l), precision::bf16));
  CHECK(kv_bytes_per_token(small_model(6, l), precision::fp8) ==
        kv_bytes_per_token(small_model(6, l), precision::bf16) / 2);
  layer_spec more_queries = l, more_keys = l;
  more_queries.heads = 64;
  more_keys.kv_heads = 16;
  CHECK(kv_bytes_per_token(small_model(1, more_queries), precision::fp8) ==
        kv_bytes_per_token(small_model(1, l), precision::fp8));
  CHECK(kv_bytes_per_token(small_model(1, more_keys), precision::fp8) ==
        2 * kv_bytes_per_token(small_model(1, l), precision::fp8));
  // 80 layers, 8 KV heads of 128: 320 KiB a token in BF16, the figure every serving guide quotes.
  CHECK(kv_bytes_per_token(shipped("llama3.1-70b"), precision::bf16) == 320.0 * 1024);
}

TEST_CASE("Latent attention caches one vector a token, a window only its own tokens") {
  // 61 x (512 + 64) x 2 B, the figure of the DeepSeek-V3 report; V3.2 adds one key of its indexer.
  CHECK(kv_bytes_per_token(shipped("deepseek-v3"), precision::bf16) == 61 * 576 * 2);
  CHECK(kv_bytes_per_token(shipped("deepseek-v3.2"), precision::bf16) == 61 * (576 + 128) * 2);
  const model oss = shipped("gpt-oss-120b");
  const double layer = 2 * 8 * 64 * 2;
  CHECK(kv_bytes_per_token(oss, precision::bf16) == 36 * layer);
  CHECK(kv_bytes_per_sequence(oss, precision::bf16, 100) == 36 * layer * 100);
  CHECK(kv_bytes_per_sequence(oss, precision::bf16, 1000) == 18 * layer * (1000 + 128));
  // 9.62 GiB for a million tokens in BF16, a tenth of V3.2's, says DeepSeek.
  const double v4 = kv_bytes_per_sequence(shipped("deepseek-v4-pro"), precision::bf16, 1 << 20);
  CHECK(v4 / (1 << 30) == Approx(9.62).epsilon(0.001));
  CHECK(v4 / kv_bytes_per_sequence(shipped("deepseek-v3.2"), precision::bf16, 1 << 20) ==
        Approx(0.1).epsilon(0.15));
}

TEST_CASE("Scans have a state of fixed size and no cache") {
  const model nano = shipped("nemotron-3-nano");
  CHECK(kv_bytes_per_token(nano, precision::bf16) == 6 * 2 * 2 * 128 * 2);
  CHECK(state_bytes_per_sequence(nano) == 23 * (64 * 64 * 128 * 4 + 3 * (64 * 64 + 2 * 8 * 128) * 2));
  const model qwen = shipped("qwen3.5-397b-a17b");
  CHECK(kv_bytes_per_token(qwen, precision::bf16) == 15 * 2 * 2 * 256 * 2);
  CHECK(state_bytes_per_sequence(qwen) == 45 * (64 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 64 * 128) * 2));
  CHECK(state_bytes_per_sequence(shipped("llama3-8b")) == 0);
}

TEST_CASE("Routed experts count once each in parameters and top-k times in FLOPs") {
  layer_spec l = mha;
  l.gated_mlp = true;
  l.moe = {.experts = 16, .top_k = 2, .expert_ffn = 256, .shared_ffn = 64};
  const model m = small_model(4, l);
  const parameter_parts p = parameters_by_part(m);
  CHECK(p.experts == 4 * 16 * 3 * 128 * 256);
  CHECK(p.mlp == 4 * 3 * 128 * 64);
  CHECK(p.router == 4 * 128 * 16);
  CHECK(p.embedding + p.attention + p.mlp + p.experts + p.router + p.norms + p.output == parameters(m));
  CHECK(parameters(m) - active_parameters(m) == 4 * 14 * 3 * 128 * 256);
  model dense = m;
  for (layer_spec& d : dense.layers) d.moe = {}, d.ffn_hidden = 2 * 256 + 64;
  CHECK(training_flops_per_token(m, 512, true) == training_flops_per_token(dense, 512, true));
  for (layer_spec& d : dense.layers) CHECK(layer_parameters(m, l) > layer_parameters(dense, d));
  model latent = m;
  for (layer_spec& d : latent.layers) d.moe.latent = 32;
  CHECK(parameters_by_part(latent).experts == p.experts / 4);
  CHECK(parameters_by_part(latent).mlp == p.mlp + 4 * 2 * 128 * 32);
}

TEST_CASE("Windows and chosen keys bound what a query attends to") {
  model all = small_model(2, mha), windowed = all, sparse = all;
  for (layer_spec& l : windowed.layers) l.window = 64;
  for (layer_spec& l : sparse.layers) l.sparse_keys = 64;
  for (const bool causal : {false, true}) {
    CHECK(training_flops_per_token(windowed, 64, causal) == training_flops_per_token(all, 64, causal));
    CHECK(training_flops_per_token(sparse, 64, causal) == training_flops_per_token(all, 64, causal));
    CHECK(training_flops_per_token(windowed, 4096, causal) == training_flops_per_token(all, 64, causal));
    CHECK(training_flops_per_token(windowed, 4096, causal, flop_rules::before_26_06) ==
          training_flops_per_token(all, 4096, causal));
  }
  // The first 64 queries see 32 keys on average, the others 64.
  const double pairs = training_flops_per_token(sparse, 4096, true) - training_flops_per_token(all, 0, true);
  CHECK(pairs == Approx(2 * 12 * 128 * (64 * 32.0 + 4032 * 64.0) / 4096));
}

TEST_CASE("Counts of a model at every bound fit in 64 bits") {
  model m;
  m.hidden = 1 << 18;
  m.vocab = 1 << 26;
  m.layers.assign(1 << 13, dense_layer(1 << 13, 1 << 13, 1 << 13, 1 << 22, true, qk_norm_kind::per_head));
  const double exact = 8192.0 * (4.0 * 262144 * 67108864 + 3.0 * 262144 * 4194304 + 2.0 * 262144 + 2.0 * 8192) +
                       2.0 * 67108864 * 262144 + 262144;
  CHECK(static_cast<double>(parameters(m)) == Approx(exact).epsilon(1e-12));
  layer_spec routed = m.layers.front();
  routed.ffn_hidden = 0;
  routed.moe = {.experts = 1 << 13, .top_k = 1, .expert_ffn = 1 << 17, .shared_ffn = 1 << 22, .latent = 1 << 18};
  m.layers.assign(1 << 13, routed);
  const double experts = 8192.0 * 8192.0 * 3 * 262144 * 131072;
  CHECK(static_cast<double>(parameters_by_part(m).experts) == experts);
  CHECK(static_cast<double>(parameters(m)) == Approx(experts).epsilon(0.1));
  layer_spec compressed{
      .attention = attention_kind::compressed, .heads = 1 << 13, .kv_heads = 1, .head_dim = 1 << 13};
  compressed.compressed = {.q_lora_rank = 1 << 16, .o_lora_rank = 1 << 16, .o_groups = 1 << 10, .ratio = 4};
  m.layers.assign(1 << 13, compressed);
  CHECK(static_cast<double>(parameters(m)) ==
        Approx(8192.0 * 65536 * (2 * 67108864.0 + 1025 * 262144.0)).epsilon(0.1));
}
