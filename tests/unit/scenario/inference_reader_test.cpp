#include "scenario/inference_reader.hpp"

#include <catch2/catch.hpp>

#include "config/document.hpp"

namespace nvlsim {
namespace {

struct read_result {
  inference_workload workload;
  config::document document;
  std::vector<std::string> problems;
};

read_result read(const std::string& text) {
  read_result out;
  diagnostics problems;
  out.document = config::parse(text, {"scenario", "s.json"}, problems);
  config::reader r(out.document, problems);
  out.workload = read_inference_workload(r);
  for (const problem& p : problems.sorted()) out.problems.push_back(p.text());
  return out;
}

TEST_CASE("Inference reader reads every member") {
  const read_result r = read(R"({
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

TEST_CASE("Inference reader takes the engines' long names and records its defaults") {
  const read_result r = read(R"({
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

TEST_CASE("Inference reader names every problem in one go") {
  const read_result r = read(R"({
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
