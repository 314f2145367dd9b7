#include "scenario/inference_reader.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/write_workload.hpp"
#include "nvlsim/serving/pools.hpp"

namespace nvlsim {
namespace {

struct inference_read {
  inference_workload workload;
  config::document document;
  std::vector<std::string> problems;
};

inference_read read_members(const value& text, const checkpoint_spec& checkpoint = {}) {
  inference_read out;
  diagnostics problems;
  out.document.root = text;
  out.document.self = {"scenario", "s.json"};
  config::reader r(out.document, problems);
  out.workload = read_inference_workload(r, checkpoint);
  for (const problem& p : problems.sorted()) out.problems.push_back(p.text());
  return out;
}

inference_read read_inference(const std::string& text, const checkpoint_spec& checkpoint = {}) {
  diagnostics problems;
  const config::document parsed = config::parse(text, {"scenario", "s.json"}, problems);
  REQUIRE(problems.empty());
  return read_members(parsed.root, checkpoint);
}

TEST_CASE("Inference reader reads every member") {
  const inference_read r = read_inference(R"({
    "kind": "inference",
    "engine": {"weights": "nvfp4", "kv_cache": "bf16", "max_num_tokens": 3584, "max_batch_size": 1024, "prefill": "whole_prompt"},
    "load": {"kind": "offline", "requests": 5000, "input": {"mean": 195, "spread": 0.7}, "output": {"mean": 274.5}},
    "layout": {"tp": 2, "replicas": 36}})");
  CHECK(r.problems.empty());
  const inference_workload& w = r.workload;
  CHECK(w.weights == precision::nvfp4);
  CHECK(w.kv_cache == precision::bf16);
  CHECK(w.engine.max_num_tokens == 3584);
  CHECK(w.engine.max_batch_size == 1024);
  CHECK(w.engine.prefill == prefill_policy::whole_prompt);
  CHECK(w.requests == 5000);
  CHECK(w.input.mean == 195);
  CHECK(w.input.spread == 0.7);
  CHECK(w.output.mean == 274.5);
  CHECK(w.output.spread == 0);
  CHECK(w.tp == 2);
  CHECK(w.replicas == 36);
}

std::string by_rules(const std::string& load, const std::string& rest = "") {
  return R"({"kind": "inference", "engine": {"weights": "fp8"}, "layout": {"tp": 2},)" + rest +
         R"("load": {"input": {"mean": 195}, "output": {"mean": 270}, )" + load + "}}";
}

TEST_CASE("MLPerf's rules give the number of requests, what counts and the objective") {
  const inference_read server = read_inference(by_rules(
      R"("kind": "open_loop", "requests_per_s": 170,
          "mlperf": {"scenario": "server", "benchmark": "llama2-70b"})"));
  CHECK(server.problems.empty());
  CHECK(server.workload.requests == 102'000);
  CHECK(server.workload.measured.warmup == 0);
  CHECK(server.workload.objective.ttft_s == 2);
  CHECK(server.workload.objective.tpot_s == 0.2);
  CHECK(server.workload.objective.share == 0.99);
  const inference_read offline = read_inference(
      by_rules(R"("kind": "offline", "mlperf": {"scenario": "offline", "benchmark": "llama3.1-405b"})"));
  CHECK(offline.problems.empty());
  CHECK(offline.workload.requests == 8'313);
  CHECK_FALSE(offline.workload.objective.any());
  const inference_read own = read_inference(by_rules(R"("kind": "open_loop", "requests_per_s": 1, "requests": 5000,
                  "mlperf": {"scenario": "interactive", "benchmark": "llama2-70b"})",
                                                     R"("slo": {"ttft": "1 s", "share": 0.5},)"));
  CHECK(own.problems.empty());
  CHECK(own.workload.requests == 5000);  // more than the rules ask for
  CHECK_FALSE(own.workload.objective.tpot_s);
  for (const inference_read* r : {&server, &offline, &own}) {
    const inference_read again = read_members(write_inference_workload(r->workload));
    CHECK(again.problems.empty());
    CHECK(again.workload.requests == r->workload.requests);
    CHECK(again.workload.mlperf->benchmark == r->workload.mlperf->benchmark);
    CHECK(again.workload.mlperf->scenario == r->workload.mlperf->scenario);
    CHECK(again.workload.objective.ttft_s == r->workload.objective.ttft_s);
  }
}

TEST_CASE("A prefix cache that the engine has for its prefill pool is read again as it was written") {
  const inference_read r =
      read_inference(R"({"kind": "inference", "engine": {"weights": "fp8", "prefix_cache": true},
    "layout": {"prefill": {"tp": 1}, "decode": {"tp": 2}},
    "load": {"kind": "offline", "requests": 10, "input": {"mean": 195}, "output": {"mean": 270}}})");
  CHECK(r.problems.empty());
  const inference_read again = read_members(write_inference_workload(r.workload));
  CHECK(again.problems.empty());
  CHECK(again.workload.prefill_pool->engine.prefix_cache == true);
}

TEST_CASE("MLPerf's rules refuse what they do not allow") {
  const auto problem = [](const std::string& load) {
    const inference_read r = read_inference(by_rules(load));
    return r.problems.size() == 1 ? r.problems.front() : std::to_string(r.problems.size()) + " problems";
  };
  const std::string server = R"("kind": "open_loop", "requests_per_s": 1, )";
  using Catch::Matchers::Contains;
  CHECK_THAT(problem(R"("kind": "offline", "mlperf": {"scenario": "server", "benchmark": "llama2-70b"})"),
             Contains("load kind open_loop"));
  CHECK_THAT(problem(server + R"("mlperf": {"scenario": "offline", "benchmark": "llama2-70b"})"),
             Contains("load kind offline"));
  CHECK_THAT(problem(server + R"("warmup": 0.1, "mlperf": {"scenario": "server", "benchmark": "llama2-70b"})"),
             Contains("warmup"));
  CHECK_THAT(
      problem(server + R"("arrivals": "fixed", "mlperf": {"scenario": "server", "benchmark": "llama2-70b"})"),
      Contains("Poisson"));
  CHECK_THAT(problem(server + R"("mlperf": {"scenario": "interactive", "benchmark": "mixtral-8x7b"})"),
             Contains("interactive"));
  CHECK_THAT(problem(server + R"("mlperf": {"scenario": "server", "benchmark": "resnet50"})"),
             Contains("llama2-70b"));
}

TEST_CASE("Inference reader reads pools and drafts") {
  const inference_read r = read_inference(R"({
    "engine": {"weights": "nvfp4", "max_num_tokens": 4096, "speculative": {"draft_tokens": 3, "acceptance": 0.5}},
    "load": {"kind": "offline", "requests": 7, "input": {"mean": 10}, "output": {"mean": 10}},
    "layout": {"prefill": {"workers": 4, "tp": 2}, "decode": {"workers": 2, "attention_dp": 8, "ep": 8, "max_num_tokens": 256}}})");
  CHECK(r.problems.empty());
  const inference_workload& w = r.workload;
  REQUIRE(w.prefill_pool);
  CHECK(w.prefill_pool->replicas == 4);
  CHECK(w.prefill_pool->engine.max_num_tokens == 4096);
  CHECK(w.replicas == 2);
  CHECK(w.attention_dp == 8);
  CHECK(w.engine.max_num_tokens == 256);
  CHECK(w.gpus() == 24);
  CHECK(w.drafts.tokens_per_step == 1.875);
}

/// The workload of an open loop with `slo`, of sessions and pools, or what is wrong with it.
inference_read read_online(const std::string& slo, const std::string& layout = "{}",
                           const std::string& sessions = "") {
  return read_inference(R"({"engine": {"weights": "nvfp4"},
    "load": {"kind": "open_loop", "requests": 7, "requests_per_s": 1, "input": {"mean": 10}, "output": {"mean": 10})" +
                        sessions + R"(}, "slo": )" + slo + R"(, "layout": )" + layout + "}");
}

TEST_CASE("Limits name percentiles of their own, or share one") {
  const inference_read own = read_online(
      R"({"ttft": {"p99": "2 s", "p50": "500 ms"}, "tpot": "50 ms", "e2e": {"p99.9": "9 s"}, "share": 0.9})");
  REQUIRE(own.problems.empty());
  const service_objective& o = own.workload.objective;
  CHECK(o.ttft_s == 2.0);  // of the highest
  CHECK(o.share_of(latency::ttft) == 0.99);
  CHECK(o.share_of(latency::tpot) == 0.9);
  CHECK(o.largest_share() == Approx(0.999));
  REQUIRE(o.percentiles.size() == 3);
  CHECK(o.percentiles[0].share == 0.5);
  CHECK(o.percentiles[0].limit_s == 0.5);
  CHECK(read_online(R"({"ttft": {"p50": "1 s"}})").problems.empty());
  for (const char* wrong :
       {R"({"ttft": {"p50": "2 s", "p99": "1 s"}})", R"({"ttft": {"p0": "2 s"}})", R"({"ttft": {"p101": "2 s"}})",
        R"({"ttft": {"median": "2 s"}})", R"({"ttft": {}})", R"({"ttft": {}, "tpot": "50 ms"})",
        R"({"ttft": {"p50": "2 s", "p50.0": "2 s"}})", R"({"ttft": {"p50": "2 s"}, "share": 0.9})",
        R"({"ttft": {"p50": "2 s"}, "statistic": "mean"})"}) {
    INFO(wrong);
    CHECK_FALSE(read_online(wrong).problems.empty());
  }
}

TEST_CASE("A share is kept by exactly as many requests as it is, however its percentile was written") {
  for (const char* name : {"p99.9", "p7", "p14", "p28", "p55", "p56", "p99"}) {
    const inference_read own = read_online(std::string(R"({"ttft": {")") + name + R"(": "2 s"}})");
    const double share = own.workload.objective.share_of(latency::ttft);
    for (const std::int64_t counted : {1'000, 2'000, 5'000, 100'000, 1'000'000}) {
      const auto kept = static_cast<std::int64_t>(std::llround(share * static_cast<double>(counted)));
      INFO(name << " of " << counted);
      CHECK(service_objective::enough(kept, counted, share));
      CHECK_FALSE(service_objective::enough(kept - 1, counted, share));
    }
  }
}

TEST_CASE("What is written of objectives, routers and sessions is read as it was") {
  for (const char* slo :
       {R"({"ttft": {"p99": "2 s", "p50": "500 ms"}, "tpot": "50 ms", "share": 0.9})",
        R"({"tpot": {"p99.9": "50 ms"}})", R"({"ttft": "1 s"})", R"({"e2e": "1 s", "statistic": "mean"})"})
    for (const char* layout :
         {R"({"replicas": 3, "router": "least_loaded"})", R"({"decode": {}, "router": "prefix_aware"})",
          R"({"prefill": {}, "decode": {}, "router": "round_robin"})", R"({"prefill": {}, "decode": {}})"})
      for (const char* sessions :
           {"", R"(, "sessions": {"turns": {"mean": 4}, "first_input": {"mean": 900, "spread": 0.5}})"}) {
        INFO(slo << layout << sessions);
        const inference_read first = read_online(slo, layout, sessions);
        REQUIRE(first.problems.empty());
        const value written = write_inference_workload(first.workload);
        const inference_read again = read_members(written);
        REQUIRE(again.problems.empty());
        CHECK(write_inference_workload(again.workload) == written);
        CHECK(again.workload.pool_router == first.workload.pool_router);
        CHECK(again.workload.objective.percentiles.size() == first.workload.objective.percentiles.size());
      }
}

TEST_CASE("What a decode pool sets differently stays its own") {
  const auto prefill_of = [](const std::string& engine) {
    const inference_read r = read_inference(R"({"engine": {"weights": "nvfp4")" + engine + R"(},
      "load": {"kind": "offline", "requests": 7, "input": {"mean": 10}, "output": {"mean": 10}},
      "layout": {"prefill": {}, "decode": {"max_num_tokens": 256, "max_batch_size": 8, "kv_fraction": 0.25}}})");
    REQUIRE(r.problems.empty());
    CHECK(r.workload.engine.kv_fraction == 0.25);
    return prefill_workload(r.workload).engine;
  };
  const engine_overrides engines =
      prefill_of(R"(, "max_num_tokens": 4096, "max_batch_size": 64, "kv_fraction": 0.8)");
  CHECK(engines.max_num_tokens == 4096);
  CHECK(engines.max_batch_size == 64);
  CHECK(engines.kv_fraction == 0.8);
  const engine_overrides stacks = prefill_of("");
  CHECK_FALSE(stacks.max_num_tokens);
  CHECK_FALSE(stacks.max_batch_size);
  CHECK_FALSE(stacks.kv_fraction);
}

TEST_CASE("Inference reader takes decode workers alone and refuses prefill workers alone") {
  const std::string before =
      R"({"engine": {"weights": "fp8"}, "load": {"kind": "offline", "requests": 7, "input": {"mean": 10}, "output": {"mean": 10}}, "layout": )";
  const inference_read decode = read_inference(before + R"({"decode": {"workers": 2}}})");
  CHECK(decode.problems.empty());
  CHECK(decode.workload.prompts_cached);
  const inference_read prefill = read_inference(before + R"({"prefill": {"workers": 2}, "tp": 4}})");
  REQUIRE(prefill.problems.size() == 2);
  CHECK(prefill.problems[0].find("decode") != std::string::npos);
  CHECK(prefill.problems[1].find("/layout/tp") != std::string::npos);
}

TEST_CASE("Inference reader wants either an acceptance or the tokens of a step") {
  const std::string before = R"({"engine": {"weights": "fp8", "speculative": )";
  const std::string after =
      R"(}, "load": {"kind": "offline", "requests": 7, "input": {"mean": 10}, "output": {"mean": 10}}})";
  CHECK(read_inference(before + R"({"draft_tokens": 2, "tokens_per_step": 2.5})" + after).problems.empty());
  CHECK(read_inference(before + R"({"draft_tokens": 2})" + after).problems.size() == 1);
  CHECK(read_inference(before + R"({"draft_tokens": 2, "tokens_per_step": 3.5})" + after).problems.size() >= 1);
  CHECK(read_inference(before + R"({"draft_tokens": 2, "tokens_per_step": 2, "acceptance": 0.5})" + after)
            .problems.size() == 1);
}

TEST_CASE("Inference reader takes the engines' long names and records its defaults") {
  const inference_read r = read_inference(R"({
    "engine": {"weights": "fp8", "max_num_batched_tokens": 4096, "max_num_seqs": 64},
    "load": {"kind": "offline", "num_prompts": 7, "input": {"mean": 10}, "output": {"mean": 10}},
    "layout": {"tensor_parallel_size": 4}})");
  CHECK(r.problems.empty());
  CHECK(r.workload.engine.max_num_tokens == 4096);
  CHECK(r.workload.engine.max_batch_size == 64);
  CHECK(r.workload.kv_cache == precision::fp8);
  CHECK(r.workload.tp == 4);
  const value resolved = r.document.resolved();
  CHECK(*resolved.at_pointer("/engine/kv_cache")->string() == "fp8");
  CHECK(*resolved.at_pointer("/layout/replicas")->integer() == 1);
}

TEST_CASE("Inference reader takes precisions that the scenario leaves out from the checkpoint") {
  const checkpoint_spec published{"hf_quant_config.json", "NVFP4", precision::nvfp4,
                                  precision::bf16,        {},      precision::bf16};
  const auto engine = [&](const std::string& members, const checkpoint_spec& c) {
    return read_inference(
        R"({"engine": {)" + members +
            R"(}, "load": {"kind": "offline", "requests": 7, "input": {"mean": 10}, "output": {"mean": 10}}})",
        c);
  };
  const inference_read silent = engine("", published);
  CHECK(silent.problems.empty());
  CHECK(silent.workload.weights == precision::nvfp4);
  CHECK(silent.workload.attention_weights == precision::bf16);
  CHECK_FALSE(silent.workload.expert_weights);
  CHECK(silent.workload.kv_cache == precision::bf16);
  CHECK(*silent.document.resolved().at_pointer("/engine/weights")->string() == "nvfp4");
  CHECK(engine(R"("kv_cache": "fp8")", published).workload.kv_cache == precision::fp8);
  CHECK(engine(R"("attention_weights": "fp8")", published).workload.attention_weights == precision::fp8);
  // Another precision is another checkpoint.
  const inference_read other = engine(R"("quantization": "fp8")", published);
  CHECK(other.workload.weights == precision::fp8);
  CHECK_FALSE(other.workload.attention_weights);
  CHECK(other.workload.kv_cache == precision::fp8);

  const checkpoint_spec mixed{"hf_quant_config.json", "MIXED_PRECISION", {}, {}, {}, {}};
  CHECK(engine("", mixed).problems ==
        std::vector<std::string>{"s.json#/engine/weights: the checkpoint's MIXED_PRECISION (hf_quant_config.json) "
                                 "is none of bf16, fp8, fp8_block, nvfp4, "
                                 "mxfp4, int4; give the precision to simulate"});
  CHECK(engine(R"("weights": "nvfp4")", mixed).problems.empty());
}

TEST_CASE("Means of lengths lie between their bounds") {
  const auto problems_of = [](const char* input) {
    return read_inference(
               std::string(
                   R"({"engine": {"weights": "fp8"}, "load": {"kind": "offline", "requests": 7, "input": )") +
               input + R"(, "output": {"mean": 10}}, "layout": {"tp": 1}})")
        .problems;
  };
  CHECK(problems_of(R"({"mean": 100, "min": 50, "max": 200, "distribution": "exponential"})").empty());
  CHECK(problems_of(R"({"mean": 100, "min": 100, "max": 100})").empty());
  const auto above = problems_of(R"({"mean": 300, "max": 200, "distribution": "exponential"})");
  REQUIRE(above.size() == 1);
  CHECK(above.front().find("s.json#/load/input/mean: mean 300 is above max 200") == 0);
  const auto below = problems_of(R"({"mean": 10, "min": 20, "distribution": "exponential"})");
  REQUIRE(below.size() == 1);
  CHECK(below.front().find("mean 10 is below min 20") != std::string::npos);

  // Bounds that would change nothing are not passed over.
  for (const char* idle : {R"({"mean": 100, "min": 1, "max": 300})", R"({"mean": 100, "min": 50})",
                           R"({"mean": 100, "max": 300, "distribution": "uniform"})"}) {
    const auto found = problems_of(idle);
    REQUIRE(found.size() == 1);
    CHECK(found.front().find("equal lengths have no bounds") != std::string::npos);
  }
  CHECK(problems_of(R"({"min": 50, "max": 150})").empty());
  CHECK(problems_of(R"({"mean": 100, "spread": 0.9, "max": 150})").empty());
}

TEST_CASE("Inference reader takes the wait of ranks under both names") {
  for (const char* name : {"rank_wait_iterations", "attention_dp_timeout_iters"}) {
    const inference_read r = read_inference(std::string(R"({"engine": {"weights": "fp8", ")") + name +
                                            R"(": 60}, "load": {"kind": "offline", "requests": 7,
      "input": {"mean": 10}, "output": {"mean": 10}}, "layout": {"tp": 1}})");
    CHECK(r.problems.empty());
    CHECK(r.workload.engine.rank_wait_iterations == 60);
  }
}

TEST_CASE("Inference reader names every problem in one go") {
  const inference_read r = read_inference(R"({
    "engine": {"weights": "nvfp5", "max_num_tokens": 0, "max_num_seqs": 4, "max_batch_size": 4, "chunked": true},
    "load": {"kind": "closed", "requests": 1.5, "input": {"mean": 0, "spread": 2}, "ouput": {"mean": 3}},
    "layout": {"tp": "2"}})");
  const auto told = [&](const std::string& part) {
    for (const std::string& p : r.problems)
      if (p.find(part) != std::string::npos) return true;
    return false;
  };
  CHECK(told("s.json#/engine/weights"));
  CHECK(told("did you mean \"nvfp4\""));
  CHECK(told("s.json#/engine/max_num_tokens"));
  CHECK(told("s.json#/engine/max_num_seqs"));
  CHECK(told("s.json#/engine/chunked:"));
  CHECK(told("s.json#/load/kind"));
  CHECK(told("s.json#/load/requests"));
  CHECK(told("s.json#/load/input/mean"));
  CHECK(told("s.json#/load/input/spread"));
  CHECK(told("required member \"output\""));
  CHECK(told("s.json#/load/ouput"));
  CHECK(told("s.json#/layout/tp"));
}

}  // namespace
}  // namespace nvlsim
