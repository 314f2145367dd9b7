#include "nvlsim/planner/run_draft.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/output/output.hpp"
#include "nvlsim/planner/plan_question.hpp"
#include "nvlsim/stack/engine_settings.hpp"
#include "unit/planner/plan_fixture.hpp"

namespace nvlsim {
namespace {

value drafted(const std::vector<std::pair<std::string, std::string>>& options) {
  std::vector<std::string> assumed;
  diagnostics problems;
  value out = draft_run(options, test::shipped(), assumed, problems);
  problems.throw_if_any();
  return out;
}

std::int64_t integer(const value& v, const char* pointer) {
  const value* at = v.at_pointer(pointer);
  REQUIRE(at);
  REQUIRE(at->integer());
  return *at->integer();
}

TEST_CASE("A training step from options: what follows from the GPUs is computed") {
  const value v = drafted({{"--model", "deepseek-v3"},
                           {"--platform", "gb300-nvl72"},
                           {"--gpus", "256"},
                           {"--tp", "1"},
                           {"--pp", "8"},
                           {"--ep", "32"}});
  CHECK(integer(v, "/workload/dp") == 32);
  CHECK(integer(v, "/platform/racks") == 4);
  CHECK(integer(v, "/workload/ep") == 32);
  CHECK(integer(v, "/workload/global_batch_size") % 32 == 0);
  const scenario s = read_base({v, {}, test::shipped()});
  CHECK(std::get<training_workload>(s.workload).par.gpus() == 256);
}

TEST_CASE("A server from options, with clients or arrivals") {
  const value v = drafted({{"--model", "llama3.1-8b"},
                           {"--platform", "nd-h100-v5"},
                           {"--gpus", "8"},
                           {"--tp", "2"},
                           {"--input", "100"},
                           {"--output-tokens", "20"},
                           {"--concurrency", "16"}});
  CHECK(integer(v, "/workload/layout/replicas") == 4);
  CHECK(*v.at_pointer("/workload/load/kind")->string() == "closed_loop");
  CHECK(v.at_pointer("/workload/slo") == nullptr);
  const scenario s = read_base({v, {}, test::shipped()});
  CHECK(std::get<inference_workload>(s.workload).gpus() == 8);
}

TEST_CASE("The server that nobody names is one that runs on the GPU") {
  for (const auto& [machine, engine, weights] : {std::tuple{"nd-h100-v5", "vllm", "fp8"},
                                                 {"mi300x-v5", "vllm-rocm-0.19", "fp8"},
                                                 {"mi355x", "vllm-rocm-0.19", "fp8"},
                                                 {"ndm-a100-v4", "vllm", "bf16"},
                                                 {"hgx-b200", "vllm", "nvfp4"}}) {
    const value v = drafted({{"--model", "llama3.1-8b"},
                             {"--platform", machine},
                             {"--gpus", "8"},
                             {"--input", "100"},
                             {"--output-tokens", "20"},
                             {"--concurrency", "16"}});
    CHECK(*v.at_pointer("/stack")->string() == engine);
    CHECK(*v.at_pointer("/workload/engine/weights")->string() == weights);
    CHECK_FALSE(read_base({v, {}, test::shipped()}).name.empty());
  }
}

TEST_CASE("Options that contradict each other are all told") {
  std::vector<std::string> assumed;
  diagnostics problems;
  draft_run(
      {{"--model", "llama3.1-8b"}, {"--platform", "nd-h100-v5"}, {"--gpus", "10"}, {"--tp", "4"}, {"--dp", "x"}},
      test::shipped(), assumed, problems);
  CHECK(problems.sorted().size() == 2);
  diagnostics both;
  draft_run({{"--model", "llama3.1-8b"}, {"--platform", "nd-h100-v5"}, {"--cp", "2"}, {"--input", "5"}},
            test::shipped(), assumed, both);
  REQUIRE(both.sorted().size() == 1);
  CHECK(both.sorted().front().what.find("--cp") != std::string::npos);
  diagnostics missing;
  draft_run({{"--tp", "2"}}, test::shipped(), assumed, missing);
  CHECK(missing.sorted().size() == 2);
}

TEST_CASE("Null removes a member of a text, anything else writes it") {
  const value text{value::object{{"a", value::object{{"b", 1}, {"c", 2}}}}};
  const value out = with_members(text, {{"/a/b", value{}}, {"/a/d/e", 3}, {"/x/y", value{}}});
  CHECK(out.at_pointer("/a/b") == nullptr);
  CHECK(integer(out, "/a/c") == 2);
  CHECK(integer(out, "/a/d/e") == 3);
  CHECK(out.find("x") == nullptr);
}

TEST_CASE("A problem of a plan names the file, the argument or the override that wrote what is wrong") {
  const value text{value::object{{"platform", value::object{{"use", "gb300-nvl72"}}},
                                 {"stack", "megatron-bridge-26.04"},
                                 {"model", "llama3.1-8b"},
                                 {"workload", value::object{{"kind", "training"},
                                                            {"tp", -1},
                                                            {"nope", 1},
                                                            {"pp", 1},
                                                            {"seq_length", 4096},
                                                            {"global_batch_size", 8}}}}};
  plan_base base = base_of_file(text, "mine.json", test::shipped());
  diagnostics problems;
  apply_to(base, {{"/workload/dp", "-1"}, {"/platform/gpu/hbmm", "1"}}, problems);
  REQUIRE(problems.empty());
  std::vector<std::string> found;
  try {
    read_base(base, {{"/workload/pp", -1}, {"/workload/cp", -1}});
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) found.push_back(p.file + p.pointer);
  }
  CHECK(found == std::vector<std::string>{"--set/platform/gpu/hbmm", "--set/workload/dp",
                                          "command line/workload/cp", "command line/workload/pp", "mine.json",
                                          "mine.json/workload", "mine.json/workload/nope",
                                          "mine.json/workload/tp"});
}

/// The text of a base after overrides.
value with_sets(value text, const std::vector<override_option>& sets) {
  plan_base base{std::move(text), {}, test::shipped()};
  diagnostics problems;
  apply_to(base, sets, problems);
  problems.throw_if_any();
  return base.text;
}

TEST_CASE("What a plan writes replaces a member by whichever of its names it was given") {
  const value server = drafted({{"--model", "llama3.1-8b"},
                                {"--platform", "gb300-nvl72"},
                                {"--gpus", "8"},
                                {"--tp", "2"},
                                {"--input", "1000"},
                                {"--output-tokens", "100"},
                                {"--concurrency", "64"}});
  for (const engine_field& f : engine_fields) {
    if (!std::holds_alternative<engine_rank>(f.member)) continue;
    const std::string usual = "/workload/layout/" + std::string(f.name);
    for (const std::string_view a : f.aliases) {
      if (a.empty()) continue;
      INFO(a);
      const std::string other = "/workload/layout/" + std::string(a);
      // In the file, as an option, and as an option over another name.
      const value in_file = with_sets(with_members(server, {{usual, value{}}, {other, 4}}), {});
      const value option = with_sets(server, {override_option{other, "4"}}),
                  over = with_sets(in_file, {override_option{other, "2"}});
      CHECK(integer(in_file, usual.c_str()) == 4);
      CHECK(integer(option, usual.c_str()) == 4);
      CHECK(integer(over, usual.c_str()) == 2);
      for (const value* v : {&in_file, &option, &over}) CHECK_FALSE(v->at_pointer(other));
    }
  }
  const value step = drafted(
      {{"--model", "llama3.1-8b"}, {"--platform", "gb300-nvl72"}, {"--gpus", "8"}, {"--micro-batch-size", "2"}});
  const value fewer = with_sets(step, {{"/workload/mbs", "1"}, {"/workload/tensor_model_parallel_size", "2"}});
  CHECK(integer(fewer, "/workload/micro_batch_size") == 1);
  CHECK(integer(fewer, "/workload/tp") == 2);
}

TEST_CASE("Many overrides at once are what they are one after the other, and each that leads nowhere is told") {
  const value step = drafted(
      {{"--model", "llama3.1-8b"}, {"--platform", "gb300-nvl72"}, {"--gpus", "8"}, {"--micro-batch-size", "2"}});
  const std::vector<override_option> sets = {{"/workload/mbs", "1"},
                                             {"/platform/gpu/tdp", "900 W"},
                                             {"/workload/tensor_model_parallel_size", "2"},
                                             {"/workload/seq_length", "2048"},
                                             {"/stack/overheads/x", "1"}};
  plan_base all{step, {}, test::shipped()}, one_by_one = all;
  diagnostics none;
  apply_to(all, sets, none);
  for (const override_option& set : sets) apply_to(one_by_one, {set}, none);
  none.throw_if_any();
  CHECK(to_json(all.text) == to_json(one_by_one.text));
  CHECK(all.overrides.size() == 1);
  CHECK(integer(all.text, "/workload/tp") == 2);
  CHECK(all.text.at_pointer("/platform/set"));
  diagnostics problems;
  apply_to(all, {{"workload/pp", "2"}, {"/workload/pp", "2"}, {"/workload/pp/deep", "2"}}, problems);
  try {
    problems.throw_if_any();
    FAIL("pointers that lead nowhere are accepted");
  } catch (const input_error& e) {
    CHECK(e.problems().size() == 2);
  }
}

TEST_CASE("A server's data parallel size is its number of replicas") {
  const std::vector<std::pair<std::string, std::string>> common = {
      {"--model", "llama3.1-8b"}, {"--platform", "gb300-nvl72"}, {"--tp", "2"},
      {"--input", "1000"},        {"--output-tokens", "100"},    {"--concurrency", "64"}};
  auto replicas = common, dp = common, both = common;
  replicas.emplace_back("--replicas", "3");
  dp.emplace_back("--dp", "3");
  CHECK(to_json(drafted(dp)) == to_json(drafted(replicas)));
  both.emplace_back("--dp", "3");
  both.emplace_back("--replicas", "3");
  CHECK_THROWS_AS(drafted(both), input_error);
}

}  // namespace
}  // namespace nvlsim
