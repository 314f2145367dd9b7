// What models the planners take, and how they refuse the others.
#include <algorithm>
#include <catch2/catch.hpp>

#include "nvlsim/training.hpp"
#include "unit/workload/inference_fixture.hpp"

using namespace nvlsim;
using namespace nvlsim::test;

namespace {

model of_layers(const layer_spec& l) {
  model m = small_model();
  m.layers.assign(4, l);
  return m;
}

layer_spec mamba_layer() {
  layer_spec l;
  l.attention = attention_kind::mamba;
  l.scan = {.heads = 8, .head_dim = 64, .state = 128, .groups = 8, .key_heads = 0, .conv_kernel = 4};
  return l;
}

layer_spec routed_layer() {
  layer_spec l = small_model().layers.front();
  l.ffn_hidden = 0;
  l.moe = {.experts = 8, .top_k = 2, .expert_ffn = 1024, .shared_ffn = 0, .latent = 0};
  return l;
}

std::vector<std::string> to_train(const model& m, std::int64_t tp = 1) {
  training_workload w;
  w.seq_length = 1024;
  w.global_batch_size = 8;
  w.place.gpus_per_domain = 8;
  w.par.tp = tp;
  return training_problems(small_machine(), m, w);
}
std::vector<std::string> to_serve(const model& m) {
  return serving_problems(small_machine(), small_stack(), m, small_workload());
}

bool has(const std::vector<std::string>& reasons, const std::string& wanted) {
  return std::find(reasons.begin(), reasons.end(), wanted) != reasons.end();
}

}  // namespace

TEST_CASE("Planners take dense layers, experts and windows") {
  layer_spec windowed = routed_layer();
  windowed.window = 128;
  for (const model& m : {small_model(), of_layers(routed_layer()), of_layers(windowed)}) {
    for (const auto& reasons : {to_train(m), to_serve(m)})
      for (const std::string& reason : reasons) CHECK(reason.find("does not support") == std::string::npos);
  }
}

TEST_CASE("Planners refuse the layers they do not know by name") {
  const model mamba = of_layers(mamba_layer());
  CHECK(has(to_serve(mamba), "inference does not support state-space layers, layers without an MLP yet"));
  layer_spec latent = routed_layer();
  latent.moe.latent = 512;
  CHECK(has(to_serve(of_layers(latent)), "inference does not support latent experts yet"));
  layer_spec compressed = routed_layer();
  compressed.attention = attention_kind::compressed;
  compressed.kv_heads = 1;
  compressed.window = 128;
  CHECK(has(to_serve(of_layers(compressed)), "inference does not support compressed attention yet"));
}

TEST_CASE("Training takes every kind of layer whose parts its layout divides") {
  layer_spec compressed = routed_layer();
  compressed.attention = attention_kind::compressed;
  compressed.kv_heads = 1;
  compressed.window = 128;
  compressed.compressed = {.q_lora_rank = 64, .o_lora_rank = 64, .o_groups = 1, .ratio = 4};
  layer_spec latent = routed_layer();
  latent.moe.latent = 512;
  for (const layer_spec& l : {mamba_layer(), latent, compressed}) CHECK(to_train(of_layers(l)).empty());
  const std::vector<std::string> odd = to_train(of_layers(mamba_layer()), 16);
  CHECK(has(odd, "tensor x context parallelism must divide the heads of the scan (8 / 16 leaves a rest)"));
  CHECK(has(odd, "tensor parallelism must divide the groups of the scan (8 / 16 leaves a rest)"));
  CHECK(has(to_train(of_layers(compressed), 2),
            "tensor parallelism must divide the groups of the output projection (1 / 2 leaves a rest)"));
}
