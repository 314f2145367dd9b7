#include <utility>
#include <vector>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "unit/serving/random_server.hpp"

namespace nvlsim {
namespace {

TEST_CASE("A run that stands for one under other limits is that run") {
  const test::small_server server;
  std::size_t alike = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    inference_workload w = test::random_workload(seed);
    INFO("case " << seed);
    const auto shared = runs_of_layout({server.machine, server.software, server.net, w});
    std::vector<serving_run> made;
    for (const std::int64_t tokens : {4096, 1024, 512, 256})
      for (const std::int64_t batch : {256, 64, 16, 4}) {
        w.engine.max_batch_size = batch;
        w.engine.max_num_tokens = tokens;
        serving_run own = server.run(w, {.traced = false});
        serving_run common = server.run(w, {.traced = false, .shared = shared.get()});
        REQUIRE(own.reasons == common.reasons);
        if (!own.reasons.empty()) continue;
        CHECK(own.memory.peak.base() == common.memory.peak.base());
        CHECK(own.kv_capacity_tokens == common.kv_capacity_tokens);
        ++all;
        if (common.same_as) {
          ++alike;
          served_metrics m = measure_served(server.machine, w, made[*common.same_as], nullptr);
          use_memory_of(m, common);
          value of_own{value::object{}}, of_common{value::object{}};
          set_metrics(of_own, measure_served(server.machine, w, own, nullptr));
          set_metrics(of_common, m);
          CHECK(of_own == of_common);
          test::check_equal(own.outcome, made[*common.same_as].outcome);
        } else {
          test::check_equal(own.outcome, common.outcome);
          made.push_back(std::move(common));
        }
      }
  }
  CHECK(alike > all / 4);  // or nothing is gained
}

}  // namespace
}  // namespace nvlsim
