#include "scheduling/planner.hpp"

#include <catch2/catch.hpp>
#include <random>

namespace nvlsim {
namespace {

/// A cluster in which jobs run, and many that wait.
struct long_queue {
  queue_cluster shape;
  cluster_state state;
  running_jobs running;
  std::vector<job_attempt> attempts;

  explicit long_queue(std::mt19937& random) : shape{4, 6, 4}, state(shape) {
    for (int job = 0; job < 30; ++job) {
      const job_demand d{1 + static_cast<int>(random() % 3), 1 + static_cast<int>(random() % 4), 0};
      std::vector<int> nodes = place_job(shape, placement_kind::pack, d, state.free());
      running.attempt_of.push_back(-1);
      if (nodes.empty()) continue;
      state.hold(job, d.gpus_each, nodes);
      running.attempt_of.back() = static_cast<int>(attempts.size());
      running.by_limit.insert({random() % 7 == 0 ? never : 10.0 * static_cast<double>(1 + random() % 50), job});
      attempts.push_back({job, 0, 0, attempt_end::still_running, d.gpus_each, std::move(nodes)});
    }
  }
};

TEST_CASE("A plan that goes on from where jobs of the same form were planned is that of one that begins anew") {
  std::mt19937 random(7);
  for (const placement_kind kind : {placement_kind::block, placement_kind::tree, placement_kind::spread})
    for (int queue = 0; queue < 20; ++queue) {
      const long_queue q(random);
      const time_grid grid{queue % 2 == 0 ? 0.0 : 60.0, 7};
      planner goes_on(q.state, kind, grid, 0), anew(q.state, kind, grid, 0);
      int planned = 0;
      for (int job = 0; job < 80; ++job) {
        const job_demand d{1 + static_cast<int>(random() % 2 * 5), 1 + static_cast<int>(random() % 4), 0};
        const double limit = random() % 9 == 0 ? never : 20.0 * static_cast<double>(1 + random() % 40);
        anew.forget_room();
        planned_start a = goes_on.earliest(d, limit, q.running, q.attempts),
                      b = anew.earliest(d, limit, q.running, q.attempts);
        REQUIRE(a.nodes == b.nodes);
        if (a.nodes.empty()) continue;
        REQUIRE(a.at == b.at);
        planned += a.at > 0;
        goes_on.promise(std::move(a), limit, d.gpus_each);
        anew.promise(std::move(b), limit, d.gpus_each);
      }
      CHECK(planned > 10);
    }
}

}  // namespace
}  // namespace nvlsim
