// Searches by lower bounds find what exhaustive ones find, and evaluate less.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>

#include "nvlsim/search/search.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using test::shipped_scenario;

struct bounded_job {
  std::string name;
  std::vector<override_option> sets;
  std::int64_t gpus = 8;
  std::vector<search_restriction> only;
  std::string objective = {};
  std::vector<std::string> constraints = {};

  search_options options(bool exhaustive, int jobs = 1) const {
    search_options o;
    o.gpus = gpus, o.restrictions = only, o.objective = objective, o.constraints = constraints;
    o.exhaustive = exhaustive, o.jobs = jobs;
    return o;
  }
  search_result search(const search_options& o) const { return search_layouts(shipped_scenario(name, sets), o); }
};

const bounded_job dense_job{
    "training/llama3.1-405b-gb300-rack",
    {{"/model", "llama3-8b"}, {"/workload/global_batch_size", "64"}, {"/workload/seq_length", "4096"}},
    8,
    {{"cp", {"1", "2"}}, {"micro_batch_size", {"1", "2"}}, {"recompute", {"none", "full", "core_attn", "mlp"}}}};
const bounded_job routed{"training/kimi-k2-gb300-4608",
                         {{"/model", "deepseek-v2"}, {"/workload/global_batch_size", "128"}},
                         32,
                         {{"cp", {"1"}},
                          {"tp", {"1", "2"}},
                          {"etp", {"1"}},
                          {"ep", {"8", "32"}},
                          {"micro_batch_size", {"1"}},
                          {"vp", {"1", "2"}},
                          {"recompute", {"none", "full", "moe", "core_attn", "core_attn+moe"}}}};

void same(const std::vector<found_layout>& a, const std::vector<found_layout>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].parameters == b[i].parameters);
    CHECK(a[i].metrics == b[i].metrics);
  }
}
std::int64_t pruned_layouts_of(const search_result& r) {
  std::int64_t out = 0;
  for (const pruned_layouts& p : r.pruned) out += p.count;
  return out;
}
double best_of(const search_result& r) {
  for (std::size_t i = 0; i < r.metrics.size(); ++i)
    if (r.metrics[i] == r.objective) return r.best.front().metrics[i].value();
  return 0;
}

void as_exhaustion(const bounded_job& j, double share) {
  const search_result all = j.search(j.options(true)), some = j.search(j.options(false));
  REQUIRE(all.found > 100);
  same(all.best, some.best);
  same(all.front, some.front);
  CHECK(all.candidates == some.candidates);
  CHECK(some.candidates == some.found + pruned_layouts_of(some));
  CHECK(static_cast<double>(some.evaluated) < share * static_cast<double>(all.evaluated));
  CHECK(some.bound == best_of(some));
  CHECK(all.bound == some.bound);
}

TEST_CASE("Bounds leave the best layouts and the front of a dense_job model as they are") {
  as_exhaustion(dense_job, 0.5);
}

TEST_CASE("Bounds leave the best layouts and the front of a model with experts as they are") {
  as_exhaustion(routed, 0.5);
}

TEST_CASE("Bounds leave the best layouts and the front as they are where activations are offloaded") {
  bounded_job j = dense_job;
  j.only = {
      {"cp", {"1"}}, {"micro_batch_size", {"1", "2"}}, {"recompute", {"none"}}, {"offload_layers", {"0", "8"}}};
  as_exhaustion(j, 1);
}

TEST_CASE("Bounds hold for objectives where more is better, and under constraints") {
  bounded_job j = dense_job;
  j.objective = "mfu";
  as_exhaustion(j, 0.5);
  j.constraints = {"memory_peak_bytes<1e11", "pp<=4"};
  as_exhaustion(j, 0.7);
}

TEST_CASE("Bounds hold for metrics that the table says are in proportion to the step time") {
  bounded_job j = dense_job;
  j.sets.push_back({"/platform/price/per_gpu", "4 USD/h"});
  j.sets.push_back({"/workload/token_budget", "1e9"});
  j.only = {{"cp", {"1"}}, {"micro_batch_size", {"1", "2"}}, {"recompute", {"none", "full"}}};
  for (const char* objective : {"cost_to_train_usd", "tokens_per_s"}) {
    INFO(objective);
    j.objective = objective;
    as_exhaustion(j, 0.5);
  }
}

TEST_CASE("Threads do not change what is evaluated") {
  const search_result one = dense_job.search(dense_job.options(false)),
                      three = dense_job.search(dense_job.options(false, 3));
  same(one.best, three.best);
  same(one.front, three.front);
  CHECK(one.evaluated == three.evaluated);
  REQUIRE(one.pruned.size() == three.pruned.size());
  for (std::size_t i = 0; i < one.pruned.size(); ++i) {
    CHECK(one.pruned[i].count == three.pruned[i].count);
    CHECK(one.pruned[i].example == three.pruned[i].example);
  }
}

TEST_CASE("Layouts that are priced grow no faster than the GPUs") {
  bounded_job j = dense_job;
  j.sets[1].text = "512";
  const std::int64_t least = j.gpus, priced = j.search(j.options(false)).evaluated;
  REQUIRE(priced > 100);
  for (j.gpus = 2 * least; j.gpus <= 16 * least; j.gpus *= 2) {
    INFO(j.gpus << " GPUs");
    CHECK(j.search(j.options(false)).evaluated * least <= priced * j.gpus);
  }
}

TEST_CASE("A stopped search says what no layout can beat") {
  search_options o = routed.options(false);
  const double best = best_of(routed.search(o));
  std::int64_t visited = 0;
  o.report = [&](std::int64_t done, std::int64_t) { visited = done; };
  std::atomic<int> asked = 0;
  o.stop = [&] { return ++asked > 40; };
  const search_result stopped = routed.search(o);
  REQUIRE_FALSE(stopped.best.empty());
  CHECK(visited < stopped.candidates);
  REQUIRE(stopped.bound);
  CHECK(*stopped.bound <= best);
  CHECK(best_of(stopped) >= best);
  CHECK(best_of(stopped) < 1.1 * best);  // those that may be best are tried first
}

TEST_CASE("A search that is stopped before it has bounded all has a good answer, and the peak rate as its bound") {
  bounded_job j = dense_job;
  j.gpus = 256, j.sets[1].text = "512", j.only = {{"recompute", {"none", "full"}}};
  search_options o = j.options(false);
  const double best = best_of(j.search(o));
  for (const int looks : {1, 4}) {
    INFO(looks);
    std::atomic<int> asked = 0;
    o.stop = [&] { return ++asked > looks; };
    const search_result stopped = j.search(o);
    REQUIRE_FALSE(stopped.best.empty());
    CHECK(best_of(stopped) >= best);
    CHECK(best_of(stopped) < 2 * best);
    REQUIRE(stopped.bound);
    CHECK(*stopped.bound < best);
    CHECK(stopped.found + pruned_layouts_of(stopped) == stopped.candidates);
  }
}

TEST_CASE("The first few layouts of a search are near the best of all") {
  bounded_job many = dense_job;
  many.gpus = 256, many.sets[1].text = "512", many.only = {};
  for (const bounded_job& j : {many, routed}) {
    search_options o = j.options(false, 2);
    const search_result all = j.search(o);
    // The first count of layouts that were tried in order of their bounds comes when the first ones are done.
    std::atomic<bool> begun = false;
    o.report = [&](std::int64_t done, std::int64_t all_there) {
      begun = begun || done > 0 || all_there < all.candidates;
    };
    o.stop = [&] { return begun.load(); };
    const search_result first = j.search(o);
    CHECK(best_of(first) < 1.03 * best_of(all));
    CHECK(first.evaluated < 1500);
    CHECK(first.found + pruned_layouts_of(first) == first.candidates);
  }
}

TEST_CASE("A search that is told to stop tries no more layouts once it has found one") {
  search_options o = routed.options(false);
  o.stop = [] { return true; };
  const search_result stopped = routed.search(o);
  REQUIRE_FALSE(stopped.best.empty());
  CHECK(stopped.evaluated < 20);
}

TEST_CASE("A search that is told to stop ends after its first groups, even where nothing can run") {
  bounded_job j = routed;
  j.only = {{"cp", {"1"}}};
  j.constraints = {"tp>=1000"};
  search_options o = j.options(false);
  int asked = 0;
  o.stop = [&] { return ++asked > 0; };
  const search_result stopped = j.search(o);
  CHECK(stopped.best.empty());
  CHECK(asked > 0);
  CHECK(asked < 30);  // once a group of the first few, and at every later step
}

TEST_CASE("Objectives that bounds say nothing about are searched in full") {
  bounded_job j = dense_job;
  j.objective = "energy_per_step_J";
  j.only.push_back({"recompute", {"none"}});
  const search_result r = j.search(j.options(false)), all = j.search(j.options(true));
  CHECK(r.evaluated == all.evaluated);
  same(r.best, all.best);
}

}  // namespace
}  // namespace nvlsim
