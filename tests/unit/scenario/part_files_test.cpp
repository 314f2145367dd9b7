// Stacks and models that the parts of a scenario name: jobs, rollouts and updates, services.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "nvlsim/scenario/scenario.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;

scenario load_part(const std::string& file, const std::vector<override_option>& sets = {}) {
  return load_scenario(root / "scenarios" / file, sets, folders_under(root));
}

std::string problems_with(const std::string& file, const std::vector<override_option>& sets) {
  std::string out;
  try {
    load_part(file, sets);
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) out += p.pointer + ": " + p.what + "\n";
  }
  return out;
}

struct part_constant {
  const char *file, *part, *constant, *value;
};

TEST_CASE("An override addresses the stack of one part, and its inputs say so") {
  const auto c = GENERATE(
      part_constant{"post-training/llama3.1-8b-grpo-gb200-8.json", "/workload/training", "/training/time_factor",
                    "0.75"},
      part_constant{"post-training/llama3.1-8b-grpo-gb200-8.json", "/workload/rollout", "/inference/request_host",
                    "2 ms"},
      part_constant{"jobs/llama3.1-405b-beside-chat-b300.json", "/jobs/0", "/training/time_factor", "0.75"},
      part_constant{"jobs/llama3.1-405b-beside-chat-b300.json", "/jobs/1", "/inference/request_host", "2 ms"},
      part_constant{"operation/llama3.1-405b-gb300-4608-90-days.json", "/jobs/0", "/training/time_factor", "0.75"},
      part_constant{"operation/two-services-gb300-fleet.json", "/workload/fleet/services/1",
                    "/inference/request_host", "2 ms"});
  const std::string pointer = std::string(c.part) + "/stack" + c.constant;
  INFO(c.file << " " << pointer);
  const scenario before = load_part(c.file), after = load_part(c.file, {{pointer, c.value}});
  REQUIRE(constant_at(before, pointer));
  CHECK(constant_at(before, pointer)->from != "--set");
  REQUIRE(constant_at(after, pointer));
  CHECK(constant_at(after, pointer)->text == c.value);
  CHECK(constant_at(after, pointer)->from == "--set");
  CHECK(*before.inputs.find("digest") != *after.inputs.find("digest"));
  std::size_t changed = 0;
  for (const input_constant& x : constants_of(before)) {
    const std::optional<input_constant> now = constant_at(after, x.pointer);
    changed += !now || now->text != x.text ? 1 : 0;
  }
  CHECK(changed == 1);
}

TEST_CASE("An override of a part's stack is checked like one of the scenario's") {
  const std::string file = "post-training/llama3.1-8b-grpo-gb200-8.json";
  CHECK(problems_with(file, {{"/workload/rollout/stack/inference/step_hist", "1 ms"}}) ==
        "/workload/rollout/stack/inference/step_hist: unknown member\n");
  CHECK(
      problems_with(file, {{"/stack/training/time_factor", "2"}}) ==
      "/stack/training/time_factor: the scenario has no stack of its own; its parts have /workload/rollout/stack, "
      "/workload/training/stack\n");
  // Names of files elsewhere are not those of a part.
  CHECK_FALSE(problems_with(file, {{"/workload/rollout/workload/stack/x", "2"}}).empty());
}

TEST_CASE("A digest covers what surrounds the parts, whatever these are named") {
  for (const char* name : {"scenario", "platform", "parts", "a"}) {
    const auto digest_at = [&](const char* start) {
      return *load_part("jobs/two-llama3.1-405b-b300.json", {{"/jobs/0/name", name}, {"/jobs/0/start", start}})
                  .inputs.find("digest");
    };
    INFO(name);
    CHECK(digest_at("1 s") == digest_at("1 s"));
    CHECK(digest_at("1 s") != digest_at("2 s"));
  }
}

TEST_CASE("Jobs without a stack of their own share the scenario's") {
  const std::string file = "jobs/two-llama3.1-405b-b300.json", pointer = "/stack/training/time_factor";
  const scenario s = load_part(file, {{pointer, "1.5"}});
  for (const cluster_job& j : std::get<shared_workload>(s.workload).jobs) {
    REQUIRE(constant_at(*j.alone, pointer));
    CHECK(constant_at(*j.alone, pointer)->text == "1.5");
  }
  const std::vector<input_constant> all = constants_of(s);
  CHECK(std::count_if(all.begin(), all.end(), [&](const input_constant& c) { return c.pointer == pointer; }) == 1);
}

}  // namespace
}  // namespace nvlsim
