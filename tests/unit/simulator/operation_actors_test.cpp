#include "nvlsim/simulator/operation_actors.hpp"

#include <catch2/catch.hpp>

#include "support/ports.hpp"
#include "unit/operation/setups.hpp"

namespace nvlsim {
namespace {

TEST_CASE("Actors and the queue of events give the same months") {
  const platform p = test::bare_ports(2.5_us);
  for (const recovery_mode mode : test::all_modes) {
    const operation_setup s = test::eventful(mode);
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("mode " << static_cast<int>(mode) << ", seed " << seed);
      const operation_outcome queue = run_by_queue(s, seed), actors = run_operation_by_actors(s, seed, p);
      CHECK(actors.progress == Approx(queue.progress).epsilon(1e-9));
      CHECK(actors.stops == queue.stops);
      CHECK(actors.failures == queue.failures);
      CHECK(actors.saves == queue.saves);
      REQUIRE(actors.spans.size() == queue.spans.size());
      for (std::size_t u = 0; u < queue.gpu_seconds.size(); ++u)
        CHECK(actors.gpu_seconds[u] == Approx(queue.gpu_seconds[u]).epsilon(1e-9).margin(1e-3));
    }
  }
}

TEST_CASE("A job that is done ends when its work is, with actors as with the queue") {
  operation_setup s = test::eventful(recovery_mode::restart);
  s.work = seconds::from_base(20 * test::day);
  const operation_outcome queue = run_by_queue(s, 1),
                          actors = run_operation_by_actors(s, 1, test::bare_ports(2.5_us));
  REQUIRE(queue.finished);
  REQUIRE(actors.finished);
  CHECK(*actors.finished == Approx(*queue.finished).epsilon(1e-9));
  CHECK(queue.progress == Approx(20 * test::day).epsilon(1e-9));
}

}  // namespace
}  // namespace nvlsim
