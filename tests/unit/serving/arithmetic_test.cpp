#include <catch2/catch.hpp>
#include <cmath>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/memory.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using test::small_machine;
using test::small_model;
using test::small_stack;
using test::small_workload;

double kv_bytes(const model& m, int tp, precision cache = precision::fp8, latent_format latents = {}) {
  inference_workload w = small_workload();
  w.tp = tp;
  w.kv_cache = cache;
  stack s = small_stack();
  s.inference->latents = latents;
  return plan_serving_memory(small_machine(), s, m, w).kv_per_token.base();
}

TEST_CASE("A token's cache is keys and values of the KV heads of a rank") {
  const model m = small_model();  // 16 layers, 4 KV heads of 128, a byte each
  CHECK(kv_bytes(m, 1) == 16 * 2 * 4 * 128);
  CHECK(kv_bytes(m, 2) == 16 * 2 * 2 * 128);
  CHECK(kv_bytes(m, 4) == 16 * 2 * 1 * 128);
  CHECK(kv_bytes(m, 8) == 16 * 2 * 1 * 128);  // replicated
}

TEST_CASE("A token's latent cache is one vector, whole on every rank") {
  model m = small_model();
  for (layer_spec& l : m.layers) {
    l.attention = attention_kind::mla;
    l.mla.kv_lora_rank = 512;
    l.mla.qk_rope_dim = 64;
    l.mla.qk_nope_dim = 128;
    l.mla.v_head_dim = 128;
    l.mla.q_lora_rank = 1536;
  }
  CHECK(kv_bytes(m, 1) == 16 * 576);
  CHECK(kv_bytes(m, 4) == 16 * 576);
}

TEST_CASE("A latent cache with an indexer is stored as the engine's kernels have it") {
  model m = small_model();
  m.layers.resize(1);
  layer_spec& l = m.layers.front();
  l.attention = attention_kind::mla;
  l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
  l.sparse_keys = 2048;
  l.index_heads = 64;
  l.index_dim = 128;
  // 43.67 GiB of 975,424 tokens, as SGLang printed for 61 layers of DeepSeek-V3.2: 48,068 B.
  CHECK(61 * kv_bytes(m, 1, precision::fp8, latent_format::scaled) == 48068);
  CHECK(61 * kv_bytes(m, 1, precision::bf16, latent_format::scaled) == 78324);
  // 23.46 GB of 543,219 tokens, as TensorRT-LLM printed.
  CHECK(61 * kv_bytes(m, 1, precision::fp8) == Approx(23.46e9 / 543219).epsilon(1e-3));
}

TEST_CASE("Compressed attention keeps a vector for some tokens, in the engine's format") {
  model m = small_model();
  m.layers.resize(1);
  layer_spec& l = m.layers.front();
  l.attention = attention_kind::compressed;
  l.head_dim = 512;
  l.window = 128;
  l.compressed = {.q_lora_rank = 1024, .o_lora_rank = 1024, .o_groups = 4, .ratio = 4};
  l.sparse_keys = 512;
  l.index_heads = 64;
  l.index_dim = 128;
  CHECK(kv_bytes(m, 1, precision::fp8, latent_format::scaled) == (584.0 + 132) / 4);
  CHECK(kv_bytes(m, 1, precision::bf16) == (1024.0 + 132) / 4);
  stack s = small_stack();
  s.inference->latents = latent_format::scaled;
  const serving_memory found = plan_serving_memory(small_machine(), s, m, small_workload());
  CHECK(found.sequence.windowed.at(128) == Approx(584.0 / ((584.0 + 132) / 4)));
}

/// Half of the layers recurrent.
model hybrid_model() {
  model m = small_model();
  for (std::size_t i = 0; i < m.layers.size(); i += 2) {
    layer_spec& l = m.layers[i];
    l.attention = attention_kind::linear;
    l.heads = l.kv_heads = 0;
    l.scan = {.heads = 32, .head_dim = 128, .state = 128, .key_heads = 16, .conv_kernel = 1};
  }
  return m;
}

TEST_CASE("States of scans share the tokens' pool, take its pages, or have a pool of their own") {
  const model m = hybrid_model();
  stack s = small_stack();
  inference_workload w = small_workload();
  const double state = 32 * 128 * 128 * 4, token = 2 * 4 * 128;  // of one layer
  const serving_memory shared = plan_serving_memory(small_machine(), s, m, w);
  CHECK(shared.kv_per_token.base() == 8 * token);
  CHECK(shared.sequence.states == Approx(state / token));
  w.state_cache = precision::bf16;
  CHECK(plan_serving_memory(small_machine(), s, m, w).sequence.states == Approx(state / 2 / token));
  w.state_cache = precision::fp32;

  s.inference->paged_states = true;  // of whole blocks of 16 tokens
  const serving_memory paged = plan_serving_memory(small_machine(), s, m, w);
  CHECK(paged.kv_block_tokens == 16 * std::ceil(state / token / 16));
  CHECK(paged.sequence.states == paged.kv_block_tokens);

  s.inference->paged_states = false;
  s.inference->state_pool_share = 1;
  const serving_memory pools = plan_serving_memory(small_machine(), s, m, w);
  CHECK(pools.sequence.states == 0);
  CHECK(pools.kv_capacity_tokens == Approx(shared.kv_capacity_tokens / 2).epsilon(1e-3));
  CHECK(static_cast<double>(pools.max_sequences) * 8 * state ==
        Approx(static_cast<double>(pools.kv_capacity_tokens) * 8 * token).epsilon(2e-3));
  CHECK(pools.report.fits());
  // Cached prefixes and drafts take states of their own, so fewer sequences run at once.
  const auto sequences = [&] { return plan_serving_memory(small_machine(), s, m, w).max_sequences; };
  w.engine.prefix_cache = true;
  CHECK(sequences() == pools.max_sequences / 5);
  w.drafts.draft_tokens = 3;
  CHECK(sequences() == pools.max_sequences / 9);
  w.engine.prefix_cache = false;
  CHECK(sequences() == pools.max_sequences / 5);
}

TEST_CASE("Layers with windows may have a pool of their own") {
  model m = small_model();
  for (std::size_t i = 0; i < m.layers.size(); i += 2) m.layers[i].window = 128;
  stack s = small_stack();
  s.inference->window_pool_share = 0.5;
  const serving_memory pools = plan_serving_memory(small_machine(), s, m, small_workload());
  CHECK(pools.kv_per_token.base() == (8 + 0.5 * 8) * 2 * 4 * 128);
  CHECK(pools.sequence.windowed.empty());
}

TEST_CASE("Layers that look back over a window keep no cache a token") {
  model m = small_model();
  for (std::size_t i = 0; i < m.layers.size(); i += 2) m.layers[i].window = 128;
  CHECK(kv_bytes(m, 1) == 8 * 2 * 4 * 128);
}

TEST_CASE(
    "A batch reads the experts that its tokens choose between them, fewer where some are chosen more often") {
  model m = small_model();
  for (layer_spec& l : m.layers) {
    l.ffn_hidden = 0;
    l.moe.experts = 64;
    l.moe.top_k = 4;
    l.moe.expert_ffn = 2048;
  }
  const platform p = small_machine();
  stack s = small_stack();
  const auto growth = [&] {
    iteration_costs costs(p, s, m, small_workload());
    const auto experts = [&](std::int64_t tokens) {
      iteration it;
      it.decodes = tokens;
      it.context = 100 * tokens;
      for (const operation_part& part : costs.price(it).parts)
        if (part.name == "experts.down") return part.duration.base();
      return 0.0;
    };
    // Read from memory: time grows with the experts, once what every launch takes is off.
    return (experts(16) - experts(1)) / (experts(4) - experts(1));
  };
  const auto expected = [](auto&& distinct) {
    return (distinct(16.0) - distinct(1.0)) / (distinct(4.0) - distinct(1.0));
  };
  const double alike = expected([](double tokens) { return 64 * (1 - std::pow(1 - 4.0 / 64, tokens)); });
  CHECK(growth() == Approx(alike).epsilon(0.05));

  // Uneven popularity: an expert is missed with the zero class of a negative binomial, four are touched by one
  // token.
  constexpr double skew = 1.5;
  const double r = std::pow(1 - 4.0 / 64, -skew) - 1;
  const double uneven = expected([&](double tokens) { return 64 * (1 - std::pow(1 + tokens * r, -1 / skew)); });
  CHECK(uneven < 0.95 * alike);
  s.inference->biased_expert_skew = skew;  // of other models than this one, which a loss evened
  CHECK(growth() == Approx(alike).epsilon(0.05));
  for (layer_spec& l : m.layers) l.moe.balanced_by_bias = true;
  CHECK(growth() == Approx(uneven).epsilon(0.05));
  s.inference->biased_expert_skew = 0;
  s.inference->expert_skew = skew;
  CHECK(growth() == Approx(alike).epsilon(0.05));
  for (layer_spec& l : m.layers) l.moe.balanced_by_bias = false;
  CHECK(growth() == Approx(uneven).epsilon(0.05));
  s.inference->expert_skew = 1e-9;
  CHECK(growth() == Approx(alike).epsilon(0.05));
}

}  // namespace
}  // namespace nvlsim
