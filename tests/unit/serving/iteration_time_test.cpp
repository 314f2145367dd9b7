#include "nvlsim/serving/iteration_time.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/platform/load.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/serving/routes.hpp"
#include "nvlsim/stack/compose.hpp"
#include "nvlsim/stack/load.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using namespace nvlsim::test;

struct setup {
  platform p = small_machine();
  stack s = small_stack();
  model m = small_model();
  inference_workload w = small_workload();
  operation_template price(const iteration& it) const { return iteration_costs(p, s, m, w).price(it); }
};

constexpr iteration decode_only{.decodes = 64, .context = 64 * 300};
constexpr iteration mixed{.decodes = 60,
                          .context = 60 * 300,
                          .prompt_tokens = 400,
                          .prompt_pairs = 2 * 200 * 201 / 2,
                          .prompts = 2,
                          .finished_prompts = 2};

/// Names of the parts of iterations that differ in what they have.
std::set<std::string> names_of_parts() {
  std::set<std::string> out;
  const auto add = [&](const setup& x, const iteration& it) {
    for (const operation_part& p : x.price(it).parts) out.insert(p.name);
  };
  setup piped;
  piped.s = stack_with_sends();
  piped.w.pp = 4;
  add(piped, decode_only);

  setup x;
  x.w.tp = 4;
  x.w.adapters = {16, 1};
  x.w.images = image_settings{{2}, 256, vision_tower{6e8, 1152, 27, 4}};
  x.w.drafts = {.draft_tokens = 3, .tokens_per_step = 2.5, .source = draft_source::eagle3};
  x.w.drafts.draft = std::make_shared<const model>(eagle_layer(x.m));
  for (layer_spec& l : x.m.layers) l.qk_norm = qk_norm_kind::joint;
  add(x, mixed);

  setup launched;
  launched.s.inference->prefill_layer_host = launched.s.inference->eager_layer_host = 1000.0_us;
  launched.w.engine.cuda_graph_max_batch_size = 0;
  add(launched, mixed);
  add(launched, decode_only);

  setup spread;
  for (layer_spec& l : spread.m.layers) {
    l.attention = attention_kind::mla;
    l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
  }
  spread.w.tp = 4;
  spread.w.engine.decode_context_parallel = 4;
  add(spread, decode_only);
  return out;
}

/// The part of that name, which is a name that some iteration has.
const operation_part* find(const operation_template& t, const std::string& name) {
  static const std::set<std::string> names = names_of_parts();
  INFO(name);
  REQUIRE(names.contains(name));
  for (const operation_part& p : t.parts)
    if (p.name == name) return &p;
  return nullptr;
}
double time_of(const operation_template& t, const std::string& name) {
  const operation_part* p = find(t, name);
  return p ? p->duration.base() * p->repeat : 0;
}

TEST_CASE("Iteration time is the sum of its parts, at a power between idle and cap") {
  const setup x;
  for (const iteration& it : {decode_only, mixed}) {
    const operation_template t = x.price(it);
    double sum = 0;
    for (const operation_part& p : t.parts) {
      CHECK(p.duration > seconds{});
      sum += p.duration.base() * p.repeat;
    }
    CHECK(t.duration.base() == Approx(sum));
    CHECK(t.power > x.p.gpu.idle_power);
    CHECK(t.power <= x.p.gpu.tdp);
  }
}

TEST_CASE("Iteration time takes its GEMMs from the kernel formulas") {
  setup x;
  const operation_template t = x.price(mixed);
  const gemm_params& fp8 = x.s.kernels.at("small").gemm.at(precision::fp8);
  const auto expected = [&](precision q, const gemm_params& g, double m, double n, double k) {
    return gemm_cost(x.p.gpu, g, q, {.m = m, .n = n, .k = k}).time.base();
  };
  CHECK(time_of(t, "qkv") == Approx(16 * expected(precision::fp8, fp8, 460, 5120, 4096)));
  CHECK(time_of(t, "attention.out") == Approx(16 * expected(precision::fp8, fp8, 460, 4096, 4096)));
  CHECK(time_of(t, "mlp.up") == Approx(16 * expected(precision::fp8, fp8, 460, 22528, 4096)));
  CHECK(time_of(t, "mlp.down") == Approx(16 * expected(precision::fp8, fp8, 460, 4096, 11264)));
  // The LM head runs in BF16, for the rows that give a token.
  CHECK(time_of(t, "lm_head") ==
        Approx(expected(precision::bf16, x.s.kernels.at("small").gemm.at(precision::bf16), 62, 32000, 4096)));
}

TEST_CASE("Iteration time without prompts has no prefill, and without decodes no cache to read") {
  const setup x;
  const operation_template d = x.price(decode_only);
  CHECK(d.name == "decode");
  CHECK_FALSE(find(d, "attention.prefill"));
  CHECK_FALSE(find(d, "requests"));
  CHECK_FALSE(find(d, "prompt_launches"));
  const operation_template p = x.price({.prompt_tokens = 400, .prompt_pairs = 400 * 401 / 2, .prompts = 1});
  CHECK(p.name == "prefill");
  CHECK_FALSE(find(p, "attention.decode"));
  CHECK_FALSE(find(p, "sequences"));
  CHECK_FALSE(find(p, "lm_head"));  // a chunk that ends no prompt gives no token
  CHECK(x.price(mixed).name == "mixed");
}

TEST_CASE("Iteration time counts host work by step, sequence and request") {
  const operation_template t = setup{}.price(mixed);
  CHECK(time_of(t, "step") == Approx(200e-6));
  CHECK(time_of(t, "sequences") == Approx(60 * 2e-6));
  CHECK(time_of(t, "requests") == Approx(2 * 100e-6));
}

TEST_CASE("Iteration time tells the ranks of an engine what to run, each doubling of them once") {
  setup x;
  x.s.inference->rank_host = 50.0_us;
  CHECK(time_of(x.price(mixed), "step") == Approx(200e-6));
  for (const auto& [tp, attention_dp, doublings] : {std::tuple{8, 1, 3}, {1, 4, 2}, {2, 4, 3}}) {
    x.w.tp = tp;
    x.w.attention_dp = attention_dp;
    CHECK(time_of(x.price(mixed), "step") == Approx(200e-6 + doublings * 50e-6));
  }
}

TEST_CASE("Iteration time has the norms of queries and keys in layers that have them") {
  setup x;
  x.w.tp = 4;
  const operation_template without = x.price(decode_only);
  x.s.inference->qk_norm_time = 7.0_us;
  CHECK(x.price(decode_only).duration == without.duration);
  for (std::size_t i = 0; i < 5; ++i) x.m.layers[i].qk_norm = qk_norm_kind::per_head;
  const operation_template by_head = x.price(decode_only);
  x.s.inference->qk_norm_time = seconds{};
  const operation_template moved = x.price(decode_only);
  CHECK((by_head.duration - moved.duration).base() == Approx(5 * 7e-6));
  // Each of four ranks reads and writes 8 heads and a KV head of 128 in BF16, at 0.9 of 2 TB/s.
  constexpr double vectors = 64.0 * 2 * (8 + 1) * 128 * 2;
  CHECK((moved.duration - without.duration).base() == Approx(5 * vectors / (0.9 * 2e12)));
  CHECK_FALSE(find(by_head, "tp.norm_all_reduce"));

  // A norm over all heads needs the sums of squares of all ranks.
  for (std::size_t i = 0; i < 5; ++i) x.m.layers[i].qk_norm = qk_norm_kind::joint;
  const operation_template over_all = x.price(decode_only);
  const operation_part* joint = find(over_all, "tp.norm_all_reduce");
  REQUIRE(joint);
  CHECK(joint->repeat == 5);
  const auto sums = bytes::from_base(64.0 * 2 * 4);
  CHECK(joint->duration.base() ==
        Approx(collective_time(x.s.collectives, x.p,
                               {collective::all_reduce, sums, {.ranks = 4}, {.algorithm = {}, .in_place = true}})
                   .time.base()));
  x.w.tp = 1;
  CHECK_FALSE(find(x.price(decode_only), "tp.norm_all_reduce"));
}

TEST_CASE("Iteration time reads a cache at the engine's rate, and one of 8 bits in about half the time") {
  // Keys enough that launches do not count: what is left of a part goes as one over the rate.
  constexpr iteration long_contexts{.decodes = 64, .context = 64 * 100000};
  setup x;
  const auto read = [&](precision cache) {
    x.w.kv_cache = cache;
    return time_of(x.price(long_contexts), "attention.decode");
  };
  const double half = read(precision::fp8), whole = read(precision::bf16);
  CHECK(half / whole == Approx(0.5).epsilon(0.02));
  x.s.inference->decode_factor = 0.5;
  CHECK(read(precision::fp8) / half == Approx(2).epsilon(0.01));
  CHECK(read(precision::bf16) / whole == Approx(2).epsilon(0.01));
}

TEST_CASE("Eager mode launches every layer of every iteration, compiled engines only those outside of graphs") {
  setup x;
  x.s.inference->eager_layer_host = 1000.0_us;
  const double graphed = x.price(decode_only).duration.base();
  CHECK_FALSE(find(x.price(decode_only), "decode_launches"));
  x.w.engine.cuda_graph_max_batch_size = 0;
  const operation_template eager = x.price(decode_only);
  CHECK(time_of(eager, "decode_launches") > 0);
  CHECK(eager.duration.base() == Approx(16e-3).epsilon(0.05));  // 16 layers, and some of the kernels' time
  CHECK(eager.duration.base() > graphed);
  // However long the context is, the host stays what limits.
  iteration longer = decode_only;
  longer.context *= 2;
  CHECK(x.price(longer).duration.base() < 1.02 * eager.duration.base());
}

// SGLang's layers are the same eager Python above the largest graph and without any graphs.
TEST_CASE("Engines that compile nothing take the same time above the largest graph and without graphs") {
  for (const char* engine : {"sglang", "sglang-0.5.15", "vllm"}) {
    INFO(engine);
    diagnostics problems;
    const std::string folder = NVLSIM_SOURCE_DIR "/platforms";
    auto machine = config::load_named(folder, {"input", "nd-h100-v5", {}}, problems);
    auto software = compose_stack(folder + "/stacks", engine, {}, problems);
    const platform p = read_platform(machine, "nd-h100-v5", problems);
    const stack s = read_stack(software, engine, problems);
    problems.throw_if_any();
    const auto takes = [&](std::int64_t largest, const iteration& it) {
      inference_workload w = small_workload();
      w.weights = w.kv_cache = precision::bf16;
      w.engine.cuda_graph_max_batch_size = largest;
      return iteration_costs(p, s, small_model(), w).price(it).duration;
    };
    const bool compiles = std::string_view(engine).starts_with("vllm");
    for (const iteration& it : {decode_only, mixed}) CHECK((takes(0, it) > takes(1, it)) == compiles);
    CHECK(takes(1, decode_only) > takes(64, decode_only));
  }
}

TEST_CASE("A cache in 8 bits saves bytes and no arithmetic on GPUs without FP8") {
  for (const bool fp8 : {false, true}) {
    setup x;
    x.w.weights = precision::bf16;
    x.s.kernels.at("small").attention.fp8_speedup = 1.5;
    if (!fp8) x.p.gpu.peaks[static_cast<std::size_t>(precision::fp8)].reset();
    const auto takes = [&](precision cache, const char* part) {
      x.w.kv_cache = cache;
      iteration it = mixed;
      it.prompt_tokens = 2 * 8192, it.prompt_pairs = 2 * 8192 * 8193.0 / 2;  // arithmetic counts, not the launch
      return time_of(x.price(it), part);
    };
    CHECK(takes(precision::fp8, "attention.decode") < takes(precision::bf16, "attention.decode"));
    CHECK((takes(precision::fp8, "attention.prefill") < takes(precision::bf16, "attention.prefill")) == fp8);
  }
}

TEST_CASE("Context parallelism divides what a rank reads, and exchanges queries and outputs") {
  setup x;
  for (layer_spec& l : x.m.layers) {
    l.attention = attention_kind::mla;
    l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
  }
  x.w.tp = 4;
  constexpr iteration long_contexts{.decodes = 4, .context = 4 * 200000};
  const operation_template whole = x.price(long_contexts);
  x.w.engine.decode_context_parallel = 4;
  const operation_template shared = x.price(long_contexts);
  CHECK(time_of(shared, "attention.decode") < 0.5 * time_of(whole, "attention.decode"));
  CHECK(find(shared, "dcp.exchange"));
  CHECK_FALSE(find(whole, "dcp.exchange"));
  CHECK(shared.duration < whole.duration);
}

TEST_CASE("Drafts of a layer or a model cost its passes, those of n-grams only the check") {
  setup x;
  const double plain = x.price(decode_only).duration.base();
  x.w.drafts = {.draft_tokens = 3, .tokens_per_step = 2.5, .source = draft_source::ngram};
  const operation_template ngram = x.price(decode_only);
  CHECK_FALSE(find(ngram, "draft"));
  CHECK(ngram.duration.base() > plain);  // four tokens a sequence instead of one
  x.w.drafts.source = draft_source::eagle3;
  x.w.drafts.draft = std::make_shared<const model>(eagle_layer(x.m));
  const double eagle = x.price(decode_only).duration.base();
  CHECK(eagle > ngram.duration.base());
  x.w.drafts.parallel = true;
  const double parallel = x.price(decode_only).duration.base();
  CHECK(parallel < eagle);
  CHECK(parallel > ngram.duration.base());
  x.w.drafts.parallel = false;
  x.w.drafts.source = draft_source::model;
  x.w.drafts.draft = std::make_shared<const model>(x.m);  // as large as what it drafts for
  CHECK(x.price(decode_only).duration.base() > ngram.duration.base() + 2.5 * (plain - 0.2e-3));
}

TEST_CASE("Adapters cost launches and bytes beside each projection, more of them more") {
  setup x;
  const double none = x.price(decode_only).duration.base();
  const auto with = [&](std::int64_t rank, std::int64_t count) {
    x.w.adapters = {rank, count};
    return x.price(decode_only).duration.base();
  };
  const double one = with(16, 1), many = with(16, 64), wide = with(64, 64);
  CHECK(one > none);
  CHECK(many > one);
  CHECK(wide > many);
  CHECK(time_of(x.price(decode_only), "adapter") > 0);
}

TEST_CASE("A vision tower works once for each prompt's images") {
  setup x;
  constexpr iteration prompt{.prompt_tokens = 600, .prompt_pairs = 180000, .prompts = 1, .finished_prompts = 1};
  x.w.images = image_settings{{2}, 256, std::nullopt};
  const double without = x.price(prompt).duration.base();
  x.w.images->tower = vision_tower{6e8, 1152, 27, 4};
  const double with = x.price(prompt).duration.base();
  // 2 FLOPs a parameter and patch at the 16-bit rate or below.
  const double flops = 2 * 6e8 * 2 * 256 * 4;
  CHECK(with - without > flops / 1000e12);
  CHECK(with - without < 10 * flops / 1000e12);
  CHECK(x.price(decode_only).duration.base() == Approx(x.price(decode_only).duration.base()));
  CHECK_FALSE(find(x.price(decode_only), "vision_tower"));
}

TEST_CASE("Prompts in sparse attention take the absorbed products of the keys that are selected") {
  setup x;
  constexpr iteration prompt{.prompt_tokens = 8192, .prompt_pairs = 8192.0 * 4096, .prompts = 1};
  for (layer_spec& l : x.m.layers) {
    l.attention = attention_kind::mla;
    l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
  }
  const double dense = time_of(x.price(prompt), "attention.prefill");
  for (layer_spec& l : x.m.layers) l.sparse_keys = 2048;
  const double sparse = time_of(x.price(prompt), "attention.prefill");
  // Half of the pairs (2,048 keys instead of 4,096 on average), but 1,088 products a pair instead of 320.
  // Gathering the keys costs up to the rate that it leaves, and queries and outputs pass memory before and after.
  CHECK(sparse / dense > 0.9 * 0.5 * 1088 / 320);
  CHECK(sparse / dense < 0.5 * 1088 / 320 / 0.64 * 1.2);
}

TEST_CASE("Heads that fill half of a kernel's block cost as much in it as all, and are copied into it") {
  setup x;
  for (layer_spec& l : x.m.layers) {
    l.attention = attention_kind::mla;
    l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
    l.sparse_keys = 2048;
  }
  constexpr iteration prompt{.prompt_tokens = 8192, .prompt_pairs = 8192.0 * 4096, .prompts = 1};
  const auto attention = [&](std::int64_t heads) {
    for (layer_spec& l : x.m.layers) l.heads = heads;
    return time_of(x.price(prompt), "attention.prefill");
  };
  const std::int64_t block = std::int64_t{64} * x.w.tp;
  const double whole = attention(block), half = attention(block / 2), twice = attention(2 * block);
  CHECK(half < whole);
  CHECK(half > 0.6 * whole);
  CHECK(twice == Approx(2 * whole).epsilon(0.01));
}

iteration prompt_of(double tokens) {
  return {
      .prompt_tokens = static_cast<std::int64_t>(tokens), .prompt_pairs = tokens * (tokens + 1) / 2, .prompts = 1};
}

TEST_CASE(
    "On Blackwell few heads of a sparse layer take a kernel of 16 heads, which gathers keys for each block") {
  setup x;
  x.w.tp = 1;
  x.s.kernels["blackwell"] = x.s.kernels["hopper"] = x.s.kernels["small"];
  x.p.gpu.architecture = "blackwell";
  for (layer_spec& l : x.m.layers) {
    l.attention = attention_kind::mla;
    l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
    l.sparse_keys = 2048;
  }
  const auto attention = [&](std::int64_t heads, precision cache = precision::bf16) {
    for (layer_spec& l : x.m.layers) l.heads = heads;
    x.w.kv_cache = cache;
    return time_of(x.price(prompt_of(8192)), "attention.prefill");
  };
  // More heads are never faster, and the kernel that pads heads to 128 is never slower than eight blocks of 16.
  double before = 0;
  for (const std::int64_t heads : {1, 8, 16, 17, 32, 64, 128}) {
    const double now = attention(heads);
    CHECK(now >= before);
    before = now;
  }
  // 2,048 keys of 1,152 B for each of 8,192 queries: 2.67 ms on B200; there are as many layers as in the model.
  const double layers = static_cast<double>(x.m.layers.size());
  CHECK(attention(16) > layers * 2.67e-3);
  CHECK(attention(16) < layers * 2.67e-3 * 1.2);  // with queries and outputs
  // It reads half of the bytes from an 8-bit cache, but not one of FlashMLA's format.
  CHECK(attention(16, precision::fp8) < attention(16));
  x.s.inference->latents = latent_format::scaled;
  const double padded = attention(16, precision::fp8);
  CHECK(attention(16) < padded);
  x.s.inference->sparse_prompts = sparse_kernel::small_blocks;
  CHECK(attention(16, precision::fp8) < attention(16));
  // Hopper has other kernels.
  x.p.gpu.architecture = "hopper";
  const double hopper = attention(16, precision::fp8);
  x.s.inference->sparse_prompts = sparse_kernel::padded;
  CHECK(attention(16, precision::fp8) == hopper);
}

TEST_CASE("A layer with an indexer reads its scores of all previous tokens, so prompts grow with their square") {
  setup x;
  for (layer_spec& l : x.m.layers) {
    l.attention = attention_kind::mla;
    l.mla = {.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_head_dim = 128};
    l.sparse_keys = 2048;
    l.index_heads = 64;
    l.index_dim = 128;
  }
  const auto attention = [&](double tokens) {
    const iteration prompt{
        .prompt_tokens = static_cast<std::int64_t>(tokens), .prompt_pairs = tokens * tokens / 2, .prompts = 1};
    return time_of(x.price(prompt), "attention.prefill") / tokens;
  };
  // The part of the selected keys does not grow with the context, the scores grow in proportion to it.
  const double first = attention(8192), second = attention(16384), fourth = attention(32768);
  CHECK(second > first);
  CHECK(fourth - second == Approx(2 * (second - first)).epsilon(0.02));
}

TEST_CASE("Ranks with prompts of their own wait for the longest, up to what a rank takes at once") {
  setup x;
  x.w.tp = 1;
  x.w.attention_dp = 4;
  x.w.engine.max_num_tokens = 1'000'000;
  const auto attention = [&](std::int64_t prompts, double spread) {
    x.w.input.spread = spread;
    const std::int64_t tokens = 50'000 * prompts;
    return time_of(x.price({.prompt_tokens = tokens,
                            .prompt_pairs = static_cast<double>(tokens) * 25'000,
                            .prompts = prompts,
                            .finished_prompts = prompts}),
                   "attention.out");
  };
  // Lengths from none to twice the mean: the longest of two is 1.33 times the mean, that of four 1.6 times.
  CHECK(attention(1, 1) == Approx(attention(1, 0)));
  CHECK(attention(2, 0) == Approx(attention(1, 0)));
  CHECK(attention(2, 1) / attention(2, 0) == Approx(4 / 3.0).epsilon(0.05));
  CHECK(attention(4, 1) / attention(4, 0) == Approx(1.6).epsilon(0.05));
  CHECK(attention(16, 1) / attention(16, 0) == Approx(1.3).epsilon(0.05));  // of four prompts on each
  x.w.engine.max_num_tokens = 50'000;
  CHECK(attention(4, 1) == Approx(attention(4, 0)));
}

TEST_CASE(
    "Iteration time shows host launches in full where they outlast the kernels, and in part where they do not") {
  setup x;
  const auto with_launch = [&](double us) {
    x.s.inference->prefill_layer_host = seconds::from_base(us * 1e-6);
    return x.price(mixed);
  };
  const operation_template none = with_launch(0);
  double host = 0;
  for (const char* name : {"step", "sequences", "requests"}) host += time_of(none, name);
  const double kernels = none.duration.base() - host;
  CHECK_FALSE(find(none, "prompt_launches"));

  const double same_us = kernels / 16 * 1e6;  // launches take as long as the kernels
  CHECK(time_of(with_launch(same_us), "prompt_launches") == Approx(kernels * (std::sqrt(2) - 1)));
  CHECK(time_of(with_launch(same_us / 10), "prompt_launches") == Approx(kernels * 0.005).epsilon(0.01));
  CHECK(with_launch(100 * same_us).duration.base() == Approx(host + 100 * kernels).epsilon(1e-3));
  x.s.inference->prefill_layer_host = 1.0_s;
  CHECK(x.price(decode_only).duration < 0.5_s);  // a CUDA graph launches decodes
}

TEST_CASE("Decodes are launched layer by layer where there are more than CUDA graphs are made for") {
  setup x;
  x.s.inference->prefill_layer_host = 1.0_s;
  const auto seconds_of = [&](std::int64_t decodes, std::optional<std::int64_t> max) {
    x.w.engine.cuda_graph_max_batch_size = max;
    return x.price({.decodes = decodes, .context = decodes * 100}).duration.base();
  };
  CHECK(seconds_of(8, 8) < 0.5);
  CHECK(seconds_of(9, 8) == Approx(16).epsilon(0.01));
  CHECK(seconds_of(1, 0) == Approx(16).epsilon(0.01));
  CHECK(seconds_of(64, {}) < 0.5);
  x.s.inference->settings.cuda_graph_max_batch_size = 32;  // the stack's, where the scenario says nothing
  CHECK(seconds_of(64, {}) > 15);
  CHECK(seconds_of(64, 64) < 0.5);
}

TEST_CASE("A server replies once in a stream interval") {
  setup x;
  x.s.inference->front_end.sequence_host = 6.0_us;
  x.w.load = load_kind::closed_loop;
  const auto host = [&](std::int64_t interval) {
    x.w.engine.stream_interval = interval;
    return time_of(x.price(decode_only), "sequences") / static_cast<double>(decode_only.decodes);
  };
  x.w.output.mean = 1e9;
  CHECK(host(1) == Approx((2 + 6) * 1e-6));
  CHECK(host(10) == Approx((2 + 0.6) * 1e-6));
  x.w.output.mean = 11;  // two replies: with the first token, and with the last ten
  CHECK(host(10) == Approx((2 + 6 * 2 / 11.0) * 1e-6));
  CHECK(host(1000) == Approx((2 + 6 / 11.0) * 1e-6).epsilon(0.01));
  x.w.output.mean = 1e9;
  x.w.drafts = {3, 2.5};
  CHECK(host(1) == Approx((2 + 6) * 1e-6));  // a step replies once, with all of its tokens
  CHECK(host(10) == Approx((2 + 6 * 0.25) * 1e-6));
  x.w.drafts = {};
  x.w.front_end = false;  // tokens are taken in process
  CHECK(host(1) == Approx(2e-6));
  CHECK(host(10) == host(1));
}

TEST_CASE("A full pipeline waits for its slowest stage, and sends over the fabric where a domain ends") {
  setup x;
  x.s = stack_with_sends();
  fabric_collective sends;
  sends.ring.latency = sends.ring.fabric_step = 20.0_us;
  sends.ll = {20.0_us, 1.0_us, 10.0_GBps};
  sends.ll_pipeline = sends.ring.pipeline = 1.0_us;
  x.s.collectives.fabric["default"]["all_gather"] = sends;
  x.p.fabric.nic_bandwidth = 400.0_Gbps;
  const auto layers = static_cast<int>(x.m.layers.size());
  const auto wait = [&](int pp) {
    x.w.pp = pp;
    return time_of(x.price(decode_only), "pp.wait");
  };
  CHECK(wait(1) == 0);
  REQUIRE(layers % 4 == 0);
  const double head = time_of(x.price(decode_only), "lm_head");
  CHECK(wait(4) == Approx(3 * head).epsilon(0.2));  // of even stages the last has the head as well
  const double fit = x.price(decode_only).duration.base();
  REQUIRE(std::isfinite(fit));
  CHECK(wait(layers - 1) > fit * 0.5);                          // most hold one layer, one holds two
  CHECK(time_of(x.price(decode_only), "pp.send") > 2 * 20e-6);  // two domains
  x.w.load = load_kind::closed_loop;
  x.w.concurrency = 1;
  CHECK(wait(4) == 0);  // alone in the pipeline
}

TEST_CASE("Iteration time scales tensor work and nothing else by the engine's factors") {
  setup x;
  const operation_template before = x.price(mixed);
  x.s.inference->gemm_factor[precision::fp8] = 1.25;
  const operation_template faster = x.price(mixed);
  CHECK(time_of(faster, "mlp.up") < time_of(before, "mlp.up"));
  CHECK(time_of(faster, "mlp.up") > time_of(before, "mlp.up") / 1.25);  // launch and memory stay
  CHECK(time_of(faster, "lm_head") == time_of(before, "lm_head"));      // BF16 has its own factor
  CHECK(time_of(faster, "attention.prefill") == time_of(before, "attention.prefill"));

  x.s.inference->gemm_factor.clear();
  x.s.inference->sustained_factor["small-gpu"] = 0.9;
  const operation_template slower = x.price(mixed);
  for (const char* name : {"qkv", "mlp.up", "attention.prefill"})
    CHECK(time_of(slower, name) > time_of(before, name));
  for (const char* name : {"attention.decode", "elementwise", "step"})
    CHECK(time_of(slower, name) == time_of(before, name));
  x.s.inference->sustained_factor = {{"another-gpu", 0.5}};
  CHECK(x.price(mixed).duration == before.duration);
}

TEST_CASE("The factor that block-scaled FP8 has in models with experts is not a dense model's") {
  engine_costs c;
  c.gemm_factor = {{precision::bf16, 0.9}, {precision::fp8, 1.1}, {precision::fp8_block, 0.3}};
  stack s = small_stack();
  s.inference->gpus.clear();
  static_cast<engine_costs&>(*s.inference) = c;
  model dense = small_model(), routed = dense;
  routed.layers.back().moe = {.experts = 8, .top_k = 2, .expert_ffn = 512};
  const gpu_spec gpu = small_machine().gpu;
  CHECK(costs_for(s, gpu, dense).gemm_factor.at(precision::fp8_block) == 1.1);
  CHECK(costs_for(s, gpu, dense).gemm_factor.at(precision::bf16) == 0.9);
  CHECK(costs_for(s, gpu, routed).gemm_factor == c.gemm_factor);
}

TEST_CASE("Iteration time reads the cache once, in proportion to the context") {
  setup x;
  const auto decode_time = [&](std::int64_t context) {
    return time_of(x.price({.decodes = 64, .context = 64 * context}), "attention.decode");
  };
  const double short_s = decode_time(20000), long_s = decode_time(40000);
  // 64 sequences x 20,000 tokens x 4 heads x 128 x (K and V) x 1 B, 16 layers, at 0.8 x 2 TB/s
  CHECK(long_s - short_s == Approx(64.0 * 20000 * 4 * 128 * 2 * 16 / 1.6e12).epsilon(0.01));
  x.w.kv_cache = precision::bf16;
  CHECK(decode_time(40000) - decode_time(20000) == Approx(2 * (long_s - short_s)).epsilon(0.01));
}

TEST_CASE("Iteration time is a function of the iteration alone") {
  const setup x;
  iteration_costs costs(x.p, x.s, x.m, x.w);
  const operation_template first = costs.price(mixed);
  costs.price(decode_only);
  const operation_template again = costs.price(mixed);
  CHECK(first.duration == again.duration);
  CHECK(first.duration == x.price(mixed).duration);
  CHECK(first.power == again.power);
}

TEST_CASE("Tensor parallelism splits layers and adds two all-reduces to each") {
  setup x;
  const operation_template one = x.price(mixed);
  CHECK_FALSE(find(one, "tp.all_reduce"));
  x.w.tp = 4;
  const operation_template four = x.price(mixed);
  const operation_part* reduce = find(four, "tp.all_reduce");
  REQUIRE(reduce);
  CHECK(reduce->repeat == 32);
  const bytes size = bytes::from_base(460.0 * 4096 * 2);
  CHECK(reduce->duration.base() ==
        Approx(collective_time(x.s.collectives, x.p,
                               {collective::all_reduce, size, {.ranks = 4}, {.algorithm = {}, .in_place = true}})
                   .time.base()));
  for (const char* name : {"qkv", "mlp.up", "mlp.down", "lm_head"})
    CHECK(time_of(four, name) < time_of(one, name));

  // A fused kernel is taken where it is faster, and not where it is slower.
  x.s.collectives.custom["small-gpu"] = {1.0_us, 0.1_us, 1.0_us, 0.9, 0.9};
  CHECK(find(x.price(mixed), "tp.all_reduce")->duration < reduce->duration);
  x.s.collectives.custom["small-gpu"] = {1.0_s, 0.1_us, 1.0_us, 0.9, 0.9};
  CHECK(find(x.price(mixed), "tp.all_reduce")->duration == reduce->duration);
}

TEST_CASE("Layer slices group equal layers and replicate KV heads beyond their number") {
  model m = small_model();
  m.layers[3].ffn_hidden = 8192;
  m.layers[9].ffn_hidden = 8192;
  const std::vector<layer_slice> slices = slice_layers(m, {8, 1});
  REQUIRE(slices.size() == 2);
  CHECK(slices[0].layers == 14);
  CHECK(slices[1].layers == 2);
  CHECK(slices[1].ffn == 1024);
  CHECK(slices[0].heads == 4);
  CHECK(slices[0].kv_heads == 1);  // half a head is held whole
  double weights = 0;
  for (const layer_slice& l : slice_layers(m, {1, 1})) weights += l.layers * l.gemm_weights(4096);
  const parameter_parts parts = parameters_by_part(m);
  CHECK(weights == Approx(static_cast<double>(parts.attention + parts.mlp)));
}

}  // namespace
}  // namespace nvlsim
