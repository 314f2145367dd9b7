// Ceilings of serving layouts: no run is above them, and searches under them find what exhaustive ones find.
#include "search/offline_ceiling.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/search/search.hpp"
#include "support/shipped.hpp"
#include "unit/serving/random_server.hpp"

namespace nvlsim {
namespace {

/// Whether a run lasts as long and serves its users as slowly as one of the ceilings of its limits says.
bool is_under(const offline_ceiling& c, const serving_case& of, double run_s, double per_user) {
  const double least = least_batch(c, of), most = largest_batch(c, of);
  double ceiling = c.steps.front().per_user, batch = 0;
  for (const ceiling_step& s : c.steps) {
    if (batch >= most) break;
    if (s.batch >= least && run_s >= s.run_s && per_user <= ceiling) return true;
    ceiling = s.per_user, batch = s.batch;
  }
  return false;
}

TEST_CASE("No run of a load that waits from the start is above its ceiling") {
  const test::small_server server;
  int held = 0, narrow = 0;
  double closest = 0;  // the least time over that of the run
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    inference_workload w = test::random_workload(seed);
    w.load = seed % 5 == 0 ? load_kind::static_batch : load_kind::offline;
    w.sessions.reset();
    w.measured = {};
    w.requests = seed % 3 == 0 ? 30 : 600;
    if (seed % 7 == 0) w.attention_dp = 2, w.tp = 1;
    if (!has_ceiling(w) || !serving_problems(server.machine, server.software, server.net, w).empty()) continue;
    const serving_run run = server.run(w, {.traced = false});
    if (!run.reasons.empty()) continue;
    INFO("case " << seed);
    const serving_case c{server.machine, server.software, server.net, w};
    const offline_ceiling of = ceiling_of(c);
    const inference_metrics m = measure_inference(run, w);
    CHECK(of.output_tokens >= static_cast<double>(run.outcome.output_tokens));
    CHECK(is_under(of, c, run.outcome.end_s, m.output_tokens_per_s_per_user.value()));
    closest = std::max(closest, of.steps.back().run_s / run.outcome.end_s);
    narrow += least_batch(of, c) > largest_batch(of, c) / 2 ? 1 : 0;
    ++held;
  }
  CHECK(held > 30);
  CHECK(narrow > 3);
  CHECK(closest > 0.7);  // or they say nothing
}

struct served_job {
  std::string name;
  std::vector<override_option> sets;
  std::int64_t gpus = 8;
  std::vector<search_restriction> only = {};
  std::vector<std::string> front = {}, constraints = {};

  search_result search(bool exhaustive, int jobs = 1) const {
    search_options o;
    o.gpus = gpus, o.restrictions = only, o.pareto = front, o.constraints = constraints;
    o.exhaustive = exhaustive, o.jobs = jobs;
    return search_layouts(test::shipped_scenario(name, sets), o);
  }
};

const served_job dense_load{"inference/llama2-70b-offline-gb300-rack",
                            {{"/workload/load/requests", "1024"}},
                            8,
                            {{"max_batch_size", {"16", "64", "2048"}}, {"max_num_tokens", {"1024", "8192"}}}};
const served_job routed_load{"inference/gpt-oss-120b-gb300-rack",
                             {{"/workload/slo", "null"}, {"/workload/load", R"({"kind": "offline", "requests": 600,
                                  "input": {"mean": 500, "spread": 0.5}, "output": {"mean": 200, "spread": 0.5}})"}},
                             4,
                             {{"max_batch_size", {"16", "256"}}, {"max_num_tokens", {"2048", "8192"}}}};

void same_layouts(const std::vector<found_layout>& a, const std::vector<found_layout>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].parameters == b[i].parameters);
    CHECK(a[i].metrics == b[i].metrics);
  }
}

/// `share`: of what an exhaustive search evaluates.
void finds_what_exhaustion_finds(const served_job& j, double share) {
  const search_result all = j.search(true), some = j.search(false), threads = j.search(false, 3);
  REQUIRE(all.found > 20);
  same_layouts(all.best, some.best);
  same_layouts(all.front, some.front);
  std::int64_t left_out = 0;
  for (const pruned_layouts& p : some.pruned) left_out += p.count;
  CHECK(some.candidates == some.found + left_out);
  CHECK(static_cast<double>(some.evaluated) <= share * static_cast<double>(all.evaluated));
  CHECK(some.bound == all.bound);
  CHECK(threads.evaluated == some.evaluated);
  same_layouts(threads.front, some.front);
}

TEST_CASE("Ceilings leave the best layouts and the front of an offline load as they are") {
  finds_what_exhaustion_finds(dense_load, 1);
  finds_what_exhaustion_finds(routed_load, 1);
}

TEST_CASE("Where users' rates count too, large batches on many ranks are not run") {
  served_job j = dense_load;
  j.sets = {{"/workload/load/requests", "4096"}};
  j.only = {{"max_batch_size", {"64", "512", "2048"}}, {"max_num_tokens", {"4096", "16384"}}};
  finds_what_exhaustion_finds(j, 0.96);
}

TEST_CASE("Where throughput alone counts, most layouts are never run") {
  for (served_job j : {dense_load, routed_load}) {
    j.front = {"output_tokens_per_s_per_gpu"};
    finds_what_exhaustion_finds(j, 0.7);
    j.constraints = {"pp<=2", "kv_cache_used_fraction<0.9"};
    finds_what_exhaustion_finds(j, 1);
  }
}

TEST_CASE("Loads with arrivals have no ceilings, and are searched in full") {
  const served_job arriving{"inference/llama2-70b-server-gb200-vm",
                            {{"/workload/load/requests", "200"}},
                            2,
                            {{"max_num_tokens", {}}, {"max_batch_size", {"16", "64"}}}};
  CHECK(arriving.search(false).evaluated == arriving.search(true).evaluated);
}

}  // namespace
}  // namespace nvlsim
