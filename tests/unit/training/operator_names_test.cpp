// Training and serving call the GEMM of a matrix by one name.
#include <catch2/catch.hpp>

#include <filesystem>
#include <set>
#include <string>

#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/model/matrices.hpp"
#include "training/layer_operators.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

std::set<std::string> trained(const model& m, const layer_spec& l) {
  training_workload w = test::even_workload(1, 1, 8);
  w.par.dp = 8;
  std::set<std::string> out;
  for (const layer_operator& o : layer_operators(m, l, w, test::keeping(0)))
    if (o.what == layer_operator::type::linear && o.n > 0) out.insert(o.name);
  return out;
}

std::set<std::string> served(const model& m, const layer_spec& l) {
  std::set<std::string> out;
  const layer_slice s = slice_layers({l}, m.hidden, {}).front();
  for (const auto* part : {&s.before_attention, &s.after_attention})
    for (const rank_gemm& g : *part) out.insert(g.name);
  return out;
}

TEST_CASE("Training and serving have one name for the GEMM of a matrix") {
  std::set<std::string> all;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(NVLSIM_SOURCE_DIR) / "scenarios/models")) {
    const std::string name = file.path().stem().string();
    const model m = test::read_file("/scenarios/models", name, read_model);
    for (const layer_spec& l : m.layers) {
      INFO(name);
      const std::set<std::string> ours = trained(m, l), theirs = served(m, l);
      all.insert(ours.begin(), ours.end());
      for (const std::string& gemm : theirs) {
        // Serving multiplies what reads one input at once; training keeps to Megatron's modules.
        const bool split = gemm == "qkv_down" && ours.contains("q_down");
        const bool absorbed = gemm == "kv_up" && ours.contains("kv_up.keys");
        const bool dense_for_short = gemm.starts_with("indexer.");
        CHECK((ours.contains(gemm) || split || absorbed || dense_for_short));
      }
    }
  }
  for (const char* gemm : {"qkv", "attention.out", "mlp.up", "mlp.down", "router", "experts.up", "experts.down",
                           "shared.up", "kv_up", "q_up", "scan.in", "scan.out"})
    CHECK(all.contains(gemm));
}

}  // namespace
}  // namespace nvlsim
