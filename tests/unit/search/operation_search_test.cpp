// A search over spare trays, intervals and recoveries of a job that trains for months.
#include <algorithm>
#include <catch2/catch.hpp>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/search/search.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using Catch::Matchers::Contains;

const std::vector<override_option> eight_racks = {{"/workload/seeds", "5"},
                                                  {"/platform/racks", "8"},
                                                  {"/jobs/0/workload/dp", "8"},
                                                  {"/jobs/0/workload/global_batch_size", "256"}};

search_result search_months(std::vector<search_restriction> only, int jobs = 2, std::int64_t gpus = 576) {
  search_options o;
  o.gpus = gpus;
  o.top = 1000;
  o.jobs = jobs;
  o.restrictions = std::move(only);
  return search_layouts(test::shipped_scenario("operation/llama3.1-405b-gb300-4608-90-days", eight_racks), o);
}

/// Whether a layout's metrics are those of the scenario's run with it.
void agrees_with_a_run(const search_result& found, const found_layout& l, std::vector<override_option> sets) {
  for (const auto& [pointer, v] : found.everywhere) sets.push_back({pointer, to_json(v, 0)});
  for (std::size_t i = 0; i < l.parameters.size(); ++i)
    sets.push_back({found.pointers[i], to_json(l.parameters[i], 0)});
  const result run =
      run_scenario(test::shipped_scenario("operation/llama3.1-405b-gb300-4608-90-days", sets), {.simulate = false})
          .outcome;
  REQUIRE(run.status == run_status::ok);
  for (std::size_t m = 0; m < found.metrics.size(); ++m) {
    INFO(found.metrics[m]);
    const value* v = run.metrics.find(found.metrics[m]);
    REQUIRE(v);
    REQUIRE((v->number() != nullptr) == l.metrics[m].has_value());
    if (v->number()) CHECK(*l.metrics[m] == Approx(*v->number()).epsilon(1e-9));
  }
}

TEST_CASE("The best months that a search finds are those of a run") {
  const search_result found = search_months({{"checkpoint_interval", {"120", "3600"}},
                                             {"gpus_per_rack", {"64", "72"}},
                                             {"recovery", {"restart", "replica", "redundant"}}});
  CHECK(found.candidates == 12);
  REQUIRE(found.found == 12);
  CHECK(found.objective == "tokens_per_s");
  for (const found_layout* l : {&found.best.front(), &found.best.back()})
    agrees_with_a_run(found, *l, eight_racks);
}

TEST_CASE("A search of intervals finds the best multiples of each, as a run does") {
  std::vector<override_option> sets = eight_racks;
  sets.push_back({"/workload/checkpoint/interval", "60 s"});
  sets.push_back({"/workload/checkpoint/tiers",
                  R"({"neighbour": {"write": "20 GB/s", "read": "20 GB/s"},
                      "store": {"write": "2 GB/s", "read": "2 GB/s", "every": "best"}})"});
  search_options o;
  o.gpus = 576;
  o.top = 1000;
  o.restrictions = {{"checkpoint_interval", {"60", "1200"}}, {"gpus_per_rack", {"72"}}};
  const search_result found =
      search_layouts(test::shipped_scenario("operation/llama3.1-405b-gb300-4608-90-days", sets), o);
  REQUIRE(found.found == 2);
  for (const found_layout& l : found.best) agrees_with_a_run(found, l, sets);
}

search_options spare_trays(const std::string& objective, const std::string& also) {
  search_options o;
  o.gpus = 576;
  o.objective = objective;
  if (!also.empty()) o.pareto = {also};
  o.restrictions = {{"checkpoint_interval", {"600"}}, {"gpus_per_rack", {"64", "72"}}};
  return o;
}

TEST_CASE("A search of months knows footprint and bill of a facility, as a run has them") {
  std::vector<override_option> sets = eight_racks;
  sets.push_back({"/facility", R"({"pue": 1.2, "wue_L_per_kWh": 0.3, "carbon": {"g_per_kWh": 100},
                                   "money": {"way": "on_demand", "gpu_price": "10 USD/h"}})"});
  const std::string name = "operation/llama3.1-405b-gb300-4608-90-days";
  const search_result found =
      search_layouts(test::shipped_scenario(name, sets), spare_trays("bill_per_million_tokens_usd", "carbon_g"));
  REQUIRE(found.found == 2);
  for (std::size_t i = 0; i < found.best.front().parameters.size(); ++i)
    sets.push_back({found.pointers[i], to_json(found.best.front().parameters[i], 0)});
  const result run = run_scenario(test::shipped_scenario(name, sets), {.simulate = false}).outcome;
  for (const char* metric :
       {"bill_usd", "bill_per_million_tokens_usd", "carbon_g", "water_L", "energy_at_meter_J"}) {
    INFO(metric);
    const auto at = std::find(found.metrics.begin(), found.metrics.end(), metric);
    REQUIRE(at != found.metrics.end());
    CHECK(*found.best.front().metrics[static_cast<std::size_t>(at - found.metrics.begin())] ==
          Approx(*run.metrics.find(metric)->number()).epsilon(1e-9));
  }
  sets.resize(eight_racks.size());
  sets.push_back({"/facility", R"({"pue": 1.2})"});
  CHECK_THROWS_WITH(search_layouts(test::shipped_scenario(name, sets), spare_trays("bill_usd", "")),
                    Contains("the facility states no costs"));
}

TEST_CASE("A search that cannot be says nothing of metrics that nobody asked for") {
  search_options o;
  o.gpus = 1008;
  CHECK_THROWS_WITH(search_layouts(test::shipped_scenario("operation/gb300-14-racks-shared", {}), o),
                    !Contains("unknown metric"));
}

TEST_CASE("Bills need the facility's money, not a list price") {
  search_options o;
  o.gpus = 8;  // too few for any layout, so that nothing is priced
  o.objective = "bill_per_step_usd";
  const auto s = test::shipped_scenario("facility/llama3.1-405b-gb300-site", {});
  CHECK_NOTHROW(search_layouts(s, o));
}

TEST_CASE("A search of months does not depend on the number of threads") {
  const std::vector<search_restriction> only = {{"checkpoint_interval", {"300", "600"}}};
  const search_result one = search_months(only, 1), two = search_months(only, 2);
  REQUIRE(one.best.size() == two.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) CHECK(one.best[i].metrics == two.best[i].metrics);
}

TEST_CASE("A search of months says what it cannot search") {
  CHECK_THROWS_WITH(search_months({}, 1, 500), Contains("is not a multiple of the"));
  CHECK_THROWS_WITH(search_months({{"recovery", {"hope"}}}), Contains("restart, elastic, replica"));
  search_options o;
  o.gpus = 1008;
  CHECK_THROWS_WITH(search_layouts(test::shipped_scenario("operation/gb300-14-racks-shared", {}), o),
                    Contains("one training job"));
}

}  // namespace
}  // namespace nvlsim
