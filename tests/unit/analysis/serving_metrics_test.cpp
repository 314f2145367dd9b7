#include <catch2/catch.hpp>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using test::small_machine;
using test::small_model;
using test::small_stack;
using test::small_workload;

stack behind_a_server() {
  stack s = small_stack();
  s.inference->front_end = {1.0_us, 50.0_us, seconds::from_base(2e-3), 1, {}};
  return s;
}

/// Requests of the small workload that arrive at random.
inference_workload open_loop(std::int64_t requests, double rate_per_s) {
  inference_workload w = small_workload();
  w.load = load_kind::open_loop;
  w.requests = requests;
  w.arrivals.rate_per_s = rate_per_s;
  return w;
}

void check_same(const distribution& a, const distribution& b) {
  CHECK(b.mean == Approx(a.mean).epsilon(1e-3));
  CHECK(b.p50 == Approx(a.p50).epsilon(5e-3));
  CHECK(b.p99 == Approx(a.p99).epsilon(5e-3));
  CHECK(b.max == Approx(a.max).epsilon(5e-3));
}

TEST_CASE("Serving with a clock agrees with token time on a closed loop") {
  const platform p = small_machine();
  const stack s = behind_a_server();
  const model m = small_model();
  for (const auto prefill : {prefill_policy::chunked, prefill_policy::whole_prompt, prefill_policy::exclusive}) {
    inference_workload w = small_workload();
    w.load = load_kind::closed_loop;
    w.requests = 300;
    w.concurrency = 12;
    w.engine.prefill = prefill;
    const inference_run run = plan_inference(p, s, m, w);
    REQUIRE(run.reasons.empty());
    const timeline t = evaluate(run.planned);
    const inference_metrics a = measure_inference(run, t);
    const serving_run timed = serve(p, s, m, w);
    REQUIRE(timed.reasons.empty());
    const inference_metrics b = measure_serving(timed, w);
    CHECK(timed.outcome.end_s == Approx(t.makespan.base()).epsilon(1e-3));
    CHECK(b.requests_per_s == Approx(a.requests_per_s).epsilon(1e-3));
    CHECK(b.output_tokens_per_s == Approx(a.output_tokens_per_s).epsilon(1e-3));
    CHECK(b.kv_cache_used_fraction == a.kv_cache_used_fraction);
    check_same(a.ttft_s, b.ttft_s);
    check_same(*a.tpot_s, *b.tpot_s);
    check_same(a.e2e_s, b.e2e_s);
    check_same(a.queue_s, b.queue_s);
    check_same(*a.itl_s, *b.itl_s);
  }
}

TEST_CASE("An open loop counts what its objective keeps, and leaves both ends out") {
  inference_workload w = open_loop(2000, 40);
  w.measured = {0.1, 0.1};
  w.objective.ttft_s = 1e-6;
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  REQUIRE(run.reasons.empty());
  const inference_metrics none = measure_serving(run, w);
  CHECK(none.measured_requests == 1600);
  CHECK(none.slo_attained_fraction == 0.0);
  CHECK(none.goodput_requests_per_s == 0.0);
  CHECK_FALSE(none.objective_met);
  CHECK_FALSE(none.saturated);
  CHECK(none.requests_per_s == Approx(40).epsilon(0.05));
  CHECK(none.offered_requests_per_s.value() == Approx(40).epsilon(0.05));
  w.objective = {none.ttft_s.p50, {}, {}, 0.5};
  const inference_metrics half = measure_serving(run, w);
  CHECK(*half.slo_attained_fraction == Approx(0.5).margin(0.01));
  CHECK(half.objective_met);
  CHECK(*half.goodput_requests_per_s == Approx(half.requests_per_s / 2).epsilon(0.02));
}

TEST_CASE("A server that is sent more than it can do is saturated") {
  inference_workload w = open_loop(3000, 10'000);
  w.engine.max_batch_size = 8;
  w.measured = {0.1, 0.1};
  const stack s = small_stack();
  CHECK(measure_serving(serve(small_machine(), s, small_model(), w), w).saturated);
  w.arrivals.rate_per_s = 5;
  CHECK_FALSE(measure_serving(serve(small_machine(), s, small_model(), w), w).saturated);
}

TEST_CASE("Decode workers that caches queue for are saturated") {
  inference_workload w = open_loop(3000, 100);
  w.prefill_pool.emplace().replicas = 4;
  w.engine.max_batch_size = 4;
  w.prefill_pool->engine.max_batch_size = 64;
  w.measured = {0.1, 0.1};
  const stack s = test::stack_with_sends();
  const serving_run run = serve(small_machine(), s, small_model(), w);
  REQUIRE(run.reasons.empty());
  CHECK(measure_serving(run, w).saturated);
  w.arrivals.rate_per_s = 1;
  CHECK_FALSE(measure_serving(serve(small_machine(), s, small_model(), w), w).saturated);
}

TEST_CASE("Little's law holds for the time of the rates, whatever is left out") {
  inference_workload w = open_loop(4000, 20);
  for (const double margin : {0.0, 0.1, 0.3}) {
    w.measured = {margin, margin};
    const inference_metrics m = measure_serving(serve(small_machine(), small_stack(), small_model(), w), w);
    CHECK(m.requests_in_flight == Approx(m.requests_per_s * m.e2e_s.mean).epsilon(0.02));
  }
}

TEST_CASE("Arrivals are counted from the first to the last, where all count too") {
  inference_workload w = open_loop(400, 1000);
  w.engine.max_batch_size = 8;
  const inference_metrics m = measure_serving(serve(small_machine(), small_stack(), small_model(), w), w);
  CHECK(*m.offered_requests_per_s == Approx(1000).epsilon(0.2));
  CHECK(m.requests_per_s < 100);
}

TEST_CASE("A batch that still grows as the last request comes is said to") {
  inference_workload w = open_loop(300, 100);  // over in three seconds, of requests that take longer
  w.input = {20, 0};
  w.output = {2000, 0};
  const stack s = small_stack();
  CHECK(measure_serving(serve(small_machine(), s, small_model(), w), w).still_fills);
  w.output = {20, 0};
  w.arrivals.rate_per_s = 20;
  CHECK_FALSE(measure_serving(serve(small_machine(), s, small_model(), w), w).still_fills);
}

TEST_CASE("Requests a second are those whose tokens come, though they end in one wave") {
  inference_workload w = open_loop(300, 1e5);
  w.engine.max_batch_size = 300;  // they come at once, run together and end together
  w.input = {50, 0};
  w.output = {60, 0};
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  REQUIRE(run.reasons.empty());
  const inference_metrics whole = measure_serving(run, w);
  w.measured = {0.1, 0.1};
  const inference_metrics part = measure_serving(run, w);
  CHECK(part.requests_per_s * 60 == Approx(part.output_tokens_per_s).epsilon(1e-9));
  CHECK(whole.requests_per_s * 60 == Approx(whole.output_tokens_per_s).epsilon(1e-9));
  CHECK(part.requests_per_s < 2 * whole.requests_per_s);
}

TEST_CASE("Rates of a run that is short beside its requests are what the server finishes") {
  // All requests are there at once: arrivals are over before anything ends.
  inference_workload w = open_loop(400, 1e5);
  w.engine.max_batch_size = 8;
  const stack s = small_stack();
  const serving_run run = serve(small_machine(), s, small_model(), w);
  const inference_metrics whole = measure_serving(run, w);
  w.measured = {0.1, 0.1};
  const inference_metrics part = measure_serving(run, w);
  CHECK(part.requests_per_s == Approx(whole.requests_per_s).epsilon(0.1));
  CHECK(part.output_tokens_per_s == Approx(whole.output_tokens_per_s).epsilon(0.1));
  CHECK(part.offered_requests_per_s.value() > 100 * part.requests_per_s);
  CHECK(part.measured_requests == 320);
}

TEST_CASE("Requests longer than the model takes or the cache holds are refused with their number") {
  inference_workload w = small_workload();
  w.load = load_kind::open_loop;
  w.arrivals.rate_per_s = 1;
  w.input = {5000, 0};
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  REQUIRE(run.reasons.size() == 1);
  CHECK(run.reasons.front().find("40 of 40 requests exceed the 4096 tokens") == 0);
}

}  // namespace
}  // namespace nvlsim
