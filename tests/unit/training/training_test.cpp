// A training step as a plan: data-parallel events, folding, and how its time answers to work and hardware.
#include "nvlsim/training/training.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

std::vector<span> spans_of(const plan& p, const timeline& t, std::size_t rank, stream_kind kind,
                           const std::string& name) {
  const auto& all = p.classes[rank].streams;
  std::vector<span> out;
  for (std::size_t s = 0; s < all.size(); ++s)
    for (std::size_t i = 0; i < all[s].operations.size(); ++i)
      if (all[s].kind == kind &&
          p.templates[static_cast<std::size_t>(all[s].operations[i].template_index)].name.starts_with(name))
        out.push_back(t.spans[rank][s][i]);
  return out;
}

/// Two replicas in two domains of one GPU; a bucket a layer, since each has 201 M parameters.
struct replica_pair {
  platform machine = test::ideal_machine();
  stack software = test::ideal_stack();
  model net = test::even_model(6);
  training_workload workload = test::even_workload(1, 1, 4);

  explicit replica_pair(double nic_GBps) {
    machine.fabric.nic_bandwidth = bandwidth::from_base(nic_GBps * 1e9);
    workload.par.dp = 2;
    workload.place.gpus_per_domain = 1;
    workload.sharding = data_parallel_sharding::replicated;
  }
};

TEST_CASE("Gradients of a bucket leave as soon as its backward pass is over") {
  for (const double nic_GBps : {0.1, 40.0, 1e9}) {
    const replica_pair r(nic_GBps);
    const plan p = plan_training(r.machine, r.software, r.net, r.workload);
    const timeline t = evaluate(p);
    const auto reduced = spans_of(p, t, 0, stream_kind::data_parallel, "gradient all-reduce");
    const auto backward = spans_of(p, t, 0, stream_kind::compute, "backward (1 layers");
    REQUIRE(reduced.size() == 6);
    REQUIRE(backward.size() == 6);  // of the last micro-batch; the one before runs its layers as a whole
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(reduced[i].begin_s ==
            Approx(std::max(backward[i].end_s, i == 0 ? 0 : reduced[i - 1].end_s)).epsilon(1e-12));
    CHECK(t.makespan.base() == Approx(std::max(backward.back().end_s, reduced.back().end_s)).epsilon(1e-12));
  }
}

TEST_CASE("Gradient traffic hides behind the backward pass, save the last bucket's, until the network is slow") {
  const double compute = evaluate(plan_training(replica_pair(1e30).machine, test::ideal_stack(),
                                                test::even_model(6), replica_pair(1e30).workload))
                             .makespan.base();
  for (const double nic_GBps : {400.0, 0.1}) {
    const replica_pair r(nic_GBps);
    const plan p = plan_training(r.machine, r.software, r.net, r.workload);
    const timeline t = evaluate(p);
    const auto reduced = spans_of(p, t, 0, stream_kind::data_parallel, "gradient all-reduce");
    const auto backward = spans_of(p, t, 0, stream_kind::compute, "backward (1 layers");
    // Two ranks on a ring: each sends its 4 bytes a parameter once, half of them in each of two rounds.
    const double bytes_sent = 4 * static_cast<double>(layer_parameters(r.net, r.net.layers.front()));
    const double one = reduced[3].end_s - reduced[3].begin_s, pass = backward[3].end_s - backward[3].begin_s;
    CHECK(one == Approx(bytes_sent / (nic_GBps * 1e9)).epsilon(1e-9));
    const double first = reduced.front().end_s - reduced.front().begin_s,
                 last = reduced.back().end_s - reduced.back().begin_s;
    if (one < pass) CHECK(t.makespan.base() == Approx(compute + last).epsilon(1e-9));
    else CHECK(t.makespan.base() == Approx(backward.front().end_s + first + 4 * one + last).epsilon(1e-9));
  }
}

TEST_CASE("The first micro-batch meets parameters as they are gathered") {
  replica_pair r(0.1);
  r.workload.sharding = data_parallel_sharding::distributed_optimizer;
  const plan p = plan_training(r.machine, r.software, r.net, r.workload);
  const timeline t = evaluate(p);
  const auto gathered = spans_of(p, t, 0, stream_kind::data_parallel, "parameter all-gather");
  const auto forward = spans_of(p, t, 0, stream_kind::compute, "forward (1 layers");
  REQUIRE(gathered.size() == 6);
  REQUIRE(forward.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(gathered[i].begin_s == Approx(i == 0 ? 0 : gathered[i - 1].end_s).margin(1e-12));
    CHECK(forward[i].begin_s == Approx(gathered[i].end_s).epsilon(1e-12));  // the network is far slower
  }
}

/// Four stages of a layer, the last of which has an LM head to compute that takes time.
struct headed {
  platform machine = test::ideal_machine();
  stack software = test::ideal_stack();
  model net = test::even_model(4);
  training_workload workload = test::even_workload(4, 1, 12);

  explicit headed(std::int64_t limit) {
    software.kernels["ideal"].gemm[precision::bf16].tensor_rate = 1000.0_TFLOPS;
    software.training->wgrad_deferral_limit = limit;
    net.vocab = 65536;
  }
  plan planned() const { return plan_training(machine, software, net, workload); }
};

TEST_CASE("Weight gradients of the LM head that are put off run in the idle time at the end of the last stage") {
  const plan at_once = headed(0).planned();
  const timeline t = evaluate(at_once);
  const auto length = [](const span& s) { return s.end_s - s.begin_s; };
  const double layer = length(spans_of(at_once, t, 0, stream_kind::compute, "forward").front());
  const double head = length(spans_of(at_once, t, 3, stream_kind::compute, "forward").front()) - layer;
  REQUIRE(head > layer / 2);
  // The last stage sets the pace: three passes reach it, then its own, then those of its gradients to the first.
  CHECK(t.makespan.base() == Approx(3 * layer + 12 * (3 * layer + 3 * head) + 6 * layer).epsilon(1e-9));
  for (const std::int64_t limit : {1, 5, 12, 22}) {
    const auto waiting = static_cast<double>(std::min<std::int64_t>(limit, 12));
    const double late = waiting * head, rest = 3 * layer + 12 * (3 * layer + 3 * head) - late;
    const plan p = headed(limit).planned();
    CHECK(evaluate(p).makespan.base() == Approx(rest + std::max(6 * layer, late)).epsilon(1e-9));
    const auto put_off = spans_of(p, evaluate(p), 3, stream_kind::compute, "deferred");
    REQUIRE(put_off.size() == 1);
    CHECK(length(put_off.front()) == Approx(late).epsilon(1e-9));
  }
}

TEST_CASE("Gradients of the LM head are put off where Megatron-Core would, and never change the work") {
  const auto busy_s = [](const plan& p) {
    double out = 0;
    for (const operation& o : p.classes.back().streams.front().operations)
      out += p.templates[static_cast<std::size_t>(o.template_index)].duration.base();
    return out;
  };
  const auto puts_off = [](const plan& p) {
    return std::any_of(p.templates.begin(), p.templates.end(),
                       [](const operation_template& w) { return w.name.starts_with("deferred"); });
  };
  const headed all(22);
  CHECK(busy_s(all.planned()) == Approx(busy_s(headed(0).planned())).epsilon(1e-12));
  CHECK(puts_off(all.planned()));
  headed one_stage = all, frozen = all, gathered = all, reduced = all, split = all, routed = all;
  one_stage.workload.par.pp = 1;
  frozen.workload.task = training_task::lora;
  gathered.workload.sharding = data_parallel_sharding::fsdp;
  reduced.workload.sharding = data_parallel_sharding::optim_grads;
  split.workload.schedule = pipeline_schedule::zb_h1;
  routed.net = test::shipped("gb300-nvl72", "qwen3-30b-a3b").net;
  routed.software = test::shipped("gb300-nvl72", "qwen3-30b-a3b").software;
  routed.machine = test::shipped("gb300-nvl72", "qwen3-30b-a3b").machine;
  for (const headed* j : {&one_stage, &frozen, &gathered, &reduced, &split, &routed})
    CHECK_FALSE(puts_off(j->planned()));
}

TEST_CASE("Gradients of the last chunk leave when those of the LM head are done") {
  headed j(22);
  j.workload.par.dp = 2;
  j.workload.global_batch_size = 24;
  j.workload.place.gpus_per_domain = 1;
  j.machine.fabric.nic_bandwidth = 100.0_GBps;
  const plan p = j.planned();
  const timeline t = evaluate(p);
  const auto put_off = spans_of(p, t, 3, stream_kind::compute, "deferred");
  const auto reduced = spans_of(p, t, 3, stream_kind::data_parallel, "gradient reduce-scatter");
  REQUIRE(put_off.size() == 1);
  REQUIRE_FALSE(reduced.empty());
  CHECK(reduced.front().begin_s == put_off.front().end_s);
}

TEST_CASE("Sharding decides which collectives run, and how many bytes they take") {
  replica_pair r(1.0);
  const auto total = [&](data_parallel_sharding how, const std::string& name) {
    r.workload.sharding = how;
    const plan p = plan_training(r.machine, r.software, r.net, r.workload);
    double sum = 0;
    for (const span& s : spans_of(p, evaluate(p), 0, stream_kind::data_parallel, name)) sum += s.end_s - s.begin_s;
    return sum;
  };
  using enum data_parallel_sharding;
  const double reduce = total(distributed_optimizer, "gradient reduce-scatter");
  CHECK(total(replicated, "gradient all-reduce") == Approx(2 * reduce).epsilon(1e-9));
  CHECK(total(distributed_optimizer, "parameter all-gather") == Approx(reduce / 4).epsilon(1e-9));  // 1 byte for 4
  CHECK(total(replicated, "parameter all-gather") == 0);
  r.workload.sharding = fsdp;
  const plan p = plan_training(r.machine, r.software, r.net, r.workload);
  CHECK(p.classes[0].streams.size() == 1);  // waits in the layers instead
  // Each of two micro-batches gathers twice and reduces once; compute hides behind that.
  CHECK(evaluate(p).makespan.base() == Approx(2 * (2 * reduce / 4 + reduce)).epsilon(1e-3));
}

TEST_CASE("A folded step takes as long as one of every rank") {
  struct layout {
    std::int64_t tp, pp, vp, cp, dp, batch;
  };
  // 72 GPUs of one rack, then 576 of eight.
  for (const layout& l : {layout{4, 3, 1, 1, 6, 36}, layout{2, 3, 6, 2, 6, 36}, layout{4, 9, 2, 1, 16, 144}}) {
    test::shipped_job j = test::shipped("gb300-nvl72", "llama3.1-405b");
    j.workload.global_batch_size = l.batch;
    j.workload.par = {};
    j.workload.par.tp = l.tp, j.workload.par.pp = l.pp, j.workload.par.vp = l.vp, j.workload.par.cp = l.cp,
    j.workload.par.dp = l.dp;
    j.workload.par.sequence_parallel = true;
    j.workload.place.gpus_per_domain = 72;
    j.workload.schedule = l.vp > 1 ? pipeline_schedule::interleaved : pipeline_schedule::one_f_one_b;
    for (const auto sharding :
         {data_parallel_sharding::distributed_optimizer, data_parallel_sharding::replicated}) {
      j.workload.sharding = sharding;
      REQUIRE(training_problems(j.machine, j.net, j.workload).empty());
      const plan folded = j.planned(), every = j.planned(false);
      CHECK(folded.classes.size() == static_cast<std::size_t>(l.pp));
      CHECK(every.classes.size() == static_cast<std::size_t>(j.workload.par.gpus()));
      CHECK(evaluate(every).makespan.base() == Approx(evaluate(folded).makespan.base()).epsilon(1e-12));
      std::int64_t gpus = 0;
      for (const rank_class& c : folded.classes) gpus += c.multiplicity;
      CHECK(gpus == j.workload.par.gpus());
    }
  }
}

TEST_CASE("Too many passes to simulate are refused in words") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  j.machine.racks = 100'000;
  j.workload.par.dp = 16'384;
  j.workload.global_batch_size = 16'384 * 64;
  REQUIRE(training_problems(j.machine, j.net, j.workload).empty());
  CHECK_THROWS_WITH(j.planned(false), Catch::Contains("fold equal ranks"));
  j.workload.par.dp = 1;
  j.workload.global_batch_size = 1 << 30;
  const auto problems = training_problems(j.machine, j.net, j.workload);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], Catch::Contains("4.29e+09 passes"));
}

TEST_CASE("More work takes longer") {
  const test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  const auto longer = [&](const char* what, const std::function<void(test::shipped_job&)>& change) {
    test::shipped_job more = j;
    change(more);
    INFO(what);
    REQUIRE(training_problems(more.machine, more.net, more.workload).empty());
    CHECK(more.step_s() > j.step_s());
  };
  longer("sequence", [](auto& x) { x.workload.seq_length *= 2; });
  longer("batch", [](auto& x) { x.workload.global_batch_size *= 2; });
  longer("layers", [](auto& x) { x.net.layers.resize(84, x.net.layers.front()); });
  longer("hidden", [](auto& x) { x.net.hidden *= 2; });
  longer("vocabulary", [](auto& x) { x.net.vocab *= 2; });
  longer("precision", [](auto& x) { x.workload.gemm_precision = precision::bf16; });
  longer("recompute", [](auto& x) { x.workload.recompute.full = true; });
  longer("no sequence parallelism", [](auto& x) { x.workload.par.sequence_parallel = false; });
}

TEST_CASE("Better hardware and software are never slower, and those that bound the step are faster") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  j.workload.par.tp = 8, j.workload.par.pp = 8, j.workload.par.cp = 2;  // groups that cross racks
  const double before = j.step_s();
  const auto faster = [&](const char* what, const std::function<void(test::shipped_job&)>& change) {
    test::shipped_job better = j;
    change(better);
    INFO(what);
    CHECK(better.step_s() < before);
  };
  faster("HBM", [](auto& x) { x.machine.gpu.hbm_bandwidth *= 2; });
  faster("HBM stream", [](auto& x) { x.machine.gpu.hbm_stream *= 2; });
  faster("exponentials", [](auto& x) { x.machine.gpu.exponentials *= 2; });
  faster("NIC", [](auto& x) { x.machine.fabric.nic_bandwidth *= 2; });
  faster("GEMM rate", [](auto& x) {
    for (auto& [name, profile] : x.software.kernels)
      for (auto& [p, gemm] : profile.gemm) gemm.tensor_rate *= 1.1;
  });
  faster("attention rate", [](auto& x) {
    for (auto& [name, profile] : x.software.kernels) profile.attention.tensor_rate *= 1.1;
  });
  faster("framework", [](auto& x) { x.software.training->time_factor *= 0.9; });
  faster("overlap", [](auto& x) { x.software.training->tp_exposed *= 0.5; });
  faster("host", [](auto& x) { x.software.training->step_host = {}; });
  faster("release", [](auto& x) { x.software.training->jitter_per_doubling = 0; });
}

TEST_CASE("Problems of a layout are all told at once") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  CHECK(training_problems(j.machine, j.net, j.workload).empty());
  j.workload.par.tp = 3, j.workload.par.cp = 5, j.workload.par.pp = 1, j.workload.par.vp = 2,
  j.workload.par.ep = 2;
  j.workload.global_batch_size = 7;
  const auto problems = training_problems(j.machine, j.net, j.workload);
  const auto told = [&](const std::string& part) {
    return std::any_of(problems.begin(), problems.end(),
                       [&](const std::string& p) { return p.find(part) != std::string::npos; });
  };
  CHECK(told("attention heads (64 is not divisible by 3)"));
  CHECK(told("FFN width (28672 is not divisible by 3)"));
  CHECK(told("expert parallelism needs a model with routed experts"));
  CHECK(told("the global batch of 7 must be a multiple of micro-batch 1 x dp 4"));
  CHECK(told("context and sequence parallelism must divide the sequence (8192 is not divisible by 15)"));
  CHECK(told("vp needs pp > 1"));
  CHECK(told("schedule 1f1b has one model chunk per stage; use interleaved for vp > 1"));
}

TEST_CASE("Interleaving asks for whole groups of micro-batches") {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  j.workload.par.vp = 4;
  j.workload.schedule = pipeline_schedule::interleaved;
  CHECK(training_problems(j.machine, j.net, j.workload).empty());
  j.workload.global_batch_size = 4 * 10;
  const auto problems = training_problems(j.machine, j.net, j.workload);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] ==
        "schedule interleaved needs a multiple of pp 4 micro-batches; the global batch gives each replica 10");
}

}  // namespace
}  // namespace nvlsim
