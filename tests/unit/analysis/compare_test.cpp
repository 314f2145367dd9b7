#include "nvlsim/analysis/compare.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace nvlsim;
using namespace nvlsim::analysis;

result named(const char* name, value::object metrics) {
  result r;
  r.name = name;
  r.metrics = value{std::move(metrics)};
  return r;
}

gate rule(const char* text) {
  const std::array<std::string, 1> one = {text};
  return parse_gates(one).front();
}

std::string why_bad(const char* text) {
  diagnostics problems;
  parse_gate(text, problems);
  return problems.empty() ? "" : problems.sorted().front().text();
}

/// Whether one rule fails for metric x going from a to b.
bool fails(const char* text, value a, value b) {
  const result from = named("s", {{"x", std::move(a)}}), to = named("s", {{"x", std::move(b)}});
  const gate g = rule(text);
  return !compare(std::span(&from, 1), std::span(&to, 1), std::span(&g, 1)).passed();
}

TEST_CASE("Gate rules are read") {
  const gate g = rule("ttft_s.p99>+2%");
  CHECK(g.text == "ttft_s.p99>+2%");
  CHECK(g.metric == "ttft_s.p99");
  CHECK(g.op == relation::more);
  CHECK(g.threshold == 0.02);
  CHECK(g.relative);
  CHECK(rule(" mfu <= 0.4 ").threshold == 0.4);
  CHECK(rule("mfu<=0.4").op == relation::at_most);
  CHECK_FALSE(rule("mfu<=0.4").relative);
  CHECK(rule("x>=-1.5 %").threshold == -0.015);
  CHECK(rule("x>=-1.5%").op == relation::at_least);
  CHECK(rule("x<1e3").op == relation::less);
  CHECK(rule("x<1e3").threshold == 1000);
}

TEST_CASE("Gate rules that are wrong tell the column") {
  CHECK(why_bad("") == "--fail-if#: \"\", column 1: expected a metric, such as step_time_s, found the end");
  CHECK(why_bad(">2%") == "--fail-if#: \">2%\", column 1: expected a metric, such as step_time_s, found \">2%\"");
  CHECK(why_bad("mfu=2") == "--fail-if#: \"mfu=2\", column 4: expected one of > >= < <=, found \"=2\"");
  CHECK(why_bad("mfu") == "--fail-if#: \"mfu\", column 4: expected one of > >= < <=, found the end");
  CHECK(why_bad("mfu>") == "--fail-if#: \"mfu>\", column 5: expected a number, such as +2%, found the end");
  CHECK(why_bad("mfu>two") == "--fail-if#: \"mfu>two\", column 5: expected a number, such as +2%, found \"two\"");
  CHECK(why_bad("memory > 235 GB") ==
        "--fail-if#: \"memory > 235 GB\": unknown metric \"memory\"; did you mean \"memory_peak_bytes\"?");
  CHECK(why_bad("step_time<2 s") ==
        "--fail-if#: \"step_time<2 s\": unknown metric \"step_time\"; did you mean \"step_time_s\"?");
  CHECK(why_bad("mfu>2,5%") == "--fail-if#: \"mfu>2,5%\", column 6: expected the end of the rule, found \",5%\"");
  for (const char* bad : {"mfu>nan", "mfu>inf", "mfu>1e999", "mfu>+-2", "mfu>++2", "mfu>2%%", "mfu >> 2", "m-u>2",
                          "mfu>2 s", "mfu=>2", "mfu!=2"})
    CHECK_FALSE(why_bad(bad).empty());
  const std::array<std::string, 3> several = {"a>", "b>1", "c?"};
  try {
    parse_gates(several);
    FAIL("accepted");
  } catch (const input_error& e) {
    CHECK(e.problems().size() == 2);
  }
}

TEST_CASE("Gates judge the change or the value in B") {
  CHECK(fails("x>+2%", 100, 103));
  CHECK_FALSE(fails("x>+2%", 100, 102));  // just at the bound
  CHECK(fails("x>=+2%", 100, 102));
  CHECK_FALSE(fails("x>+2%", 100, 90));
  CHECK(fails("x<-1.5%", 100.0, 98.0));
  CHECK_FALSE(fails("x<-1.5%", 100.0, 99.0));
  CHECK(fails("x<=-1.5%", 200.0, 197.0));
  CHECK(fails("x>123", 1, 124));
  CHECK_FALSE(fails("x>123", 1000, 123));
  CHECK(fails("x<=123", 1000, 123));
  CHECK(fails("x>+2%", -100, -97));  // relative to the size of A, signed
  CHECK_FALSE(fails("x>+2%", 0, 0));
  CHECK(fails("x<5", 0, 0));
}

TEST_CASE("Gates fail on what cannot be judged") {
  CHECK(fails("x<-90%", 1, value{}));
  CHECK(fails("x<-90%", value{}, 1));
  CHECK(fails("x>1e9", 1, value{}));
  CHECK_FALSE(fails("x>1e9", value{}, 1));  // only B counts
  CHECK(fails("x>+1000%", 0, 1));
  CHECK(fails("y>+2%", 1, 1));
  CHECK(fails("x>+2%", 1, value::object{{"p50", 1}}));

  const std::array<result, 1> a = {named("s", {{"step_time_s", 1.0}})};
  std::array<result, 1> b = {named("s", {})};
  b[0].status = run_status::infeasible;
  b[0].reasons = {"too large", "too wide"};
  const std::array<gate, 2> gates = {rule("step_time_s>+2%"), rule("step_tim_s>+2%")};
  CHECK(compare(a, b, gates).gates[0].reason == "B is infeasible: too large; too wide");
  CHECK(compare(a, a, gates).gates[1].reason == "step_tim_s is not in B; did you mean step_time_s?");
  CHECK_FALSE(compare(a, a, gates).gates[0].failed);
}

TEST_CASE("Gates judge the kind of run that has the metric") {
  const std::array<result, 2> a = {named("train", {{"step_time_s", 1.0}}), named("serve", {{"ttft_s", 1.0}})};
  std::array<result, 2> b = a;
  const std::array<gate, 2> gates = {rule("step_time_s>+2%"), rule("ttft_s>+2%")};
  CHECK(compare(a, b, gates).passed());
  CHECK(compare(a, b, gates).gates.size() == 2);
  const std::array<gate, 1> slip = {rule("step_tim_s>+2%")};
  CHECK(compare(a, b, slip).gates.size() == 1);  // one error, not one a scenario
  CHECK_FALSE(compare(a, b, slip).passed());
  b[1].metrics = value::object{};
  b[1].status = run_status::infeasible;
  CHECK_FALSE(compare(a, b, gates).passed());
}

TEST_CASE("Comparison matches by name and lists what has no counterpart") {
  const std::array<result, 3> a = {named("one", {{"x", 10}, {"only_a", 1}}), named("two", {{"x", 1}}),
                                   named("gone", {{"x", 1}})};
  const std::array<result, 3> b = {named("new", {{"x", 1}}), named("two", {{"x", 3}}),
                                   named("one", {{"only_b", 2}, {"x", 5}, {"d", value::object{{"p50", 1}}}})};
  const comparison c = compare(a, b);
  CHECK(c.only_in_a == std::vector<std::string>{"gone"});
  CHECK(c.only_in_b == std::vector<std::string>{"new"});
  REQUIRE(c.rows.size() == 5);
  CHECK(c.rows[0].metric == "x");
  CHECK(c.rows[0].change == -0.5);
  CHECK(c.rows[1].metric == "only_a");
  CHECK_FALSE(c.rows[1].b);
  CHECK_FALSE(c.rows[1].change);
  CHECK(c.rows[2].metric == "only_b");
  CHECK(c.rows[3].metric == "d.p50");
  CHECK(c.rows[4].scenario == "two");
  CHECK(c.rows[4].change == 2.0);
  CHECK(c.passed());
}

TEST_CASE("Comparison of one with one ignores their names") {
  const result a = named("gb200", {{"x", 4}}), b = named("gb300", {{"x", 3}});
  const comparison c = compare(std::span(&a, 1), std::span(&b, 1));
  REQUIRE(c.rows.size() == 1);
  CHECK(c.rows[0].scenario == "gb200 -> gb300");
  CHECK(c.rows[0].change == -0.25);
  CHECK(c.only_in_a.empty());
}

TEST_CASE("Comparison of nothing fails its gates") {
  const std::array<result, 2> a = {named("one", {{"x", 1}}), named("two", {{"x", 1}})};
  const std::array<result, 2> b = {named("three", {{"x", 1}}), named("four", {{"x", 1}})};
  const gate g = rule("x>+2%");
  CHECK(compare(a, b).passed());
  const comparison c = compare(a, b, std::span(&g, 1));
  CHECK_FALSE(c.passed());
  CHECK(c.gates[0].reason == "A and B have no scenario in common");
  CHECK_FALSE(compare({}, {}, std::span(&g, 1)).passed());
}

TEST_CASE("Gates take the units of their metrics") {
  CHECK(rule("memory_peak_bytes>235 GB").threshold == 235e9);
  CHECK(rule("memory_peak_bytes > 1 GiB").threshold == 1073741824);
  CHECK(rule("time_to_train_s<=30 d").threshold == 30 * 86400);
  CHECK(rule("ttft_s.p99>500ms").threshold == 0.5);
  CHECK(rule("power_W_per_gpu>1.2 kW").threshold == 1200);
  CHECK(rule("tokens_per_s<5 tok/s").threshold == 5);
  CHECK(rule("model_tflops_per_gpu<2 PFLOP/s").threshold == 2000);
  CHECK(rule("energy_per_step_J>1 kWh").threshold == 3.6e6);
  CHECK(rule("cost_per_step_usd>3 USD").threshold == 3);
  CHECK(rule("busbw_Bps<800 GB/s").threshold == 800e9);
  CHECK_FALSE(rule("memory_peak_bytes>235 GB").relative);
  CHECK(why_bad("memory_peak_bytes>235 Gb/s") ==
        "--fail-if#: \"memory_peak_bytes>235 Gb/s\", column 23: expected a unit of memory_peak_bytes, such as GB "
        "or GiB, "
        "found \"Gb/s\"");
  for (const char* bad :
       {"mfu>30 s", "step_time_s>2 GB", "preemptions>2 s", "x>2 GB", "memory_peak_bytes>2 GB GB"})
    CHECK_FALSE(why_bad(bad).empty());
}

TEST_CASE("What vanishes fails a comparison with gates") {
  const value latency = value::object{{"p50", 1}, {"p99", 2}};
  const std::array<result, 2> a = {named("one", {{"x", 1}, {"mfu", 0.5}, {"ttft_s", latency}}),
                                   named("two", {{"x", 1}})};
  const std::array<result, 2> b = {named("one", {{"x", 1}, {"ttft_s", value{}}}), named("three", {{"x", 1}})};
  const std::array<gate, 1> gates = {rule("x>+2%")};
  CHECK(compare(a, b).passed());
  const auto failed = [&](std::vector<std::string> allowed) {
    std::vector<std::string> out;
    for (const gate_outcome& g : compare(a, b, gates, allowed).gates)
      if (g.failed) out.push_back(g.rule.text + ": " + g.on.scenario + ": " + g.reason);
    return out;
  };
  CHECK(failed({}) == std::vector<std::string>{"nothing vanishes: two: the scenario is in A and not in B",
                                               "nothing vanishes: one: mfu is 0.5 in A and B has none",
                                               "nothing vanishes: one: ttft_s.p50 is 1 s in A and B has none"});
  CHECK(failed({"two", "mfu"}).size() == 1);
  CHECK(failed({"two", "mfu", "ttft_s"}).empty());
  CHECK(failed({"*"}).empty());
  const std::array<result, 1> gb200 = {a[0]}, gb300 = {b[1]};  // other names: other machines, compared as they are
  CHECK(compare(gb200, gb300, gates).passed());
}

TEST_CASE("Remarks tell of stale baselines and other versions") {
  result before = named("one", {{"x", 1}}), after = before;
  before.inputs = value::object{{"scenario", value::object{{"workload", value::object{{"tp", 2}}}}}};
  after.inputs = value::object{{"scenario", value::object{{"workload", value::object{{"tp", 4}}}}}};
  const std::array<gate, 1> gates = {rule("x>+2%")}, strict = {rule("x>0")};
  const auto remarks = [&](std::span<const gate> g) { return compare({&before, 1}, {&after, 1}, g).remarks; };
  REQUIRE(remarks(gates).size() == 1);
  CHECK(remarks(gates)[0] ==
        "the baseline A is stale: 1 of 1 scenarios have other inputs in B; no gate failed, so renew it");
  CHECK(remarks({}).empty());
  CHECK(remarks(strict).empty());
  before.simulation = value::object{{"version", "1"}};
  after.simulation = value::object{{"version", "2"}};
  CHECK(remarks({})[0] == "A was made by nvlsim 1, B by 2");
}

TEST_CASE("Comparison refuses a name that occurs twice") {
  const std::array<result, 2> twice = {named("one", {}), named("one", {})};
  CHECK_THROWS_WITH(compare(twice, twice),
                    "A#: two results have the name \"one\"\nB#: two results have the name \"one\"");
}

}  // namespace
