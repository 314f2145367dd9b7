// Plans of post-training loops: the answer is among what was tried, and moves as it should.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "nvlsim/planner/draft.hpp"
#include "nvlsim/planner/plan_question.hpp"
#include "nvlsim/planner/post_training_plan.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/search/search.hpp"
#include "unit/planner/plan_fixture.hpp"

namespace nvlsim {
namespace {

post_training_question question(std::int64_t gpus, double response = 1000) {
  post_training_question q;
  q.base.data = test::shipped();
  diagnostics problems;
  std::vector<std::string> assumed;
  q.base.text = draft_post_training({"llama3.1-8b", "gb300-nvl72", "", 64, 8, 256, response, 4096}, q.base.data,
                                    assumed, problems);
  REQUIRE(problems.empty());
  q.gpus = gpus;
  return q;
}

TEST_CASE("A plan of a loop uses the GPUs, and its answer is what run gives") {
  post_training_question q = question(16);
  q.more = 8;
  const post_training_plan p = plan_post_training(q);
  REQUIRE(p.best);
  bool split = false, turns = false;
  for (const planned_loop& l : p.others) {
    CHECK(l.step_time_s >= 0.99 * p.best->step_time_s);
    CHECK((l.split ? l.rollout_gpus + l.train_gpus : l.rollout_gpus) == 16);
    (l.split ? split : turns) = true;
  }
  CHECK(split);
  CHECK(turns);
  const scenario s = read_base({p.best->text, {}, q.base.data});
  const result r = run_scenario(s, {.explained = false, .simulate = false}).outcome;
  CHECK(*r.metrics.find("step_time_s")->number() == p.best->step_time_s);
  REQUIRE_FALSE(p.added.empty());
  for (const added_gpus& a : p.added) {
    INFO(a.where << " " << a.why);
    if (a.loop) CHECK(a.loop->step_time_s < 1.02 * p.best->step_time_s);
  }
}

TEST_CASE("Engines whose cache overflows get a smaller batch") {
  post_training_question q = question(8);
  q.stale = {"1"};
  // Room for a few hundred responses, where the draft lets 1,024 run at once.
  const std::string engine = "/workload/rollout/workload/engine/";
  q.base.text =
      with_members(q.base.text, {{engine + "kv_fraction", value{0.18}}, {"/workload/prompts", value{512}}});
  const post_training_plan p = plan_post_training(q);
  REQUIRE(p.best);
  bool any = false;
  for (const planned_loop& l : p.others) {
    INFO(l.layout);
    const bool lowered = l.layout.find(" batch ") != std::string::npos;
    const value* batch = l.text.at_pointer(engine + "max_batch_size");
    CHECK(lowered == (batch && batch->integer() && *batch->integer() < 1024));
    any = any || lowered;
  }
  CHECK(any);
}

TEST_CASE("A search of loops takes samples of a prompt, and keeps the number of updates") {
  const post_training_question q = question(16);
  search_options o;
  o.gpus = 16;
  o.objective = "samples_per_s";
  o.restrictions = {{"samples_per_prompt", {"4", "8", "16"}}, {"tp", {"1"}}, {"pp", {"1"}}};
  o.top = 100;
  const search_result r = search_layouts(read_base(q.base), o);
  REQUIRE(r.best.size() >= 3);
  const auto column = [&](const char* name) {
    const auto at = std::find(r.parameters.begin(), r.parameters.end(), name);
    REQUIRE(at != r.parameters.end());
    return static_cast<std::size_t>(at - r.parameters.begin());
  };
  std::set<std::int64_t> seen;
  const std::size_t samples = column("samples_per_prompt"), mini = column("mini_batch_size");
  const auto own = read_base(q.base);
  const auto& loop = *std::get<post_training_case>(own.workload).loop;
  for (const found_layout& l : r.best) {
    const std::int64_t n = *l.parameters[samples].integer();
    seen.insert(n);
    CHECK(*l.parameters[mini].integer() * loop.loop.samples == loop.mini_batch * n);
  }
  CHECK(seen == std::set<std::int64_t>{4, 8, 16});
}

TEST_CASE("A search of loops says why samples and mini-batches do not go together") {
  post_training_question q = question(16);
  q.base.text = with_members(q.base.text, {{"/workload/pools", value{"split"}},
                                           {"/workload/staleness", value{0.5}},
                                           {"/workload/streaming", value{true}}});
  const auto reasons = [&](std::vector<search_restriction> only) {
    search_options o;
    o.gpus = 16;
    o.restrictions = std::move(only);
    o.restrictions.push_back({"tp", {"1"}});
    std::string all;
    const search_result r = search_layouts(read_base(q.base), o);
    CHECK(r.best.empty());
    for (const pruned_layouts& x : r.pruned) all += x.reason + "\n";
    return all;
  };
  CHECK(reasons({{"mini_batch_size", {"100"}}}).find("samples of a prompt, and at most") != std::string::npos);
  CHECK(reasons({{"mini_batch_size", {"24"}}}).find("mini-batches that divide") != std::string::npos);
  CHECK(reasons({{"samples_per_prompt", {"1000000"}}}).find("can be simulated") != std::string::npos);
}

TEST_CASE("A plan of a loop without a mini-batch, or with the engine's own word for its batch, has an answer") {
  post_training_question q = question(8);
  q.stale = {"1"};
  const std::string engine = "/workload/rollout/workload/engine/";
  q.base.text = with_members(q.base.text, {{"/workload/mini_batch_size", value{}},
                                           {engine + "kv_fraction", value{0.18}},
                                           {"/workload/prompts", value{512}},
                                           {engine + "max_batch_size", value{}},
                                           {engine + "max_num_seqs", value{1024}}});
  const post_training_plan p = plan_post_training(q);
  REQUIRE(p.best);
  CHECK(std::any_of(p.others.begin(), p.others.end(),
                    [](const planned_loop& l) { return l.layout.find(" batch ") != std::string::npos; }));
}

TEST_CASE("A plan takes overrides of the stack of one part") {
  post_training_question q = question(8);
  const double before = plan_post_training(q).best->step_time_s;
  diagnostics problems;
  apply_to(q.base, {override_option{"/workload/training/stack/training/time_factor", "3"}}, problems);
  REQUIRE(problems.empty());
  const post_training_plan after = plan_post_training(q);
  CHECK(after.best->step_time_s > 1.1 * before);
  const scenario s = read_base({after.best->text, q.base.overrides, q.base.data});
  const result r = run_scenario(s, {.explained = false, .simulate = false}).outcome;
  CHECK(*r.metrics.find("step_time_s")->number() == after.best->step_time_s);
}

TEST_CASE("Slower engines take GPUs from training") {
  const auto rollouts = [](double factor) {
    post_training_question q = question(16);
    q.base.text = with_members(q.base.text, {{"/workload/costs", value::object{{"rollout_factor", factor}}}});
    q.stale = {"1"};
    double best = 1e30;
    std::int64_t gpus = 0;
    for (const planned_loop& l : plan_post_training(q).others)
      if (l.split && l.step_time_s < best) best = l.step_time_s, gpus = l.rollout_gpus;
    return gpus;
  };
  CHECK(rollouts(8) > rollouts(0.5));
}

TEST_CASE("Questions that cannot be answered say why") {
  post_training_question q = question(1);
  CHECK_THROWS_AS(plan_post_training(q), input_error);
  q.gpus = 2;
  q.base.text = with_members(q.base.text, {{"/model", "llama3.1-405b"}});
  const post_training_plan large = plan_post_training(q);
  CHECK_FALSE(large.best);
  CHECK_FALSE(large.pruned.empty());
  diagnostics problems;
  std::vector<std::string> assumed;
  draft_post_training({"llama3.1-8b", "gb300-nvl72", "", 0, 0, 0, 0, 0}, test::shipped(), assumed, problems);
  CHECK_FALSE(problems.empty());
}

}  // namespace
}  // namespace nvlsim
