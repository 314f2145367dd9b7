// Experts that take a limited number of tokens.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

model routed_model() {
  model m = test::even_model(2);
  for (layer_spec& l : m.layers) {
    l.ffn_hidden = 0;
    l.moe = {.experts = 64, .top_k = 8, .expert_ffn = 2048, .shared_ffn = 0};
  }
  return m;
}

training_workload capped(std::optional<double> factor, bool padded) {
  training_workload w = test::even_workload(1, 1, 8);
  w.par.dp = w.par.ep = 8;
  w.global_batch_size = 64;
  w.dispatcher = moe_dispatcher::alltoall;
  w.expert_capacity_factor = factor;
  w.pad_to_capacity = padded;
  return w;
}

/// Mean of min(load, capacity) over a binomial load, by its sum.
double mean_kept(int tokens, double p, double capacity) {
  double kept = 0;
  for (int x = 0; x <= tokens; ++x) {
    const double log_share = std::lgamma(tokens + 1.0) - std::lgamma(x + 1.0) - std::lgamma(tokens - x + 1.0) +
                             x * std::log(p) + (tokens - x) * std::log1p(-p);
    kept += std::exp(log_share) * std::min<double>(x, capacity);
  }
  return kept;
}

TEST_CASE("Experts drop what a random router sends beyond their capacity") {
  const model m = routed_model();
  const double even = 4096 * 8 / 64.0;  // tokens of a rank for each expert
  for (const double factor : {0.25, 0.9, 1.0, 1.02, 1.1, 2.0}) {
    INFO("capacity factor " << factor);
    const capacity_load load = load_of_experts(m.layers.front(), capped(factor, false));
    CHECK(load.kept == Approx(mean_kept(4096, 8 / 64.0, std::ceil(even * factor)) / even).epsilon(2e-4));
    CHECK(load.rows == Approx(load.kept).epsilon(1e-12));
    CHECK(load_of_experts(m.layers.front(), capped(factor, true)).rows == Approx(std::ceil(even * factor) / even));
  }
  const capacity_load dropless = load_of_experts(m.layers.front(), capped({}, false));
  CHECK(dropless.kept == 1);
  CHECK(dropless.rows == 1);
}

/// Rows of each of the local experts' up projection.
double rows(const training_workload& w) {
  const model m = routed_model();
  for (const layer_operator& o : layer_operators(m, m.layers.front(), w, test::keeping(0)))
    if (std::string_view(o.name) == "experts.up") return o.m;
  return 0;
}

/// Forward and backward bytes of moving copies of tokens about, for each element of a copy.
std::pair<double, double> permuted(moe_dispatcher how, std::int64_t ep) {
  const model m = routed_model();
  training_workload w = capped({}, false);
  w.dispatcher = how;
  w.par.dp = 64, w.par.ep = ep, w.global_batch_size = 64;
  const double elements = 4096.0 * 8 * static_cast<double>(m.hidden);
  for (const layer_operator& o : layer_operators(m, m.layers.front(), w, test::keeping(0)))
    if (std::string_view(o.name) == "permute") return {o.forward_bytes / elements, o.backward_bytes / elements};
  return {};
}

TEST_CASE("Copies of tokens are read and written as often as their dispatcher sorts them") {
  // Without an exchange 8 copies are written of each token that is read, and added up again: 2 x 2 B x (1 + 1/8).
  CHECK(permuted(moe_dispatcher::alltoall, 1).first == Approx(4.5));
  CHECK(permuted(moe_dispatcher::alltoall, 8).first == Approx(4.5 + 8));  // sorted by local expert, there and back
  CHECK(permuted(moe_dispatcher::alltoall, 64).first == Approx(4.5));     // one expert a rank needs no sorting
  // A token comes once to a rank that holds one of its experts: 8 choices that are not all among the other 56.
  double others = 1;
  for (int i = 0; i < 8; ++i) others *= (56.0 - i) / (64.0 - i);
  CHECK(permuted(moe_dispatcher::deduplicated, 8).first == Approx(4 * (1 + (1 - others))));
  CHECK(permuted(moe_dispatcher::hybridep, 8).first == permuted(moe_dispatcher::deduplicated, 8).first);
  for (const moe_dispatcher how : {moe_dispatcher::alltoall, moe_dispatcher::deduplicated})
    CHECK(permuted(how, 8).second == permuted(how, 8).first);  // gradients go the same way back
}

TEST_CASE("Padded experts work on their capacity, others on what they are sent") {
  const double dropless = rows(capped({}, false));
  CHECK(rows(capped(1.5, true)) == Approx(1.5 * dropless).epsilon(1e-12));
  CHECK(rows(capped(1.5, false)) == Approx(dropless).epsilon(1e-12));
  CHECK(rows(capped(0.5, false)) == Approx(0.5 * dropless).epsilon(1e-6));
  training_workload fixed = capped(1.25, false);
  fixed.token_drop = true;  // static shapes are those of the capacity
  CHECK(rows(fixed) == Approx(1.25 * dropless).epsilon(1e-12));
}

TEST_CASE("Everyone waits for the busiest rank, which a capacity protects") {
  training_workload w = capped({}, false);
  const double even = rows(w);
  w.expert_imbalance = 1.4;
  CHECK(rows(w) == Approx(1.4 * even).epsilon(1e-12));
  w.expert_capacity_factor = 1.25;
  CHECK(rows(w) == Approx(1.25 * even).epsilon(1e-12));
  w.pad_to_capacity = true;
  CHECK(rows(w) == Approx(1.25 * even).epsilon(1e-12));
}

TEST_CASE(
    "Natural routing fills the busiest rank the more, the fewer experts a rank has and the more ranks there are") {
  training_workload w = capped({}, false);
  w.forced_balance = false;
  const model m = routed_model();
  const layer_spec& l = m.layers.front();
  const auto at = [&](std::int64_t ep) {
    w.par.dp = 64, w.par.ep = ep, w.global_batch_size = 64;
    return expert_imbalance(l, w);
  };
  const double experts = static_cast<double>(l.moe.experts);
  CHECK(at(1) == 1);  // one rank has all
  CHECK(at(16) == Approx(1 + 1.766 * std::sqrt(natural_expert_skew * 16 / experts)));
  CHECK(at(8) < at(16));
  w.expert_skew = 0;
  CHECK(at(16) == 1);
  w.expert_skew = 1.4;  // twice the deviation
  CHECK(at(16) - 1 == Approx(2 * 1.766 * std::sqrt(natural_expert_skew * 16 / experts)));
  w.expert_skew = {}, w.expert_imbalance = 2;
  const double stated = at(16);
  w.forced_balance = true;
  CHECK(at(16) == 2);
  CHECK(stated > 2);
  model biased = m;
  biased.layers.front().moe.balanced_by_bias = true;
  w.forced_balance = false;
  CHECK(expert_imbalance(biased.layers.front(), w) < stated);
}

TEST_CASE("Stored activations of experts grow with the rows they work on") {
  const model m = routed_model();
  const auto stored = [&](const training_workload& w) {
    return stored_activations(m, m.layers.front(), w, test::keeping(2)).here.base();
  };
  training_workload without = capped({}, false);
  without.recompute.moe = true;  // leaves what routing does not touch
  const double rest = stored(without), dropless = stored(capped({}, false));
  CHECK(stored(capped(1.5, true)) - rest == Approx(1.5 * (dropless - rest)).epsilon(1e-12));
  CHECK(stored(capped(0.5, false)) - rest == Approx(0.5 * (dropless - rest)).epsilon(1e-6));
}

TEST_CASE("A step with experts costs more the more their capacity, and dropping saves exchange and compute") {
  test::shipped_job j = test::shipped("gb300-nvl72", "qwen3-30b-a3b");
  j.workload.par = {};
  j.workload.par.dp = j.workload.par.ep = 16;
  j.workload.dispatcher = moe_dispatcher::alltoall;
  j.workload.graphs = cuda_graphs::full_iteration;  // else the host is the floor
  const auto step = [&](std::optional<double> factor, bool padded) {
    j.workload.expert_capacity_factor = factor;
    j.workload.pad_to_capacity = padded;
    REQUIRE(training_problems(j.machine, j.net, j.workload).empty());
    return j.step_s();
  };
  const double dropless = step({}, false);
  CHECK(step(0.5, false) < step(0.8, false));
  CHECK(step(0.8, false) < dropless);
  CHECK(step(100, false) == Approx(dropless).epsilon(1e-12));
  CHECK(step(1.0, true) == Approx(dropless));  // as much work
  CHECK(step(1.5, true) > step(1.0, true));
  CHECK(step(3, true) > dropless);
}

TEST_CASE("Capacities that cannot be are refused with the reason") {
  training_workload w = capped(1.5, true);
  CHECK(training_problems(test::ideal_machine(), routed_model(), w).empty());
  w.dispatcher = moe_dispatcher::deduplicated;
  const auto flexible = training_problems(test::ideal_machine(), routed_model(), w);
  REQUIRE(flexible.size() == 1);
  CHECK_THAT(flexible[0], Catch::Contains("only the alltoall dispatcher pads to capacity"));
  w.par.ep = 1;
  w.dispatcher = moe_dispatcher::alltoall;
  CHECK(training_problems(test::ideal_machine(), test::even_model(4), w) ==
        std::vector<std::string>{"expert capacity needs a model with routed experts"});
}

TEST_CASE("Experts over two racks wait for the rack with fewest of them, and for what the fabric leaves") {
  test::shipped_job j = test::shipped("gb300-nvl72", "qwen3-30b-a3b");
  j.workload.par = {.dp = 64, .ep = 64};
  const auto step = [&](std::int64_t in_rack) {
    j.workload.place.gpus_per_domain = in_rack;
    return j.step_s();
  };
  const double even = step(32), less = step(48), min = step(56);
  CHECK(step(64) < even);
  CHECK(even < less);
  CHECK(less < min);
  j.machine.fabric.oversubscription = 8;
  CHECK(step(56) > min);                  // racks are cabled whole: the second reaches into another leaf
  j.machine.fabric.oversubscription = 2;  // 96 ports of a leaf lead to GPUs
  j.workload.par = {.dp = 256, .ep = 128};
  j.workload.global_batch_size = 512;
  j.workload.micro_batch_size = 2;
  const double shared = step(64);
  j.machine.fabric.oversubscription = 1;
  CHECK(step(64) < shared);
}

}  // namespace
}  // namespace nvlsim
