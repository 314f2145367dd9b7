#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "unit/model/shipped.hpp"

using namespace nvlsim;
using nvlsim::test::shipped;

namespace {

/// Parameters (embeddings in, norms out) and training FLOPs per token, as derived with Megatron-Bridge's flop_utils.py
/// (v0.3.1) by whoever collected the published runs; blank where the vocabulary is not published.
struct published {
  std::string model, parameters, causal_4096, causal_8192, full_8192;
};
const published published_counts[] = {
    {"llama3-8b", "8.03e+09", "4.82492e+10", "5.14704e+10", "5.79129e+10"},
    {"llama3-70b", "7.0552e+10", "4.33116e+11", "4.49223e+11", "4.81435e+11"},
    {"llama3.1-405b", "4.0585e+11", "2.47322e+12", "2.52396e+12", "2.62542e+12"},
    {"llama2-70b", "6.8975e+10", "4.28385e+11", "4.44491e+11", "4.76704e+11"},
    {"gpt3-175b", "1.7458e+11", "1.07644e+12", "1.10543e+12", "1.16342e+12"},
    {"nemotron4-15b", "1.5628e+10", "8.91625e+10", "9.39944e+10", "1.03658e+11"},
    {"nemotron4-340b", "3.4102e+11", "2.06131e+12", "2.10479e+12", "2.19177e+12"},
    {"sc21-gpt-1.7b", "1.6468e+09", "1.12397e+10", "1.25986e+10", "1.53165e+10"},
    {"sc21-gpt-3.6b", "3.5547e+09", "2.3593e+10", "2.58579e+10", "3.03877e+10"},
    {"sc21-gpt-7.5b", "7.4575e+09", "4.83687e+10", "5.19926e+10", "5.92403e+10"},
    {"sc21-gpt-18b", "1.8434e+10", "1.16644e+11", "1.22683e+11", "1.34763e+11"},
    {"sc21-gpt-39b", "3.9074e+10", "2.44108e+11", "2.53772e+11", "2.731e+11"},
    {"sc21-gpt-76b", "7.6022e+10", "4.7123e+11", "4.8633e+11", "5.16529e+11"},
    {"sc21-gpt-145b", "1.4558e+11", "8.97665e+11", "9.21824e+11", "9.70143e+11"},
    {"sc21-gpt-310b", "3.1008e+11", "1.89911e+12", "1.93777e+12", "2.01508e+12"},
    {"sc21-gpt-530b", "5.2953e+11", "3.23003e+12", "3.28288e+12", "3.38858e+12"},
    {"sc21-gpt-1t", "1.0079e+12", "6.12819e+12", "6.20872e+12", "6.36978e+12"},
    {"korth-gpt-22b", "2.2058e+10", "1.39595e+11", "1.46843e+11", "1.61338e+11"},
    {"korth-gpt-175b", "1.7458e+11", "1.07644e+12", "1.10543e+12", "1.16342e+12"},
    {"korth-gpt-530b", "5.2953e+11", "3.23003e+12", "3.28288e+12", "3.38858e+12"},
    {"korth-gpt-1t", "1.0079e+12", "6.12819e+12", "6.20872e+12", "6.36978e+12"},
    {"mcore-gpt-1.7b", "1.7448e+09", "1.00663e+10", "1.12743e+10", "1.36902e+10"},
    {"mcore-gpt-7.1b", "7.1135e+09", "4.24799e+10", "4.54998e+10", "5.15396e+10"},
    {"mcore-gpt-16b", "1.6106e+10", "9.66368e+10", "1.01469e+11", "1.11132e+11"},
    {"mcore-gpt-32b", "3.1474e+10", "1.91663e+11", "2.00119e+11", "2.1703e+11"},
    {"mcore-gpt-70b", "6.9793e+10", "4.29228e+11", "4.4614e+11", "4.79963e+11"},
    {"mcore-gpt-119b", "1.1845e+11", "7.25782e+11", "7.48935e+11", "7.9524e+11"},
    {"mcore-gpt-177b", "1.7717e+11", "1.08233e+12", "1.11132e+12", "1.1693e+12"},
    {"mcore-gpt-314b", "3.1353e+11", "1.90697e+12", "1.94562e+12", "2.02293e+12"},
    {"mcore-gpt-462b", "4.6144e+11", "2.80488e+12", "2.85562e+12", "2.95708e+12"},
    {"megascale-175b", "1.7395e+11", "", "", ""},
    {"megascale-530b", "5.2848e+11", "", "", ""},
    {"llama3.1-405b-proxy8", "2.9704e+10", "1.68838e+11", "1.72059e+11", "1.78501e+11"},
    {"llama3.1-405b-proxy30", "9.9833e+10", "5.98468e+11", "6.10548e+11", "6.34707e+11"},
    {"llama3.1-405b-proxy62", "2.0184e+11", "1.22339e+12", "1.24835e+12", "1.29828e+12"},
};

std::int64_t without_norms(const model& m) { return parameters(m) - parameters_by_part(m).norms; }

void check_row(const published& row) {
  INFO(row.model);
  const model m = shipped(row.model);
  if (row.causal_4096.empty()) {
    const parameter_parts p = parameters_by_part(m);
    CHECK(fmt::format("{:.5g}", static_cast<double>(p.attention + p.mlp)) == row.parameters);
    return;
  }
  CHECK(fmt::format("{:.5g}", static_cast<double>(without_norms(m))) == row.parameters);
  CHECK(fmt::format("{:.6g}", training_flops_per_token(m, 4096, true)) == row.causal_4096);
  CHECK(fmt::format("{:.6g}", training_flops_per_token(m, 8192, true)) == row.causal_8192);
  CHECK(fmt::format("{:.6g}", training_flops_per_token(m, 8192, false)) == row.full_8192);
}

/// The cells of a CSV line; quoted ones may hold commas.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) out.emplace_back();
    else if (c != '\r') out.back() += c;
  }
  return out;
}

std::vector<std::map<std::string, std::string>> table(const std::filesystem::path& path) {
  std::vector<std::map<std::string, std::string>> rows;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = cells(line);
  while (std::getline(in, line)) {
    const std::vector<std::string> row = cells(line);
    for (std::size_t i = 0; i < header.size() && i < row.size(); ++i) {
      if (i == 0) rows.emplace_back();
      rows.back()[header[i]] = row[i];
    }
  }
  return rows;
}

const layer_spec mha{8, 8, 16, 512, false};
model small(std::size_t layers, const layer_spec& l) {
  model m;
  m.hidden = 128;
  m.vocab = 1000;
  m.layers.assign(layers, l);
  return m;
}

}  // namespace

TEST_CASE("Counts reproduce the published digits of every dense model") {
  for (const published& row : published_counts) check_row(row);
}

TEST_CASE("Counts reproduce models.csv beside the source, if there") {
  const std::filesystem::path path = std::filesystem::path(NVLSIM_SOURCE_DIR) / "../shared/data/models.csv";
  if (!std::filesystem::exists(path)) return;
  std::size_t dense = 0;
  for (auto& row : table(path)) {
    if (row["kind"] != "dense") continue;
    ++dense;
    check_row({row["model"], row["params_total_derived"], row["train_flops_per_token_causal_s4096"],
               row["train_flops_per_token_causal_s8192"], row["train_flops_per_token_noncausal_s8192"]});
  }
  CHECK(dense >= std::size(published_counts));
}

TEST_CASE("Parameters are those of the published checkpoints") {
  CHECK(parameters(shipped("llama2-7b")) == 6'738'415'616);
  CHECK(parameters(shipped("llama2-70b")) == 68'976'648'192);
  CHECK(parameters(shipped("llama3-8b")) == 8'030'261'248);
  CHECK(parameters(shipped("llama3.1-8b")) == 8'030'261'248);
  CHECK(parameters(shipped("llama3.3-70b")) == 70'553'706'496);
  CHECK(parameters(shipped("llama3.1-405b")) == 405'853'388'800);
  CHECK(parameters(shipped("qwen3-32b")) == 32'762'123'264);
}

TEST_CASE("Counts of a small GPT follow the textbook formulas") {
  const model m = small(3, mha);  // h = 128, f = 4h, multi-head: 12 h^2 a layer
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
    model m = small(2, {8, 2, 16, 512, true, true});
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
  const layer_spec l{32, 8, 128, 4096};
  CHECK(kv_bytes_per_token(small(6, l), precision::bf16) == 3 * kv_bytes_per_token(small(2, l), precision::bf16));
  CHECK(kv_bytes_per_token(small(6, l), precision::fp8) == kv_bytes_per_token(small(6, l), precision::bf16) / 2);
  layer_spec more_queries = l, more_keys = l;
  more_queries.heads = 64;
  more_keys.kv_heads = 16;
  CHECK(kv_bytes_per_token(small(1, more_queries), precision::fp8) == kv_bytes_per_token(small(1, l), precision::fp8));
  CHECK(kv_bytes_per_token(small(1, more_keys), precision::fp8) == 2 * kv_bytes_per_token(small(1, l), precision::fp8));
  // 80 layers, 8 KV heads of 128: 320 KiB a token in BF16, the figure every serving guide quotes.
  CHECK(kv_bytes_per_token(shipped("llama3.1-70b"), precision::bf16) == 320.0 * 1024);
}

TEST_CASE("Counts of a model at every bound fit in 64 bits") {
  model m;
  m.hidden = 1 << 18;
  m.vocab = 1 << 26;
  m.layers.assign(1 << 13, {1 << 13, 1 << 13, 1 << 13, 1 << 22, true, true});
  const double exact = 8192.0 * (4.0 * 262144 * 67108864 + 3.0 * 262144 * 4194304 + 2.0 * 262144 + 2.0 * 8192) +
                       2.0 * 67108864 * 262144 + 262144;
  CHECK(static_cast<double>(parameters(m)) == Approx(exact).epsilon(1e-12));
}
