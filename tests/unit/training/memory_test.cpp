// Memory of a training step: published peaks, and how each item grows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "nvlsim/training/training.hpp"
#include "training/layer_operators.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using test::item;

memory_report memory_of(const test::shipped_job& j) {
  return training_memory(j.machine, j.software, j.net, j.workload);
}

test::shipped_job plain_job() {
  test::shipped_job j = test::shipped("gb300-nvl72", "llama3-70b");
  j.workload.gemm_precision = precision::bf16;
  j.workload.par = {};
  j.workload.par.tp = 2;
  j.workload.par.dp = 4;
  j.workload.par.sequence_parallel = true;
  return j;
}

/// The first layers of a published model.
model llama(std::int64_t hidden, std::int64_t ffn, std::int64_t heads, std::size_t layers) {
  model m;
  m.hidden = hidden;
  m.vocab = 128256;
  layer_spec l;
  l.heads = heads, l.kv_heads = 8, l.head_dim = 128, l.ffn_hidden = ffn;
  m.layers.assign(layers, l);
  return m;
}

/// Four layers of DeepSeek, of which the first is dense.
model deepseek(std::int64_t hidden, std::int64_t vocab, std::int64_t dense_ffn, moe_spec experts) {
  model m;
  m.hidden = hidden;
  m.vocab = vocab;
  layer_spec l;
  l.attention = attention_kind::mla;
  l.heads = 128;
  l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
  l.ffn_hidden = dense_ffn;
  m.layers.push_back(l);
  l.ffn_hidden = 0;
  l.moe = experts;
  m.layers.insert(m.layers.end(), 3, l);
  return m;
}

struct measured_peak {
  const char* model;
  std::int64_t tp, cp, pp, dp, ep, sequence;
  double gib;
};

// Peaks of torch's allocator on eight B200 GPUs, BF16, micro-batch 1, four micro-batches, no recompute:
// MooreThreads/SimuMax@4dcaae5, docs/b200 (measured by its authors).
const std::vector<measured_peak> simumax = {
    {"llama3-70b, 12 layers", 1, 1, 2, 4, 1, 4096, 66.55},
    {"llama3-70b, 12 layers", 2, 1, 1, 4, 1, 4096, 60.68},
    {"llama3-70b, 12 layers", 4, 1, 1, 2, 1, 4096, 39.07},
    {"llama3-70b, 12 layers", 8, 1, 1, 1, 1, 4096, 28.29},
    {"llama3-70b, 12 layers", 2, 4, 1, 1, 1, 32768, 68.43},
    {"llama3-70b, 12 layers", 1, 8, 1, 1, 1, 32768, 104.51},
    {"llama3-70b, 12 layers", 2, 4, 1, 1, 1, 131072, 112.67},
    {"llama3-70b, 12 layers", 1, 8, 1, 1, 1, 131072, 147.99},
    {"llama3-405b, 4 layers", 1, 1, 2, 4, 1, 4096, 87.08},
    {"llama3-405b, 4 layers", 2, 1, 1, 4, 1, 4096, 81.59},
    {"llama3-405b, 4 layers", 4, 1, 1, 2, 1, 4096, 52.89},
    {"llama3-405b, 4 layers", 8, 1, 1, 1, 1, 4096, 38.57},
    {"llama3-405b, 4 layers", 2, 4, 1, 1, 1, 32768, 87.03},
    {"llama3-405b, 4 layers", 1, 8, 1, 1, 1, 32768, 139.22},
    {"llama3-405b, 4 layers", 2, 4, 1, 1, 1, 131072, 118.13},
    {"deepseek-v2, 4 layers", 1, 1, 1, 8, 8, 4096, 45.63},
    {"deepseek-v2, 4 layers", 1, 1, 2, 4, 4, 4096, 44.70},
    {"deepseek-v3, 4 layers", 1, 1, 1, 8, 8, 4096, 104.30},
    {"deepseek-v3, 4 layers", 1, 1, 2, 4, 4, 4096, 114.00},
};

model model_named(const std::string& name) {
  if (name.starts_with("llama3-70b")) return llama(8192, 28672, 64, 12);
  if (name.starts_with("llama3-405b")) return llama(16384, 53248, 128, 4);
  if (name.starts_with("deepseek-v2"))
    return deepseek(5120, 102400, 12288, {.experts = 160, .top_k = 6, .expert_ffn = 1536, .shared_ffn = 3072});
  return deepseek(7168, 129280, 18432, {.experts = 256, .top_k = 8, .expert_ffn = 2048, .shared_ffn = 2048});
}

TEST_CASE("Peak memory meets published peaks within 4 %") {
  test::shipped_job j = test::shipped("hgx-b200", "llama3-8b", "megatron-lm-papers");  // FP32 gradient buffers
  double sum = 0;
  for (const measured_peak& m : simumax) {
    j.net = model_named(m.model);
    training_workload& w = j.workload = {};
    w.seq_length = m.sequence;
    w.par.tp = m.tp, w.par.cp = m.cp, w.par.pp = m.pp, w.par.dp = m.dp, w.par.ep = m.ep;
    w.par.sequence_parallel = m.tp > 1;
    w.global_batch_size = 4 * m.dp;
    w.place.gpus_per_domain = 8;
    INFO(m.model << " tp " << m.tp << " cp " << m.cp << " pp " << m.pp << " ep " << m.ep << " sequence "
                 << m.sequence);
    REQUIRE(training_problems(j.machine, j.net, w).empty());
    const memory_report r = memory_of(j);
    const double found = r.allocated.base() / 0x1p30;
    CHECK(found == Approx(m.gib).epsilon(0.04));
    sum += std::abs(found / m.gib - 1);
  }
  CHECK(sum / static_cast<double>(simumax.size()) < 0.01);
}

TEST_CASE("Memory items add up to the peak") {
  for (const std::int64_t pp : {1, 4}) {
    test::shipped_job j = plain_job();
    j.workload.par.pp = pp;
    const memory_report r = memory_of(j);
    const double sum = std::accumulate(r.items.begin(), r.items.end(), 0.0,
                                       [](double s, const memory_item& i) { return s + i.size.base(); });
    CHECK(sum == Approx(r.peak.base()).epsilon(1e-12));
    CHECK(r.usable == j.machine.gpu.hbm_usable);
    for (const memory_item& i : r.items) {
      CHECK(i.size > bytes{});
      CHECK_FALSE(i.reason.empty());
    }
  }
}

TEST_CASE("Weights, gradients and activations shrink with tensor parallelism, optimizer states with all ranks") {
  test::shipped_job j = plain_job();
  const memory_report two = memory_of(j);
  j.workload.par.tp = 8;
  const memory_report eight = memory_of(j);
  for (const char* name : {"weights", "gradients", "optimizer", "activations", "logits"}) {
    INFO(name);
    CHECK(item(two, name) == Approx(4 * item(eight, name)).epsilon(1e-3));  // norms are on every rank
  }
  CHECK(item(two, "reserve") == item(eight, "reserve"));
  j.workload.par.dp = 16;
  const memory_report wide = memory_of(j);
  CHECK(item(wide, "optimizer") == Approx(item(eight, "optimizer") / 4).epsilon(1e-12));
  CHECK(item(wide, "weights") == item(eight, "weights"));
}

TEST_CASE("Logit gradients are kept for the weight gradients of the LM head that are put off") {
  test::shipped_job j = plain_job();
  j.workload.par.pp = 4;
  j.workload.recompute.full = true, j.net.vocab = 1 << 19;  // so that the last stage holds most
  for (const std::int64_t limit : {0, 1, 3}) {
    j.software.training->wgrad_deferral_limit = limit;
    const double tokens = static_cast<double>(j.workload.seq_length * j.workload.micro_batch_size);
    const double each = 2 * tokens * static_cast<double>(j.net.hidden + j.net.vocab / j.workload.par.tp);
    CHECK(item(memory_of(j), "head gradients") == Approx(static_cast<double>(limit) * each).epsilon(1e-12));
  }
}

TEST_CASE(
    "Room for gradients of weights is that of the last layer and, unless its gradient waits, of the LM head") {
  test::shipped_job j = plain_job();
  j.software.training->wgrad_deferral_limit = 0;
  j.workload.recompute.full = true, j.net.vocab = 1 << 19;  // so that the last stage holds most
  const training_profile& t = *j.software.training;
  const double tp = static_cast<double>(j.workload.par.tp), hidden = static_cast<double>(j.net.hidden);
  const double gathered = 4 * hidden * static_cast<double>(j.workload.seq_length * j.workload.micro_batch_size);
  const double of_head = t.workspace_bytes_per_head_param * static_cast<double>(j.net.vocab) * hidden / tp;
  const auto of_layer = [&] {
    return t.workspace_bytes_per_layer_param * static_cast<double>(layer_parameters(j.net, j.net.layers.back())) /
           tp;
  };
  for (const std::int64_t stages : {1, 2}) {
    j.workload.par.pp = stages;
    CHECK(item(memory_of(j), "workspace") ==
          Approx(of_layer() + of_head + gathered).epsilon(1e-4));  // norms are whole
  }
  j.software.training->wgrad_deferral_limit = 1;
  CHECK(item(memory_of(j), "workspace") == Approx(of_layer() + gathered).epsilon(1e-4));
  j.net.layers.back().ffn_hidden /= 2;  // its layers before keep their width
  CHECK(item(memory_of(j), "workspace") == Approx(of_layer() + gathered).epsilon(1e-4));
}

TEST_CASE("Sharding decides what data-parallel ranks hold") {
  test::shipped_job j = plain_job();
  // Less the final norm; the norms of layers are on every rank of TP.
  const double norms = static_cast<double>(parameters_by_part(j.net).norms - j.net.hidden);
  const double parameters_here = (static_cast<double>(parameters(j.net) - j.net.hidden) + norms) / 2;
  j.workload.sharding = data_parallel_sharding::replicated;
  const memory_report whole = memory_of(j);
  CHECK(item(whole, "weights") == Approx(2 * parameters_here).epsilon(1e-12));
  CHECK(item(whole, "gradients") ==
        Approx(gradient_bytes(*j.software.training, j.workload) * parameters_here).epsilon(1e-12));
  CHECK(item(whole, "optimizer") == Approx(12 * parameters_here).epsilon(1e-12));
  j.workload.sharding = data_parallel_sharding::distributed_optimizer;
  const memory_report zero1 = memory_of(j);
  CHECK(item(zero1, "gradients") == item(whole, "gradients"));
  CHECK(item(zero1, "optimizer") == Approx(item(whole, "optimizer") / 4).epsilon(1e-12));
  j.workload.sharding = data_parallel_sharding::fsdp;
  const memory_report zero3 = memory_of(j);
  for (const char* name : {"weights", "gradients", "optimizer"})
    CHECK(item(zero3, name) == Approx(item(whole, name) / 4).epsilon(1e-12));
  j.workload.task = training_task::lora;
  CHECK(item(memory_of(j), "optimizer") < 0.01 * item(zero3, "optimizer"));
}

// arXiv 2205.05198, equation 4 for a GPT layer without dropout masks and scores (flash attention), in BF16: norms
// and linear inputs 2 x 4 x h / TP, q k v and output 4 x 2 h / TP, up 8 h and its activation 8 h.
TEST_CASE("Parameters on all GPUs are what the weights of each add up to, and a run trains what is not frozen") {
  test::shipped_job dense = plain_job(), experts = test::shipped("gb300-nvl72", "qwen3-30b-a3b");
  experts.workload.par = {};
  experts.workload.par.dp = 16;
  experts.workload.par.ep = 8;
  experts.workload.gemm_precision = precision::bf16;
  for (const test::shipped_job* j : {&dense, &experts})
    for (const data_parallel_sharding s : {data_parallel_sharding::replicated, data_parallel_sharding::fsdp}) {
      test::shipped_job one = *j;
      one.workload.sharding = s;
      const double on_one = item(memory_of(one), "weights") / 2;  // BF16
      const double all = parameters_on_all_gpus(one.net, one.workload);
      CHECK(all == Approx(on_one * static_cast<double>(one.workload.par.gpus())).epsilon(0.01));
      CHECK(trained_parameters(one.net, one.workload) == static_cast<double>(parameters(one.net)));
    }
  dense.workload.task = training_task::lora;
  dense.workload.lora.rank = 16;
  const double trained = trained_parameters(dense.net, dense.workload);
  CHECK(trained < 0.01 * static_cast<double>(parameters(dense.net)));
  dense.workload.lora.rank = 32;
  dense.workload.par.tp = 4;
  CHECK(trained_parameters(dense.net, dense.workload) == Approx(2 * trained));
}

TEST_CASE("Activations of a GPT layer are what its backward pass reads") {
  test::shipped_job j = plain_job();
  layer_spec l;
  l.heads = l.kv_heads = 64;
  l.head_dim = 128;
  l.ffn_hidden = 4 * j.net.hidden;
  l.gated_mlp = false;
  j.net.layers.assign(6, l);
  const double tokens = static_cast<double>(j.workload.seq_length), h = static_cast<double>(j.net.hidden);
  CHECK(item(memory_of(j), "activations") == Approx(6 * tokens * h * (8 + 8 + 16) / 2).epsilon(1e-12));
  j.workload.micro_batch_size = 2;
  CHECK(item(memory_of(j), "activations") == Approx(2 * 6 * tokens * h * 32 / 2).epsilon(1e-12));
  j.workload.recompute.full = true;
  CHECK(item(memory_of(j), "activations") == Approx(2 * 6 * tokens * h * 2 / 2).epsilon(1e-12));
}

TEST_CASE("Recomputing more keeps less") {
  test::shipped_job j = plain_job();
  const double all = item(memory_of(j), "activations");
  for (bool recompute_spec::*module : {&recompute_spec::mlp, &recompute_spec::activation}) {
    test::shipped_job again = j;
    again.workload.recompute.*module = true;
    CHECK(item(memory_of(again), "activations") < all);
    CHECK(again.step_s() > j.step_s());
  }
  // Norms of dense layers are part of the kernel of the next projection, which keeps its input.
  test::shipped_job norms = j;
  norms.workload.recompute.layernorm = true;
  CHECK(item(memory_of(norms), "activations") == all);
  // Of the layers that are offloaded one is at work, and on the GPU.
  const auto layers = static_cast<double>(j.net.layers.size());
  j.workload.offload_layers = static_cast<std::int64_t>(layers) / 2;
  CHECK(item(memory_of(j), "activations") == Approx(all * (0.5 + 1 / layers)).epsilon(1e-12));
  CHECK(memory_of(j).offloaded.base() == Approx(all * (0.5 - 1 / layers)).epsilon(1e-12));
  j.machine.cpu.memory = bytes::from_base(all / 2);  // of a CPU for two GPUs, of which half is taken
  CHECK_FALSE(memory_of(j).fits());
}

TEST_CASE("CPU memory is that of the stage that offloads most") {
  // The last stage takes most GPU memory, and holds one micro-batch; those before hold up to sixteen.
  test::shipped_job j = test::shipped("gb200-nvl72", "llama3.1-405b");
  j.workload.par.pp = 16;
  j.workload.par.dp = 1;
  j.workload.micro_batch_size = 4;
  j.workload.offload_layers = 8;
  const memory_report r = memory_of(j);
  CHECK_FALSE(r.fits());
  CHECK(r.offloaded > r.offload_room);
  CHECK(r.where != "stage 15");
  j.machine.cpu.memory = j.machine.cpu.memory * 10.0;
  CHECK(memory_of(j).fits());
  CHECK(memory_of(j).where == "stage 15");
}

TEST_CASE("Sharded parameters are gathered a layer at a time") {
  test::shipped_job j = plain_job();
  CHECK(item(memory_of(j), "gathered") == 0);
  j.workload.sharding = data_parallel_sharding::fsdp;
  const double each = item(memory_of(j), "gathered");
  CHECK(each > 0);
  j.workload.par.tp *= 2;
  CHECK(item(memory_of(j), "gathered") == Approx(each / 2).epsilon(0.01));
}

TEST_CASE(
    "Frozen layers in 8 bits keep inputs of activations in 8 bits, and need no room for gradients of weights") {
  test::shipped_job j = plain_job();
  j.workload.task = training_task::lora;
  const double tokens = static_cast<double>(j.workload.seq_length), tp = static_cast<double>(j.workload.par.tp);
  const layer_spec& l = j.net.layers.front();
  const double up_and_gate =
      static_cast<double>(j.net.layers.size()) * tokens * 2 * static_cast<double>(l.ffn_hidden) / tp;
  const double hidden = static_cast<double>(j.net.hidden);
  const auto kept_by_attention =
      [&](double element) {  // norms, Q, K, V and output; the output again as it was quantised
        const double heads = static_cast<double>(l.heads * l.head_dim),
                     kv = static_cast<double>(l.kv_heads * l.head_dim);
        return (2 + element + 2) * hidden / tp + (4 * (heads + kv) + (element < 2 ? element * heads : 0)) / tp;
      };
  const double layers = static_cast<double>(j.net.layers.size());
  CHECK(item(memory_of(j), "activations") ==
        Approx(2 * up_and_gate + layers * tokens * kept_by_attention(2)).epsilon(1e-12));
  j.workload.gemm_precision = precision::fp8;
  CHECK(item(memory_of(j), "activations") ==
        Approx(up_and_gate + layers * tokens * kept_by_attention(1)).epsilon(1e-12));
  CHECK(item(memory_of(j), "workspace") == Approx(4 * hidden * tokens).epsilon(1e-12));  // what TP gathers
}

/// Sixteen H100 GPUs of Megatron-Bridge's pages: BF16, forced balance, gradients in BF16.
test::shipped_job bridge_job(const char* net, std::int64_t ep, std::int64_t sequence) {
  test::shipped_job j = test::shipped("nd-h100-v5", net, "megatron-bridge-26.06");
  training_workload& w = j.workload = {};
  w.seq_length = sequence;
  w.par.ep = ep, w.par.dp = 16;
  w.global_batch_size = 32;
  w.optimizer.fp32_gradients = false;
  w.place.gpus_per_domain = 8;
  return j;
}

TEST_CASE("In FP32 every tensor has four bytes") {
  test::shipped_job j = plain_job();
  j.workload.par.pp = 2;
  const memory_report half = memory_of(j);
  for (const precision p : {precision::fp32, precision::tf32}) {
    j.workload.gemm_precision = p;
    const memory_report whole = memory_of(j);
    for (const char* name : {"weights", "activations"})
      CHECK(item(whole, name) == Approx(2 * item(half, name)).epsilon(1e-12));
    CHECK(item(whole, "gradients") == item(half, "gradients"));                                  // of 4 B in both
    CHECK(item(whole, "optimizer") == Approx(item(half, "optimizer") * 8 / 12).epsilon(1e-12));  // no master copy
  }
}

// NVIDIA-NeMo/Megatron-Bridge: recomputation of Nemotron 3 Nano (600d069), 64.653 and 63.639 GB, and no fit of 80
// GB cards without; peaks of Qwen3-30B-A3B in pull requests, 61.35 and 62.17 GB.
TEST_CASE("Peaks of mixtures of experts are those that Megatron-Bridge prints") {
  test::shipped_job nano = bridge_job("nemotron-3-nano", 8, 8192);
  CHECK_FALSE((memory_of(nano).fits() && !memory_of(nano).tight()));
  nano.workload.recompute.moe = true;
  const double moe = memory_of(nano).allocated.base() / 1e9;
  CHECK(moe == Approx(64.653).epsilon(0.01));
  nano.workload.recompute.layernorm = true;
  CHECK(memory_of(nano).allocated.base() / 1e9 == Approx(63.639).epsilon(0.01));
  // The norms before 23 layers of experts; others are part of a projection's kernel.
  CHECK(moe - memory_of(nano).allocated.base() / 1e9 == Approx(23.0 * 2 * 2688 * 8192 / 1e9).epsilon(1e-6));
  const test::shipped_job qwen = bridge_job("qwen3-30b-a3b", 16, 4096);
  CHECK(memory_of(qwen).allocated.base() / 1e9 == Approx(61.35).epsilon(0.02));
}

TEST_CASE("Tensor-parallel ranks hold projections to low ranks, routers and scarce KV heads whole") {
  test::shipped_job j = test::shipped("gb300-nvl72", "deepseek-v3-nomtp");
  double one = 0, eight = 0;
  parallelism par;
  for (const layer_spec& l : j.net.layers) {
    one += parameters_on_gpu(j.net, l, par).dense;
    par.tp = 8;
    eight += parameters_on_gpu(j.net, l, par).dense;
    par.tp = 1;
  }
  const double down = 61.0 * 7168 * (1536 + 512 + 64), routers = 58.0 * 7168 * 256,
               norms = 61.0 * (2 * 7168 + 1536 + 512);
  CHECK(eight - one / 8 == Approx(7.0 / 8 * (down + routers + norms)).epsilon(1e-9));
  layer_spec l = test::shipped("gb300-nvl72", "llama3-8b").net.layers.front();
  l.kv_heads = 2;
  par.tp = 8;
  const double kv = static_cast<double>(j.net.hidden * projected_kv(l)), vectors = 2.0 * 7168;
  const double all = static_cast<double>(layer_parameters(j.net, l));
  CHECK(parameters_on_gpu(j.net, l, par).dense ==
        Approx((all - kv - vectors) / 8 + kv / 2 + vectors).epsilon(1e-9));
}

TEST_CASE("Gradients accumulate in 4 bytes unless the recipe says 2") {
  test::shipped_job j = plain_job();
  const auto bytes_of = [&] { return gradient_bytes(*j.software.training, j.workload); };
  j.software.training->gradient_memory_bytes = 2;
  CHECK(bytes_of() == 4);  // BF16
  j.workload.gemm_precision = precision::mxfp8;
  CHECK(bytes_of() == 2);
  j.workload.task = training_task::sft;
  CHECK(bytes_of() == 4);
  j.workload.optimizer.fp32_gradients = false;
  CHECK(bytes_of() == 2);
  j.workload.optimizer.fp32_gradients = true;
  CHECK(bytes_of() == 4);
}

TEST_CASE("Optimizers keep less in narrow formats, and with one moment of matrices") {
  test::shipped_job j = plain_job();
  const double twelve = item(memory_of(j), "optimizer");
  j.workload.optimizer.first_moment = j.workload.optimizer.second_moment = 2;
  CHECK(item(memory_of(j), "optimizer") == Approx(twelve * 8 / 12).epsilon(1e-12));
  j.workload.optimizer = {};
  j.workload.optimizer.kind = optimizer_kind::muon;
  const double tables = 2.0 * static_cast<double>(j.net.vocab * j.net.hidden) / 2 / 4;  // over TP and DP
  CHECK(item(memory_of(j), "optimizer") == Approx(twelve * 8 / 12 + 4 * tables).epsilon(1e-12));
}

TEST_CASE("Quantised weights stay from one micro-batch to the next") {
  test::shipped_job j = plain_job();
  const double bf16 = item(memory_of(j), "weights"),
               tables = 2.0 * static_cast<double>(j.net.vocab * j.net.hidden);
  const auto of_layers = [&](precision p) {
    j.workload.gemm_precision = p;
    return (item(memory_of(j), "weights") - tables) / (bf16 - tables);  // two tables of 2 B over two ranks
  };
  CHECK(of_layers(precision::mxfp8) == Approx(bytes_per_element(precision::mxfp8)));  // rows and columns
  CHECK(of_layers(precision::fp8) == Approx(0.5));                                    // one copy on Blackwell
  CHECK(of_layers(precision::nvfp4) == Approx(1 + bytes_per_element(precision::nvfp4)));
  j.workload.fp8_params = false;
  CHECK(of_layers(precision::mxfp8) == Approx(1 + bytes_per_element(precision::mxfp8)));
}

TEST_CASE("Modules that are offloaded leave the GPU, but for the layer at work") {
  test::shipped_job j = plain_job();
  const double all = item(memory_of(j), "activations"), layers = static_cast<double>(j.net.layers.size());
  const layer_spec& l = j.net.layers.front();
  const double out = static_cast<double>(j.workload.seq_length * l.heads * l.head_dim) * 2 / 2;
  j.workload.offload.attn_proj = true;
  const memory_report r = memory_of(j);
  CHECK(item(r, "activations") == Approx(all - (layers - 1) * out).epsilon(1e-12));
  CHECK(r.offloaded.base() == Approx((layers - 1) * out).epsilon(1e-12));
  j.workload.offload.moe_act = j.workload.offload.core_attn = true;
  test::shipped_job slow = j;
  slow.machine.gpu.c2c = slow.machine.gpu.c2c * 0.01;
  CHECK(slow.step_s() > j.step_s());
}

TEST_CASE("Adapters of a stated rank are counted by projection") {
  test::shipped_job j = plain_job();
  j.workload.task = training_task::lora;
  j.workload.lora = {16, true, false, false, false};
  const layer_spec& l = j.net.layers.front();
  const double h = static_cast<double>(j.net.hidden), q = static_cast<double>(l.heads * l.head_dim),
               kv = static_cast<double>(2 * l.kv_heads * l.head_dim);
  const double each = 16 * (h + q + kv) / 2 * static_cast<double>(j.net.layers.size());
  CHECK(item(memory_of(j), "gradients") == Approx(4 * each).epsilon(1e-12));
  const double narrow = item(memory_of(j), "activations");
  j.workload.lora.fc1 = j.workload.lora.fc2 = true;  // their inputs are kept too
  CHECK(item(memory_of(j), "activations") > narrow);
  CHECK(item(memory_of(j), "gradients") > 4 * each);
}

TEST_CASE("Towers take weights, and gradients and moments unless they are frozen") {
  test::shipped_job j = plain_job();
  const memory_report without = memory_of(j);
  j.net.towers = {{"vision", 1'000'000'000}};
  const memory_report with = memory_of(j);
  CHECK(item(with, "towers") == 2e9);
  CHECK(item(with, "gradients") - item(without, "gradients") == Approx(4e9));
  CHECK(item(with, "optimizer") - item(without, "optimizer") == Approx(12e9 / 4));
  j.workload.freeze_towers = true;
  CHECK(item(memory_of(j), "gradients") == item(without, "gradients"));
}

TEST_CASE("A peak within the error of the usable memory is tight, and refused only above") {
  memory_report r;
  r.usable = bytes::from_base(100), r.error = 0.08;
  const auto is = [&](double peak, bool fits, bool tight, bool refused) {
    r.peak = bytes::from_base(peak);
    CHECK(r.fits() == fits);
    CHECK(r.tight() == tight);
    CHECK(r.refused() == refused);
  };
  is(90, true, false, false);
  is(95, true, true, false);
  is(105, false, true, false);
  is(110, false, false, true);
  r.error = 0;
  is(105, false, false, true);
}

// 174.1 GiB, a verification card of Megatron-Bridge for a model of this shape: BF16, TP 2, DP 8, no sequence
// parallelism, micro-batch 2.
TEST_CASE("The peak of a hybrid with delta nets is that of its card") {
  test::shipped_job j = test::shipped("gb200-nvl72", "qwen3.6-27b", "megatron-bridge-26.06");
  training_workload& w = j.workload = {};
  w.seq_length = 4096, w.micro_batch_size = 2, w.global_batch_size = 32;
  w.par.tp = 2, w.par.dp = 8, w.par.sequence_parallel = false;
  w.place.gpus_per_domain = 16;
  CHECK(memory_of(j).allocated.base() / 0x1p30 == Approx(174.1).epsilon(0.03));
}

TEST_CASE("A band is that of runs of the same domain, precision and kind of model, else of all") {
  test::shipped_job j = plain_job();
  training_profile& t = *j.software.training;
  t.error_90 = 0.1;
  t.residuals.clear();
  const auto band = [&] { return step_band_90(j.machine, j.software, j.net, j.workload); };
  CHECK(band().low == 0.9);
  CHECK(band().high == 1.1);
  const step_residuals kind = kind_of_step(j.machine, j.net, j.workload);
  CHECK(kind.weight_bits == 16);
  CHECK_FALSE(kind.experts);
  step_residuals other = kind;
  other.rack = !kind.rack, other.low = -1, other.high = 1;
  t.residuals = {other, kind};
  t.residuals.back().low = std::log(0.8), t.residuals.back().high = std::log(1.5);
  CHECK(band().low == Approx(0.8).epsilon(1e-12));
  CHECK(band().high == Approx(1.5).epsilon(1e-12));
  j.workload.gemm_precision = precision::mxfp8;
  CHECK(band().high == 1.1);
}

TEST_CASE("The first of p stages keeps p micro-batches of 1F1B") {
  test::shipped_job j = plain_job();
  j.net.vocab = 1024;  // no vocabulary to speak of: the first stage is the fullest
  const double one = item(memory_of(j), "activations");
  j.workload.par.pp = 4;
  const memory_report r = memory_of(j);
  CHECK(r.where == "stage 0");
  CHECK(item(r, "activations") == Approx(one).epsilon(1e-12));  // a quarter of the layers, four micro-batches
  j.workload.global_batch_size = 2 * j.workload.par.dp;         // two micro-batches in all
  CHECK(item(memory_of(j), "activations") == Approx(one / 2).epsilon(1e-12));
}

// arXiv 2205.05198, section 4.2.3: interleaving keeps 1 + (p-1)/(p v) times as much. Megatron's warm-up of the
// first stage, 2 (p-1) + (v-1) p passes and the one that follows, makes that 1 + (p-1)/(p v) exactly.
TEST_CASE("Interleaving keeps (p-1)/(p v) more") {
  test::shipped_job j = plain_job();
  j.net.vocab = 1024;
  j.workload.par.pp = 4;
  const double plain = item(memory_of(j), "activations");
  j.workload.schedule = pipeline_schedule::interleaved;
  for (const std::int64_t vp : {2, 5}) {
    j.workload.par.vp = vp;
    CHECK(item(memory_of(j), "activations") ==
          Approx(plain * (1 + 3.0 / (4.0 * static_cast<double>(vp)))).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace nvlsim
