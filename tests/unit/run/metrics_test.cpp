// The table of metrics against the results of what ships, and its formulas against what runs count.
#include <algorithm>
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/operation/operation.hpp"
#include "nvlsim/run/run.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using test::root;
using test::shipped_scenario;

run_record run_of(const scenario& s) { return run_scenario(s, {.explained = true, .simulate = false}); }

metric_kind kind_of(const scenario& s) {
  if (std::holds_alternative<training_workload>(s.workload)) return metric_kind::training;
  if (std::holds_alternative<shared_workload>(s.workload)) return metric_kind::jobs;
  if (std::holds_alternative<operation_case>(s.workload)) return metric_kind::operation;
  if (std::holds_alternative<post_training_case>(s.workload)) return metric_kind::post_training;
  return std::holds_alternative<inference_workload>(s.workload) ? metric_kind::inference : metric_kind::collective;
}

/// Names of the metrics that the table says a result of this scenario has, in order.
std::vector<std::string> expected_metrics(const scenario& s) {
  const auto* training = std::get_if<training_workload>(&s.workload);
  const auto* operation = std::get_if<operation_case>(&s.workload);
  const auto serves = [](const cluster_job& j) {
    return std::holds_alternative<inference_workload>(j.alone->workload);
  };
  const bool services = operation && std::any_of(operation->jobs.begin(), operation->jobs.end(), serves);
  const bool lone = operation && operation->jobs.size() == 1 && !services && !operation->cluster->queue;
  std::map<metric_needs, bool> has = {
      {metric_needs::lone_job, lone},
      {metric_needs::services, services},
      {metric_needs::nothing, true},
      {metric_needs::token_budget, training && training->token_budget},
      {metric_needs::facility, s.facility && (!operation || !operation->jobs.empty())},
      {metric_needs::training_job, operation && !operation->jobs.empty()},
      {metric_needs::fleet, operation && operation->fleet},
      {metric_needs::queue, operation && operation->cluster->queue}};
  std::vector<std::string> out;
  for (const metric& m : metrics_of(kind_of(s)))
    if (has[m.needs]) out.emplace_back(m.name);
  return out;
}

void check_values(const scenario& s, const result& r) {
  std::vector<std::string> names;
  for (const auto& [name, v] : *r.metrics.members()) {
    INFO(s.name << " " << name);
    names.push_back(name);
    const metric* m = find_metric(kind_of(s), name);
    REQUIRE(m);
    if (v.is_null()) CHECK_FALSE(m->null_when.empty());
    else CHECK(m->is_distribution == (v.members() != nullptr));
  }
  CHECK(names == expected_metrics(s));
}

TEST_CASE("Results have the metrics of the table, in its order, and no others") {
  std::set<metric_kind> kinds;
  for (const auto& e : std::filesystem::recursive_directory_iterator(root / "scenarios")) {
    if (e.path().extension() != ".json" || e.path().parent_path().filename() == "models") continue;
    const scenario s = load_scenario(e.path(), {}, folders_under(root));
    kinds.insert(kind_of(s));
    check_values(s, run_of(s).outcome);
  }
  CHECK(kinds.size() == metric_kinds.size());
  const scenario budget = shipped_scenario("facility/llama3.1-405b-gb300-site");
  check_values(budget, run_of(budget).outcome);
  CHECK(expected_metrics(budget).size() == metrics_of(metric_kind::training).size());
  const scenario clock = shipped_scenario("inference/llama3.3-70b-trace-gb300-rack", {{"/facility/pue", "1.1"}});
  CHECK(expected_metrics(clock).size() == metrics_of(metric_kind::inference).size());
}

TEST_CASE("Names of the table end with their unit, and one name means one thing") {
  const std::map<metric_unit, std::vector<std::string>> endings = {
      {metric_unit::second, {"_s"}},
      {metric_unit::tokens_per_s, {"tokens_per_s", "tokens_per_s_per_gpu", "tokens_per_s_per_user"}},
      {metric_unit::requests_per_s, {"requests_per_s", "samples_per_s"}},
      {metric_unit::tflops, {"tflops_per_gpu", "tflops_per_gpu_full_attention"}},
      {metric_unit::bytes_per_s, {"_Bps"}},
      {metric_unit::fraction, {"_fraction", "mfu"}},
      {metric_unit::watt, {"_W_per_gpu", "_W"}},
      {metric_unit::joule, {"_J"}},
      {metric_unit::byte, {"_bytes"}},
      {metric_unit::gram, {"_g"}},
      {metric_unit::litre, {"_L"}},
      {metric_unit::usd, {"_usd"}}};
  for (const metric_kind k : metric_kinds) {
    std::set<std::string_view> seen;
    for (const metric& m : metrics_of(k)) {
      INFO(m.name);
      CHECK(seen.insert(m.name).second);
      CHECK(m.meaning.ends_with('.'));
      CHECK(find_metric(m.name)->unit == m.unit);
      CHECK(find_metric(m.name)->direction == m.direction);
      if (m.unit == metric_unit::count) continue;
      const auto& ends = endings.at(m.unit);
      CHECK(std::any_of(ends.begin(), ends.end(), [&](const std::string& e) { return m.name.ends_with(e); }));
    }
  }
  CHECK(find_metric("ttft_s.p99")->name == "ttft_s");
  CHECK_FALSE(find_metric("step_time_s.p99"));
  CHECK_FALSE(find_metric(metric_kind::training, "ttft_s"));
}

double factor_of(const scenario& s, const run_record& run, const char* metric, const char* name) {
  for (const factor& f : explain(s, run, metric).factors)
    if (f.name == name) return f.amount;
  FAIL(metric << " has no factor " << name);
  return 0;
}

// Factors are what the scenario and the requests say, whatever the metric is.
TEST_CASE("Factors are counted from the run and not solved from the metric") {
  SECTION("training") {
    const scenario s = shipped_scenario("training/llama3.1-405b-gb300-512");
    run_record run = run_of(s);
    const auto& w = std::get<training_workload>(s.workload);
    for (const char* m : {"tokens_per_s", "bubble_fraction", "power_W_per_gpu"}) {
      run.outcome.metrics.set(m, 1e9);  // a metric that is wrong moves none of its factors
      for (const factor& f : explain(s, run, m).factors) CHECK(f.amount < 1e8);
    }
    CHECK(factor_of(s, run, "tokens_per_s", "tokens_per_step") ==
          static_cast<double>(w.global_batch_size * w.seq_length));
  }
  SECTION("a load without a clock, by all its workers") {
    const scenario s = shipped_scenario("inference/llama2-70b-offline-gb300-rack");
    run_record run = run_of(s);
    double requests = 0, output = 0;
    for (const request_record& r : run.requests) requests += r.workers, output += r.workers * double{1} * r.output;
    CHECK(requests == static_cast<double>(std::get<inference_workload>(s.workload).requests));
    for (const char* m : {"output_tokens_per_s", "requests_per_s", "energy_per_million_tokens_J"})
      run.outcome.metrics.set(m, 0.125);
    CHECK(factor_of(s, run, "requests_per_s", "requests") == requests);
    CHECK(factor_of(s, run, "output_tokens_per_s", "output_tokens") == output);
    CHECK(factor_of(s, run, "energy_per_million_tokens_J", "million_output_tokens") ==
          Approx(output / 1e6).epsilon(1e-12));
  }
  SECTION("a load on a clock, by the requests that count") {
    const scenario s =
        shipped_scenario("inference/llama3.3-70b-trace-gb300-rack", {{"/workload/load/warmup", "0.2"},
                                                                     {"/workload/load/tail", "0.1"},
                                                                     {"/workload/slo", R"({"e2e": "5 s"})"}});
    run_record run = run_of(s);
    double within = 0, counted = 0;
    for (const request_record& r : run.requests) {
      if (r.arrival_s < run.counted_arrivals->first || r.arrival_s > run.counted_arrivals->second) continue;
      counted += 1;
      within += seen_by_client(r, run.front_end).e2e_s <= 5;
    }
    CHECK(counted < 0.75 * static_cast<double>(run.requests.size()));
    CHECK(within > 0);
    CHECK(within < counted);
    run.outcome.metrics.set("slo_attained_fraction", 0.5);
    CHECK(factor_of(s, run, "slo_attained_fraction", "requests_within_limits") == within);
    CHECK(factor_of(s, run, "slo_attained_fraction", "measured_requests") == counted);
  }
}

TEST_CASE("The number of simulated activities is the engine's") {
  const auto activities = [](const scenario& s, bool engine) {
    return *run_scenario(s, {.explained = false, .simulate = engine})
                .outcome.simulation.find("activities")
                ->integer();
  };
  const scenario offline = shipped_scenario("inference/llama2-70b-offline-gb300-rack");
  CHECK(activities(offline, true) > 0);
  CHECK(activities(offline, false) == 0);
  CHECK(activities(shipped_scenario("inference/llama3.3-70b-trace-gb300-rack"), true) > 1000);
}

}  // namespace
}  // namespace nvlsim
