// The one list of a layer's matrices, against all shipped models.
#include "nvlsim/model/matrices.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <set>

#include "nvlsim/config/document.hpp"
#include "nvlsim/model/load.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

/// Each kind of layer of the shipped models once, with its model.
template <class Visit>
void each_layer(Visit visit) {
  for (const auto& file : std::filesystem::directory_iterator(test::root / "scenarios/models")) {
    const std::string name = file.path().stem().string();
    INFO(name);
    diagnostics problems;
    config::document doc = config::load_named(test::root / "scenarios/models", {"model", name, {}}, problems);
    const model m = read_model(doc, name, problems);
    problems.throw_if_any();
    const layer_spec* last = nullptr;
    for (const layer_spec& l : m.layers) {
      if (!last || l != *last) visit(m, l);
      last = &l;
    }
  }
}

TEST_CASE("Matrices and vectors are all parameters of a layer, and none is listed twice") {
  each_layer([](const model& m, const layer_spec& l) {
    const vector_parameters v = layer_vectors(m, l);
    std::int64_t all = v.whole + v.divided;
    std::set<matrix> names;
    for (const weight_matrix& w : layer_matrices(l, m.hidden)) {
      CHECK(w.parameters() > 0);
      CHECK(names.insert(w.name).second);
      all += w.parameters();
    }
    CHECK(all == layer_parameters(m, l));
  });
}

TEST_CASE("Ranks hold all of a matrix together, and copies only where its parts are too few") {
  each_layer([](const model& m, const layer_spec& l) {
    for (const weight_matrix& w : layer_matrices(l, m.hidden)) {
      CHECK(on_rank(w, 1).parameters() == Approx(static_cast<double>(w.parameters())));
      double before = on_rank(w, 1).parameters();
      for (const double ranks : {2, 4, 8, 16, 64}) {
        const double now = on_rank(w, ranks).parameters();
        CHECK(now <= before);
        CHECK(now * ranks >= static_cast<double>(w.parameters()) * (1 - 1e-12));
        if (ranks <= static_cast<double>(w.units) && w.part != matrix_part::experts)
          CHECK(now * ranks == Approx(static_cast<double>(w.parameters())));
        before = now;
      }
    }
  });
}

TEST_CASE("Matrices of one GEMM have one input") {
  each_layer([](const model& m, const layer_spec& l) {
    const weight_matrix* before = nullptr;
    const std::vector<weight_matrix> all = layer_matrices(l, m.hidden);
    for (const weight_matrix& w : all) {
      if (w.joined) {
        REQUIRE(before);
        CHECK(w.in == before->in);
        CHECK(w.by == divided::outputs);
      }
      before = &w;
    }
  });
}

}  // namespace
}  // namespace nvlsim
