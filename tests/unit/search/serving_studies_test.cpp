#include "nvlsim/output/studies.hpp"
#include "nvlsim/search/highest_load.hpp"
#include "nvlsim/search/pareto.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/mlperf.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

scenario small_scenario() {
  scenario s;
  s.name = "small";
  s.platform = test::small_machine();
  s.stack = test::small_stack();
  s.model = test::small_model();
  inference_workload w = test::small_workload();
  w.load = load_kind::open_loop;
  w.requests = 1500;
  w.arrivals.rate_per_s = 3;
  w.measured = {0.1, 0.1};
  w.objective = {0.5, 0.02, {}, 0.95};
  s.workload = w;
  return s;
}

bool keeps(const scenario& s, inference_workload w) {
  const inference_metrics m = measure_inference(serve(s.platform, s.stack, s.model, w), w);
  const bool keeps_up =
      w.load != load_kind::open_loop || m.requests_per_s >= 0.9 * m.offered_requests_per_s.value_or(0);
  return m.objective_met && !m.saturated && keeps_up;
}

TEST_CASE("Highest rate keeps the objective and a little more does not, from wherever the search begins") {
  scenario s = small_scenario();
  const highest_load found = find_highest_load(s);
  REQUIRE(found.found);
  CHECK(keeps(s, found.workload));
  inference_workload more = found.workload;
  more.arrivals.rate_per_s *= 1.01;
  CHECK_FALSE(keeps(s, more));
  std::get<inference_workload>(s.workload).arrivals.rate_per_s = 40 * found.load;
  CHECK(find_highest_load(s).load == Approx(found.load).epsilon(0.005));
  CHECK_FALSE(found.few());
}

TEST_CASE(
    "A highest load keeps the objective in a run as long as that which the search gives, however short it began") {
  bool lengthened = false;
  for (const load_kind kind : {load_kind::open_loop, load_kind::closed_loop})
    for (const double begin : {0.5, 20.0})
      for (const std::int64_t requests : {20, 50, 120}) {
        scenario s = small_scenario();
        auto& w = std::get<inference_workload>(s.workload);
        w.load = kind;
        w.requests = requests;
        w.arrivals.rate_per_s = begin;
        w.concurrency = static_cast<std::int64_t>(std::ceil(begin));
        w.objective = {0.5, 1, {}, 0.95};
        const highest_load found = find_highest_load(s);
        INFO(static_cast<int>(kind) << " " << begin << " " << requests << ": " << found.load);
        if (!found.found) continue;
        CHECK(keeps(s, found.workload));
        lengthened = lengthened || found.workload.requests > requests;
      }
  CHECK(lengthened);
}

TEST_CASE(
    "A highest load takes a run for each doubling to it, those of one bisection, and few as long as the longest") {
  const double reached = find_highest_load(small_scenario()).load, to_two_thousandths = std::log2(1 / 0.002);
  for (const double begin : {1e-4, 1e-2, 1.0, 1e2, 1e4}) {
    scenario s = small_scenario();
    std::get<inference_workload>(s.workload).arrivals.rate_per_s = begin * reached;
    const highest_load found = find_highest_load(s);
    INFO("from " << begin << " of it: " << found.runs << " runs");
    CHECK(found.runs <= std::abs(std::log2(begin)) + to_two_thousandths + 12);
  }
}

TEST_CASE("By MLPerf's rules no load is tried of which more requests arrive than a run may have") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  CHECK(highest_load_tried(w) == 1e9);
  w.mlperf = mlperf_rules{mlperf_scenario::server, "llama2-70b"};
  w.arrivals.rate_per_s = highest_load_tried(w);
  CHECK(mlperf_requests(w) <= max_requests);
  w.arrivals.rate_per_s += 1;
  CHECK(mlperf_requests(w) > max_requests);
  // The first run, which is stopped, is not of a load beyond them.
  w.arrivals.rate_per_s = 1e9;
  CHECK(find_highest_load(s, {}, [] { return true; }).stopped);
}

TEST_CASE("Runs that are lost end early, and the load is that of complete runs") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  int cut = 0;
  for (const service_objective& o : {service_objective{0.5, 0.02, {}, 0.95}, service_objective{1, {}, {}, 0.9},
                                     service_objective{{}, {}, 0.5, 0.99}, service_objective{0.5, {}, {}, 1}}) {
    w.objective = o;
    const highest_load found = find_highest_load(s);
    REQUIRE(found.found);
    cut += found.cut;
    CHECK(found.cut < found.runs);
    CHECK(keeps(s, found.workload));
    // The same steps with complete runs.
    double good = w.arrivals.rate_per_s, bad = 0;
    const auto holds = [&](double rate) {
      inference_workload at = found.workload;
      at.arrivals.rate_per_s = rate;
      const inference_metrics m = measure_inference(serve(s.platform, s.stack, s.model, at), at);
      return keeps(s, at) && !m.still_fills;
    };
    if (found.workload.requests != w.requests || !holds(good)) continue;  // other steps
    while (bad == 0) (holds(2 * good) ? good : bad) = 2 * good;
    while (bad / good - 1 > 0.002) (holds((good + bad) / 2) ? good : bad) = (good + bad) / 2;
    CHECK(found.load == good);
  }
  CHECK(cut > 8);
}

TEST_CASE("Where no load keeps the objective, what the least one takes is said beside it") {
  scenario s = small_scenario();
  std::get<inference_workload>(s.workload).objective = {1e-6, {}, 1000.0, 0.95};
  const highest_load none = find_highest_load(s);
  CHECK_FALSE(
      none.found);  // nor does it where arrivals lie so far apart that a double's digits end before a latency
  CHECK(none.runs < 20);
  CHECK(none.missed.find("ttft ") == 0);
  CHECK(none.missed.find("of 1 us allowed, e2e ") != std::string::npos);
}

TEST_CASE("Highest rate of a run that is too short is found by longer ones") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  w.requests = 40;  // too few for a queue that shows
  w.objective = {2, {}, {}, 0.95};
  const highest_load found = find_highest_load(s);
  REQUIRE(found.found);
  CHECK(found.bounded);
  const inference_metrics m =
      measure_inference(serve(s.platform, s.stack, s.model, found.workload), found.workload);
  CHECK(m.requests_per_s >=
        0.85 * m.offered_requests_per_s.value_or(0));  // the last requests end after the last comes
  CHECK(found.workload.requests > 40);
  CHECK_FALSE(found.short_run);
  w.requests = 10'000;
  CHECK(find_highest_load(s).load == Approx(found.load).epsilon(0.15));  // arrivals of a few hundred requests
}

TEST_CASE("A highest load is one whose run ends ok: a run that is too short holds none, and is made longer") {
  for (const load_kind load : {load_kind::open_loop, load_kind::closed_loop})
    for (const std::int64_t requests : {6, 12, 24, 60, 200}) {
      scenario s = small_scenario();
      auto& w = std::get<inference_workload>(s.workload);
      w.load = load;
      w.concurrency = load == load_kind::closed_loop ? 6 : 0;
      w.requests = requests;
      w.measured = load == load_kind::closed_loop ? measured_part{.steady = true} : measured_part{0.1, 0.1};
      w.objective = {5, {}, {}, 0.5};
      const highest_load found = find_highest_load(s);
      INFO(requests << " requests, load kind " << static_cast<int>(load));
      REQUIRE(found.found);
      const serving_run run = serve(s.platform, s.stack, s.model, found.workload);
      const inference_metrics m = measure_inference(run, found.workload);
      CHECK(too_short(run.outcome, found.workload, m).empty());
    }
}

TEST_CASE("Pareto study says that it leaves pools out") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  w.prefill_pool = pool_layout{};
  const pareto_study found = study_pareto(s, 2, {8}, {});
  REQUIRE_FALSE(found.left_out.empty());
  CHECK(found.left_out.front().find("pools") != std::string::npos);
}

TEST_CASE("Highest number of clients keeps the objective and one more does not") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  w.load = load_kind::closed_loop;
  w.measured = {};
  w.concurrency = 2;
  w.requests = 20;
  w.objective = {0.3, {}, {}, 0.95};
  const highest_load found = find_highest_load(s);
  REQUIRE(found.found);
  CHECK(keeps(s, found.workload));
  inference_workload more = found.workload;
  more.concurrency += 1;
  more.requests = 10 * more.concurrency;
  CHECK_FALSE(keeps(s, more));
}

TEST_CASE("Highest number of clients is without bound when no number breaks the objective") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  w.load = load_kind::closed_loop;
  w.measured = {};
  w.concurrency = 512;
  w.requests = 512;
  w.objective = {{}, 10, {}, 0.95};
  const highest_load found = find_highest_load(s);
  CHECK(found.found);
  CHECK_FALSE(found.bounded);
}

TEST_CASE("Highest load is none when no load keeps the objective, and needs one") {
  scenario s = small_scenario();
  auto& w = std::get<inference_workload>(s.workload);
  w.objective.tpot_s = 1e-6;
  w.requests = 20;
  CHECK_FALSE(find_highest_load(s).found);
  w.objective = {};
  CHECK_THROWS_AS(find_highest_load(s), input_error);
  w.objective.ttft_s = 1;
  w.load = load_kind::offline;
  CHECK_THROWS_AS(find_highest_load(s), input_error);
}

TEST_CASE("Pareto study tries layouts that leave GPUs over, and counts those") {
  scenario s = small_scenario();
  std::get<inference_workload>(s.workload).objective = {};
  const pareto_study p = study_pareto(s, 6, {16});
  std::set<std::string> layouts;
  for (const pareto_point& x : p.points) {
    layouts.insert(x.layout);
    CHECK(x.metrics.output_tokens_per_s_per_gpu == Approx(x.metrics.output_tokens_per_s / 6));
  }
  CHECK(layouts == std::set<std::string>{"tp 1 x6", "tp 2 x3", "tp 4 x1"});
}

TEST_CASE("Pareto study marks the points that no other beats") {
  scenario s = small_scenario();
  std::get<inference_workload>(s.workload).objective = {};
  const pareto_study p = study_pareto(s, 4, {4, 16, 64});
  std::set<std::string> layouts;
  for (const pareto_point& x : p.points) {
    layouts.insert(x.layout);
    const bool beaten = std::any_of(p.points.begin(), p.points.end(), [&](const pareto_point& y) {
      const double xu = *x.metrics.output_tokens_per_s_per_user, yu = *y.metrics.output_tokens_per_s_per_user;
      const double xg = x.metrics.output_tokens_per_s_per_gpu, yg = y.metrics.output_tokens_per_s_per_gpu;
      return yu >= xu && yg >= xg && (yu > xu || yg > xg);
    });
    CHECK(x.efficient == !beaten);
  }
  CHECK(layouts == std::set<std::string>{"tp 1 x4", "tp 2 x2", "tp 4 x1"});
  CHECK(p.points.size() == 9);
  const std::string svg = pareto_svg(p), json = pareto_json(p), table = pareto_table(p);
  CHECK(svg.find("<svg") == 0);
  CHECK(std::count(svg.begin(), svg.end(), '<') == std::count(svg.begin(), svg.end(), '>'));
  CHECK(json.find("\"nvlsim.pareto/1\"") != std::string::npos);
  CHECK(std::count(table.begin(), table.end(), '*') >= 2);
}

}  // namespace
}  // namespace nvlsim
