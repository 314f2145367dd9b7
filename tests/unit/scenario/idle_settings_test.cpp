#include "nvlsim/training/idle_settings.hpp"
#include "nvlsim/serving/serving_notes.hpp"

#include <catch2/catch.hpp>

#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

TEST_CASE("A step names the settings that its model has nothing for, and no others") {
  model dense;
  dense.name = "dense";
  layer_spec l;
  l.ffn_hidden = 4096;
  dense.layers.assign(8, l);
  model routed = dense;
  routed.name = "routed";
  for (layer_spec& r : routed.layers) {
    r.ffn_hidden = 0;
    r.attention = attention_kind::mla;
    r.moe = {.experts = 8, .top_k = 2, .expert_ffn = 512};
  }
  training_workload w;
  CHECK(idle_settings(dense, w).empty());
  CHECK(idle_settings(routed, w).empty());
  w.moe_overlap = true;
  CHECK(idle_settings(routed, w) ==
        std::vector<std::string>{
            "no effect, because ep is 1 and experts exchange nothing: overlap_moe_expert_parallel_comm"});
  w.par.ep = 2;
  CHECK(idle_settings(routed, w).empty());
  w.recompute.layernorm = true;

  w.recompute.moe = w.recompute.mla_up_proj = w.moe_overlap = w.fused_expert_mlp = w.token_drop = true;
  w.expert_imbalance = 1.5, w.forced_balance = false;
  CHECK(idle_settings(routed, w).empty());
  CHECK(idle_settings(dense, w) ==
        std::vector<std::string>{
            "no effect, because dense has no such layers: recompute layernorm (of norms in "
            "kernels of their own), recompute moe, recompute mla_up_proj, overlap_moe_expert_parallel_comm, "
            "fused_expert_mlp, moe_token_drop, moe_load_imbalance, "
            "moe_router_force_load_balancing"});
  w = {};
  w.recompute.mlp = true;
  CHECK(idle_settings(dense, w).empty());
  CHECK(idle_settings(routed, w) ==
        std::vector<std::string>{"no effect, because routed has no such layers: recompute mlp"});

  w = {};
  w.par.pp = 3;  // stages of 3, 3 and 2 layers
  w.offload_layers = 3;
  CHECK(idle_settings(dense, w).empty());
  w.offload_layers = 4;
  CHECK(idle_settings(dense, w) ==
        std::vector<std::string>{"offload_layers 4 exceeds the 3 layers of a GPU; all of them are offloaded"});

  w = {};
  w.task = training_task::lora;
  REQUIRE(idle_settings(dense, w).size() == 1);
  CHECK(idle_settings(dense, w).front().starts_with("no lora_rank: adapters "));
  w.lora.rank = 8;
  CHECK(idle_settings(dense, w).empty());
}

TEST_CASE("A served load names the engine settings that it has nothing for, and no others") {
  const stack s = test::small_stack();
  inference_workload w = test::small_workload();
  CHECK(idle_settings(s, test::small_model(), w).empty());
  w.engine.batch_wait_iterations = 20;
  w.engine.rank_wait_iterations = 5;
  w.engine.prefix_cache = true;
  w.expert_weights = precision::fp8;
  w.weights = precision::bf16;
  w.router = router_policy::least_loaded;
  w.replicas = 1;
  CHECK(idle_settings(s, test::small_model(), w).size() == 5);
  w.engine.batch_wait_ratio = 0.9;
  w.attention_dp = 2;
  w.sessions.emplace();
  w.expert_weights = w.weights;
  w.replicas = 2;
  CHECK(idle_settings(s, test::small_model(), w).empty());
}

}  // namespace
}  // namespace nvlsim
