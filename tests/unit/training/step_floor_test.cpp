// No step takes less than its bound, and none needs less memory.
#include "nvlsim/training/step_floor.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/training/step_cache.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using test::shipped;
using test::shipped_job;

/// Layouts of every schedule, sharding and recomputation.
template <class Visit>
void each_layout(shipped_job j, Visit visit) {
  using enum pipeline_schedule;
  std::vector<recompute_spec> recomputes(5);
  recomputes[1].full = true;
  recomputes[2].core_attention = true;
  recomputes[3].layernorm = recomputes[3].mlp = true;
  recomputes[4].moe = recomputes[4].mla_up_proj = true;
  for (const auto& [schedule, vp] : std::vector<std::pair<pipeline_schedule, std::int64_t>>{
           {one_f_one_b, 1}, {interleaved, 2}, {zb_h1, 1}, {zb_v, 2}, {dualpipe, 1}})
    for (const auto sharding : {data_parallel_sharding::replicated, data_parallel_sharding::distributed_optimizer,
                                data_parallel_sharding::fsdp})
      for (const recompute_spec& r : recomputes)
        for (const std::int64_t offloaded : {0, 4}) {
          training_workload& w = j.workload;
          w.schedule = schedule, w.par.vp = vp, w.sharding = sharding, w.recompute = r;
          w.offload_layers = offloaded;
          if (training_problems(j.machine, j.net, w).empty()) visit(j);
        }
}

void bounds_hold(const char* model, std::int64_t dp) {
  shipped_job j = shipped("gb300-nvl72", model);
  j.workload.par.dp = dp;
  j.workload.global_batch_size = 16 * dp;
  const bool routed = j.net.layers.back().routed();
  j.workload.par.ep = routed ? 4 * dp : 1;
  j.workload.par.etp = routed ? 1 : j.workload.par.tp;
  step_cache steps;
  step_floor floor(j.machine, j.software, j.net);
  std::size_t tried = 0;
  double loosest = 1;
  each_layout(j, [&](const shipped_job& x) {
    INFO(model << " schedule " << static_cast<int>(x.workload.schedule) << " sharding "
               << static_cast<int>(x.workload.sharding));
    const double taken = steps.cost_of(x.machine, x.software, x.net, x.workload).makespan.base();
    const double least = floor.of(x.workload).base();
    CHECK(least <= taken * (1 + 1e-12));
    loosest = std::min(loosest, least / taken);
    training_workload cheaper = x.workload;  // a part of what is recomputed is a bound too
    cheaper.recompute = {};
    CHECK(floor.of(cheaper).base() <= taken * (1 + 1e-12));

    const memory_report memory = training_memory(x.machine, x.software, x.net, x.workload);
    CHECK(steps.memory_of(x.machine, x.software, x.net, x.workload).peak == memory.peak);
    for (const bool any_sharding : {false, true})  // where it does not fit, the report is of one such stage
      if (memory.fits())
        CHECK(steps.min_memory(x.machine, x.software, x.net, x.workload, any_sharding) <=
              memory.peak * (1 + 1e-12));
    ++tried;
  });
  CHECK(tried > 50);
  CHECK(loosest > 0.25);
}

TEST_CASE("No dense step takes or needs less than its bounds") {
  bounds_hold("llama3-8b", 1);
  bounds_hold("llama3-8b", 4);
}

TEST_CASE("No step with experts takes or needs less than its bounds") { bounds_hold("deepseek-v3", 4); }

TEST_CASE("Passes are priced once for all layouts that share them") {
  shipped_job j = shipped("gb300-nvl72", "llama3-8b");
  step_cache steps;
  step_floor floor(j.machine, j.software, j.net);
  const auto price = [&] {
    steps.cost_of(j.machine, j.software, j.net, j.workload);
    floor.of(j.workload);
  };
  price();
  const std::size_t passes = steps.priced_passes();
  const std::int64_t bounded = floor.priced();
  CHECK(passes > 0);
  j.workload.split.first = 9, j.workload.split.last = 7;
  price();
  j.workload.split = {};
  j.workload.sharding = data_parallel_sharding::replicated;
  price();
  CHECK(steps.priced_passes() == passes);
  CHECK(floor.priced() == bounded);
  j.workload.micro_batch_size = 2;
  price();
  CHECK(steps.priced_passes() == 2 * passes);
}

}  // namespace
}  // namespace nvlsim
