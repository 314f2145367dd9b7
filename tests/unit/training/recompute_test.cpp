// Whole layers computed again: by units of several layers, or the first layers of each chunk.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using test::item;

constexpr std::int64_t layers = 12;

recompute_spec uniform(std::int64_t n) {
  recompute_spec r;
  r.full = true;
  r.num_layers = n;
  return r;
}
recompute_spec block(std::int64_t n) {
  recompute_spec r = uniform(n);
  r.block = true;
  return r;
}

double step(const recompute_spec& r, std::int64_t pp = 1, std::int64_t vp = 1) {
  training_workload w = test::even_workload(pp, vp, 8);
  w.recompute = r;
  return evaluate(plan_training(test::ideal_machine(), test::ideal_stack(), test::even_model(layers), w))
      .makespan.base();
}

memory_report memory(const recompute_spec& r, std::int64_t pp = 1) {
  training_workload w = test::even_workload(pp, 1, 8);
  w.recompute = r;
  return training_memory(test::ideal_machine(), test::ideal_stack(), test::even_model(layers), w);
}
double layer_bytes(const recompute_spec& r) {
  const model m = test::even_model(1);
  training_workload w = test::even_workload(1, 1, 1);
  w.recompute = r;
  return stored_activations(m, m.layers.front(), w, test::keeping(0)).here.base();
}

TEST_CASE("Attention that is not fused keeps its scores, unless it is computed again") {
  const model m = test::even_model(1);
  training_workload w = test::even_workload(1, 1, 1);
  const auto kept = [&](double passes, bool again) {
    training_profile framework;
    framework.score_passes = passes;
    w.recompute.core_attention = again;
    return stored_activations(m, m.layers.front(), w, framework).here.base();
  };
  const auto length = static_cast<double>(w.seq_length);
  const double scores = static_cast<double>(w.micro_batch_size * m.layers.front().heads) * length * length;
  CHECK(kept(2, false) - kept(0, false) == Approx(2 * scores));
  CHECK(kept(4.5, false) - kept(0, false) == Approx(5 * scores));  // with dropout
  CHECK(kept(4.5, true) == kept(0, true));
}

// Of a layer's GEMMs, which alone take time here, a backward pass runs two for each of the forward's.
TEST_CASE("Every recomputed layer costs its forward pass once more") {
  const double none = step({});
  CHECK(step(uniform(1)) == Approx(none * 4 / 3).epsilon(1e-12));
  CHECK(step(uniform(5)) == Approx(none * 4 / 3).epsilon(1e-12));  // units decide what is kept, not what runs
  for (const std::int64_t n : {1, 5, 11, 12})
    CHECK(step(block(n)) == Approx(none * static_cast<double>(3 * layers + n) / (3 * layers)).epsilon(1e-12));
  CHECK(step(block(100)) == step(uniform(1)));
}

TEST_CASE("Block recompute counts the layers of each model chunk") {
  // Chunks of three layers, on two stages of two: two of three layers of each are computed again.
  CHECK(step(block(2), 2, 2) == Approx(step({}, 2, 2) * (9 + 2) / 9).epsilon(1e-12));
  CHECK(step(block(3), 2, 2) == Approx(step(uniform(1), 2, 2)).epsilon(1e-12));
}

TEST_CASE("Uniform recompute keeps the input of each unit") {
  const double input = layer_bytes(uniform(1)), all = layer_bytes({});
  for (const std::int64_t n : {1, 2, 5, 12, 40}) {
    INFO("units of " << n << " layers");
    const double units = std::ceil(static_cast<double>(layers) / static_cast<double>(n));
    const memory_report r = memory(uniform(n));
    CHECK(item(r, "activations") == Approx(units * input).epsilon(1e-12));
    const double unit = static_cast<double>(std::min(n, layers));
    CHECK(item(r, "recomputed") + item(r, "logits") == Approx(unit * all - input).epsilon(1e-12));
  }
}

TEST_CASE("Block recompute keeps inputs of its layers and everything of the others") {
  const double input = layer_bytes(block(1)), all = layer_bytes({});
  for (const std::int64_t n : {1, 5, 11, 12, 40}) {
    INFO(n << " layers");
    const double again = static_cast<double>(std::min(n, layers)), others = layers - again;
    const memory_report r = memory(block(n));
    CHECK(item(r, "activations") == Approx(again * input + others * all).epsilon(1e-12));
    // Layers behind have given their memory back by the time a layer is computed again.
    if (others > 0) CHECK(item(r, "recomputed") == 0);
    else CHECK(item(r, "recomputed") + item(r, "logits") == Approx(all - input).epsilon(1e-12));
  }
  CHECK(memory({}).peak > memory(block(4)).peak);
  CHECK(memory(block(4)).peak > memory(block(8)).peak);
}

TEST_CASE("Memory of a stage under recompute counts the micro-batches in flight") {
  // Four stages of three layers: the first holds four micro-batches.
  const double input = layer_bytes(block(2)), all = layer_bytes({});
  CHECK(item(memory(block(2), 4), "activations") == Approx(4 * (2 * input + all)).epsilon(1e-12));
  CHECK(item(memory(uniform(2), 4), "activations") == Approx(4 * 2 * input).epsilon(1e-12));
}

/// Time of a stage's first GPU in work of a kind.
double spent(const plan& p, part_kind kind) {
  double sum = 0;
  for (const operation& o : p.classes.front().streams.front().operations)
    for (const operation_part& part : p.templates[static_cast<std::size_t>(o.template_index)].parts)
      if (part.kind == kind) sum += part.duration.base() * part.repeat;
  return sum;
}

// Backward a ring brings keys and values again, and takes their gradients back: twice the forward's rounds.
TEST_CASE("What is computed again exchanges keys and values again") {
  test::shipped_job j = test::shipped("gb200-nvl72", "llama3-8b");
  j.workload.par = {.tp = 1, .pp = 1, .cp = 4, .dp = 16};
  const auto exchanged = [&](const recompute_spec& r, context_exchange how) {
    j.workload.recompute = r, j.workload.cp_exchange = how;
    return spent(j.planned(), part_kind::cp);
  };
  recompute_spec scores, norms;
  scores.core_attention = true, norms.layernorm = true;
  const double ring = exchanged({}, context_exchange::ring), heads = exchanged({}, context_exchange::all_to_all);
  REQUIRE(ring > 0);
  for (const recompute_spec& again : {uniform(1), scores}) {
    CHECK(exchanged(again, context_exchange::ring) == Approx(ring * 4 / 3).epsilon(1e-9));
    CHECK(exchanged(again, context_exchange::all_to_all) == Approx(heads * 3 / 2).epsilon(1e-9));
  }
  CHECK(exchanged(norms, context_exchange::ring) == Approx(ring).epsilon(1e-12));
}

// A norm that is part of the next projection's kernel has nothing to compute again by itself.
TEST_CASE("Norms are computed again only where that saves memory") {
  recompute_spec norms;
  norms.layernorm = true;
  for (const char* net : {"llama3-8b", "qwen3-30b-a3b", "deepseek-v3"}) {
    INFO(net);
    test::shipped_job j = test::shipped("gb200-nvl72", net);
    j.workload.par = {.tp = 1, .pp = 1, .dp = 64, .ep = has_routed_experts(j.net) ? 8 : 1};
    const auto costs = [&](const recompute_spec& r) {
      j.workload.recompute = r;
      return std::pair(spent(j.planned(), part_kind::memory_bound),
                       training_memory(j.machine, j.software, j.net, j.workload).peak.base());
    };
    const auto [time, peak] = costs({});
    const auto [time_again, peak_again] = costs(norms);
    CHECK(time_again >= time);
    CHECK((time_again > time) == (peak_again < peak));
    CHECK((time_again > time) == has_routed_experts(j.net));
  }
}

TEST_CASE("Experts that are computed again exchange tokens again") {
  test::shipped_job j = test::shipped("gb200-nvl72", "qwen3-30b-a3b");
  j.workload.par = {.tp = 1, .pp = 1, .dp = 64, .ep = 8};
  const auto exchanged = [&](const recompute_spec& r) {
    j.workload.recompute = r;
    return spent(j.planned(), part_kind::ep);
  };
  recompute_spec experts, activation;
  experts.moe = true, activation.activation = true;
  const double none = exchanged({});
  REQUIRE(none > 0);
  CHECK(exchanged(uniform(1)) == Approx(none * 3 / 2).epsilon(1e-9));
  CHECK(exchanged(experts) == Approx(none * 3 / 2).epsilon(1e-9));
  CHECK(exchanged(activation) == Approx(none).epsilon(1e-12));
}

// Megatron-LM's multi_token_prediction.py: uniform with one layer a unit only, and block leaves them alone.
TEST_CASE("Prediction modules are recomputed one by one or not at all") {
  model m = test::even_model(layers);
  m.mtp_layers = 1;
  m.mtp_block = {m.layers.front()};
  training_workload w = test::even_workload(1, 1, 8);
  w.recompute = uniform(2);
  CHECK(training_problems(test::ideal_machine(), m, w).size() == 1);
  const auto time = [&](const recompute_spec& r) {
    w.recompute = r;
    REQUIRE(training_problems(test::ideal_machine(), m, w).empty());
    return evaluate(plan_training(test::ideal_machine(), test::ideal_stack(), m, w)).makespan.base();
  };
  CHECK(time(uniform(1)) > time(block(layers + 1)));  // the module's layer runs once more
  CHECK(time(block(layers + 1)) == time(block(layers)));
}

}  // namespace
}  // namespace nvlsim
