// What data-parallel ranks share out, in one group or several, and how context-parallel ranks share attention.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"
#include "training/pass_costs.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using test::item;

using enum data_parallel_sharding;

constexpr double nic_rate = 1e9;

/// Four replicas in four domains of one GPU, with two micro-batches each.
struct replicas {
  platform machine = test::ideal_machine();
  model net = test::even_model(6);
  training_workload workload = test::even_workload(1, 1, 2);

  replicas() {
    machine.fabric.nic_bandwidth = bandwidth::from_base(nic_rate);
    workload.par.dp = 4;
    workload.global_batch_size = 8;
    workload.place.gpus_per_domain = 1;
  }
  plan planned(bool fold = true) const { return plan_training(machine, test::ideal_stack(), net, workload, fold); }
  /// Time of all operations of the data-parallel stream that are called so.
  double traffic(const std::string& name) const {
    const plan p = planned();
    double sum = 0;
    for (const stream& s : p.classes.front().streams)
      for (const operation& o : s.operations)
        if (const operation_template& t = p.templates[static_cast<std::size_t>(o.template_index)]; t.name == name)
          sum += t.duration.base();
    return sum;
  }
  double bytes_of_gradients() const {
    return 4 * static_cast<double>(6 * layer_parameters(net, net.layers.front()));
  }
};

// A ring of n ranks sends (n - 1) / n of the array for a reduce-scatter, and twice that for an all-reduce.
TEST_CASE("Sharded gradients leave after every micro-batch") {
  replicas r;
  const double once = 3.0 / 4 * r.bytes_of_gradients() / nic_rate;
  CHECK(r.traffic("gradient reduce-scatter") == Approx(once).epsilon(1e-3));  // the vocabulary is small
  const double gathered = r.traffic("parameter all-gather");
  r.workload.sharding = optim_grads;
  CHECK(r.traffic("gradient reduce-scatter") == Approx(2 * once).epsilon(1e-3));
  CHECK(r.traffic("parameter all-gather") == gathered);
}

TEST_CASE("Sharding takes optimizer states, gradients and weights, one after the other") {
  replicas r;
  const auto memory = [&](data_parallel_sharding s) {
    r.workload.sharding = s;
    return training_memory(r.machine, test::ideal_stack(), r.net, r.workload);
  };
  const memory_report whole = memory(replicated);
  const auto left = [&](data_parallel_sharding s, const char* name) {
    return item(memory(s), name) / item(whole, name);
  };
  const struct {
    data_parallel_sharding sharding;
    double optimizer, gradients, weights;
  } stages[] = {{distributed_optimizer, 0.25, 1, 1}, {optim_grads, 0.25, 0.25, 1}, {fsdp, 0.25, 0.25, 0.25}};
  for (const auto& s : stages) {
    CHECK(left(s.sharding, "optimizer") == Approx(s.optimizer).epsilon(1e-12));
    CHECK(left(s.sharding, "weights") == Approx(s.weights).epsilon(1e-12));
    CHECK(left(s.sharding, "gradients") == Approx(s.gradients).epsilon(1e-12));
  }
}

TEST_CASE("Groups that share out apart reduce inside, then each shard across") {
  replicas r;
  r.workload.sharding_groups = 2;
  // Half of the array inside two ranks; of the half that stays, both halves once more over two groups.
  CHECK(r.traffic("gradient reduce-scatter") ==
        Approx((0.5 + 0.5) * r.bytes_of_gradients() / nic_rate).epsilon(1e-3));
  // FP8 parameters, one byte for the gradient's four.
  CHECK(r.traffic("parameter all-gather") == Approx(0.5 * r.bytes_of_gradients() / 4 / nic_rate).epsilon(1e-3));
  r.workload.sharding = fsdp;
  const memory_report groups = training_memory(r.machine, test::ideal_stack(), r.net, r.workload);
  r.workload.sharding_groups = 1;
  const memory_report one = training_memory(r.machine, test::ideal_stack(), r.net, r.workload);
  for (const char* name : {"weights", "gradients", "optimizer"})
    CHECK(item(groups, name) == Approx(2 * item(one, name)).epsilon(1e-12));
}

// Megatron-Core gathers MXFP8 weights in BF16, through the gradients' buffer, and casts them by row and by column.
TEST_CASE("Parameters are gathered in 8 bits of one scale, else in 16 or in FP32") {
  replicas r;
  stack s = test::ideal_stack();
  for (const precision p : {precision::mxfp8, precision::nvfp4, precision::fp32})
    s.kernels["ideal"].gemm[p] = s.kernels["ideal"].gemm[precision::fp8];
  const training_workload w = r.workload;
  const auto gathered = [&](precision p) {
    training_workload in = w;
    in.gemm_precision = p;
    const training_context c(r.machine, s, r.net, in);
    return parameter_gather(c, {.dense = 1e9, .expert = 0}).time.base();
  };
  const double one = gathered(precision::fp8);
  for (const precision p : {precision::bf16, precision::mxfp8, precision::nvfp4})
    CHECK(gathered(p) == Approx(2 * one).epsilon(1e-3));
  CHECK(gathered(precision::fp32) == Approx(4 * one).epsilon(1e-3));
}

TEST_CASE("Groups keep traffic inside a rack that would leave it") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-8b");
  j.workload.par = {};
  j.workload.par.dp = 128;
  j.workload.global_batch_size = 128;
  j.workload.sharding = fsdp;
  const double wide = j.step_s();
  j.workload.sharding_groups = 2;
  REQUIRE(training_problems(j.machine, j.net, j.workload).empty());
  CHECK(j.step_s() < wide);
}

TEST_CASE("Sharding folded is sharding unfolded") {
  replicas r;
  for (const data_parallel_sharding s : {optim_grads, fsdp})
    for (const std::int64_t groups : {1, 2}) {
      r.workload.sharding = s;
      r.workload.sharding_groups = groups;
      CHECK(evaluate(r.planned(false)).makespan.base() ==
            Approx(evaluate(r.planned()).makespan.base()).epsilon(1e-12));
    }
}

TEST_CASE("Groups that cannot be are refused with the reason") {
  replicas r;
  r.workload.sharding_groups = 3;
  r.workload.sharding = replicated;
  CHECK(training_problems(r.machine, r.net, r.workload) ==
        std::vector<std::string>{
            "sharding groups must divide dp x cp (4 is not divisible by 3)",
            "sharding groups have no effect with replicated data parallelism; use another sharding"});
}

attention_shape attention_of(const training_workload& w) {
  const model m = test::even_model(1);
  for (const layer_operator& o : layer_operators(m, m.layers.front(), w, test::keeping(0)))
    if (o.what == layer_operator::type::attention) return o.shape;
  return {};
}

TEST_CASE("Context parallelism shares out queries, or heads, of the same scores") {
  training_workload w = test::even_workload(1, 1, 2);
  w.par.cp = 4;
  const attention_shape ring = attention_of(w);
  w.cp_exchange = context_exchange::all_to_all;
  const attention_shape heads = attention_of(w);
  CHECK(heads.heads == ring.heads / 4);
  CHECK(heads.queries == ring.queries * 4);
  CHECK(heads.heads * heads.pairs == ring.heads * ring.pairs);
  w.par.cp = 64;
  CHECK(training_problems(test::ideal_machine(), test::even_model(4), w) ==
        std::vector<std::string>{"tensor x context parallelism by all-to-all must divide the attention heads (32 "
                                 "is not divisible by 64)"});
}

TEST_CASE("All-to-all takes another time than the ring, of the same order") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  j.workload.par.tp = 2, j.workload.par.cp = 4, j.workload.par.dp = 2;
  const auto step = [&](context_exchange how) {
    j.workload.cp_exchange = how;
    REQUIRE(training_problems(j.machine, j.net, j.workload).empty());
    return j.step_s();
  };
  const double ring = step(context_exchange::ring), heads = step(context_exchange::all_to_all);
  CHECK(heads != ring);
  CHECK(heads == Approx(ring).epsilon(0.2));
}

}  // namespace
}  // namespace nvlsim
