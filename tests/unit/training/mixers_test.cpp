// Layers of hybrid and sparse models as operators: their arithmetic against the count of the model, and their
// memory.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "training/operator_list.hpp"
#include "training/pass_costs.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

/// Of the linear operators of a layer's forward, a token.
double linear_flops(const model& m, const layer_spec& l, const training_workload& w) {
  double sum = 0;
  for (const layer_operator& o : layer_operators(m, l, w, test::keeping(0)))
    if (o.what == layer_operator::type::linear) sum += 2 * o.m * o.n * o.k * o.groups;
  return sum / static_cast<double>(w.micro_batch_size * w.seq_length);
}

training_workload one_gpu(std::int64_t sequence) {
  training_workload w;
  w.seq_length = sequence;
  w.global_batch_size = 1;
  w.place.gpus_per_domain = 64;
  return w;
}

/// Two multiply-adds for each weight that a token meets.
double weight_flops(const model& m, const layer_spec& l, const double ignored) {
  const std::int64_t skipped =
      expert_parameters(m, l) / std::max<std::int64_t>(1, l.moe.experts) * (l.moe.experts - l.moe.top_k);
  return 2 * (static_cast<double>(layer_parameters(m, l) - skipped) - ignored);
}

TEST_CASE("Mixers multiply each token by every weight of their layer") {
  for (const char* name : {"nemotron-h-56b", "nemotron-3-nano", "nemotron-3-super", "deepseek-v4-flash",
                           "deepseek-v3.2", "qwen3.5-397b-a17b"}) {
    const model m = test::read_file("/scenarios/models", name, read_model);
    const training_workload w = one_gpu(1024);
    for (const layer_spec& l : m.layers) {
      // Norms and convolutions are no products, and an indexer with fewer keys than it chooses is not run.
      INFO(name << " " << static_cast<int>(l.attention));
      const double indexer = l.attention == attention_kind::mla && l.index_heads > 0
                                 ? static_cast<double>(l.mla.q_lora_rank * l.index_heads * l.index_dim +
                                                       m.hidden * (l.index_dim + l.index_heads))
                                 : 0;
      CHECK(linear_flops(m, l, w) == Approx(weight_flops(m, l, indexer)).epsilon(2e-3));
    }
  }
}

TEST_CASE("Sparse attention absorbs the keys' projection without changing its arithmetic") {
  const model m = test::read_file("/scenarios/models", "deepseek-v3.2", read_model);
  const layer_spec& l = m.layers.back();
  CHECK(linear_flops(m, l, one_gpu(8192)) == Approx(weight_flops(m, l, 0)).epsilon(2e-3));
}

TEST_CASE("Chosen keys are all there are until there are more, then no more than chosen") {
  layer_spec l;
  l.attention = attention_kind::mla;
  l.sparse_keys = 2048, l.index_heads = 64, l.index_dim = 128;
  CHECK(keys_of(l, 2048).pooled == Approx(1024));
  CHECK(keys_of(l, 1e9).pooled == Approx(2048).epsilon(1e-5));
  CHECK(keys_of(l, 8192).scored == 4096);
  CHECK_FALSE(attends_sparsely(l, 2048));
  l.attention = attention_kind::compressed;
  l.window = 128;
  l.compressed.ratio = 4;
  l.sparse_keys = 512;
  const mean_keys k = keys_of(l, 4096);
  CHECK(k.window == Approx(128 - 128.0 * 127 / 2 / 4096));
  CHECK(k.pooled == Approx(512 * 0.75));  // of 1,024 at the end
  l.sparse_keys = l.index_heads = 0;
  l.compressed.ratio = 128;
  CHECK(keys_of(l, 4096).pooled == 16);
  l.compressed.ratio = 0;
  CHECK(keys_of(l, 4096).pooled == 0);
}

TEST_CASE("Hybrid layers are split by tensor parallelism in time and in memory") {
  test::shipped_job j = test::shipped("gb300-nvl72", "nemotron-h-56b");
  j.workload.par = {};
  j.workload.par.dp = 8;
  j.workload.global_batch_size = 8;
  const training_workload whole = j.workload;
  j.workload.par.tp = 8, j.workload.par.dp = 1, j.workload.par.sequence_parallel = true;
  for (const layer_spec& l : j.net.layers) {
    const double one = stored_activations(j.net, l, whole, test::keeping(0)).here.base();
    CHECK(stored_activations(j.net, l, j.workload, test::keeping(0)).here.base() == Approx(one / 8));
    CHECK(parameters_on_gpu(j.net, l, j.workload.par).total() ==
          Approx(parameters_on_gpu(j.net, l, whole.par).total() / 8).epsilon(1e-3));  // norms are on every rank
  }
}

TEST_CASE("Prediction modules of a hybrid are the layers of their own pattern") {
  test::shipped_job j = test::shipped("gb300-nvl72", "nemotron-3-super");
  j.workload.par = {};
  j.workload.par.dp = j.workload.par.ep = 64;
  REQUIRE(j.net.mtp_block.size() == 2);
  const double with = j.step_s();
  const double held = training_memory(j.machine, j.software, j.net, j.workload).items.front().size.base();
  model without = j.net;
  without.mtp_layers = 0;
  without.mtp_block.clear();
  j.net = without;
  CHECK(j.step_s() < with);
  CHECK(training_memory(j.machine, j.software, j.net, j.workload).items.front().size.base() < held);
}

TEST_CASE("Context parallelism divides the work of mixers") {
  for (const char* name : {"nemotron-h-56b", "deepseek-v3.2", "deepseek-v4-flash", "qwen3.5-397b-a17b"}) {
    test::shipped_job j = test::shipped("gb300-nvl72", name);
    j.workload.par = {};
    j.workload.seq_length = 65536;
    j.workload.global_batch_size = 1;
    training_workload split = j.workload;
    split.par.cp = 2;
    REQUIRE(training_problems(j.machine, j.net, split).empty());
    const training_context one(j.machine, j.software, j.net, j.workload), two(j.machine, j.software, j.net, split);
    for (layer_spec l : j.net.layers) {
      if (l.attention == attention_kind::none) continue;
      l.moe = {};
      l.ffn_hidden = 0;
      INFO(name << " " << static_cast<int>(l.attention));
      for (const pass_kind what : {pass_kind::forward, pass_kind::backward}) {
        const double share = layer_pass(two, l, what).duration() / layer_pass(one, l, what).duration();
        CHECK(share > 0.45);
        CHECK(share < 0.75);
      }
    }
  }
}

TEST_CASE("Halves of a backward pass take together what the whole does") {
  for (const char* name : {"llama3-70b", "nemotron-3-super", "deepseek-v4-flash"}) {
    test::shipped_job j = test::shipped("gb300-nvl72", name);
    j.workload.par = {};
    j.workload.par.dp = 8;
    const training_context c(j.machine, j.software, j.net, j.workload);
    for (const layer_spec& l : {j.net.layers.front(), j.net.layers.back()}) {
      if (l.routed()) continue;  // launches of experts hide behind more work in one pass than in two
      const auto time = [&](pass_kind what) { return layer_pass(c, l, what).duration().base(); };
      CHECK(time(pass_kind::backward_input) + time(pass_kind::backward_weight) ==
            Approx(time(pass_kind::backward)));
      CHECK(time(pass_kind::backward_weight) > 0);
    }
  }
}

}  // namespace
}  // namespace nvlsim
