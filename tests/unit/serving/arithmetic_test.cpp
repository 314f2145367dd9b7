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

double kv_bytes(const model& m, int tp) {
  inference_workload w = small_workload();
  w.tp = tp;
  return plan_serving_memory(small_machine(), small_stack(), m, w).kv_per_token.base();
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
        if (part.name == "experts down") return part.duration.base();
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
