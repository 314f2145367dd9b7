#include "nvlsim/planner/training_plan.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "nvlsim/output/number.hpp"
#include "nvlsim/planner/next_dollar.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/units/random.hpp"
#include "unit/planner/plan_fixture.hpp"

namespace nvlsim {
namespace {

constexpr double tokens = 2e9;

TEST_CASE("Plan of a training run is what a run of its scenario says") {
  training_question q = test::small_trainer(tokens);
  q.gpus = 16;
  const training_plan p = plan_training_run(q);
  REQUIRE(p.best);
  const result r = run_scenario(read_base({p.best->text, q.base.overrides, q.base.data})).outcome;
  double step = 0;
  REQUIRE(output::as_double(*r.metrics.find("step_time_s"), step));
  CHECK(step == Approx(p.best->step_time_s).epsilon(1e-9));
  CHECK(p.best->gpus == 16);
  REQUIRE(p.best->days);
  CHECK(*p.best->days == Approx(tokens / p.best->tokens_per_s / 86'400));
  CHECK(r.metrics.find("cost_to_train_usd") != nullptr);
}

TEST_CASE("More days never take more GPUs, and the answer keeps them") {
  training_question q = test::small_trainer(tokens);
  q.days = 0.05;
  const training_plan hurried = plan_training_run(q);
  REQUIRE(hurried.best);
  CHECK(*hurried.best->days <= q.days);
  q.days = 0.2;
  const training_plan calm = plan_training_run(q);
  REQUIRE(calm.best);
  CHECK(*calm.best->days <= q.days);
  CHECK(calm.best->gpus <= hurried.best->gpus);
  q.goodput = 0.5;
  const training_plan lossy = plan_training_run(q);
  REQUIRE(lossy.best);
  CHECK(lossy.best->gpus >= calm.best->gpus);
}

TEST_CASE("A plan that plays failures takes longer by the time that they cost") {
  training_question q = test::small_trainer(1e12);
  q.gpus = 16;
  const training_plan without = plan_training_run(q);
  q.failures = "nvl72-fleet";
  const training_plan with = plan_training_run(q);
  REQUIRE(without.best);
  REQUIRE(with.best);
  CHECK_FALSE(without.best->goodput);
  REQUIRE(with.best->goodput);
  CHECK(*with.best->goodput < 1);
  CHECK(*with.best->goodput > 0.9);
  CHECK(*with.best->days == Approx(*without.best->days / *with.best->goodput));
  REQUIRE(with.best->cost_usd.has_value() == without.best->cost_usd.has_value());
  if (without.best->cost_usd) CHECK(*with.best->cost_usd == Approx(*without.best->cost_usd / *with.best->goodput));
  training_question lossy = test::small_trainer(1e12);
  lossy.gpus = 16;
  lossy.goodput = 0.9;
  const training_plan given = plan_training_run(lossy);
  REQUIRE(given.best);
  CHECK(*given.best->days == Approx(*without.best->days / 0.9));
  CHECK(given.best->cost_usd.value_or(0) == Approx(without.best->cost_usd.value_or(0) / 0.9));
  CHECK(with.best->layout == without.best->layout);
  q.failures = "no-such-fleet";
  CHECK_THROWS_AS(plan_training_run(q), input_error);
  // Before anything is searched.
  plan_watch stopped;
  stopped.stop = [] { return true; };
  CHECK_THROWS_AS(plan_training_run(q, stopped), input_error);
}

TEST_CASE("Where nothing is fast enough, the fastest is told") {
  training_question q = test::small_trainer(1e15);
  q.days = 0.001;
  const training_plan p = plan_training_run(q);
  CHECK_FALSE(p.best);
}

TEST_CASE("A number of days needs tokens") {
  training_question q = test::small_trainer(0);
  q.days = 1;
  CHECK_THROWS_AS(plan_training_run(q), input_error);
}

TEST_CASE("Sizes double, are listed, or both; others are refused") {
  CHECK(sizes_of("72..576") == std::vector<std::int64_t>{72, 144, 288, 576});
  CHECK(sizes_of("8,4,8") == std::vector<std::int64_t>{4, 8});
  CHECK(sizes_of("1..4,100") == std::vector<std::int64_t>{1, 2, 4, 100});
  for (const char* bad : {"", "0", "x", "8..4", "8,", "1..99999999999"})
    CHECK_THROWS_AS(sizes_of(bad), input_error);
}

TEST_CASE("Strong scaling begins with an efficiency of one and keeps the batch") {
  scaling_question q;
  q.base = test::small_trainer(0).base;
  q.gpus = {8, 16};
  const scaling_plan p = plan_scaling(q);
  REQUIRE(p.points.size() == 2);
  REQUIRE(p.points[0].best);
  REQUIRE(p.points[1].best);
  CHECK(p.points[0].efficiency == Approx(1));
  CHECK(p.points[1].best->global_batch_size == 128);
  CHECK(p.points[1].best->step_time_s < p.points[0].best->step_time_s);
  q.weak = true;
  const scaling_plan weak = plan_scaling(q);
  REQUIRE(weak.points[1].best);
  CHECK(weak.points[1].best->global_batch_size == 256);
}

TEST_CASE("Better hardware never loses, and each part is told with what it costs") {
  training_question t = test::small_trainer(0);
  t.gpus = 8;
  const training_plan p = plan_training_run(t);
  REQUIRE(p.best);
  next_dollar_question q;
  q.base = {p.best->text, {}, t.base.data};
  q.costs = {{"hbm_bandwidth", 100}};
  const next_dollar_plan n = plan_next_dollar(q);
  CHECK(n.metric == "step_time_s");
  CHECK(n.knobs.size() == knob_names().size());
  for (const hardware_knob& k : n.knobs) {
    CAPTURE(k.name);
    CHECK((!k.gain || *k.gain >= -1e-9));
    CHECK(k.cost_usd.has_value() == (k.name == "hbm_bandwidth"));
  }
  q.costs = {{"hbm_bandwith", 100}};
  CHECK_THROWS_AS(plan_next_dollar(q), input_error);
}

TEST_CASE("On hardware of any kind, better parts never lose and much better ones gain no less") {
  training_question t = test::small_trainer(0);
  t.gpus = 16;  // two servers: all parts take part
  const training_plan p = plan_training_run(t);
  REQUIRE(p.best);
  std::mt19937_64 chance(24);
  const auto factor = [&] { return std::exp2(4 * uniform(chance) - 2); };
  for (int i = 0; i < 8; ++i) {
    next_dollar_question q;
    q.base = {p.best->text, {}, t.base.data};
    for (const auto& [pointer, amount, unit] :
         {std::tuple{"/platform/gpu/hbm_bandwidth", 3.35, "TB/s"}, std::tuple{"/platform/gpu/tdp", 700.0, "W"},
          std::tuple{"/platform/gpu/nvlink", 450.0, "GB/s"},
          std::tuple{"/platform/fabric/nic_bandwidth", 400.0, "Gb/s"},
          std::tuple{"/platform/fabric/latency", 2.0, "us"}})
      q.base.overrides.push_back({pointer, fmt::format("{:.4g} {}", amount * factor(), unit)});
    std::map<std::string, double> before;
    for (const double step : {0.1, 0.7, 3.0}) {
      q.step = step;
      for (const hardware_knob& k : plan_next_dollar(q).knobs) {
        CAPTURE(i, k.name, step);
        if (!k.gain) continue;
        CHECK(*k.gain >= before[k.name] - 1e-9);
        before[k.name] = *k.gain;
      }
    }
    CHECK(before.size() >= 6);
  }
}

}  // namespace
}  // namespace nvlsim
