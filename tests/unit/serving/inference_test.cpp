#include "nvlsim/serving/serving.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <set>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using namespace nvlsim::test;

serving_run plan_small(const inference_workload& w) {
  return serve(small_machine(), small_stack(), small_model(), w);
}

const memory_item* find(const memory_report& m, const std::string& name) {
  for (const memory_item& i : m.items)
    if (i.name == name) return &i;
  return nullptr;
}

bool told(const serving_run& r, const std::string& part) {
  for (const std::string& s : r.reasons)
    if (s.find(part) != std::string::npos) return true;
  return false;
}

/// Requests of a worker, in the order of arrival.
std::vector<request_record> requests_at(const serving_run& r, std::int32_t worker) {
  std::vector<request_record> out;
  for (const request_record& q : r.outcome.requests)
    if (q.worker == worker) out.push_back(q);
  return out;
}
std::vector<std::int64_t> copies(const serving_run& r) {
  std::vector<std::int64_t> out;
  for (const worker_record& w : r.outcome.workers) out.push_back(w.workers);
  return out;
}

TEST_CASE("Serving deals requests to replicas and folds equal ones") {
  inference_workload w = small_workload();
  w.tp = 2;
  w.replicas = 4;
  w.requests = 40;
  const serving_run even = plan_small(w);
  CHECK(copies(even) == std::vector<std::int64_t>{4});
  CHECK(even.outcome.requests.size() == 10);

  w.requests = 43;
  const serving_run odd = plan_small(w);
  CHECK(copies(odd) == std::vector<std::int64_t>{3, 1});
  const auto more = requests_at(odd, 0), less = requests_at(odd, 1);
  REQUIRE(more.size() == 11);
  REQUIRE(less.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(more[i].input == less[i].input);
    CHECK(more[i].output == even.outcome.requests[i].output);
  }
}

TEST_CASE("Folded replicas and all of them give the same") {
  for (const load_kind load : {load_kind::offline, load_kind::closed_loop}) {
    inference_workload w = small_workload();
    w.replicas = 5;
    w.requests = 203;
    w.load = load;
    w.concurrency = 17;
    w.degraded = {{.gpus = {{1, 2}}, .racks = {}, .health = {.speed = 0.5}}};
    const serving_run one = serve(small_machine(), small_stack(), small_model(), w);
    const serving_run all = serve(small_machine(), small_stack(), small_model(), w, {.fold = false});
    REQUIRE(one.reasons.empty());
    CHECK(copies(all) == std::vector<std::int64_t>(5, 1));
    CHECK(copies(one).size() < 5);
    CHECK(one.outcome.end_s == all.outcome.end_s);
    CHECK(one.outcome.output_tokens == all.outcome.output_tokens);
    CHECK(one.outcome.requests_times_s == Approx(all.outcome.requests_times_s));
    double folded = 0, whole = 0;
    for (const iteration_use& u : one.uses) folded += u.seconds;
    for (const iteration_use& u : all.uses) whole += u.seconds;
    CHECK(folded == Approx(whole));
  }
}

TEST_CASE("A replica on a slow GPU takes longer, and a work queue loses what it is worth") {
  inference_workload w = small_workload();
  w.replicas = 16;
  w.requests = 6400;
  const auto rate = [&](const inference_workload& x) {
    const serving_run r = plan_small(x);
    REQUIRE(r.reasons.empty());
    return static_cast<double>(r.outcome.output_tokens) / r.outcome.end_s;
  };
  w.router = router_policy::least_loaded;
  w.load = load_kind::closed_loop;
  w.concurrency = 16 * 32;
  const double healthy = rate(w);
  w.degraded = {{.gpus = {{3, 3}}, .racks = {}, .health = {.speed = 0.8}}};
  const double queue = rate(w);
  CHECK(queue < healthy);
  CHECK(queue > healthy * (1 - 2.5 * 0.2 / 16));  // beside the tail of the last requests
  w.router = router_policy::round_robin;          // all wait for the slow one
  w.load = load_kind::offline;
  const double waiting = rate(w);
  w.degraded.clear();
  CHECK(waiting < rate(w) * 0.95);
}

TEST_CASE("Serving keeps replicas without a request") {
  inference_workload w = small_workload();
  w.replicas = 4;
  w.requests = 3;
  const serving_run r = plan_small(w);
  CHECK(copies(r) == std::vector<std::int64_t>{3});
  CHECK(std::find(r.notes.begin(), r.notes.end(), "1 of 4 workers (replicas x pp) have no requests") !=
        r.notes.end());
}

TEST_CASE("A client alone has one worker of a pipeline, and the others idle") {
  inference_workload w = small_workload();
  w.load = load_kind::closed_loop;
  w.pp = 2;
  w.concurrency = 1;
  w.requests = 5;
  const serving_run r = serve(test::small_machine(), test::stack_with_sends(), test::small_model(), w);
  REQUIRE(r.reasons.empty());
  CHECK(copies(r) == std::vector<std::int64_t>{1});
  CHECK(r.outcome.requests.size() == 5);
  CHECK(std::find(r.notes.begin(), r.notes.end(), "1 of 2 workers (replicas x pp) have no requests") !=
        r.notes.end());
}

TEST_CASE("Ranks of attention data parallelism hold whole sequences") {
  inference_workload w = small_workload();
  w.attention_dp = 4;
  w.requests = 4;
  w.engine.prefill = prefill_policy::chunked;
  const std::int64_t all = plan_small(w).kv_capacity_tokens;
  w.input = {static_cast<double>(all) / 3, 0};  // of the four together, and more than one has
  const serving_run r = plan_small(w);
  CHECK(told(r, "exceed the " + std::to_string(all / 4) + " KV tokens of the cache of a rank"));
}

TEST_CASE("Inference plan draws lengths from their range, by the seed") {
  inference_workload w = small_workload();
  w.requests = 20000;
  w.input = {200, 0.25};
  w.output = {3, 1};
  const serving_run r = plan_small(w);
  std::int64_t min = 1 << 30, max = 0;
  double sum = 0;
  std::set<std::int64_t> outputs;
  for (const request_record& q : r.outcome.requests) {
    min = std::min<std::int64_t>(min, q.input);
    max = std::max<std::int64_t>(max, q.input);
    sum += static_cast<double>(q.input);
    outputs.insert(q.output);
  }
  CHECK(min == 150);
  CHECK(max == 250);
  CHECK(sum / 20000 == Approx(200).epsilon(0.005));
  CHECK(outputs == std::set<std::int64_t>{1, 2, 3, 4, 5, 6});

  const auto first_inputs = [&](std::uint64_t seed) {
    w.seed = seed;
    const serving_run sampled = plan_small(w);
    std::vector<std::int64_t> out;
    for (const request_record& q : sampled.outcome.requests) out.push_back(q.input);
    return out;
  };
  CHECK(first_inputs(7) == first_inputs(7));
  CHECK(first_inputs(7) != first_inputs(8));
}

TEST_CASE("Inference memory lists every byte and gives the cache its share") {
  const serving_run r = plan_small(small_workload());
  bytes sum;
  for (const memory_item& i : r.memory.items) {
    sum += i.size;
    CHECK_FALSE(i.reason.empty());
  }
  CHECK(sum.base() == Approx(r.memory.peak.base()));
  CHECK(r.memory.fits());

  const parameter_parts parts = parameters_by_part(small_model());
  const double weights = static_cast<double>(parts.attention + parts.mlp) + 2.0 * static_cast<double>(parts.norms);
  const double vocabulary = 2.0 * 2 * 32000 * 4096;
  CHECK(find(r.memory, "weights")->size.base() == Approx(weights));
  CHECK(find(r.memory, "vocabulary_weights")->size.base() == Approx(vocabulary));
  CHECK(find(r.memory, "reserve")->size == 2.0_GB);
  const double workspace = 2.0 * 1024 * (2 * 4096 + 3 * 11264);
  CHECK(find(r.memory, "workspace")->size.base() == Approx(workspace));

  const double per_token = kv_bytes_per_token(small_model(), precision::fp8);
  const double expected = 0.9 * (40e9 - 2e9 - weights - vocabulary - workspace) / per_token;
  CHECK(r.kv_capacity_tokens == static_cast<std::int64_t>(expected / 16) * 16);
  CHECK(find(r.memory, "kv_cache")->size.base() == Approx(static_cast<double>(r.kv_capacity_tokens) * per_token));
  CHECK(find(r.memory, "kv_cache")->tokens == r.kv_capacity_tokens);
}

/// Bytes that a cache gets by a rule, to a block.
double cache_by(kv_memory_rule rule, const stack& engine, const inference_workload& w) {
  stack s = engine;
  s.inference->kv_rule = rule;
  const memory_report r = plan_serving_memory(small_machine(), s, small_model(), w).report;
  return find(r, "kv_cache")->size.base();
}

TEST_CASE("Each engine gives its cache a share of what its flag means") {
  stack s = small_stack();
  s.inference->graph_reserve = bytes::from_base(1e6);
  s.inference->group_reserve = 1.0_GB;
  inference_workload w = small_workload();
  w.tp = 4;
  w.engine.kv_fraction = 0.5;
  const memory_report r = plan_serving_memory(small_machine(), s, small_model(), w).report;
  const auto item = [&](const char* name) { return find(r, name)->size.base(); };
  const double weights = item("weights") + item("vocabulary_weights"), reserves = 3e9, usable = 40e9;
  CHECK(item("reserve") + item("group_reserve") == Approx(reserves));
  CHECK(item("cuda_graphs") == Approx(1e6 * (3 + 8) * 16));  // 1, 2, 4 and each eighth to 64, in 16 layers
  const double block = 16 * 2 * 128 * 16;                    // tokens, K and V of one head, layers
  const auto near = [&](double x) { return Approx(x).margin(block); };
  CHECK(cache_by(kv_memory_rule::of_rest, s, w) ==
        near(0.5 * (usable - weights - reserves - item("workspace") - item("cuda_graphs"))));
  CHECK(cache_by(kv_memory_rule::of_all, s, w) == near(0.5 * usable - weights - reserves - item("workspace")));
  CHECK(cache_by(kv_memory_rule::of_free, s, w) == near(0.5 * (usable - reserves) - weights));
  w.engine.cuda_graph_max_batch_size = 0;
  CHECK(cache_by(kv_memory_rule::of_rest, s, w) == near(0.5 * (usable - weights - reserves - item("workspace"))));
  // However large the share: never more than there is.
  w.engine.kv_fraction = 1;
  for (const kv_memory_rule rule : {kv_memory_rule::of_rest, kv_memory_rule::of_all, kv_memory_rule::of_free}) {
    s.inference->kv_rule = rule;
    CHECK(plan_serving_memory(small_machine(), s, small_model(), w).report.fits());
  }
}

TEST_CASE("The peak of the profiling pass grows with the token budget, experts and the vocabulary") {
  const auto workspace = [](const model& m, const inference_workload& w) {
    stack s = small_stack();
    s.inference->sampling_bytes = 27;
    return find(plan_serving_memory(small_machine(), s, m, w).report, "workspace")->size.base();
  };
  inference_workload w = small_workload();
  model m = small_model();
  CHECK(workspace(m, w) == Approx(2.0 * 1024 * (2 * 4096 + 3 * 11264)));
  w.engine.max_batch_size = 512;
  CHECK(workspace(m, w) == Approx(27.0 * 512 * 32000));
  m.vocab = 64000;
  CHECK(workspace(m, w) == Approx(27.0 * 512 * 64000));
  w.engine.max_num_tokens = 128;  // and then at most 128 sequences
  CHECK(workspace(m, w) == Approx(27.0 * 128 * 64000));
  w.engine.max_num_tokens = 65536;
  for (layer_spec& l : m.layers) {
    l.ffn_hidden = 0;
    l.moe = {.experts = 32, .top_k = 4, .expert_ffn = 1024};
  }
  const double few = workspace(m, w);
  CHECK(few == Approx(2.0 * (2 * 4096 * 65536.0 + (65536 * 4.0 + 128 * 32) * (4096 + 1024) + 4096 * 65536.0)));
  for (layer_spec& l : m.layers) l.moe.top_k = 8;
  CHECK(workspace(m, w) > 1.5 * few);
}

TEST_CASE("Inference memory shards over ranks but for KV heads that are too few") {
  inference_workload w = small_workload();
  const serving_run one = plan_small(w);
  w.tp = 4;
  const serving_run four = plan_small(w);
  w.tp = 8;
  const serving_run eight = plan_small(w);
  const auto cache_per_token = [](const serving_run& r) {
    return find(r.memory, "kv_cache")->size.base() / static_cast<double>(r.kv_capacity_tokens);
  };
  CHECK(cache_per_token(four) == Approx(cache_per_token(one) / 4));
  CHECK(cache_per_token(eight) == Approx(cache_per_token(four)));
  CHECK(find(eight.memory, "vocabulary_weights")->size.base() ==
        Approx(find(one.memory, "vocabulary_weights")->size.base() / 8));
}

TEST_CASE("What an engine does by default depends on the GPU and the model, and a scenario overrides it") {
  stack s = small_stack();
  usual_settings on_gpu{.name = "here", .gpu = "small", .model_type = {}, .settings = {}};
  on_gpu.settings.max_num_tokens = 2048;
  on_gpu.settings.max_batch_size = 256;
  usual_settings of_model{.name = "this", .gpu = {}, .model_type = "special", .of_replica = true, .settings = {}};
  of_model.settings.max_batch_size = 128;
  s.inference->usual = {on_gpu, of_model};
  inference_workload w = small_workload();
  w.engine = {};
  model m = small_model();
  const auto found = [&] {
    find_usual_settings(small_machine(), s, m, w);
    return settings_of(*s.inference, w);
  };
  CHECK(found().max_num_tokens == 2048);
  CHECK(found().max_batch_size == 256);
  m.model_type = "special";
  CHECK(found().max_batch_size == 128);
  w.attention_dp = 4;  // the limit counts the sequences of all ranks
  CHECK(found().max_batch_size == 32);
  w.engine.max_batch_size = 77;
  CHECK(found().max_batch_size == 77);
  s.inference->usual.front().gpu = "other";
  CHECK(found().max_num_tokens == s.inference->settings.max_num_tokens);
}

TEST_CASE("Context parallelism of decodes needs ranks that hold the same cache") {
  inference_workload w = small_workload();
  w.tp = 8;  // four KV heads: each is held twice
  w.engine.decode_context_parallel = 2;
  const inference_workload one = [&] {
    inference_workload x = w;
    x.engine.decode_context_parallel = 1;
    return x;
  }();
  const auto capacity = [](const inference_workload& x) {
    return plan_serving_memory(small_machine(), small_stack(), small_model(), x).kv_capacity_tokens;
  };
  CHECK(capacity(w) == 2 * capacity(one));
  CHECK(serving_problems(small_machine(), small_stack(), small_model(), w).empty());
  w.engine.decode_context_parallel = 4;
  CHECK(serving_problems(small_machine(), small_stack(), small_model(), w).size() == 1);
}

TEST_CASE("Engines and formats of caches are refused on GPUs that they do not run on") {
  const auto reasons = [](const char* architecture, const char* engine, precision cache, bool fp4) {
    platform p = small_machine();
    stack s = small_stack();
    inference_workload w = small_workload();
    s.kernels[architecture] = s.kernels.at("small");
    p.gpu.architecture = architecture, s.name = engine, w.kv_cache = cache;
    if (fp4)
      p.gpu.peaks[static_cast<std::size_t>(precision::nvfp4)] =
          p.gpu.peaks[static_cast<std::size_t>(precision::fp8)];
    return serving_problems(p, s, small_model(), w);
  };
  for (const char* engine : {"tensorrt-llm-1.2", "vllm", "sglang-rocm-0.5.15"}) {
    INFO(engine);
    const bool runs = !std::string_view(engine).starts_with("tensorrt-llm");
    CHECK(reasons("small", engine, precision::fp8, false).empty());
    CHECK(reasons("cdna3", engine, precision::fp8, false).empty() == runs);
    CHECK(reasons("small", engine, precision::nvfp4, false).size() == 1);
    CHECK(reasons("small", engine, precision::nvfp4, true).empty());
    CHECK(reasons("cdna4", engine, precision::nvfp4, true).size() == 1);
  }
}

TEST_CASE("Drafts, adapters and vision towers take memory from the cache") {
  const auto memory = [](const inference_workload& w) {
    return plan_serving_memory(small_machine(), small_stack(), small_model(), w);
  };
  inference_workload w = small_workload();
  const std::int64_t alone = memory(w).kv_capacity_tokens;
  w.adapters = {16, 100};
  // Q, K, V and output, up (two columns) and down of 16 layers.
  const double each = 16.0 * 16 * ((5120 + 4096) + (4096 + 4096) + (22528 + 4096) + (4096 + 11264));
  CHECK(find(memory(w).report, "adapters")->size.base() == Approx(2 * 100 * each));
  CHECK(memory(w).kv_capacity_tokens < alone);
  w.adapters = {};
  w.images = image_settings{{1}, 256, vision_tower{6e8, 1152, 27, 4}};
  CHECK(find(memory(w).report, "vision_tower")->size.base() == Approx(1.2e9));
  w.images.reset();
  w.drafts = {.draft_tokens = 2, .tokens_per_step = 1.5, .source = draft_source::eagle3};
  w.drafts.draft = std::make_shared<const model>(eagle_layer(small_model()));
  CHECK(find(memory(w).report, "draft_weights"));
  CHECK(memory(w).kv_per_token.base() == 16 * 2 * 4 * 128 + 2 * 8 * 128);
}

TEST_CASE("Weights that stay in CPU memory give their room to the cache and are read in every iteration") {
  platform p = small_machine();
  p.gpu.c2c = 100.0_GBps;
  p.cpu.memory = 1000.0_GB;
  p.vm.cpus = 2;
  for (const bool routed : {false, true}) {
    model m = small_model();
    if (routed)
      for (layer_spec& l : m.layers) l.moe.experts = 64, l.moe.top_k = 2, l.moe.expert_ffn = 1024;
    inference_workload w = small_workload();
    w.replicas = 1;
    const auto served = [&](double gibibytes) {
      inference_workload x = w;
      if (gibibytes > 0) x.engine.cpu_offload_gb = gibibytes;
      return serve(p, small_stack(), m, x, {});
    };
    const serving_run none = served(0), some = served(1), more = served(2);
    REQUIRE(none.reasons.empty());
    REQUIRE(more.reasons.empty());
    const bytes each = find(some.memory, "kv_cache")->size - find(none.memory, "kv_cache")->size;
    CHECK(each.base() ==
          Approx(1073741824.0 * settings_of(*small_stack().inference, w).kv_fraction).epsilon(1e-3));
    CHECK(find(none.memory, "weights")->size.base() - find(more.memory, "weights")->size.base() ==
          Approx(2 * 1073741824.0));
    // A decode of few tokens reaches few experts; a dense layer is read whole.
    iteration one;
    one.decodes = 1;
    one.context = 100;
    const auto time_of = [&](double gibibytes) {
      inference_workload x = w;
      x.engine.cpu_offload_gb = gibibytes;
      return iteration_costs(p, small_stack(), m, x).time(content_of(one)).base();
    };
    const double whole = 1073741824.0 / 100e9, first = time_of(1) - time_of(0), second = time_of(2) - time_of(1);
    CHECK(second == Approx(first));
    if (routed) CHECK((first > 0 && first < 0.5 * whole));
    else CHECK(first == Approx(whole));
  }
  inference_workload w = small_workload();
  w.engine.cpu_offload_gb = 1.0;
  p.gpu.c2c = {};
  CHECK(serve(p, small_stack(), small_model(), w, {}).reasons.size() == 1);
  p.gpu.c2c = 100.0_GBps;
  w.engine.cpu_offload_gb = 1000.0;
  CHECK(serve(p, small_stack(), small_model(), w, {}).reasons.size() == 2);  // neither so many weights nor room
}

TEST_CASE("Inference memory leaves room for the workspace of a large token budget") {
  inference_workload w = small_workload();
  w.engine.max_num_tokens = 100000;
  const serving_run r = plan_small(w);
  CHECK(r.memory.fits());
  CHECK(r.kv_capacity_tokens < plan_small(small_workload()).kv_capacity_tokens);
}

TEST_CASE("Inference plan never reserves more cache than there is") {
  inference_workload w = small_workload();
  w.requests = 3000;
  w.engine.max_batch_size = w.engine.max_num_tokens = 8192;
  platform p = small_machine();
  p.gpu.hbm_usable = 7.5_GB;
  const serving_run r = serve(p, small_stack(), small_model(), w);
  REQUIRE(r.reasons.empty());
  CHECK(r.outcome.workers[0].peak_kv_tokens <= r.kv_capacity_tokens);
  CHECK(r.outcome.workers[0].peak_kv_tokens >
        r.kv_capacity_tokens * 95 / 100);  // and memory is what limits the batch here
}

TEST_CASE("Inference plan gives all reasons against a layout at once") {
  inference_workload w = small_workload();
  w.tp = 12;
  w.replicas = 3;
  w.input = {5000, 0};
  w.output = {75, 0};
  const serving_run r = plan_small(w);
  CHECK(told(r, "tp 12 does not divide 32 attention heads"));
  CHECK(told(r, "tp 12 does not divide 11264 MLP columns"));
  CHECK(told(r, "tp 12 exceeds the 8 GPUs of an NVLink domain"));
  CHECK(told(r, "3 replicas x tp 12 need 36 GPUs; small has 16"));
  CHECK(r.outcome.workers.empty());
}

TEST_CASE("Inference plan keeps a replica inside an NVLink domain") {
  platform p = small_machine();
  p.rack.vms = 3;  // two racks of 12 GPUs hold one replica of eight each
  inference_workload w = small_workload();
  w.tp = 8;
  w.replicas = 3;
  const serving_run r = serve(p, small_stack(), small_model(), w);
  REQUIRE(r.reasons.size() == 1);
  CHECK(told(r, "only 2 replicas of tp 8 fit into 2 NVLink domains of 12 GPUs without crossing one"));
}

TEST_CASE("Inference plan refuses what does not fit in memory") {
  platform p = small_machine();
  p.gpu.hbm_usable = 5.0_GB;
  const serving_run heavy = serve(p, small_stack(), small_model(), small_workload());
  CHECK(told(heavy, "no memory is left for a KV cache"));
  CHECK(heavy.kv_capacity_tokens == 0);
  CHECK_FALSE(find(heavy.memory, "kv_cache"));
  CHECK(find(heavy.memory, "weights"));

  // Where the share is what leaves no block, it is named: of what the others leave, and of all.
  for (const kv_memory_rule rule : {kv_memory_rule::of_rest, kv_memory_rule::of_all}) {
    stack software = small_stack();
    software.inference->kv_rule = rule;
    inference_workload little = small_workload();
    little.engine.kv_fraction = 0;
    CHECK(told(serve(small_machine(), software, small_model(), little), "kv_fraction 0, a share of"));
    CHECK_FALSE(told(serve(p, software, small_model(), little), "kv_fraction"));
  }

  const double fixed = (heavy.memory.peak - find(heavy.memory, "workspace")->size).base();
  constexpr double sampling = 4.0 * 16 * 32000;  // of 16 sequences, more than 16 tokens of a layer
  p.gpu.hbm_usable =
      bytes::from_base(fixed + sampling + 300 * kv_bytes_per_token(small_model(), precision::fp8) / 0.9);
  inference_workload w = small_workload();
  w.engine.max_num_tokens = 16;
  w.input = {300, 0};
  w.output = {75, 0};
  const serving_run tight = serve(p, small_stack(), small_model(), w);
  CHECK(told(tight, "the longest needs 384"));
}

TEST_CASE("Inference plan refuses prompts that an engine cannot take whole") {
  inference_workload w = small_workload();
  w.engine.max_num_tokens = 256;
  CHECK(plan_small(w).reasons.empty());
  w.engine.prefill = prefill_policy::whole_prompt;
  w.input = {300, 0};
  CHECK(told(plan_small(w), "prefill whole_prompt: a prompt of 300 tokens exceeds max_num_tokens 256"));
  w.input = {200, 0};
  CHECK(plan_small(w).reasons.empty());
  w.images = image_settings{.count = {1, 0}, .tokens_each = 100, .tower = {}};  // are tokens of the prompt
  CHECK(told(plan_small(w), "prefill whole_prompt: a prompt of 300 tokens exceeds max_num_tokens 256"));
  w.load = load_kind::static_batch;  // enters whole and alone, whatever the engine's habits
  CHECK(plan_small(w).reasons.empty());
}

TEST_CASE("A run says that whole prompts wait for decodes to end, where they do") {
  const auto noted = [](const inference_workload& w) {
    const serving_run r = plan_small(w);
    REQUIRE(r.reasons.empty());
    return std::any_of(r.notes.begin(), r.notes.end(),
                       [](const std::string& n) { return n.find("leaves room for") != std::string::npos; });
  };
  inference_workload w = small_workload();  // 40 requests
  w.input = {300, 0};
  w.engine.prefill = prefill_policy::whole_prompt;
  for (const auto& [budget, held_up] : {std::pair{300, true}, {338, true}, {339, false}, {1024, false}}) {
    w.engine.max_num_tokens = budget;
    CHECK(noted(w) == held_up);
  }
  w.engine.max_num_tokens = 300;
  w.engine.prefill = prefill_policy::chunked;
  CHECK_FALSE(noted(w));
  w.engine.prefill = prefill_policy::whole_prompt;
  w.load = load_kind::closed_loop;  // one client never decodes beside its prompt
  w.concurrency = 1;
  CHECK_FALSE(noted(w));
}

TEST_CASE("Inference plan names what the stack lacks") {
  stack s = small_stack();
  inference_workload w = small_workload();
  w.weights = precision::fp8_block;
  CHECK(
      told(serve(small_machine(), s, small_model(), w), "stack small-engine has no fp8_block GEMM for small-gpu"));
  s.inference.reset();
  CHECK(told(serve(small_machine(), s, small_model(), small_workload()), "has no \"inference\" section"));
}

TEST_CASE("Inference plan refuses runs too long to be worth simulating") {
  inference_workload w = small_workload();
  w.requests = std::int64_t{1} << 40;
  CHECK(told(plan_small(w), "requests per replica exceed the limit"));
}

TEST_CASE("More tensor cores, memory bandwidth or cache never slow an inference run") {
  const auto makespan = [](const platform& p) {
    inference_workload w = small_workload();
    w.requests = 400;
    const serving_run r = serve(p, small_stack(), small_model(), w);
    REQUIRE(r.reasons.empty());
    return r.outcome.end_s;
  };
  const platform base = small_machine();
  platform faster = base;
  faster.gpu.hbm_bandwidth = faster.gpu.hbm_stream = 4000.0_GBps;
  CHECK(makespan(faster) < makespan(base));
  platform tight = base;
  tight.gpu.hbm_usable = 5.5_GB;
  CHECK(makespan(tight) > makespan(base));
}

}  // namespace
}  // namespace nvlsim
