// What models the planners take, and how they refuse the others.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/serving/serving.hpp"
#include "nvlsim/training/training.hpp"
#include "unit/model/shipped.hpp"
#include "unit/serving/inference_fixture.hpp"

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

layer_spec compressed_layer() {
  layer_spec l = routed_layer();
  l.attention = attention_kind::compressed;
  l.kv_heads = 1;
  l.window = 128;
  l.compressed = {.q_lora_rank = 64, .o_lora_rank = 64, .o_groups = 1, .ratio = 4};
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

TEST_CASE("Training takes every kind of layer whose parts its layout divides") {
  layer_spec latent = routed_layer(), windowed = routed_layer();
  latent.moe.latent = 512;
  windowed.window = 128;
  const layer_spec compressed = compressed_layer();
  for (const layer_spec& l :
       {small_model().layers.front(), routed_layer(), mamba_layer(), latent, windowed, compressed})
    CHECK(to_train(of_layers(l)).empty());
  const std::vector<std::string> odd = to_train(of_layers(mamba_layer()), 16);
  CHECK(has(odd, "tensor x context parallelism must divide the heads of the scan (8 is not divisible by 16)"));
  CHECK(has(odd, "tensor parallelism must divide the groups of the scan (8 is not divisible by 16)"));
  CHECK(has(to_train(of_layers(compressed), 2),
            "tensor parallelism must divide the groups of the output projection (1 is not divisible by 2)"));
}

TEST_CASE("Serving takes every kind of layer, if one of them keeps a cache") {
  model hybrid = small_model();
  hybrid.layers[1] = mamba_layer();
  layer_spec latent = routed_layer();
  latent.moe.latent = 512;
  for (const model& m : {hybrid, of_layers(latent), of_layers(compressed_layer())}) CHECK(to_serve(m).empty());
  model scans = of_layers(mamba_layer());
  scans.name = "scans";
  const std::vector<std::string> only = {
      "scans has no layer with a KV cache; serving such models is not modelled"};
  CHECK(to_serve(scans) == only);
  CHECK(serve(small_machine(), small_stack(), scans, small_workload()).reasons ==
        only);  // and not for want of memory
  inference_workload arriving = small_workload();
  arriving.load = load_kind::open_loop;
  arriving.arrivals.rate_per_s = 1;
  CHECK(serve(small_machine(), small_stack(), scans, arriving).reasons == only);
}

TEST_CASE("A rank that holds a whole model caches what the model counts, and its ranks share states") {
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(NVLSIM_SOURCE_DIR) / "scenarios/models")) {
    const model m = shipped(file.path().stem().string());
    INFO(m.name);
    double cached = 0, states = 0, half = 0, window = 0;
    for (const layer_slice& l : slice_layers(m, {1, 1, 1})) {
      cached += l.layers * l.kv_values();
      states += l.layers * l.state_bytes;
      // A window beside pooled keys is not in the slices.
      if (l.spec.attention == attention_kind::compressed) window += l.layers * l.head_dim;
    }
    for (const layer_slice& l : slice_layers(m, {2, 1, 2})) half += l.layers * l.state_bytes;
    CHECK(cached + window == Approx(kv_bytes_per_token(m, precision::fp8)));
    CHECK(states == Approx(state_bytes_per_sequence(m)));
    CHECK(half == Approx(states / 2));
  }
}

TEST_CASE("A rank that holds a whole model holds all weights that the model counts") {
  std::size_t seen = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(NVLSIM_SOURCE_DIR) / "scenarios/models")) {
    const model m = shipped(file.path().stem().string());
    INFO(m.name);
    double held = 0;
    for (const layer_slice& l : slice_layers(m, {1, 1, 1}))
      held += l.layers * l.gemm_weights(static_cast<double>(m.hidden));
    const parameter_parts parts = parameters_by_part(m);
    // Convolutions and scalars of linear attention are left out of the slices.
    CHECK(held ==
          Approx(static_cast<double>(parts.attention + parts.mlp + parts.experts + parts.router)).epsilon(0.01));
    ++seen;
  }
  CHECK(seen > 60);
}
