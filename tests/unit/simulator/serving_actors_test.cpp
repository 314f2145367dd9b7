#include "nvlsim/simulator/serving_actors.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/requests.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

iteration_price by_content(std::size_t worker, const iteration& it) {
  return {(1 + 0.01 * static_cast<double>(worker)) *
              (1e-3 + 2.03e-5 * static_cast<double>(it.decodes) + 1.01e-6 * static_cast<double>(it.prompt_tokens)),
          0};
}

/// A server of a random kind: pools or not, with clients or arrivals, sessions, preemption and any router.
server_case random_case(std::uint64_t seed) {
  std::mt19937_64 g(seed);
  const auto one_of = [&](int n) { return static_cast<int>(g() % static_cast<std::uint64_t>(n)); };
  inference_workload w;
  w.seed = seed;
  w.load = one_of(2) == 0 ? load_kind::open_loop : load_kind::closed_loop;
  w.requests = 150;
  w.arrivals.rate_per_s = 30 + 10.0 * one_of(5);
  w.input = {300, 0.9};
  w.output = {60, 0.9};
  if (one_of(3) == 0) w.sessions = session_settings{.turns = {4, 0.5}, .wait_mean_s = 0.3, .shared_prompt = 200};
  server_case out;
  out.list = generate_requests(w, 0);
  server_settings& s = out.settings;
  s.workers = 1 + one_of(3);
  s.clients = w.load == load_kind::closed_loop ? 7 : 0;
  s.router = static_cast<router_policy>(one_of(3));
  s.worker.settings.max_num_tokens = 1024;
  s.worker.settings.max_batch_size = 64;
  s.worker.kv_capacity_tokens = 4096;
  s.worker.kv_block_tokens = 16;
  s.worker.settings.prefix_cache = one_of(2) == 0;
  s.worker.prefix_tokens = out.list.prefix_tokens;
  s.worker.settings.preemption = static_cast<preemption_policy>(one_of(3));
  s.worker.settings.kv_reserve = s.worker.settings.preemption == preemption_policy::none ? 1 : 0;
  s.worker.swap_capacity_tokens = 1 << 16;
  if (one_of(2) == 0)
    s.prefill = prefill_settings{s.worker, 1 + one_of(2), [](std::int64_t tokens, std::size_t, std::size_t) {
                                   return cache_transfer{1.003e-6 * static_cast<double>(tokens), nullptr};
                                 }};
  if (one_of(2) == 0)
    s.tiers = {{40, 1.07e-4, 1e-5, cache_write::back, false}, {400, 3.1e-4, 1e-4, cache_write::through, true}};
  if (s.prefill && one_of(2) == 0) s.pool_router = static_cast<router_policy>(one_of(3));
  out.price = by_content;
  return out;
}

TEST_CASE("Servers played by actors are those played by the queue") {
  std::vector<server_case> cases;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) cases.push_back(random_case(seed));
  const served_cases queue = serve_by_queue(cases), actors = serve_by_actors(cases, test::small_machine());
  CHECK(queue.activities == 0);
  std::int64_t iterations = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO("case " << i);
    const serving_outcome &a = queue.outcomes[i], &b = actors.outcomes[i];
    CHECK(b.end_s == Approx(a.end_s).epsilon(1e-9));
    CHECK(b.requests_times_s == Approx(a.requests_times_s).epsilon(1e-9));
    CHECK(b.prompt_tokens == a.prompt_tokens);
    for (const worker_record& w : b.workers) iterations += w.iterations_in_all;
    double apart = 0;
    for (std::size_t k = 0; k < a.requests.size(); ++k)
      for (const auto date :
           {&request_record::arrival_s, &request_record::first_token_s, &request_record::last_token_s})
        apart = std::max(apart, std::abs(b.requests[k].*date - a.requests[k].*date));
    CHECK(apart < 1e-9 * a.end_s);
  }
  CHECK(actors.activities > iterations);
}

/// One prompt at each of `prefills` workers at the same time, all for one decode worker.
serving_outcome incast(std::int64_t prefills, const operation_template& cache, fidelity network) {
  server_case c;
  for (std::int64_t i = 0; i < prefills; ++i) {
    served_request r;
    r.input = 100;
    r.output = 2;
    c.list.requests.push_back(r);
  }
  c.settings.worker.settings.max_num_tokens = 100;
  c.settings.worker.settings.max_batch_size = 100;
  c.settings.worker.kv_capacity_tokens = 1 << 20;
  c.settings.prefill = prefill_settings{c.settings.worker, prefills, [&](std::int64_t, std::size_t, std::size_t) {
                                          return cache_transfer{cache.duration.base(), &cache};
                                        }};
  c.price = [](std::size_t, const iteration&) { return iteration_price{1e-3, 0}; };
  return serve_by_actors({c}, test::small_machine(), {network}).outcomes.front();
}

TEST_CASE("KV caches for one worker share its port in flow") {
  const platform p = test::small_machine();
  const bytes size = 1.0_GB;
  const seconds alone = size / p.gpu.nvlink;
  operation_template cache{"kv transfer", {}, alone, {}, {}};
  cache.network.push_back({network_traffic{}, {}, alone});
  cache.network.front().traffic.nvlink.out = size;
  for (const std::int64_t n : {1, 2, 7}) {
    const auto last = [&](fidelity f) {
      double out = 0;
      for (const request_record& r : incast(n, cache, f).requests) out = std::max(out, r.delivered_s);
      return out - 1e-3;
    };
    CHECK(last(fidelity::closed) == Approx(alone.base()));
    CHECK(last(fidelity::flow) == Approx(static_cast<double>(n) * alone.base()).epsilon(1e-6));
  }
}

TEST_CASE("A request that fits no iteration is an error of the actors too") {
  server_case c = random_case(1);
  c.settings.prefill.reset();
  c.settings.worker.settings.prefill = prefill_policy::whole_prompt;
  c.list.requests.front().input = 5000;
  CHECK_THROWS_AS(serve_by_actors({c}, test::small_machine()), internal_error);
}

}  // namespace
}  // namespace nvlsim
