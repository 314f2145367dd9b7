// What the host costs a step: launches of operators, CUDA graphs, waiting for the counts of experts; and formats
// that recipes keep.
#include <catch2/catch.hpp>

#include <algorithm>

#include "training/pass_costs.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

constexpr double operators_forward = 9;    // norm, QKV, rotary, attention, output, norm, up, activation, down
constexpr double operators_backward = 13;  // the same, and four gradients of weights

/// A pass through a dense layer whose host takes 1 s an operator.
double pass_s(training_workload w, pass_kind what) {
  const platform p = test::ideal_machine();
  stack s = test::ideal_stack();
  s.training->host_per_operator = seconds::from_base(1);
  const model m = test::even_model(1);
  return layer_pass(training_context(p, s, m, w), m.layers.front(), what).duration().base();
}

TEST_CASE("A host that launches operators slower than the GPU runs them paces a dense layer") {
  training_workload w = test::even_workload(1, 1, 1);
  CHECK(pass_s(w, pass_kind::forward) == Approx(operators_forward));
  CHECK(pass_s(w, pass_kind::backward) == Approx(operators_backward));
  w.task = training_task::lora;  // no gradients of weights
  CHECK(pass_s(w, pass_kind::backward) == Approx(operators_forward));
  w.task = training_task::pretrain;
  w.par.tp = 4;  // as many launches, however small the shards
  CHECK(pass_s(w, pass_kind::forward) == Approx(operators_forward));
}

TEST_CASE("CUDA graphs launch the operators in their scope at once") {
  training_workload w = test::even_workload(1, 1, 1);
  w.graphs = cuda_graphs::partial;
  w.graphed = {.attention = true, .scans = false, .mlp = false, .router = false};
  CHECK(pass_s(w, pass_kind::forward) == Approx(operators_forward - 5 + 1));
  w.graphed.mlp = true;
  CHECK(pass_s(w, pass_kind::forward) == Approx(1));
  w.graphs = cuda_graphs::full_iteration;
  CHECK(pass_s(w, pass_kind::forward) < 0.01);
}

struct routed_job {
  platform machine = test::ideal_machine();
  stack software = test::ideal_stack();
  model net = test::even_model(1);
  training_workload workload = test::even_workload(1, 1, 1);

  routed_job() {
    net.layers.front().ffn_hidden = 0;
    net.layers.front().moe = {.experts = 16, .top_k = 2, .expert_ffn = 1024, .shared_ffn = 0};
    workload.par.ep = workload.par.dp = 4;
    workload.global_batch_size = 4;
    software.training->moe_host_per_expert = seconds::from_base(1);
  }
  double pass_s(pass_kind what) const {
    return layer_pass(training_context(machine, software, net, workload), net.layers.front(), what)
        .duration()
        .base();
  }
};

TEST_CASE("A dispatcher costs the host the operators that it launches, and casts of experts cost by expert") {
  routed_job j;
  const auto backward = [&](moe_dispatcher d) {
    j.workload.dispatcher = d;
    return j.pass_s(pass_kind::backward);
  };
  const double experts = 1.5 * 4;  // local experts
  CHECK(backward(moe_dispatcher::hybridep) == Approx(experts));
  j.software.training->moe_host_per_cast_expert = seconds::from_base(2);
  CHECK(backward(moe_dispatcher::hybridep) == Approx(experts * 3));
  j.workload.gemm_precision = precision::bf16;
  CHECK(backward(moe_dispatcher::hybridep) == Approx(experts));
  j.software.training->host_per_operator = seconds::from_base(1);
  const double permutes = backward(moe_dispatcher::hybridep);
  CHECK(backward(moe_dispatcher::deduplicated) == Approx(permutes + 1));
  CHECK(backward(moe_dispatcher::alltoall) == Approx(permutes + 2));
  j.workload.par.ep = 16, j.workload.par.dp = j.workload.global_batch_size = 16;  // one local expert: no sorting
  CHECK(backward(moe_dispatcher::alltoall) - backward(moe_dispatcher::hybridep) == Approx(1));
}

TEST_CASE("A router without fused kernels launches more, unless a CUDA graph holds it") {
  routed_job j;
  j.software.training->host_per_operator = seconds::from_base(1);
  j.software.training->unfused_router_launches = 10;
  const auto more = [&](pass_kind what) {
    routed_job fused = j, apart = j;
    fused.workload.router_fusion = true;
    apart.workload.router_fusion = false;
    return apart.pass_s(what) - fused.pass_s(what);
  };
  CHECK(more(pass_kind::forward) == Approx(10));
  CHECK(more(pass_kind::backward) == Approx(3));
  j.workload.recompute.moe = true;  // launched again, and then backward
  CHECK(more(pass_kind::backward) == Approx(13));
  j.workload.recompute = {};
  j.workload.graphs = cuda_graphs::partial;
  CHECK(more(pass_kind::forward) == 0);
  CHECK(more(pass_kind::backward) == 0);
  j.workload.graphed.router = false;
  CHECK(more(pass_kind::forward) == Approx(10));
  // Recipes of fine-tuning leave it apart, and those that exchange a copy for every expert.
  j.workload.dispatcher = moe_dispatcher::alltoall;
  CHECK_FALSE(fuses_router(j.workload));
  j.workload.dispatcher = moe_dispatcher::deduplicated;
  CHECK(fuses_router(j.workload));
  for (const training_task t : {training_task::sft, training_task::lora}) {
    j.workload.task = t;
    CHECK_FALSE(fuses_router(j.workload));
  }
}

TEST_CASE("CUDA graphs that hold more never slow a step") {
  test::shipped_job j = test::shipped("nd-h100-v5", "qwen3-30b-a3b");
  j.workload.par = {};
  j.workload.par.dp = j.workload.par.ep = 16;
  j.workload.seq_length = 4096;
  j.workload.gemm_precision = precision::bf16;
  for (const bool fused : {false, true})
    for (const bool overlap : {false, true}) {
      j.workload.router_fusion = fused, j.workload.moe_overlap = overlap;
      const auto with = [&](unsigned scopes) {
        j.workload.graphs = scopes == 0 ? cuda_graphs::none : cuda_graphs::partial;
        j.workload.graphed = {(scopes & 1) != 0, (scopes & 2) != 0, (scopes & 4) != 0, (scopes & 8) != 0};
        return j.step_s();
      };
      for (unsigned scopes = 1; scopes < 16; ++scopes)
        for (unsigned less = 1; less < 16; less *= 2)
          if ((scopes & less) != 0) CHECK(with(scopes) <= with(scopes & ~less));
    }
}

TEST_CASE("The overlap of an exchange costs the host nothing where there is no exchange") {
  const auto slower = [](routed_job j) {
    j.software.training->moe_host_per_node = j.software.training->host_per_operator = seconds::from_base(1);
    const auto both = [&] { return j.pass_s(pass_kind::forward) + j.pass_s(pass_kind::backward); };
    j.workload.gemm_precision = precision::fp8;
    const double without = both();
    j.workload.moe_overlap = true;
    return both() - without;
  };
  routed_job exchanged, alone, dense;
  alone.workload.par.ep = 1;
  dense.net = test::even_model(1);
  CHECK(slower(exchanged) > 1);
  CHECK(slower(alone) == 0);
  CHECK(slower(dense) == 0);
}

TEST_CASE("Biases of experts are added in a loop over local experts, unless the expert MLP is one kernel") {
  routed_job j;
  j.software.training->host_per_operator = seconds::from_base(1);
  const double plain = j.pass_s(pass_kind::backward);
  j.net.layers.front().biased_clamped_activation = true;
  CHECK(j.pass_s(pass_kind::backward) == Approx(plain + 2));
  j.workload.fused_expert_mlp = true;
  CHECK(j.pass_s(pass_kind::backward) == Approx(plain));
}

TEST_CASE("Norms of queries and keys are two launches more, kernels of adapters half a launch each") {
  const auto launches = [](qk_norm_kind norms, std::int64_t rank, pass_kind what) {
    const platform p = test::ideal_machine();
    stack s = test::ideal_stack();
    s.training->host_per_operator = seconds::from_base(1);
    model m = test::even_model(1);
    m.layers.front().qk_norm = norms;
    training_workload w = test::even_workload(1, 1, 1);
    if (rank > 0) w.task = training_task::lora, w.lora = {rank, true, true, false, false};
    return layer_pass(training_context(p, s, m, w), m.layers.front(), what).duration().base();
  };
  CHECK(launches(qk_norm_kind::per_head, 0, pass_kind::forward) == Approx(operators_forward + 2));
  CHECK(launches(qk_norm_kind::per_head, 0, pass_kind::backward) == Approx(operators_backward + 2));
  // On each of two projections two products, a scaling and an addition; only the adapters have gradients of
  // weights.
  CHECK(launches(qk_norm_kind::none, 16, pass_kind::forward) == Approx(operators_forward + 2 * 4 * 0.5));
  CHECK(launches(qk_norm_kind::none, 16, pass_kind::backward) == Approx(operators_forward + 2 * 6 * 0.5));
}

TEST_CASE("A host-paced layer with adapters on few projections is hardly slower than the same layer fine-tuned") {
  const auto both_ways = [](const training_workload& w) {
    return pass_s(w, pass_kind::forward) + pass_s(w, pass_kind::backward);
  };
  for (const std::int64_t tp : {1, 4}) {
    training_workload w = test::even_workload(1, 1, 1);
    w.par.tp = tp;
    const double tuned = both_ways(w);
    w.task = training_task::lora;
    CHECK(both_ways(w) < tuned);
    double one = 0;
    for (const lora_spec& few :
         {lora_spec{8, true, false, false, false}, lora_spec{8, false, true, false, false},
          lora_spec{8, false, false, true, false}, lora_spec{8, false, false, false, true}}) {
      w.lora = few;
      CHECK(both_ways(w) < 1.2 * tuned);
      one = std::max(one, both_ways(w));
    }
    w.lora = {8, true, true, false, false};
    CHECK(both_ways(w) < 1.5 * tuned);
    CHECK(both_ways(w) > one);
    const double here = both_ways(w);
    w.par.tp = 1;  // adapters of divided projections have collectives, others have none
    CHECK(both_ways(w) < 1.3 * tuned);
    CHECK((both_ways(w) < here) == (tp > 1));
  }
}

TEST_CASE("The launches of experts follow the wait for their counts, which other work hides under overlap") {
  routed_job j;
  const double local = 4, gpu = [&] {
    routed_job free = j;
    free.workload.graphs = cuda_graphs::full_iteration;
    return free.pass_s(pass_kind::forward);
  }();
  CHECK(j.pass_s(pass_kind::forward) > local);  // attention before them is not hidden
  CHECK(j.pass_s(pass_kind::forward) < local + gpu);
  CHECK(j.pass_s(pass_kind::backward) == Approx(1.5 * local));
  j.workload.moe_overlap = true;
  CHECK(j.pass_s(pass_kind::forward) == Approx(local));
  j.workload.token_drop = true;  // shapes are static
  CHECK(j.pass_s(pass_kind::forward) == Approx(gpu));
}

TEST_CASE("Shared experts cost the host a time of their own, however many experts are routed") {
  const auto more = [](std::int64_t experts, pass_kind what, cuda_graphs graphs) {
    routed_job j;
    j.net.layers.front().moe = {.experts = experts, .top_k = 2, .expert_ffn = 1024, .shared_ffn = 1024};
    j.workload.graphs = graphs;
    const double without = j.pass_s(what);
    j.software.training->moe_host_of_shared_experts = seconds::from_base(8);
    return j.pass_s(what) - without;
  };
  for (const std::int64_t experts : {8, 64}) {
    CHECK(more(experts, pass_kind::forward, cuda_graphs::none) == Approx(8));
    CHECK(more(experts, pass_kind::backward, cuda_graphs::none) == Approx(12));
    CHECK(more(experts, pass_kind::forward, cuda_graphs::full_iteration) == 0);
  }
}

TEST_CASE("Nodes of the schedule that overlaps the exchange cost the host in 8 bits, unless graphs hold layers") {
  routed_job j;
  const auto nodes = [](routed_job at, pass_kind what) {
    const double free = at.pass_s(what);
    at.software.training->moe_host_per_node = seconds::from_base(1);
    return at.pass_s(what) - free;
  };
  CHECK(nodes(j, pass_kind::backward) == 0);
  j.workload.moe_overlap = true;
  for (const pass_kind what : {pass_kind::forward, pass_kind::backward}) CHECK(nodes(j, what) == Approx(4));
  routed_job dense = j, static_shapes = j, wide = j;
  // A dense layer of a model with experts, the first: two nodes, less what its GPU computes meanwhile.
  dense.net.layers.insert(dense.net.layers.begin(), test::even_model(1).layers.front());
  CHECK(nodes(dense, pass_kind::backward) == Approx(2).epsilon(0.01));
  static_shapes.workload.token_drop = true;
  CHECK(nodes(static_shapes, pass_kind::backward) == Approx(4).epsilon(0.01));
  wide.workload.gemm_precision = precision::bf16;
  CHECK(nodes(wide, pass_kind::backward) == 0);
  for (const cuda_graphs g : {cuda_graphs::partial, cuda_graphs::full_iteration}) {
    j.workload.graphs = g;
    CHECK(nodes(j, pass_kind::backward) == 0);
  }
}

TEST_CASE("Overlap of the exchange never slows a step in 16 bits or with CUDA graphs") {
  test::shipped_job j = test::shipped("nd-h100-v5", "qwen3-30b-a3b");
  j.workload.par = {};
  j.workload.par.dp = j.workload.par.ep = 16;
  j.workload.seq_length = 4096;
  double most = 0;  // in 8 bits without graphs, where the schedule's nodes cost the host
  for (const precision p : {precision::bf16, precision::fp8})
    for (const cuda_graphs g : {cuda_graphs::none, cuda_graphs::partial, cuda_graphs::full_iteration})
      for (const moe_dispatcher d :
           {moe_dispatcher::alltoall, moe_dispatcher::deduplicated, moe_dispatcher::hybridep}) {
        j.workload.gemm_precision = p;
        j.workload.graphs = g, j.workload.dispatcher = d, j.workload.moe_overlap = false;
        const double without = j.step_s();
        j.workload.moe_overlap = true;
        const bool pays_nodes = p == precision::fp8 && g == cuda_graphs::none;
        if (pays_nodes) most = std::max(most, j.step_s() / without);
        else CHECK(j.step_s() <= without);
      }
  CHECK(most > 1);
  CHECK(most < 1.6);
}

TEST_CASE("Layers and projections that a recipe keeps in 16 bits run at that rate") {
  routed_job j;
  j.net = test::even_model(4);
  j.workload = test::even_workload(1, 1, 1);
  j.software.kernels["ideal"].gemm[precision::bf16].tensor_rate = 500.0_TFLOPS;
  j.workload.graphs = cuda_graphs::full_iteration;
  const auto step = [&](const training_workload& w) {
    return evaluate(plan_training(j.machine, j.software, j.net, w)).makespan.base();
  };
  const double eight_bits = step(j.workload);
  training_workload all = j.workload, half = j.workload, attention = j.workload;
  all.gemm_precision = precision::bf16;
  const double sixteen_bits = step(all);
  half.kept.first_layers = half.kept.last_layers = 1;
  CHECK(step(half) - eight_bits == Approx((sixteen_bits - eight_bits) / 2));
  attention.kept.attention = precision::bf16;
  // QKV and output are 4 h^2 of 4 h^2 + 3 h f = 16 h^2 weights.
  CHECK(step(attention) - eight_bits == Approx((sixteen_bits - eight_bits) / 4).epsilon(1e-3));
}

}  // namespace
}  // namespace nvlsim
