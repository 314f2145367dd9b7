// What a search tries, leaves out and says, against brute force and against runs.
#include "nvlsim/search/search.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <tuple>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/rows.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/scenario/jobs.hpp"
#include "search/search_space.hpp"
#include "support/shipped.hpp"
#include "support/steps.hpp"

namespace nvlsim {
namespace {

using Catch::Matchers::Contains;

using test::shipped_scenario;

struct job {
  std::string name;
  std::vector<override_option> sets;

  search_result search(std::int64_t gpus, std::vector<search_restriction> only,
                       std::vector<std::string> constraints = {}, std::size_t top = 100000, int jobs = 1,
                       std::vector<std::string> pareto = {}) const {
    search_options o;
    o.gpus = gpus, o.top = top, o.jobs = jobs;
    o.restrictions = std::move(only), o.constraints = std::move(constraints), o.pareto = std::move(pareto);
    return search_layouts(shipped_scenario(name, sets), o);
  }
  /// Metrics of a run of a layout that was found.
  std::vector<output::flat_metric> run(const search_result& r, const found_layout& l) const {
    std::vector<override_option> all = sets;
    for (const auto& [pointer, v] : r.everywhere) all.push_back({pointer, to_json(v, 0)});
    for (std::size_t i = 0; i < l.parameters.size(); ++i)
      all.push_back({r.pointers[i], to_json(l.parameters[i], 0)});
    const result out = run_scenario(shipped_scenario(name, all), {.explained = false, .simulate = false}).outcome;
    CHECK(out.status != run_status::infeasible);
    return output::flat_metrics(out.metrics);
  }
  void agrees_with_run(const search_result& r, const found_layout& l) const {
    const auto metrics = run(r, l);
    for (std::size_t i = 0; i < r.metrics.size(); ++i) {
      INFO(r.metrics[i]);
      const auto it =
          std::find_if(metrics.begin(), metrics.end(), [&](const auto& m) { return m.name == r.metrics[i]; });
      double x = 0;
      const bool known = it != metrics.end() && output::as_double(it->content, x);
      REQUIRE(known == l.metrics[i].has_value());
      if (known) CHECK(*l.metrics[i] == Approx(x).epsilon(1e-9));
    }
  }
};

const job dense{
    "training/llama3.1-405b-gb300-rack",
    {{"/model", "llama3-8b"}, {"/workload/global_batch_size", "64"}, {"/workload/seq_length", "4096"}}};

std::size_t place(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}
double number(const search_result& r, const found_layout& l, const std::string& metric) {
  return l.metrics[place(r.metrics, metric)].value();
}
const value& parameter(const search_result& r, const found_layout& l, const std::string& name) {
  return l.parameters[place(r.parameters, name)];
}
std::int64_t left_out(const search_result& r) {
  std::int64_t out = 0;
  for (const pruned_layouts& p : r.pruned) out += p.count;
  return out;
}

TEST_CASE("A search of a workload without layouts names that kind of workload") {
  for (const bool jobs : {true, false}) {
    scenario s;
    if (jobs) s.workload.emplace<shared_workload>();
    else s.workload.emplace<collective_workload>();
    try {
      search_layouts(s, {});
      FAIL("searched");
    } catch (const input_error& e) {
      CHECK(e.problems().front().what.find(jobs ? "several jobs" : "a collective") == 0);
    }
  }
}

TEST_CASE("Every layout is found or left out for a reason, and none twice") {
  const search_result r =
      dense.search(16, {{"recompute", {"none", "full"}}, {"offload_layers", {}}, {"cp", {"1"}}});
  CHECK(r.candidates == r.found + left_out(r));
  CHECK(r.found == static_cast<std::int64_t>(r.best.size()));
  std::set<std::string> seen;
  for (const found_layout& l : r.best) {
    value::array all(l.parameters.begin(), l.parameters.end());
    CHECK(seen.insert(to_json(value(std::move(all)), 0)).second);
    std::int64_t gpus = 1;
    for (const char* p : {"tp", "pp", "cp", "dp"}) gpus *= *parameter(r, l, p).integer();
    CHECK(gpus == 16);
  }
}

TEST_CASE("A format without rates on the GPU leaves every layout out, with that reason") {
  const job mx{"training/qwen3-235b-a22b-gb300-256",
               {{"/platform/use", "nd-h100-v5"}, {"/platform/racks", "4"}, {"/workload/precision", "mxfp8"}}};
  const search_result r = mx.search(32, {{"recompute", {"none"}}, {"offload_layers", {}}});
  CHECK(r.best.empty());
  REQUIRE(r.pruned.size() == 1);
  CHECK(r.pruned.front().reason == "the stack has no mxfp8 GEMM rate for h100 and cannot run this step");
}

TEST_CASE("The best are in order and the front is what nothing beats") {
  const search_result r = dense.search(8, {{"recompute", {"none", "full"}}, {"offload_layers", {}}});
  REQUIRE(r.best.size() > 100);
  const auto at = [&](const found_layout& l) {
    return std::pair(number(r, l, "step_time_s"), number(r, l, "memory_peak_bytes"));
  };
  CHECK(std::is_sorted(r.best.begin(), r.best.end(),
                       [&](const auto& a, const auto& b) { return at(a).first < at(b).first; }));
  std::set<std::pair<double, double>> all, front, given;
  for (const found_layout& l : r.best) all.insert(at(l));
  for (const auto& p : all)
    if (std::none_of(all.begin(), all.end(),
                     [&](const auto& q) { return q != p && q.first <= p.first && q.second <= p.second; }))
      front.insert(p);
  for (const found_layout& l : r.front) given.insert(at(l));
  CHECK(given == front);
  CHECK(r.front.size() == front.size());

  const search_result few = dense.search(8, {{"recompute", {"none", "full"}}, {"offload_layers", {}}}, {}, 7);
  REQUIRE(few.best.size() == 7);
  for (std::size_t i = 0; i < few.best.size(); ++i) CHECK(few.best[i].metrics == r.best[i].metrics);
}

TEST_CASE("Threads change nothing") {
  const std::vector<search_restriction> only = {{"recompute", {"none", "full"}}, {"offload_layers", {}}};
  const search_result one = dense.search(8, only), three = dense.search(8, only, {}, 100000, 3);
  REQUIRE(one.best.size() == three.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) CHECK(one.best[i].metrics == three.best[i].metrics);
  CHECK(one.front.size() == three.front.size());
  REQUIRE(one.pruned.size() == three.pruned.size());
  for (std::size_t i = 0; i < one.pruned.size(); ++i) {
    CHECK(one.pruned[i].count == three.pruned[i].count);
    CHECK(one.pruned[i].example == three.pruned[i].example);
  }
}

TEST_CASE("What a search says of a layout a run of it says, whatever the schedule and the sizes of stages") {
  const std::vector<search_restriction> only = {{"recompute", {"none", "core_attn"}},
                                                {"offload_layers", {}},
                                                {"cp", {"1"}},
                                                {"micro_batch_size", {"1", "2"}}};
  const search_result r = dense.search(16, only);
  std::set<std::tuple<std::string, std::int64_t, std::int64_t, std::string>> tried;
  for (const found_layout& l : r.best) {  // the best of each kind
    const auto integer = [&](const char* name) { return *parameter(r, l, name).integer(); };
    if (!tried
             .insert({*parameter(r, l, "schedule").string(), integer("vp"),
                      integer("num_layers_in_last_pipeline_stage") > 0,
                      *parameter(r, l, "data_parallel_sharding").string()})
             .second)
      continue;
    dense.agrees_with_run(r, l);
  }
  std::set<std::string> schedules;
  bool uneven = false;
  for (const auto& [schedule, vp, last, sharding] : tried) schedules.insert(schedule), uneven |= last > 0;
  CHECK(schedules == std::set<std::string>{"1f1b", "interleaved", "zb_h1", "zb_v", "dualpipe"});
  CHECK(uneven);
}

TEST_CASE("What takes longer is the same too: bubbles and exposed communication") {
  const search_result r = dense.search(8, {{"recompute", {"none"}}, {"offload_layers", {}}, {"cp", {"1"}}}, {}, 3,
                                       1, {"bubble_fraction"});
  REQUIRE_FALSE(r.front.empty());
  for (const found_layout& l : r.best) dense.agrees_with_run(r, l);
  for (const found_layout& l : r.front) CHECK(number(r, l, "bubble_fraction") >= 0);
}

TEST_CASE("Reasons for leaving out layouts name the rule") {
  const search_result r = dense.search(16, {{"recompute", {"none"}}, {"offload_layers", {}}, {"cp", {"1"}}});
  std::string all;
  for (const pruned_layouts& p : r.pruned) all += p.reason + '\n';
  CHECK_THAT(all, Contains("dualpipe needs an even number of micro-batches"));
  const search_result small = job{dense.name, {}}.search(1, {{"recompute", {}}, {"offload_layers", {}}});
  CHECK(small.best.empty());
  CHECK(small.candidates == left_out(small));
  REQUIRE_FALSE(small.pruned.empty());
  CHECK(std::any_of(small.pruned.begin(), small.pruned.end(), [](const pruned_layouts& p) {
    return p.reason == "does not fit in GPU memory" && !p.example.empty();
  }));
}

TEST_CASE("Constraints hold and are counted") {
  const search_result r =
      dense.search(8, {{"recompute", {"none"}}, {"offload_layers", {}}}, {"tp<=2", "memory_peak_bytes<1e11"});
  REQUIRE_FALSE(r.best.empty());
  for (const found_layout& l : r.best) {
    CHECK(*parameter(r, l, "tp").integer() <= 2);
    CHECK(number(r, l, "memory_peak_bytes") < 1e11);
  }
  CHECK(r.candidates == r.found + left_out(r));
  CHECK(std::any_of(r.pruned.begin(), r.pruned.end(),
                    [](const pruned_layouts& p) { return p.reason == "constraint tp<=2"; }));
  CHECK_THROWS_WITH(dense.search(8, {{"tq", {}}}), Contains("unknown parameter \"tq\""));
  // Megatron-LM's names, and an engine's, are names too.
  const search_result named = dense.search(8, {{"recompute", {"none"}}, {"cpu_offloading_num_layers", {}}},
                                           {"tensor_model_parallel_size<=2", "memory_peak_bytes<1e11"});
  CHECK(named.found == r.found);
  CHECK(usual_parameter("max_num_seqs", {"tp", "max_batch_size"}) == "max_batch_size");
  CHECK(usual_parameter("data_parallel_size", {"tp", "replicas"}) == "replicas");
  CHECK(usual_parameter("data_parallel_size", {"tp", "dp"}) == "dp");
  CHECK(usual_parameter("prefill_tensor_parallel_size", {"tp", "prefill_tp"}) == "prefill_tp");
  CHECK(usual_parameter("tq", {"tp"}) == "tq");
  CHECK_THROWS_WITH(dense.search(8, {}, {"mfu>3%"}), Contains("without a per cent sign"));
}

TEST_CASE("A served model is searched by what a run of it gives") {
  const job served{"inference/llama2-70b-offline-gb300-rack", {{"/workload/load/requests", "512"}}};
  const search_result r = served.search(8, {{"max_num_tokens", {}}, {"max_batch_size", {"64", "2048"}}});
  CHECK(r.candidates == r.found + left_out(r));
  REQUIRE(r.best.size() > 3);
  for (const std::size_t i : {std::size_t{0}, r.best.size() / 2, r.best.size() - 1})
    served.agrees_with_run(r, r.best[i]);
}

TEST_CASE("Layouts of a served model take long, and progress is told after each") {
  search_options o;
  o.gpus = 4;
  std::vector<std::int64_t> told;
  std::int64_t of = 0;
  o.report = [&](std::int64_t done, std::int64_t all) { told.push_back(done), of = all; };
  const search_result r = search_layouts(
      shipped_scenario("inference/llama2-70b-offline-gb300-rack", {{"/workload/load/requests", "64"}}), o);
  REQUIRE(r.candidates > 100);
  CHECK(told.size() == static_cast<std::size_t>(r.candidates));
  CHECK(told.back() == of);
  CHECK(of <= r.candidates);
  CHECK(of >= r.evaluated);  // refusals are no work
}

TEST_CASE("A search of a server simulates in proportion to the layouts that differ, and each once") {
  const job served{"inference/llama2-70b-offline-gb300-rack", {{"/workload/load/requests", "96"}}};
  CHECK(test::grows_in_proportion(4, [&](std::size_t n) {
    search_restriction batches{"max_batch_size", {}};
    for (std::size_t b = 1; b <= n; ++b) batches.values.push_back(std::to_string(b));
    return [&served, batches, n] {
      const search_result r = served.search(1, {batches, {"max_num_tokens", {"4096"}}});
      CHECK(r.evaluated == static_cast<std::int64_t>(n));
      CHECK(r.found == r.evaluated);
    };
  }));
  // Limits that no run reaches leave runs as they are: the first stands for all.
  const auto wide = [&](const std::vector<std::string>& batches) {
    return test::steps_of([&] { served.search(1, {{"max_batch_size", batches}, {"max_num_tokens", {"4096"}}}); });
  };
  const auto one = static_cast<double>(wide({"900"}));
  CHECK(static_cast<double>(wide({"200", "300", "400", "500", "600", "700", "800", "900"})) < 1.1 * one);
}

TEST_CASE("A search that is stopped has what it found until then, and counts the rest") {
  search_options o;
  o.gpus = 4;
  o.jobs = 2;
  std::atomic<int> asked = 0;
  o.stop = [&] { return ++asked > 40; };
  const search_result r = search_layouts(
      shipped_scenario("inference/llama2-70b-offline-gb300-rack", {{"/workload/load/requests", "64"}}), o);
  CHECK(r.found > 0);
  CHECK(r.evaluated <= 42);
  CHECK(r.candidates == r.found + left_out(r));
  CHECK(std::any_of(r.pruned.begin(), r.pruned.end(),
                    [](const pruned_layouts& p) { return p.reason == "interrupted: not tried"; }));
}

TEST_CASE("Pools of prefill and decode workers share the GPUs out in every way") {
  const job pools{"inference/deepseek-r1-gb300-prefill-decode",
                  {{"/workload/load/requests", "96"}, {"/workload/load/concurrency", "32"}}};
  const search_result r =
      pools.search(24, {{"tp", {"1"}}, {"prefill_tp", {"1"}}, {"ep", {"8", "16"}}, {"prefill_ep", {"8"}}});
  CHECK(r.candidates == r.found + left_out(r));
  std::set<std::pair<std::int64_t, std::int64_t>> splits;
  for (const found_layout& l : r.best) {
    const auto gpus = [&](const std::string& of) {
      std::int64_t n = 1;
      for (const char* p : {"tp", "pp", "attention_dp", "replicas"}) n *= *parameter(r, l, of + p).integer();
      return n;
    };
    CHECK(gpus("") + gpus("prefill_") == 24);
    splits.insert({gpus("prefill_"), gpus("")});
  }
  CHECK(splits == std::set<std::pair<std::int64_t, std::int64_t>>{{8, 16}, {16, 8}});
  REQUIRE_FALSE(r.best.empty());
  pools.agrees_with_run(r, r.best.front());
  pools.agrees_with_run(r, r.best.back());
}

TEST_CASE("Loads on a clock are searched by what a run of them gives") {
  const job server{"inference/llama2-70b-server-gb200-vm", {{"/workload/load/requests", "300"}}};
  const search_result r = server.search(4, {{"max_num_tokens", {}}, {"max_batch_size", {}}, {"pp", {"1"}}});
  REQUIRE_FALSE(r.best.empty());
  server.agrees_with_run(r, r.best.front());
}

}  // namespace
}  // namespace nvlsim
