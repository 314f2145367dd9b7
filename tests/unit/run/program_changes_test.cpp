// What a program changes through the headers, a result says of its inputs.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/fleet_case.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using test::root;
using test::shipped_scenario;

const std::string training = "training/llama3.1-405b-gb300-512",
                  serving = "inference/llama2-70b-offline-gb300-rack";

result run(const scenario& s) { return run_scenario(s, {.explained = false, .simulate = false}).outcome; }

const value& input(const result& r, const std::string& pointer) {
  INFO(pointer);
  const value* v = r.inputs.at_pointer(pointer);
  REQUIRE(v);
  return *v;
}

struct change {
  std::string file;
  std::function<void(scenario&)> make;
  override_option set;  ///< the same on the command line
  std::string input;    ///< where the inputs of a result say it
  value text;
};

const std::vector<change>& all_changes() {
  static const std::vector<change> list = {
      {training,
       [](scenario& s) { s.platform.fabric.nic_bandwidth = 25.0_GBps; },
       {"/platform/fabric/nic_bandwidth", "25 GB/s"},
       "/platform/fabric/nic_bandwidth/value",
       "25 GB/s"},
      {training,
       [](scenario& s) { std::get<training_workload>(s.workload).micro_batch_size = 2; },
       {"/workload/micro_batch_size", "2"},
       "/scenario/workload/micro_batch_size",
       2},
      {training,
       [](scenario& s) { s.stack.training->step_host = seconds::from_base(0.5); },
       {"/stack/training/step_host", "500 ms"},
       "/stack/parameters/training/step_host",
       "0.5 s"},
      {training,
       [](scenario& s) {
         s.stack.training->residuals.clear();
         s.stack.training->error_90 = 0.5;
       },
       {"/stack/training/error_90", "0.5"},
       "/stack/parameters/training/error_90",
       0.5},
      {serving,
       [](scenario& s) { std::get<inference_workload>(s.workload).engine.max_batch_size = 64; },
       {"/workload/engine/max_batch_size", "64"},
       "/scenario/workload/engine/max_batch_size",
       64},
      {serving,
       [](scenario& s) { s.stack.inference->settings.kv_fraction = 0.5; },
       {"/stack/inference/kv_fraction", "0.5"},
       "/stack/parameters/inference/kv_fraction",
       0.5},
  };
  return list;
}

TEST_CASE("A program's change shows in inputs, origins and digest") {
  for (const change& c : all_changes()) {
    INFO(c.set.pointer);
    const result before = run(shipped_scenario(c.file));
    scenario s = shipped_scenario(c.file);
    c.make(s);
    const result after = run(s);
    CHECK(input(after, c.input) == c.text);
    const value* origins = after.inputs.find("origins");
    REQUIRE(origins);
    const value* origin = origins->find(c.set.pointer);
    REQUIRE(origin);
    CHECK(*origin == value{"program"});
    CHECK(*after.inputs.find("digest") != *before.inputs.find("digest"));
  }
}

TEST_CASE("A program's change gives the metrics and bands of the same change on the command line") {
  for (const change& c : all_changes()) {
    if (c.set.pointer.ends_with("error_90")) continue;  // an override does not take away what is finer
    INFO(c.set.pointer);
    scenario s = shipped_scenario(c.file);
    c.make(s);
    const result by_program = run(s), by_set = run(shipped_scenario(c.file, {c.set}));
    CHECK(by_program.metrics == by_set.metrics);
    CHECK(by_program.bands == by_set.bands);
    CHECK(by_program.cost == by_set.cost);
  }
}

TEST_CASE("Bands follow what a program changes") {
  scenario s = shipped_scenario(training);
  const result before = run(s);
  s.stack.training->residuals.clear();
  s.stack.training->error_90 = 0.5;
  CHECK(run(s).bands != before.bands);
  scenario served = shipped_scenario(serving);
  const result narrow = run(served);
  served.stack.inference->calibration = {};
  served.stack.inference->band = {1, 1, 1};
  CHECK(run(served).bands != narrow.bands);
}

TEST_CASE("Constants of an explanation are those that ran") {
  scenario s = shipped_scenario(training);
  s.platform.gpu.tdp = 1000.0_W;
  run_status status = run_status::ok;
  const explanation e = explain_scenario(s, "", status);
  for (const input_constant& c : e.constants)
    if (c.pointer == "/platform/gpu/tdp") {
      CHECK(c.text == "1 kW");
      CHECK(c.from == "program");
      return;
    }
  FAIL("tdp is not listed");
}

TEST_CASE("A model that a program changes has another digest") {
  scenario s = shipped_scenario(training);
  const result before = run(s);
  s.model.layers.pop_back();
  s.model.layers.pop_back();
  const result after = run(s);
  CHECK(*after.inputs.find("digest") != *before.inputs.find("digest"));
  CHECK(after.inputs.find("origins")->find("/model/changed_by_program"));
}

TEST_CASE("A facility that a program takes away is told") {
  scenario s = shipped_scenario("facility/llama3.1-405b-gb300-site");
  s.facility = nullptr;
  const std::optional<scenario> after = told(s);
  REQUIRE(after);
  const auto& origins = *after->inputs.find("origins")->members();
  CHECK(std::any_of(origins.begin(), origins.end(), [](const auto& o) {
    return o.first.starts_with("/facility") && o.second == value{"program"};
  }));
}

/// A part of a scenario, and where `--set` finds its stack.
struct scenario_part {
  std::string file, at;
  std::function<std::shared_ptr<const scenario>(scenario&, const std::shared_ptr<const scenario>&)>
      exchange;  ///< puts a part in the place of the one it returns; null: leaves it
};

/// The same for a member that is not shared.
auto exchange_in(std::shared_ptr<const scenario>& place, const std::shared_ptr<const scenario>& other) {
  std::shared_ptr<const scenario> was = place;
  if (other) place = other;
  return was;
}

std::vector<scenario_part> parts_of_all_kinds() {
  using part = std::shared_ptr<const scenario>;
  return {
      {"jobs/two-llama3.1-405b-b300", "/jobs/1/stack",
       [](scenario& s, const part& p) {
         return exchange_in(std::get<shared_workload>(s.workload).jobs[1].alone, p);
       }},
      {"operation/llama3.1-405b-gb300-4608-90-days", "/jobs/0/stack",
       [](scenario& s, const part& p) {
         return exchange_in(std::get<operation_case>(s.workload).jobs[0].alone, p);
       }},
      {"operation/two-services-gb300-fleet", "/workload/fleet/services/1/stack",
       [](scenario& s, const part& p) {
         auto& o = std::get<operation_case>(s.workload);
         fleet_case fleet = *o.fleet;
         part was = exchange_in(fleet.services[1].alone, p);
         o.fleet = std::make_shared<const fleet_case>(std::move(fleet));
         return was;
       }},
      {"post-training/llama3.1-8b-grpo-gb200-8", "/workload/rollout/stack",
       [](scenario& s, const part& p) {
         return exchange_in(std::get<post_training_case>(s.workload).rollout, p);
       }},
      {"post-training/llama3.1-8b-grpo-gb200-8", "/workload/training/stack",
       [](scenario& s, const part& p) {
         return exchange_in(std::get<post_training_case>(s.workload).training, p);
       }},
  };
}

TEST_CASE("What a program changes in a part of a scenario is told") {
  for (const scenario_part& x : parts_of_all_kinds()) {
    INFO(x.file << x.at);
    scenario s = shipped_scenario(x.file);
    scenario part = *x.exchange(s, nullptr);
    const std::string member = part.stack.training ? "/training/error_90" : "/inference/kv_fraction";
    if (part.stack.training) part.stack.training->residuals.clear(), part.stack.training->error_90 = 0.5;
    else part.stack.inference->settings.kv_fraction = 0.5;
    const value digest = *s.inputs.find("digest");
    x.exchange(s, std::make_shared<const scenario>(std::move(part)));
    const std::optional<scenario> after = told(s);
    REQUIRE(after);
    CHECK(*after->inputs.find("digest") != digest);
    scenario told_one = *after;
    const auto& origins = *x.exchange(told_one, nullptr)->inputs.find("origins");
    REQUIRE(origins.find("/stack" + member));
    CHECK(*origins.find("/stack" + member) == value{"program"});
  }
}

TEST_CASE("A scenario that nobody changed has nothing to tell") {
  for (const auto& e : std::filesystem::recursive_directory_iterator(root / "scenarios")) {
    if (e.path().extension() != ".json" || e.path().parent_path().filename() == "models") continue;
    INFO(e.path());
    CHECK_FALSE(told(load_scenario(e.path(), {}, folders_under(root))));
  }
}

}  // namespace
}  // namespace nvlsim
