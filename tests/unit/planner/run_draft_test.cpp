#include "nvlsim/planner/run_draft.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/planner/plan_question.hpp"
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

}  // namespace
}  // namespace nvlsim
