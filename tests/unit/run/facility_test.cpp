// A site's limits and prices move results the way physics and arithmetic say.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/run/run.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using test::shipped_scenario;

/// Fewer requests of the shared cluster's service, which caps price many times, do for what is asked here.
result run_with(const std::string& name, std::vector<override_option> sets = {}) {
  if (name == "operation/gb300-14-racks-shared")
    sets.insert(sets.begin(), {"/jobs/2/workload/load/requests", "300"});
  const scenario s = shipped_scenario(name, sets);
  return run_scenario(s, {.explained = false, .simulate = false}).outcome;
}
result site(const std::vector<override_option>& sets = {}) {
  return run_with("facility/llama3.1-405b-gb300-site", sets);
}

double metric_of(const result& r, const char* name) {
  const value* v = r.metrics.find(name);
  INFO(name);
  REQUIRE((v && v->number()));
  return *v->number();
}

std::string problems_of(const std::vector<override_option>& sets) {
  try {
    site(sets);
  } catch (const input_error& e) {
    std::string out;
    for (const problem& p : e.problems()) out += p.pointer + ": " + p.what + "\n";
    return out;
  }
  return {};
}

TEST_CASE("A site leaves the step alone and says what it draws") {
  const result r = site();
  CHECK(metric_of(r, "step_time_s") == metric_of(run_with("training/llama3.1-405b-gb300-512"), "step_time_s"));
  const double racks_J = metric_of(r, "energy_per_step_J");
  const double burnt = metric_of(r, "burnt_energy_fraction");
  CHECK(metric_of(r, "energy_at_meter_per_step_J") == Approx(racks_J * (1 + burnt) * 1.12));
  CHECK(metric_of(r, "water_per_step_L") == Approx(racks_J * (1 + burnt) / 3.6e6 * 0.27));
  CHECK(metric_of(r, "carbon_per_step_g") == Approx(metric_of(r, "energy_at_meter_per_step_J") / 3.6e6 * 413));
  // The meter's mean over the step is the job's energy, the idle GPUs of its racks, and PUE.
  const value& power = *r.energy.at_pointer("/facility/power");
  CHECK(*power.find("site_mean_W")->number() >
        metric_of(r, "energy_at_meter_per_step_J") / metric_of(r, "step_time_s"));
  CHECK(*power.find("rack_load_peak_W")->number() < 142e3);
  CHECK(*power.find("rack_load_floor_W")->number() > *power.find("idle_rack_W")->number() * (1 - 1e-9));
}

TEST_CASE("More storage and gentler ramps smooth the site") {
  const result bare =
      site({{"/facility/power/storage_per_gpu", "\"0 J\""}, {"/facility/power/rack_fall_per_s", "null"}});
  const result some = site({{"/facility/power/rack_fall_per_s", "null"}});
  const result more =
      site({{"/facility/power/storage_per_gpu", "\"1 kJ\""}, {"/facility/power/rack_fall_per_s", "null"}});
  for (const char* m : {"rack_power_peak_W", "site_power_peak_W", "site_power_swing_W"}) {
    CHECK(metric_of(some, m) < metric_of(bare, m));
    CHECK(metric_of(more, m) < metric_of(some, m));
  }
  CHECK(metric_of(bare, "burnt_energy_fraction") == Approx(0).margin(1e-9));
  const result gentle = site({{"/facility/power/rack_fall_per_s", "\"2 kW\""}});
  CHECK(metric_of(gentle, "burnt_energy_fraction") > metric_of(site(), "burnt_energy_fraction"));
  CHECK(metric_of(gentle, "site_power_swing_W") < metric_of(site(), "site_power_swing_W"));
  CHECK(metric_of(gentle, "bill_per_step_usd") > metric_of(site(), "bill_per_step_usd"));
}

TEST_CASE("A budget that bites slows the step, and a tighter one more") {
  const auto capped = [](const char* budget) {
    return site({{"/facility/power/site_budget", budget}, {"/facility/power/when_over", "cap"}});
  };
  const result loose = capped("\"2 MW\""), tight = capped("\"0.8 MW\""), tighter = capped("\"0.7 MW\"");
  CHECK(metric_of(loose, "step_time_s") == metric_of(site(), "step_time_s"));
  CHECK(loose.metrics.find("power_cap_slowdown_fraction")->is_null());
  CHECK(metric_of(tight, "power_cap_slowdown_fraction") > 0);
  CHECK(metric_of(tighter, "power_cap_slowdown_fraction") > metric_of(tight, "power_cap_slowdown_fraction"));
  CHECK(metric_of(tight, "step_time_s") ==
        Approx(metric_of(site(), "step_time_s") * (1 + metric_of(tight, "power_cap_slowdown_fraction"))));
  // The cap holds: budget over PUE and racks.
  CHECK(metric_of(tight, "rack_power_peak_W") <= 0.8e6 / 1.12 / 8 * (1 + 1e-6));
  const result shared = site({{"/facility/power/site_budget", "\"0.8 MW\""},
                              {"/facility/power/when_over", "cap"},
                              {"/facility/power/capping", "uniform"}});
  CHECK(metric_of(shared, "step_time_s") == metric_of(tight, "step_time_s"));
  CHECK(std::any_of(shared.notes.begin(), shared.notes.end(), [](const std::string& n) {
    return n.find("is for jobs that share a cluster") != std::string::npos;
  }));
  const result none = capped("\"100 kW\"");
  CHECK(none.status == run_status::infeasible);
  CHECK(none.reasons.at(0).find("the site's budget leaves") == 0);
}

TEST_CASE("A cap takes what keeps the limit and no more: a higher budget is never slower") {
  const double asked = metric_of(site(), "step_time_s"), peak = metric_of(site(), "rack_power_peak_W");
  double before = 1e30;
  for (const double share : {0.8, 0.9, 0.97, 0.99, 1.001, 1.1, 1.3}) {
    const double budget = share * peak;
    const std::string power = fmt::format("\"{:.3f} kW\"", budget / 1e3);
    const result r = site({{"/facility/power/rack_budget", power}, {"/facility/power/when_over", "cap"}});
    INFO(share << " of the peak");
    const double time = metric_of(r, "step_time_s"), drawn = metric_of(r, "rack_power_peak_W");
    CHECK(time <= before * (1 + 1e-9));
    CHECK(drawn <= budget * (1 + 1e-6));
    if (share > 1) CHECK(time == asked);
    else CHECK(drawn > 0.97 * budget);
    before = time;
  }
}

TEST_CASE("Less flow and warmer coolant throttle") {
  const auto cooled = [](const char* member, const char* to) {
    return metric_of(
        site({{std::string("/facility/cooling/") + member, to}, {"/facility/power/when_over", "cap"}}),
        "step_time_s");
  };
  const double base = cooled("flow_L_per_min", "200");
  CHECK(cooled("flow_L_per_min", "80") > base);
  CHECK(cooled("flow_L_per_min", "70") > cooled("flow_L_per_min", "80"));
  CHECK(cooled("supply_C", "43") > base);
}

TEST_CASE("Bills follow prices, goodput and the grid's tariff") {
  const double base = metric_of(site(), "bill_per_step_usd");
  CHECK(metric_of(site({{"/facility/money/goodput", "0.465"}}), "bill_per_step_usd") == Approx(2 * base));
  CHECK(metric_of(site({{"/facility/money/usd_per_kWh", "0.2"}}), "bill_per_step_usd") > base);
  CHECK(metric_of(site({{"/facility/money/interest", "0"}}), "bill_per_step_usd") < base);
  const std::string rented = R"({"way": "on_demand", "gpu_price": "10 USD/h"})";
  const result r = site({{"/facility/money", rented}});
  CHECK(metric_of(r, "bill_per_step_usd") == Approx(512 * 10 / 3600.0 * metric_of(r, "step_time_s")));
}

TEST_CASE("Nonsense about a site is refused, all of it at once") {
  const std::string all = problems_of({{"/facility/pue", "0.9"},
                                       {"/facility/cooling/coolant", "oil"},
                                       {"/facility/carbon/region", "atlantis"},
                                       {"/facility/power/site_budget", "5"},
                                       {"/facility/money/discount", "0.1"}});
  for (const char* at : {"/facility/pue", "/facility/cooling/coolant", "/facility/carbon/region",
                         "/facility/power/site_budget", "/facility/money/discount"}) {
    INFO(all);
    CHECK(all.find(at) != std::string::npos);
  }
  CHECK(problems_of({{"/facility/money", R"({"way": "on_demand"})"}}).find("no list price") != std::string::npos);
  CHECK(problems_of({{"/facility/pue", "null"}}).find("give \"pue\"") != std::string::npos);
  CHECK(problems_of({{"/facility/carbon", R"({"g_per_kWh": [1, 2]})"}}).find("24 hours") != std::string::npos);
  CHECK(problems_of({{"/facility/cooling/return_limit_C", "30"}}).find("enters at 37 C") != std::string::npos);
}

TEST_CASE("Months of a job cost all GPUs of the cluster and the energy of what they did") {
  const auto months = [](const std::vector<override_option>& more = {}) {
    std::vector<override_option> sets = {
        {"/workload/seeds", "4"}, {"/facility", R"({"pue": 1.2, "wue_L_per_kWh": 0.3, "carbon": {"g_per_kWh": 100},
                          "money": {"way": "on_demand", "gpu_price": "10 USD/h", "goodput": 0.5}})"}};
    sets.insert(sets.end(), more.begin(), more.end());
    return run_with("operation/llama3.1-405b-gb300-4608-90-days", sets);
  };
  const result r = months();
  REQUIRE(r.status == run_status::ok);
  CHECK(metric_of(r, "bill_usd") == Approx(4608.0 * 10 * 90 * 24));  // its own goodput counts, not the given one
  const double kWh = metric_of(r, "energy_at_meter_J") / 3.6e6;
  CHECK(metric_of(r, "carbon_g") == Approx(kWh * 100));
  CHECK(metric_of(r, "water_L") == Approx(kWh / 1.2 * 0.3));
  // Between idle and full racks for 90 days.
  CHECK(kWh > 1.2 * 64 * 20 * 90 * 24);
  CHECK(kWh < 1.2 * 64 * 142 * 90 * 24);
  const result worse = months({{"/workload/failures/stops_per_1000_gpu_days", "5"}});
  CHECK(metric_of(worse, "energy_at_meter_J") < metric_of(r, "energy_at_meter_J"));
  CHECK(metric_of(worse, "bill_per_million_tokens_usd") > metric_of(r, "bill_per_million_tokens_usd"));
}

std::string spot_for(const std::string& eviction_after) {
  return R"({"pue": 1.2, "carbon": {"g_per_kWh": 100}, "money": {"way": "spot", "gpu_price": "10 USD/h",
             "discount": 0.7, "eviction_after": ")" +
         eviction_after +
         R"(", "notice": "0 s", "save": "10 s", "restart": "5 min", "checkpoint_interval": "10 min"}})";
}

bool says_of_evictions(const result& r) {
  return std::any_of(r.notes.begin(), r.notes.end(), [](const std::string& n) {
    return n.find("spot GPUs that were taken are there again") != std::string::npos;
  });
}

TEST_CASE(
    "Spot GPUs stop months and fleets as often as they are taken, and are not paid for while they are gone") {
  struct {
    const char *scenario, *bill;
    double gpus;  // 0: those of the fleet's replicas
  } const cases[] = {{"operation/llama3.1-405b-gb300-4608-90-days", "bill_usd", 4608},
                     {"operation/gb300-14-racks-shared", "bill_usd", 1008},
                     {"operation/two-services-gb300-fleet", "fleet_bill_usd", 0}};
  for (const auto& c : cases) {
    INFO(c.scenario);
    const auto with = [&](const std::string& facility) {
      const result r = run_with(c.scenario, {{"/workload/seeds", "1"}, {"/facility", facility}});
      REQUIRE(r.status == run_status::ok);
      return r;
    };
    const result rare = with(spot_for("1000 d")), often = with(spot_for(c.gpus > 0 ? "30 d" : "2 d"));
    for (const result* r : {&rare, &often}) {
      const double here =
          c.gpus > 0 ? c.gpus * (1 - metric_of(*r, "reclaimed_fraction")) : metric_of(*r, "fleet_gpus_mean");
      CHECK(metric_of(*r, c.bill) == Approx(here * metric_of(*r, "duration_s") / 3600 * 3).epsilon(1e-9));
      CHECK(says_of_evictions(*r));
    }
    if (!(c.gpus > 0)) {
      CHECK(metric_of(often, "fleet_retried_fraction") > metric_of(rare, "fleet_retried_fraction"));
      continue;
    }
    CHECK(metric_of(often, "reclaimed_fraction") > metric_of(rare, "reclaimed_fraction"));
    CHECK(metric_of(often, "ettr_fraction") < metric_of(rare, "ettr_fraction"));
    CHECK(metric_of(often, "bill_per_million_tokens_usd") > metric_of(rare, "bill_per_million_tokens_usd"));
    CHECK(*rare.cost.find("facility")->find("goodput_fraction")->number() ==
          Approx(metric_of(rare, "goodput_fraction")));
  }
}

TEST_CASE("Times of return of spot GPUs are asked for where evictions are the market's, not a component's") {
  for (const char* name : {"operation/llama3.1-405b-gb300-4608-90-days", "operation/gb300-14-racks-shared"}) {
    INFO(name);
    const result own = run_with(name, {{"/workload/seeds", "1"},
                                       {"/workload/failures/components/tray/notice", "1 min"},
                                       {"/facility", spot_for("60 d")}});
    REQUIRE(own.status == run_status::ok);
    CHECK_FALSE(says_of_evictions(own));
  }
}

TEST_CASE("Goodput and bill of spot GPUs belong together, whatever is taken and with what warning") {
  const auto with = [](const std::string& more) {
    std::string facility = spot_for("60 d");
    facility.insert(facility.rfind("}}"), more);
    const result r = run_with("operation/llama3.1-405b-gb300-4608-90-days",
                              {{"/workload/seeds", "3"}, {"/facility", facility}});
    REQUIRE(r.status == run_status::ok);
    // Tokens are those of the goodput, and the bill is of the same GPU-hours.
    const double paid = metric_of(r, "bill_usd") / 3 * 3600;
    const double useful = metric_of(r, "ettr_fraction") * 4096 * metric_of(r, "duration_s");
    CHECK(metric_of(r, "goodput_fraction") == Approx(useful / paid).epsilon(0.002));
    CHECK(metric_of(r, "bill_per_million_tokens_usd") ==
          Approx(metric_of(r, "bill_usd") / metric_of(r, "tokens_per_s") / metric_of(r, "duration_s") * 1e6));
    return r;
  };
  const result at_once = with(R"(, "returns_after": "1 min")"), late = with(R"(, "returns_after": "5 h")"),
               racks = with(R"(, "returns_after": "5 h", "takes": "rack")");
  CHECK_FALSE(says_of_evictions(late));
  CHECK(metric_of(late, "reclaimed_fraction") == Approx(5.0 / 24 / 60).epsilon(0.1));
  CHECK(metric_of(racks, "reclaimed_fraction") == Approx(5.0 / 24 / 60).epsilon(0.4));
  CHECK(metric_of(at_once, "reclaimed_fraction") < 2e-5);
  CHECK(metric_of(racks, "interruptions") < metric_of(late, "interruptions"));
}

TEST_CASE("Each policy of caps keeps the site's budget, and the run follows the one that is asked for") {
  const auto with = [](const std::string& power) {
    return run_with("operation/gb300-14-racks-shared",
                    {{"/workload/seeds", "1"},
                     {"/workload/queue/jobs", "null"},
                     {"/facility", R"({"pue": 1.2, "power": {"site_budget": "1.2 MW")" + power + "}}"}});
  };
  const result report = with("");
  REQUIRE(report.status == run_status::ok);
  const value* table = report.energy.find("facility")->find("capping");
  REQUIRE(table);
  REQUIRE(table->items()->size() == 4);
  double speeds[4];
  for (std::size_t k = 0; k < 4; ++k) {
    const value& x = (*table->items())[k];
    CHECK(*x.find("drawn_W")->number() <= 1.2e6 / 1.2 * (1 + 1e-6));
    speeds[k] = *x.find("speed")->number();
  }
  CHECK(speeds[1] >= speeds[0]);  // power of idle racks is not lost
  CHECK(speeds[3] < 1);
  const result uniform = with(R"(, "when_over": "cap", "capping": "uniform")"),
               priority = with(R"(, "when_over": "cap", "capping": "priority")"),
               admission = with(R"(, "when_over": "cap", "capping": "admission")");
  for (const result* r : {&uniform, &priority, &admission}) {
    REQUIRE(r->status == run_status::ok);
    CHECK(metric_of(*r, "site_power_peak_W") <= 1.2e6 * (1 + 1e-6));
  }
  CHECK(metric_of(uniform, "tokens_per_s") < metric_of(report, "tokens_per_s"));
  CHECK(metric_of(uniform, "power_cap_slowdown_fraction") > 0);
  CHECK(metric_of(priority, "tokens_per_s") > 0);
  // With batch jobs admission keeps them out, where their power is not there.
  const result full = run_with(
      "operation/gb300-14-racks-shared",
      {{"/workload/seeds", "1"},
       {"/facility",
        R"({"pue": 1.2, "power": {"site_budget": "1.2 MW", "when_over": "cap", "capping": "admission"}})"}});
  REQUIRE(full.status == run_status::ok);
  CHECK(metric_of(full, "site_power_peak_W") <= 1.2e6 * (1 + 1e-6));
}

result shared_under(const std::string& facility, std::vector<override_option> more = {}) {
  more.push_back({"/workload/seeds", "1"});
  more.push_back({"/workload/duration", "7 d"});
  more.push_back({"/facility", facility});
  return run_with("operation/gb300-14-racks-shared", more);
}

bool says_among(const std::vector<std::string>& lines, const std::string& what) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& x) { return x.find(what) != std::string::npos; });
}

TEST_CASE("Limits of racks, rows and cooling hold under each policy of caps, with a site's budget or without") {
  const std::string water = R"({"coolant": "water", "flow_L_per_min": 90, "supply_C": 40, "return_limit_C": )";
  struct {
    std::string limits, cooling;
    double most_W;  // by a rack
    const char* policy;
  } const cases[] = {
      {R"("rack_budget": "60 kW", "site_budget": "3 MW")", "", 60e3, "uniform"},
      {R"("rack_budget": "80 kW")", "", 80e3, "rack"},
      {R"("row_budget": "560 kW", "racks_per_row": 7, "site_budget": "3 MW")", "", 80e3, "priority"},
      {R"("site_budget": "3 MW")", water + R"(54, "liquid_share": 1})", 88e3, "admission"}};
  for (const auto& c : cases) {
    INFO(c.limits << " " << c.policy);
    const result r =
        shared_under(R"({"pue": 1.2, )" + (c.cooling.empty() ? "" : R"("cooling": )" + c.cooling + ", ") +
                     R"("power": {)" + c.limits + R"(, "when_over": "cap", "capping": ")" + c.policy + R"("}})");
    for (const std::string& x : r.reasons) UNSCOPED_INFO(x);
    REQUIRE(r.status == run_status::ok);
    CHECK(metric_of(r, "rack_power_peak_W") <= c.most_W * (1 + 1e-6));
    CHECK(metric_of(r, "power_cap_slowdown_fraction") > 0);
    CHECK_FALSE(says_among(r.notes, "a rack peaks at"));  // caps are on: there is nothing to advise
    for (const value& x : *r.energy.find("facility")->find("capping")->items())
      for (const value& j : *x.find("jobs")->items())
        CHECK(*j.find("drawn_W_per_gpu")->number() * 72 <= c.most_W * (1 + 1e-6));
  }
}

TEST_CASE("A rack's limit that no cap keeps is a reason under each policy of caps") {
  for (const char* policy : {"rack", "uniform", "priority", "admission"}) {
    INFO(policy);
    const result r = shared_under(R"({"pue": 1.2, "power": {"rack_budget": "20 kW", "site_budget": "3 MW", )" +
                                  (R"("when_over": "cap", "capping": ")" + std::string(policy)) + R"("}})");
    CHECK(r.status == run_status::infeasible);
    CHECK(says_among(r.reasons, "idle power"));
  }
}

TEST_CASE("A site's budget that a policy of caps cannot keep is a reason") {
  const auto under = [](const std::string& more) {
    return shared_under(R"({"pue": 1.2, "power": {"site_budget": "0.6 MW")" + more + "}}");
  };
  for (const char* policy : {"uniform", "priority"}) {
    INFO(policy);
    const result r = under(std::string(R"(, "when_over": "cap", "capping": ")") + policy + "\"");
    CHECK(r.status == run_status::infeasible);
    CHECK(says_among(r.reasons, "the site's budget leaves 500 kW for all racks"));
  }
  CHECK(under("").status == run_status::ok);  // only reported
}

TEST_CASE("A job that has no price under a cap is named: a reason where caps are followed, else a note") {
  const auto under = [](const std::string& more) {
    return shared_under(
        R"({"pue": 1.2, "power": {"site_budget": "1.6 MW")" + more + "}}",
        {{"/jobs/2/workload/load/output/mean", "1"}, {"/jobs/2/workload/load/output/spread", "0"}});
  };
  const std::string told = "agents: has no time per output token to price caps with";
  for (const char* policy : {"uniform", "priority", "admission"}) {
    INFO(policy);
    const result r = under(std::string(R"(, "when_over": "cap", "capping": ")") + policy + "\"");
    CHECK(r.status == run_status::infeasible);
    CHECK(says_among(r.reasons, told));
  }
  for (const char* more : {"", R"(, "when_over": "cap")"}) {
    const result r = under(more);
    CHECK(r.status == run_status::ok);
    CHECK(says_among(r.notes, told));
  }
}

TEST_CASE("Batch jobs draw the same in the table of caps and in the run") {
  // Of what jobs may draw, the uniform caps leave what the note says of GPUs outside them.
  const result r = shared_under(
      R"({"pue": 1.2, "power": {"site_budget": "1.6 MW", "when_over": "cap", "capping": "uniform"}})");
  REQUIRE(r.status == run_status::ok);
  const value& uniform = (*r.energy.find("facility")->find("capping")->items())[1];
  const double each = (1.6e6 / 1.2 - *uniform.find("drawn_W")->number()) / (1008 - 512 - 256 - 72);
  CHECK(says_among(r.notes, fmt::format("a GPU in a batch job takes {:.4g} W", each)));
}

TEST_CASE("Steps of jobs that share a cluster swing less together than if all were in step") {
  const auto with = [](const std::vector<override_option>& more) {
    std::vector<override_option> sets = {{"/workload/seeds", "1"},
                                         {"/facility", R"({"pue": 1.2, "power": {"storage_per_gpu": "65 J"}})"}};
    sets.insert(sets.end(), more.begin(), more.end());
    return run_with("operation/gb300-14-racks-shared", sets);
  };
  const result r = with({});
  const value* power = r.energy.find("facility")->find("power");
  REQUIRE(power);
  CHECK(power->find("jobs")->items()->size() == 3);  // pretraining, ablation and agents at once
  const auto number = [&](const char* name) { return *power->find(name)->number(); };
  CHECK(number("site_load_peak_W") <= number("in_step_peak_W") * (1 + 1e-9));
  CHECK(number("site_load_peak_W") > number("site_mean_W") / 1.2);
  CHECK(metric_of(r, "site_power_swing_W") > 0);
  CHECK(metric_of(r, "site_power_peak_W") > *r.energy.find("facility")->find("mean_rack_W")->number() * 14 * 1.2);
  // A lone job's racks and site are those of its step.
  const result lone = run_with("operation/llama3.1-405b-gb300-4608-90-days",
                               {{"/workload/seeds", "1"}, {"/facility", R"({"pue": 1.2})"}});
  CHECK(metric_of(lone, "rack_power_peak_W") > 80e3);
  CHECK(metric_of(lone, "site_power_peak_W") < 64 * 142e3 * 1.2);
}

TEST_CASE("Sections of months say the same as their metrics") {
  std::string hours = "[";
  for (int h = 0; h < 24; ++h) hours += (h ? ", " : "") + std::to_string(h == 0 ? 500 : 300);
  for (const char* name : {"operation/llama3.1-405b-gb300-4608-90-days", "operation/gb300-14-racks-shared"}) {
    INFO(name);
    const result r = run_with(name, {{"/workload/seeds", "1"},
                                     {"/facility", R"({"pue": 1.2, "carbon": {"g_per_kWh": )" + hours + "]}}"}});
    REQUIRE(r.status == run_status::ok);
    const double mean = (500 + 23 * 300) / 24.0;
    CHECK(metric_of(r, "carbon_g") == Approx(metric_of(r, "energy_at_meter_J") / 3.6e6 * mean));
    CHECK(*r.energy.find("facility")->find("carbon_g_per_kWh")->number() == Approx(mean));
    CHECK_FALSE(says_of_evictions(r));
  }
}

TEST_CASE("What a cap costs the step of months is told") {
  for (const char* name : {"operation/llama3.1-405b-gb300-4608-90-days", "operation/gb300-14-racks-shared"}) {
    INFO(name);
    const auto with = [&](const std::string& power) {
      return run_with(name, {{"/workload/seeds", "1"}, {"/facility", R"({"pue": 1.2, "power": )" + power + "}"}});
    };
    const result capped = with(R"({"rack_budget": "95 kW", "when_over": "cap"})");
    const result free = with(R"({"rack_budget": "400 kW", "when_over": "cap"})");
    REQUIRE(capped.status == run_status::ok);
    CHECK(metric_of(capped, "power_cap_slowdown_fraction") > 0.01);
    CHECK_FALSE(free.metrics.find("power_cap_slowdown_fraction")->number());
    if (const value* step = capped.metrics.find("healthy_step_time_s"))
      CHECK(*step->number() / metric_of(free, "healthy_step_time_s") - 1 ==
            Approx(metric_of(capped, "power_cap_slowdown_fraction")));
  }
}

TEST_CASE("A queue without jobs of its own has no facility, and says so") {
  const std::vector<override_option> sets = {{"/facility", R"({"pue": 1.2})"}};
  CHECK_THROWS_WITH(run_with("operation/gb300-8-racks-queue", sets), Catch::Matchers::Contains("/facility"));
}

TEST_CASE("A shared cluster draws what its jobs, services and idle GPUs draw") {
  const auto months = [](const std::vector<override_option>& more = {}) {
    std::vector<override_option> sets = {
        {"/workload/seeds", "2"},
        {"/facility",
         R"({"pue": 1.2, "carbon": {"g_per_kWh": 100}, "money": {"way": "on_demand", "gpu_price": "10 USD/h"}})"}};
    sets.insert(sets.end(), more.begin(), more.end());
    return run_with("operation/gb300-14-racks-shared", sets);
  };
  const result r = months();
  REQUIRE(r.status == run_status::ok);
  CHECK(metric_of(r, "bill_usd") == Approx(1008.0 * 10 * 30 * 24));
  const double kWh = metric_of(r, "energy_at_meter_J") / 3.6e6;
  CHECK(metric_of(r, "carbon_g") == Approx(kWh * 100));
  CHECK(kWh > 1.2 * 14 * 20 * 30 * 24);  // between idle and full racks
  CHECK(kWh < 1.2 * 14 * 142 * 30 * 24);
  CHECK(*r.energy.find("facility")->find("mean_rack_W")->number() * 14 * 30 * 24 * 1.2 / 1000 == Approx(kWh));
  // More failures and fewer batch jobs leave more GPUs idle.
  CHECK(metric_of(months({{"/workload/queue/jobs/jobs", "600"}}), "energy_at_meter_J") <
        metric_of(r, "energy_at_meter_J"));
  const result frail = months({{"/workload/failures/stops_per_1000_gpu_days", "20"}});
  CHECK(metric_of(frail, "energy_at_meter_J") < metric_of(r, "energy_at_meter_J"));
  CHECK(metric_of(frail, "bill_per_million_tokens_usd") > metric_of(r, "bill_per_million_tokens_usd"));
}

TEST_CASE("A day of services on shared racks") {
  const auto fleet = [](const std::vector<override_option>& sets = {}) {
    return run_with("operation/two-services-gb300-fleet", sets);
  };
  const result base = fleet();
  REQUIRE(base.status == run_status::ok);
  CHECK(metric_of(base, "fleet_availability_fraction") > 0.99);
  CHECK(metric_of(base, "fleet_gpu_use_fraction") < 1);
  const std::string chat = "/workload/fleet/services/0";
  const result all_day = fleet({{chat + "/autoscale", R"({"policy": "fixed", "max": 30})"}});
  CHECK(metric_of(all_day, "fleet_gpus_mean") > metric_of(base, "fleet_gpus_mean"));
  const result slow = fleet({{chat + "/start/provision", "\"30 min\""}});
  CHECK(metric_of(slow, "fleet_slo_attained_fraction") < metric_of(base, "fleet_slo_attained_fraction"));
  const result frail = fleet({{"/workload/fleet/failures/gpu_mtbf", "\"20 day\""}});
  CHECK(metric_of(frail, "fleet_retried_fraction") > metric_of(base, "fleet_retried_fraction"));
  const result twice = fleet({{chat + "/arrivals/scale", "2"}});
  CHECK(metric_of(twice, "fleet_requests") > metric_of(base, "fleet_requests"));
}

}  // namespace
}  // namespace nvlsim
