// KV caches beyond HBM, against published runs and as the physics has it.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {
namespace {

/// Llama-3.1-8B in BF16 on one H100 in vLLM: a prompt, another that pushes it out of HBM, and the first again.
std::vector<request_record> twice(std::int64_t tokens, const std::string& tiers) {
  const std::string root = NVLSIM_SOURCE_DIR;
  scenario s = load_scenario(root + "/scenarios/inference/llama2-70b-server-gb200-vm.json",
                             {{"/platform", "{\"use\": \"nd-h100-v5\"}"},
                              {"/stack", "vllm"},
                              {"/model", "llama3.1-8b"},
                              {"/workload/engine", "{\"weights\": \"bf16\", \"prefix_cache\": true}"},
                              {"/workload/layout", "{\"tp\": 1}"},
                              {"/workload/cache_tiers", tiers}},
                             folders_under(root));
  auto& w = std::get<inference_workload>(s.workload);
  auto trace = std::make_shared<request_trace>();
  trace->timed = true;
  trace->list.prefix_tokens = 500;
  for (int i = 0; i < 3; ++i) {
    served_request r;
    r.arrival_s = 100.0 * i;
    r.input = tokens;
    r.output = 1;
    r.first_prefix = trace->list.prefixes.size();
    r.prefixes = static_cast<std::uint32_t>(tokens / 500);
    for (std::uint32_t b = 0; b < r.prefixes; ++b) trace->list.prefixes.push_back(b + (i == 1 ? 1'000'000U : 0U));
    trace->list.requests.push_back(r);
  }
  w.load = load_kind::trace;
  w.replay = trace;
  w.requests = 3;
  w.measured = {};
  const serving_run run = serve(s.platform, s.stack, s.model, w, {.kv_capacity_tokens = tokens + 2000});
  REQUIRE(run.reasons.empty());
  return run.outcome.requests;
}

// vLLM blog 2026-01-08, KV offloading connector; read off a chart to 5 ms.
TEST_CASE("A prompt in CPU memory comes back as fast as published") {
  const auto [tokens, published_s, computed_s] = GENERATE(
      std::tuple{20'000, 0.070, 0.640}, std::tuple{50'000, 0.155, 2.290}, std::tuple{100'000, 0.305, 6.855});
  const auto r = twice(tokens, R"([{"kind": "cpu"}])");
  const auto ttft = [&](std::size_t i) { return r[i].first_token_s - r[i].arrival_s; };
  INFO(tokens << " " << ttft(2) << " " << ttft(0));
  CHECK(r[2].cached >= tokens - 500);
  CHECK(r[2].fetched > 0.85 * tokens);
  CHECK(ttft(2) == Approx(published_s).epsilon(0.33));
  CHECK(ttft(0) == Approx(computed_s).epsilon(0.33));
}

TEST_CASE("Without a tier the prompt is computed again, and a small or slow tier helps less") {
  const auto time = [&](const std::string& tiers) {
    const auto r = twice(40'000, tiers);
    return r[2].first_token_s - r[2].arrival_s;
  };
  const double none = time("[]"), all = time(R"([{"kind": "cpu"}])");
  CHECK(all < none / 5);
  CHECK(time(R"([{"kind": "cpu", "capacity": "2 GB"}])") ==
        Approx(none).epsilon(0.01));  // the other pushed it out
  CHECK(time(R"([{"kind": "cpu", "bandwidth": "5 GB/s"}])") > 4 * all);
  CHECK(time(R"([{"kind": "cpu", "latency": "1 s"}])") == Approx(all + 1));
  CHECK(time(R"([{"kind": "cpu", "capacity": "2 GB"}, {"kind": "nvme", "write": "back"}])") < none);
  CHECK(time(R"([{"kind": "pool", "capacity": "1 TB"}])") < all);  // 400 Gb/s are more than PCIe gives
}

TEST_CASE("Replicas find in a pool what others computed") {
  inference_workload w;
  w.load = load_kind::open_loop;
  w.requests = 400;
  w.arrivals.rate_per_s = 20;
  w.input = {50, 0.5};
  w.output = {30, 0.5};
  w.sessions = session_settings{.turns = {6, 0.5}, .wait_mean_s = 0.5, .shared_prompt = 640};
  const request_list list = generate_requests(w, 0);
  const auto hits = [&](bool shared, std::int64_t blocks, router_policy router) {
    server_case c{list, {}, [](std::size_t, const iteration&) { return iteration_price{1e-3, 0}; }, 1};
    c.settings.workers = 4;
    c.settings.router = router;
    c.settings.worker.settings.prefix_cache = true;
    c.settings.worker.prefix_tokens = list.prefix_tokens;
    c.settings.worker.kv_capacity_tokens = 8192;
    if (blocks > 0) c.settings.tiers = {{blocks, 1e-5, 0, cache_write::through, shared}};
    double cached = 0, prompts = 0;
    const served_cases served = serve_by_queue({c});
    for (const request_record& r : served.outcomes.front().requests) {
      cached += r.cached;
      prompts += r.input;
    }
    return cached / prompts;
  };
  const double none = hits(false, 0, router_policy::round_robin),
               own = hits(false, 400, router_policy::round_robin),
               pool = hits(true, 1600, router_policy::round_robin);
  CHECK(own > none);
  CHECK(pool > own + 0.1);
  CHECK(hits(true, 1600, router_policy::prefix_aware) == Approx(pool).margin(0.05));
  double before = none;
  for (const std::int64_t blocks : {100, 400, 1600, 6400}) {  // more capacity never finds less
    const double now = hits(true, blocks, router_policy::round_robin);
    CHECK(now >= before - 0.005);
    before = now;
  }
}

}  // namespace
}  // namespace nvlsim
