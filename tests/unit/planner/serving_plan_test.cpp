#include "nvlsim/planner/serving_plan.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "nvlsim/planner/launch_commands.hpp"
#include "nvlsim/planner/trace_load.hpp"
#include "nvlsim/run/run.hpp"
#include "support/root.hpp"
#include "unit/planner/plan_fixture.hpp"

namespace nvlsim {
namespace {

double metric(const result& r, const char* name) {
  double x = 0;
  const value* v = r.metrics.find(name);
  REQUIRE(v);
  REQUIRE(output::as_double(*v, x));
  return x;
}

double held(const serving_plan& p) { return p.best() ? p.best()->requests_per_s : 0; }

constexpr double found_to = 0.01;  // a load is found to 0.2 %, and layouts tried differ with the GPUs

TEST_CASE("Plan of a server is what a run of its scenario says, by the queue and by the engine") {
  const serving_question q = test::small_server(2);
  const serving_plan p = plan_serving(q);
  REQUIRE(p.aggregated);
  REQUIRE(p.pooled);
  for (const planned_server* s : {&*p.aggregated, &*p.pooled}) {
    const scenario again = read_base({s->text, q.base.overrides, q.base.data});
    const result r = run_scenario(again).outcome;
    CHECK(r.status == run_status::ok);
    for (const char* name : {"requests_per_s", "output_tokens_per_s_per_gpu", "output_tokens_per_s_per_user"})
      CHECK(metric(r, name) == Approx(metric(s->outcome, name)).epsilon(1e-9));
    CHECK(std::get<inference_workload>(again.workload).gpus() == s->gpus);
    CHECK(s->gpus <= 2);
  }
  CHECK(p.best()->requests_per_s == std::max(p.aggregated->requests_per_s, p.pooled->requests_per_s));
}

TEST_CASE("More GPUs never hold less, nor do looser limits") {
  const double one = held(plan_serving(test::small_server(1))), two = held(plan_serving(test::small_server(2))),
               four = held(plan_serving(test::small_server(4)));
  CHECK(one > 0);
  CHECK(two >= (1 - found_to) * one);
  CHECK(four >= (1 - found_to) * two);
  CHECK(four > 1.5 * one);
  CHECK(held(plan_serving(test::small_server(2, "12 ms"))) <= (1 + found_to) * two);
  CHECK(held(plan_serving(test::small_server(2, "40 ms"))) >= (1 - found_to) * two);
}

TEST_CASE("A demand takes the GPUs it needs, and more of it never fewer") {
  serving_question q = test::small_server(0);
  q.requests_per_s = 20;
  const serving_plan few = plan_serving(q);
  REQUIRE(few.best());
  CHECK(few.for_demand);
  CHECK(few.best()->requests_per_s >= 20);
  q.requests_per_s = 80;
  const serving_plan many = plan_serving(q);
  REQUIRE(many.best());
  CHECK(many.best()->requests_per_s >= 80);
  CHECK(many.gpus >= few.gpus);
}

TEST_CASE("Limits that nothing keeps give no deployment, and the reasons") {
  const serving_plan none = plan_serving(test::small_server(1, "1 us"));
  CHECK_FALSE(none.best());
  CHECK_FALSE(none.refused.empty());
  CHECK(serving_plans_text({{none, {}, {}, {}, {}}}).find("no deployment holds any load") != std::string::npos);
}

TEST_CASE("A plan that is stopped gives what it has") {
  plan_watch watch;
  watch.stop = [] { return true; };
  const serving_plan p = plan_serving(test::small_server(2), watch);
  CHECK(p.interrupted);
  CHECK_FALSE(p.best());
}

TEST_CASE("Points on the front are beaten by none") {
  const serving_plan p = plan_serving(test::small_server(2));
  bool any = false;
  for (const serving_point& a : p.points) {
    if (!a.efficient) continue;
    any = true;
    for (const serving_point& b : p.points) CHECK_FALSE((b.per_user > a.per_user && b.per_gpu >= a.per_gpu));
  }
  CHECK(any);
}

TEST_CASE("Launch commands have the ranks of the deployment, for every engine") {
  const serving_question q = test::small_server(4);
  const value pools{value::object{{"prefill", value::object{{"workers", 3}, {"tp", 1}}},
                                  {"decode", value::object{{"workers", 1}, {"tp", 2}, {"max_batch_size", 96}}}}};
  const scenario s = read_base(q.base, {{"/workload/layout", pools}});
  for (const char* engine : launched_engines) {
    const launch_commands c = launch_of(s, engine, "vllm");
    std::string all;
    for (const std::string& l : c.lines) all += l + "\n";
    CAPTURE(engine, all);
    CHECK(all.find("# 3x prefill worker of 1 GPU\n") != std::string::npos);
    CHECK(all.find("# 1x decode worker of 2 GPUs\n") != std::string::npos);
    CHECK(all.find("96") != std::string::npos);
  }
}

TEST_CASE("A plan takes its lengths from a trace") {
  plan_base base = test::small_server(1).base;
  const std::vector<std::string> nothing;
  std::vector<std::string> assumed;
  CHECK(with_lengths_of_trace(base, assumed).text == base.text);
  CHECK(assumed == nothing);
  const std::string file = (test::root / "scenarios/traces/conversation-azure-format.csv").string();
  base.text = with_members(base.text, {{"/workload/load", trace_load(file, true)}});
  const scenario traced = read_base(base);
  const request_list& list = std::get<inference_workload>(traced.workload).replay->list;
  double input = 0, output = 0;
  for (const served_request& r : list.requests)
    input += static_cast<double>(r.input), output += static_cast<double>(r.output);
  const auto count = static_cast<double>(list.requests.size());
  const scenario planned = read_base(with_lengths_of_trace(base, assumed));
  const auto& w = std::get<inference_workload>(planned.workload);
  CHECK(w.load == load_kind::open_loop);
  CHECK(w.input.mean == Approx(input / count));
  CHECK(w.output.mean == Approx(output / count));
  REQUIRE(assumed.size() == 1);
  serving_question q{with_lengths_of_trace(base, assumed), 1, 0, 0};
  CHECK(plan_serving(q).runs > 0);
}

}  // namespace
}  // namespace nvlsim
