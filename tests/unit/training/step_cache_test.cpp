// Steps priced on a structure that others made are the steps that plans give.
#include "nvlsim/training/step_cache.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using test::shipped;
using test::shipped_job;

void same_as_planned(step_cache& cache, const shipped_job& j) {
  REQUIRE(training_problems(j.machine, j.net, j.workload).empty());
  const plan p = j.planned();
  const step_cost cost = cache.cost_of(j.machine, j.software, j.net, j.workload);
  CHECK(cost.makespan.base() == makespan_of(p).base());  // to the last digit
  REQUIRE(cost.stages.size() == p.classes.size());
  for (std::size_t c = 0; c < p.classes.size(); ++c) {
    double busy = 0, energy = 0;
    for (const operation& o : p.classes[c].streams.front().operations) {
      const operation_template& t = p.templates[static_cast<std::size_t>(o.template_index)];
      busy += t.duration.base();
      energy += (t.power * t.duration).base();
    }
    CHECK(cost.stages[c].busy.base() == Approx(busy).epsilon(1e-12));
    CHECK(cost.stages[c].energy.base() == Approx(energy).epsilon(1e-12));
  }
}

TEST_CASE("Layouts of one pipeline keep their own costs, in any order") {
  step_cache cache;
  shipped_job j = shipped("gb300-nvl72", "llama3-8b");
  for (const auto& [tp, cp, micro] :
       std::vector<std::array<std::int64_t, 3>>{{4, 1, 1}, {2, 2, 1}, {8, 1, 2}, {4, 1, 1}}) {
    j.workload.par.tp = tp, j.workload.par.cp = cp, j.workload.micro_batch_size = micro;
    for (const bool again : {false, true}) {
      j.workload.recompute.full = again;
      same_as_planned(cache, j);
    }
  }
}

TEST_CASE("Steps of every schedule, sharding and model are priced as planned") {
  for (const char* model : {"llama3-8b", "deepseek-v3"}) {
    step_cache cache;
    shipped_job j = shipped("gb300-nvl72", model);
    j.workload.par.etp = 1;
    if (j.net.layers.back().routed()) j.workload.par.ep = 8;
    else j.workload.par.etp = j.workload.par.tp;
    using enum pipeline_schedule;
    std::int64_t steps = 0;
    for (const auto sharding : {data_parallel_sharding::replicated, data_parallel_sharding::distributed_optimizer,
                                data_parallel_sharding::fsdp})
      for (const auto& [schedule, vp] : std::vector<std::pair<pipeline_schedule, std::int64_t>>{
               {one_f_one_b, 1}, {interleaved, 2}, {zb_h1, 1}, {zb_v, 2}, {dualpipe, 1}, {one_f_one_b, 1}})
        for (const std::int64_t dp : {1, 4}) {
          j.workload.sharding = sharding, j.workload.schedule = schedule, j.workload.par.vp = vp,
          j.workload.par.dp = dp;
          j.workload.global_batch_size = 16 * dp;
          if (j.workload.par.ep > j.workload.par.tp * dp ||
              !training_problems(j.machine, j.net, j.workload).empty())
            continue;
          INFO(model << " schedule " << static_cast<int>(schedule) << " dp " << dp);
          same_as_planned(cache, j);
          ++steps;
        }
    CHECK(steps >= 15);
  }
}

TEST_CASE("Stages of other sizes and sends across racks are priced on the same structure") {
  step_cache cache;
  shipped_job j = shipped("gb300-nvl72", "llama3-8b");
  same_as_planned(cache, j);
  j.workload.split.first = 9, j.workload.split.last = 7;
  same_as_planned(cache, j);
  j.workload.split = {};
  j.workload.place.gpus_per_domain = 16;  // a stage a rack
  same_as_planned(cache, j);
  j.workload.task = training_task::lora;
  same_as_planned(cache, j);
}

TEST_CASE("Layouts that offload layers are priced as planned, whatever schedule came before") {
  step_cache cache;
  shipped_job j = shipped("gb300-nvl72", "llama3-8b");
  j.workload.par.tp = 1, j.workload.par.pp = 2;
  using enum pipeline_schedule;
  for (const auto& [schedule, vp] :
       std::vector<std::pair<pipeline_schedule, std::int64_t>>{{dualpipe, 1}, {interleaved, 2}, {one_f_one_b, 1}})
    for (const std::int64_t offloaded : {0, 8, 16}) {
      j.workload.schedule = schedule, j.workload.par.vp = vp, j.workload.offload_layers = offloaded;
      same_as_planned(cache, j);
    }
}

TEST_CASE("Tokens for experts have the price of their schedule's recipe, whatever inputs are kept in") {
  shipped_job j = shipped("gb300-nvl72", "deepseek-v3");
  j.workload.par.tp = 1, j.workload.par.etp = 1, j.workload.par.pp = 4, j.workload.par.dp = 8,
  j.workload.par.ep = 8;
  j.workload.global_batch_size = 128;
  j.workload.gemm_precision = precision::fp8_block;
  using enum pipeline_schedule;
  for (const bool kept : {false, true}) {
    step_cache cache;
    j.workload.fp8_activation_inputs = kept;
    for (const pipeline_schedule schedule : {dualpipe, one_f_one_b}) {
      j.workload.schedule = schedule;
      same_as_planned(cache, j);
    }
  }
}

TEST_CASE("Operations that wait for each other are reported") {
  plan p;
  p.add_template({"work", {}, {}, {}});
  const event_id a = p.new_event(), b = p.new_event();
  rank_class c;
  c.streams = {{stream_kind::compute, {}}, {stream_kind::pipeline, {}}};
  p.append(c.streams[0], 0, {a}, b);
  p.append(c.streams[1], 0, {b}, a);
  p.classes.push_back(c);
  CHECK_THROWS_AS(step_structure(p, {{step_recipe::kind::host}}), internal_error);
}

}  // namespace
}  // namespace nvlsim
