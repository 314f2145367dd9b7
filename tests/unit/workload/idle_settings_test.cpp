#include "workload/idle_settings.hpp"

#include <catch2/catch.hpp>

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

  w.recompute.moe = w.recompute.mla_up_proj = w.moe_overlap = w.fused_expert_mlp = w.token_drop = true;
  w.expert_imbalance = 1.5;
  CHECK(idle_settings(routed, w).empty());
  CHECK(idle_settings(dense, w) == std::vector<std::string>{
      "without effect, as dense has no such layers: recompute moe, recompute mla_up_proj, overlap_moe_expert_parallel_comm, "
      "fused_expert_mlp, moe_token_drop, moe_load_imbalance"});
  w = {};
  w.recompute.mlp = true;
  CHECK(idle_settings(dense, w).empty());
  CHECK(idle_settings(routed, w) == std::vector<std::string>{"without effect, as routed has no such layers: recompute mlp"});

  w = {};
  w.par.pp = 3;  // stages of 3, 3 and 2 layers
  w.offload_layers = 3;
  CHECK(idle_settings(dense, w).empty());
  w.offload_layers = 4;
  CHECK(idle_settings(dense, w) ==
        std::vector<std::string>{"offload_layers 4: a GPU has 3 layers at most, and all of them are offloaded"});
}

}  // namespace
}  // namespace nvlsim
