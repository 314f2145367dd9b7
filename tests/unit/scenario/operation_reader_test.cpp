#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "nvlsim/operation/operation.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;
const std::string shipped = (root / "scenarios/operation/llama3.1-405b-gb300-4608-90-days.json").string();

scenario load(const std::vector<override_option>& sets = {}) {
  return load_scenario(shipped, sets, folders_under(root));
}

const training_operation& training_of(const scenario& s) {
  return *std::get<operation_case>(s.workload).cluster->training;
}

const component& component_of(const scenario& s, const std::string& name) {
  for (const component& c : training_of(s).failures.components)
    if (c.name == name) return c;
  throw std::runtime_error("no component " + name);
}

/// What is wrong with the scenario and these overrides, one problem a line.
std::string problems_of(const std::vector<override_option>& sets) {
  try {
    load(sets);
  } catch (const input_error& e) {
    std::string out;
    for (const problem& p : e.problems()) out += p.pointer + ": " + p.what + "\n";
    return out;
  }
  return {};
}

TEST_CASE("An operation takes from its profile what it does not say") {
  const scenario s = load();
  const training_operation& t = training_of(s);
  CHECK(std::get<operation_case>(s.workload).cluster->duration.base() == 90 * 86400);
  CHECK(t.failures.components.size() == 16);
  CHECK(component_of(s, "gpu").mtbf.base() == 4700.0 * 86400);
  CHECK(component_of(s, "nvlink_switch_tray").each == 9);
  CHECK(t.save.tiers.size() == 1);
  CHECK(t.recovery.mode == recovery_mode::restart);
  const value* origin = s.inputs.find("origins")->find("/workload/failures/components/gpu/mtbf/value");
  REQUIRE(origin);
  CHECK(*origin == value{"operation profile nvl72-fleet"});
}

TEST_CASE("An override changes one number of the profile, and null takes a component away") {
  const scenario s = load({{"/workload/failures/components/gpu/mtbf", "100 d"},
                           {"/workload/failures/components/spine", "null"},
                           {"/workload/recovery/mode", "elastic"}});
  CHECK(component_of(s, "gpu").mtbf.base() == 100.0 * 86400);
  CHECK(component_of(s, "gpu").repair.base() == 2.5 * 3600);
  CHECK(training_of(s).failures.components.size() == 15);
  CHECK(training_of(s).recovery.mode == recovery_mode::elastic);
}

TEST_CASE("A scenario says how redundant a job is, which parts age, and how much steps differ") {
  const scenario s = load({{"/workload/recovery/mode", "redundant"},
                           {"/workload/recovery/copies", "3"},
                           {"/workload/recovery/computed", "needed"},
                           {"/workload/recovery/rejoin", "false"},
                           {"/workload/failures/components/gpu/shape", "0.78"},
                           {"/workload/failures/components/gpu/shape_of", "each"},
                           {"/workload/step_spread", "0.05"}});
  const training_operation& t = training_of(s);
  CHECK(t.recovery.mode == recovery_mode::redundant);
  CHECK(t.recovery.shards == shard_copies{3, shards_computed::needed, false});
  CHECK(component_of(s, "gpu").ages);
  CHECK_FALSE(component_of(s, "hbm").ages);
  CHECK(t.step_spread == 0.05);
  CHECK(problems_of({{"/workload/failures/components/software/shape_of", "each"}}).find("does not age") !=
        std::string::npos);
  CHECK(problems_of({{"/workload/recovery/copies", "0"}}).find("/workload/recovery/copies") != std::string::npos);
}

TEST_CASE("All problems of an operation are told at once, where they are") {
  const std::string told = problems_of({{"/workload/duration", "90"},
                                        {"/workload/failures/components/gpu/effect", "explodes"},
                                        {"/workload/failures/components/gpu/mtbf", "-1 d"},
                                        {"/workload/checkpoint/tiers/cloud/write", "1 GB/s"},
                                        {"/workload/recovery/watched", "2"},
                                        {"/workload/recovery/modes", "restart"}});
  INFO(told);
  for (const char* pointer :
       {"/workload/duration", "/workload/failures/components/gpu/effect", "/workload/failures/components/gpu/mtbf",
        "/workload/checkpoint/tiers/cloud", "/workload/recovery/watched", "/workload/recovery/modes"})
    CHECK(told.find(pointer) != std::string::npos);
}

TEST_CASE("What cannot be is refused") {
  CHECK(problems_of({{"/workload/profile", "no-such-fleet"}}).find("/workload/profile") != std::string::npos);
  CHECK(problems_of({{"/workload/failures/components/power_shelf/tolerated", "8"}})
            .find("must be less than \"each\", 8") != std::string::npos);
  CHECK(problems_of({{"/workload/failures/components/slow_gpu/speed", "0.5"}}).find("either") !=
        std::string::npos);
  CHECK(problems_of({{"/workload/failures/components/gpu/speed", "0.5"}}).find("/gpu/speed") != std::string::npos);
  CHECK(problems_of({{"/workload/failures/components/software/takes_down", "rack"}}).find("process") !=
        std::string::npos);
  CHECK(
      problems_of({{"/workload/failures/components/software/repair", "1 h"}}).find("has no effect on a process") !=
      std::string::npos);
}

TEST_CASE("Settings of saves and recoveries that would have no effect are refused") {
  // The first place takes every save, whichever it is.
  const std::vector<override_option> store_alone = {
      {"/workload/checkpoint/tiers", R"({"store": {"write": "1 GB/s", "read": "1 GB/s", "every": "best"}})"}};
  CHECK(problems_of(store_alone).find("no effect for the first tier") != std::string::npos);
  for (const char* mode : {"restart", "redundant"})
    CHECK(problems_of({{"/workload/recovery/mode", mode}, {"/workload/recovery/batch", "kept"}})
              .find("/workload/recovery/batch") != std::string::npos);
  for (const char* mode : {"elastic", "replica"})
    CHECK(problems_of({{"/workload/recovery/mode", mode}, {"/workload/recovery/batch", "kept"}}).empty());
}

const std::string shared = (root / "scenarios/operation/gb300-14-racks-shared.json").string();

std::string problems_of_shared(const std::vector<override_option>& sets) {
  try {
    load_scenario(shared, sets, folders_under(root));
  } catch (const input_error& e) {
    std::string out;
    for (const problem& p : e.problems()) out += p.pointer + ": " + p.what + "\n";
    return out;
  }
  return {};
}

TEST_CASE("Jobs that share a cluster train or serve, and have the queue's rules") {
  const scenario s = load_scenario(shared, {}, folders_under(root));
  const auto& c = std::get<operation_case>(s.workload);
  REQUIRE(c.jobs.size() == 3);
  CHECK(c.jobs[1].queue == "research");
  CHECK(c.jobs[1].start.base() == 5 * 86400);
  CHECK(c.jobs[2].replicas == 72);
  CHECK(std::holds_alternative<inference_workload>(c.jobs[2].alone->workload));
  REQUIRE(c.cluster->queue);
  CHECK(c.cluster->queue->generator);
  CHECK(c.cluster->queue->policy.preempt);
  CHECK(problems_of_shared({{"/workload/queue/jobs", "null"}}).empty());
}

TEST_CASE("What jobs that share a cluster cannot have is refused") {
  const std::string told =
      problems_of_shared({{"/workload/queue/failures", R"({"node_mtbf": "10 d", "node_repair": "1 h"})"},
                          {"/workload/queue/maintenance", R"([{"start": "1 d", "length": "1 h"}])"},
                          {"/jobs/0/replicas", "2"},
                          {"/jobs/2/replicas", "0"},
                          {"/jobs/2/queue", "prodction"},
                          {"/jobs/0/start", "31 d"},
                          {"/jobs/1/name", "pretraining"}});
  INFO(told);
  for (const char* pointer : {"/workload/queue/failures", "/workload/queue/maintenance", "/jobs/0/replicas",
                              "/jobs/2/replicas", "/jobs/2/queue", "/jobs/0/start", "/jobs/1/name"})
    CHECK(told.find(pointer) != std::string::npos);
}

}  // namespace
}  // namespace nvlsim
