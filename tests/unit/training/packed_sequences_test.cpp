// Sequences that share a window: attention by the sum of the squares of their lengths.
#include <catch2/catch.hpp>

#include <cmath>
#include <string_view>

#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

constexpr double window = 4096;

training_workload packed(const std::optional<token_lengths>& lengths, std::int64_t cp = 1) {
  training_workload w = test::even_workload(1, 1, 8);
  w.par.cp = cp;
  w.packed = lengths;
  return w;
}

/// Pairs of a query and a key in one window, on one GPU.
double pairs(const training_workload& w, std::int64_t sliding = 0) {
  model m = test::even_model(1);
  m.layers.front().window = sliding;
  for (const layer_operator& o : layer_operators(m, m.layers.front(), w, test::keeping(0)))
    if (o.what == layer_operator::type::attention) return o.shape.batch * o.shape.pairs;
  return 0;
}
double queries(const training_workload& w) {
  const model m = test::even_model(1);
  for (const layer_operator& o : layer_operators(m, m.layers.front(), w, test::keeping(0)))
    if (o.what == layer_operator::type::attention) return o.shape.batch * o.shape.queries;
  return 0;
}

TEST_CASE("Equal sequences attend to themselves: pairs shrink as their number") {
  const double whole = window * (window + 1) / 2;
  CHECK(pairs(packed({})) == whole);
  for (const double n : {1.0, 2.0, 4.0, 64.0}) {
    const double length = window / n;
    CHECK(pairs(packed(token_lengths{.mean = length})) == Approx(n * length * (length + 1) / 2).epsilon(1e-12));
    CHECK(queries(packed(token_lengths{.mean = length})) == Approx(window).epsilon(1e-12));  // every token is one
    CHECK(pairs(packed(token_lengths{.mean = length}, 4)) == Approx(n * length * (length + 1) / 8).epsilon(1e-12));
  }
  CHECK(pairs(packed(token_lengths{.mean = 512}), 128) ==
        Approx(8 * (128 * 129 / 2.0 + (512 - 128) * 128))
            .epsilon(1e-12));  // a sliding window shorter than a sequence
}

// Of lengths l with moments E: a window of s tokens holds s / E[l] sequences, so s E[l (l + 1)] / (2 E[l]) pairs.
TEST_CASE("Pairs follow from the second moment of the lengths") {
  const auto expected = [](double mean, double square) { return window * (square + mean) / (2 * mean); };
  CHECK(pairs(packed(token_lengths{.mean = 512, .spread = 0.8})) ==
        Approx(expected(512, 512 * 512 * (1 + 0.8 * 0.8 / 3))).epsilon(1e-4));
  CHECK(pairs(packed(token_lengths{.mean = 100, .shape = length_shape::exponential})) ==
        Approx(expected(100, 2 * 100.0 * 100)).epsilon(2e-3));
  CHECK(pairs(packed(token_lengths{.mean = 100, .shape = length_shape::lognormal, .variation = 0.6})) ==
        Approx(expected(100, 100.0 * 100 * (1 + 0.36))).epsilon(2e-3));
}

TEST_CASE("No packed sequence is longer than the window") {
  for (const sequence_share& s :
       sequences_of(packed(token_lengths{.mean = 2000, .shape = length_shape::exponential}))) {
    CHECK(s.length >= 1);
    CHECK(s.length <= 4096);
  }
  CHECK(pairs(packed(token_lengths{.mean = 2000, .shape = length_shape::exponential})) < pairs(packed({})));
}

TEST_CASE("Shares of lengths add up") {
  for (const length_shape shape : {length_shape::uniform, length_shape::lognormal, length_shape::exponential}) {
    double sum = 0;
    for (const sequence_share& s :
         sequences_of(packed(token_lengths{.mean = 300, .spread = 0.5, .shape = shape, .variation = 1})))
      sum += s.share;
    CHECK(sum == Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("Packing makes a step shorter, down to that of its linear layers") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  j.workload.task = training_task::sft;
  const double whole = j.step_s();
  j.workload.packed = token_lengths{.mean = 8192};
  CHECK(j.step_s() == whole);
  j.workload.packed = token_lengths{.mean = 2048};
  const double quarter = j.step_s();
  CHECK(quarter < whole);
  j.workload.packed = token_lengths{.mean = 2048, .spread = 1};
  CHECK(j.step_s() > quarter);  // long sequences cost more than short ones save
}

TEST_CASE("Packing is refused where attention chooses its keys") {
  training_workload w = packed(token_lengths{.mean = 512});
  model m = test::even_model(2);
  CHECK(training_problems(test::ideal_machine(), m, w).empty());
  for (layer_spec& l : m.layers) l.sparse_keys = 2048;
  CHECK(training_problems(test::ideal_machine(), m, w) ==
        std::vector<std::string>{"packed sequences are not modelled for sparse or compressed attention"});
}

}  // namespace
}  // namespace nvlsim
