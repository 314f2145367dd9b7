#include "nvlsim/simulator/post_training_actors.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "simulator/ports.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

loop_prices prices() {
  loop_prices p;
  p.engine.iteration_s = [](const iteration& it, std::int64_t) {
    return 5e-3 + 2.03e-5 * static_cast<double>(it.decodes) + 1.01e-8 * static_cast<double>(it.context) +
           1e-6 * static_cast<double>(it.prompt_tokens);
  };
  p.engine.kv_tokens = 40'000;  // tight, so that samples are preempted
  p.engine.max_batch = 64;
  p.engine.max_tokens = 8192;
  p.workers = 3;
  p.train = [](const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>&) {
    const double tokens = std::accumulate(lengths.begin(), lengths.end(), 0.0);
    return update_times{1e-5 * tokens, 4e-5 * tokens};
  };
  p.transfer_s = 0.5;
  p.reward_s = 0.2;
  p.to_training_s = 0.7;
  p.to_rollout_s = 0.9;
  return p;
}

loop_settings random_settings(std::uint64_t seed) {
  std::mt19937_64 g(seed);
  const auto one_of = [&](int n) { return static_cast<int>(g() % static_cast<std::uint64_t>(n)); };
  loop_settings s;
  s.seed = seed;
  s.prompts = 8 * (1 + one_of(4));
  s.samples = 4;
  s.prompt_tokens = 100;
  s.response = {500, 1500, 10, 0.5};
  s.colocated = one_of(3) == 0;
  s.staleness = s.colocated ? 0 : 0.5 * one_of(4);
  s.update = static_cast<on_update>(one_of(3));
  s.streaming = !s.colocated && one_of(2) == 0;
  s.mini_batch_prompts = 4;
  s.admission = static_cast<admission_policy>(one_of(2));
  if (s.staleness == 0 && one_of(2) == 0) s.oversample = 0.25;
  s.tail = static_cast<tail_policy>(one_of(2));
  if (one_of(3) == 0) s.kept_share = 0.7;
  if (one_of(3) == 0) s.tools = {3, 0.4, 50};
  s.steps = 3;
  s.warmup = 2;
  return s;
}

TEST_CASE("Actors play a post-training loop as the queue of dates does") {
  const platform machine = test::small_machine();
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    INFO("seed " << seed);
    const loop_settings s = random_settings(seed);
    const loop_record queue = play_by_queue(s, prices()), actors = play_by_actors(s, prices(), machine);
    REQUIRE(queue.steps.size() == actors.steps.size());
    for (std::size_t i = 0; i < queue.steps.size(); ++i) {
      CHECK(actors.steps[i].step_s() == Approx(queue.steps[i].step_s()).epsilon(1e-9));
      CHECK(actors.steps[i].wait_s == Approx(queue.steps[i].wait_s).margin(1e-9));
    }
    CHECK(actors.stale_samples == queue.stale_samples);
    CHECK(actors.dropped_tokens == Approx(queue.dropped_tokens));
    CHECK(actors.preempted == queue.preempted);
  }
}

// SimGrid's clock goes on from one session of a process to the next, and after years no longer resolves a
// nanosecond.
TEST_CASE("A loop plays on in a process that has simulated years") {
  {
    simulator::session years;
    const network::zones z = simulator::build_ports(years, test::small_machine(), 1, false, {});
    simulator::compat::add_actor(z.nvlink.front(), "years", [&] { years.sleep_until(1e9); });
    years.simgrid().run();
  }
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const loop_settings s = random_settings(seed);
    const loop_record queue = play_by_queue(s, prices()),
                      actors = play_by_actors(s, prices(), test::small_machine());
    REQUIRE(queue.steps.size() == actors.steps.size());
    for (std::size_t i = 0; i < queue.steps.size(); ++i)
      CHECK(actors.steps[i].step_s() == Approx(queue.steps[i].step_s()).margin(1e-4));
  }
}

TEST_CASE("An error of an actor ends the loop") {
  loop_prices p = prices();
  p.train = [](const std::vector<std::int64_t>&, const std::vector<std::int64_t>&) -> update_times {
    throw internal_error("no update");
  };
  CHECK_THROWS_AS(play_by_actors(random_settings(1), p, test::small_machine()), internal_error);
}

}  // namespace
}  // namespace nvlsim
