// Random loads and engines on the small machine, and comparison of what they gave.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>

#include "nvlsim/serving/serving.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim::test {

/// A load and an engine of a random kind on the small machine.
inline inference_workload random_workload(std::uint64_t seed) {
  std::mt19937_64 g(seed);
  const auto one_of = [&](int n) { return static_cast<int>(g() % static_cast<std::uint64_t>(n)); };
  inference_workload w = small_workload();
  w.seed = seed;
  constexpr load_kind loads[] = {load_kind::offline, load_kind::closed_loop, load_kind::open_loop};
  w.load = loads[one_of(3)];
  w.requests = 120;
  w.concurrency = 20;
  w.arrivals.rate_per_s = 5 + 20.0 * one_of(4);
  w.input = {300, 0.5};
  w.output = {90, one_of(2) == 0 ? 0.0 : 0.6};
  if (w.load == load_kind::closed_loop && one_of(3) == 0)
    w.sessions = session_settings{.turns = {3, 0.5}, .wait_mean_s = 0.2, .shared_prompt = 200};
  w.tp = 1 + one_of(2);
  w.pp = 1 + one_of(2);
  w.replicas = 1 + one_of(3);
  w.router = static_cast<router_policy>(one_of(3));
  w.engine.max_batch_size = 8 << one_of(4);
  w.engine.max_num_tokens = 512 << one_of(3);
  w.engine.prefill = static_cast<prefill_policy>(one_of(3));
  if (w.engine.prefill == prefill_policy::whole_prompt) w.engine.max_num_tokens = 2048;
  w.engine.preemption = static_cast<preemption_policy>(one_of(2));
  w.engine.kv_reserve = w.engine.preemption == preemption_policy::none ? 1 : 0.1 * one_of(5);
  w.engine.kv_reserve_decay = 50 * one_of(2);
  w.engine.poll_interval = one_of(4);
  w.engine.prefix_cache = one_of(2) == 0;
  if (one_of(4) == 0) w.engine.batch_wait_iterations = 5, w.engine.batch_wait_ratio = 0.5;
  w.engine.schedule_ahead = one_of(2) == 0;
  return w;
}

struct small_server {
  platform machine = small_machine();
  stack software = stack_with_sends();
  model net = small_model();

  serving_run run(const inference_workload& w, const serving_options& o) const {
    return serve(machine, software, net, w, o);
  }
};

/// To the last bit, but for sums over iterations.
inline void check_equal(const serving_outcome& a, const serving_outcome& b) {
  REQUIRE(a.requests.size() == b.requests.size());
  std::size_t apart = 0;
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    const request_record &x = a.requests[i], &y = b.requests[i];
    apart += x.arrival_s != y.arrival_s || x.admitted_s != y.admitted_s || x.first_token_s != y.first_token_s ||
             x.last_token_s != y.last_token_s || x.worker != y.worker || x.cached != y.cached ||
             x.preemptions != y.preemptions;
  }
  CHECK(apart == 0);
  CHECK(a.end_s == b.end_s);
  CHECK(a.recomputed_tokens == b.recomputed_tokens);
  REQUIRE(a.workers.size() == b.workers.size());
  for (std::size_t i = 0; i < a.workers.size(); ++i) {
    CHECK(a.workers[i].iterations_in_all == b.workers[i].iterations_in_all);
    CHECK(a.workers[i].peak_kv_tokens == b.workers[i].peak_kv_tokens);
    CHECK(a.workers[i].busy_s == b.workers[i].busy_s);
  }
  const auto x = a.gaps.values(), y = b.gaps.values();
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(x[i].count == y[i].count);
    CHECK(x[i].value == Approx(y[i].value).epsilon(1e-12));
  }
}

}  // namespace nvlsim::test
