// Steps priced on a structure that others made are the steps that plans give.
#include "workload/step_cache.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "nvlsim/diagnostics.hpp"
#include "training_fixture.hpp"

namespace nvlsim {
namespace {

using test::shipped;
using test::shipped_job;

void same_as_planned(step_cache& cache, const shipped_job& j) {
  REQUIRE(training_problems(j.machine, j.net, j.work).empty());
  const plan p = j.planned();
  const step_cost cost = cache.cost_of(j.machine, j.software, j.net, j.work);
  CHECK(cost.makespan.base() == makespan_of(p).base());  // to the last digit
  REQUIRE(cost.templates.size() == p.templates.size());
  for (std::size_t t = 0; t < p.templates.size(); ++t) {
    CHECK(cost.templates[t].name == p.templates[t].name);
    CHECK(cost.templates[t].duration.base() == p.templates[t].duration.base());
    CHECK(cost.templates[t].power.base() == p.templates[t].power.base());
  }
  REQUIRE(cost.structure->runs.size() == p.classes.size());
  for (std::size_t c = 0; c < p.classes.size(); ++c) {
    std::vector<std::int64_t> runs(p.templates.size());
    for (const operation& o : p.classes[c].streams.front().operations) ++runs[static_cast<std::size_t>(o.work)];
    CHECK(cost.structure->runs[c] == runs);
  }
}

TEST_CASE("Layouts with one structure share it and keep their own costs") {
  step_cache cache;
  shipped_job j = shipped("gb300-nvl72", "llama3-8b");
  std::shared_ptr<const step_structure> first;
  for (const auto& [tp, cp, micro] : std::vector<std::array<std::int64_t, 3>>{{4, 1, 1}, {2, 2, 1}, {8, 1, 1}, {4, 1, 1}}) {
    j.work.par.tp = tp, j.work.par.cp = cp, j.work.micro_batch_size = micro;
    for (const bool again : {false, true}) {
      j.work.recompute.full = again;
      same_as_planned(cache, j);
      const auto structure = cache.cost_of(j.machine, j.software, j.net, j.work).structure;
      if (tp == 4 && !first) first = structure;
      if (tp == 4) CHECK(structure == first);
    }
  }
}

TEST_CASE("Steps of every schedule, sharding and model are priced as planned, in any order") {
  for (const char* model : {"llama3-8b", "deepseek-v3"}) {
    step_cache cache;
    shipped_job j = shipped("gb300-nvl72", model);
    if (j.net.mtp_layers > 0) j.work.par.ep = 8, j.work.par.etp = 1;
    using enum pipeline_schedule;
    for (const auto sharding : {data_parallel_sharding::replicated, data_parallel_sharding::distributed_optimizer,
                                data_parallel_sharding::fsdp})
      for (const auto& [schedule, vp] : std::vector<std::pair<pipeline_schedule, std::int64_t>>{
               {one_f_one_b, 1}, {interleaved, 2}, {zb_h1, 1}, {zb_v, 2}, {dualpipe, 1}, {one_f_one_b, 1}})
        for (const std::int64_t dp : {1, 4}) {
          j.work.sharding = sharding, j.work.schedule = schedule, j.work.par.vp = vp, j.work.par.dp = dp;
          j.work.global_batch_size = 16 * dp;
          if (j.work.par.ep > j.work.par.tp * dp) continue;
          INFO(model << " schedule " << static_cast<int>(schedule) << " dp " << dp);
          same_as_planned(cache, j);
        }
  }
}

TEST_CASE("Stages of other sizes and sends across racks are other structures") {
  step_cache cache;
  shipped_job j = shipped("gb300-nvl72", "llama3-8b");
  const auto structure = [&] { return cache.cost_of(j.machine, j.software, j.net, j.work).structure; };
  const auto usual = structure();
  j.work.split.last = 5;
  j.work.split.first = 9;
  same_as_planned(cache, j);
  CHECK(structure() != usual);
  j.work.split = {};
  j.work.place.gpus_per_domain = 16;  // a stage a rack
  same_as_planned(cache, j);
  CHECK(structure() != usual);
}

TEST_CASE("An order of operations on a cycle is reported") {
  plan p;
  p.add_template({"work", {}, {}, {}});
  const event_id a = p.new_event(), b = p.new_event();
  rank_class c;
  c.streams = {{stream_kind::compute, {}}, {stream_kind::pipeline, {}}};
  p.append(c.streams[0], 0, {a}, b);
  p.append(c.streams[1], 0, {b}, a);
  p.classes.push_back(c);
  CHECK_THROWS_AS(evaluation_order(p), internal_error);
}

}  // namespace
}  // namespace nvlsim
