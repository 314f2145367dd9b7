#include <algorithm>
#include <catch2/catch.hpp>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/sections.hpp"
#include "unit/serving/inference_fixture.hpp"
#include "unit/serving/random_server.hpp"

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

TEST_CASE("An objective, a share left out or a router for one replica changes no other number") {
  const stack s = behind_a_server();
  for (const load_kind load : {load_kind::offline, load_kind::closed_loop, load_kind::open_loop}) {
    inference_workload w = open_loop(200, 30);
    w.load = load;
    w.concurrency = load == load_kind::closed_loop ? 12 : 0;
    const serving_run plain = serve(small_machine(), s, small_model(), w);
    REQUIRE(plain.reasons.empty());
    const inference_metrics a = measure_inference(plain, w);
    w.objective.ttft_s = 0.1;
    w.router = router_policy::least_loaded;
    const serving_run asked = serve(small_machine(), s, small_model(), w);
    const inference_metrics b = measure_inference(asked, w);
    CHECK(b.output_tokens_per_s == a.output_tokens_per_s);
    CHECK(b.ttft_s.p99 == a.ttft_s.p99);
    CHECK(b.tpot_s->mean == a.tpot_s->mean);
    CHECK(asked.outcome.end_s == plain.outcome.end_s);
  }
}

TEST_CASE("An open loop counts what its objective keeps, and leaves both ends out") {
  inference_workload w = open_loop(2000, 40);
  w.measured = {0.1, 0.1};
  w.objective.ttft_s = 1e-6;
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  REQUIRE(run.reasons.empty());
  const inference_metrics none = measure_inference(run, w);
  CHECK(none.measured_requests == 1600);
  CHECK(none.slo_attained_fraction == 0.0);
  CHECK(none.goodput_requests_per_s == 0.0);
  CHECK_FALSE(none.objective_met);
  CHECK_FALSE(none.saturated);
  CHECK(none.requests_per_s == Approx(40).epsilon(0.05));
  CHECK(none.offered_requests_per_s.value() == Approx(40).epsilon(0.05));
  w.objective = {none.ttft_s.p50, {}, {}, 0.5};
  const inference_metrics half = measure_inference(run, w);
  CHECK(*half.slo_attained_fraction == Approx(0.5).margin(0.01));
  CHECK(half.objective_met);
  CHECK(*half.goodput_requests_per_s == Approx(half.requests_per_s / 2).epsilon(0.02));
}

TEST_CASE("Limits at percentiles are met where each percentile of the latencies is within its own") {
  inference_workload w = open_loop(2000, 40);
  w.objective.ttft_s = 1;
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  const inference_metrics m = measure_inference(run, w);
  const auto met = [&](double of_p50, double of_p99, double of_tpot) {
    w.objective = {.ttft_s = of_p99 * m.ttft_s.p99, .tpot_s = of_tpot * m.tpot_s->p90, .e2e_s = {}};
    w.objective.percentiles = {{latency::ttft, of_p50 * m.ttft_s.p50, 0.5},
                               {latency::ttft, of_p99 * m.ttft_s.p99, 0.99},
                               {latency::tpot, of_tpot * m.tpot_s->p90, 0.9}};
    return measure_inference(run, w).objective_met;
  };
  CHECK(met(1, 1, 1));
  CHECK_FALSE(met(0.999, 1, 1));
  CHECK_FALSE(met(1, 0.999, 1));
  CHECK_FALSE(met(1, 1, 0.999));
  CHECK(met(1, 1, 1));
  CHECK(*measure_inference(run, w).slo_attained_fraction >= 0.89);  // within the highest of each
}

TEST_CASE("An objective on means is met by means, whatever single requests do") {
  inference_workload w = open_loop(2000, 40);
  w.measured = {0.1, 0.1};
  w.objective.ttft_s = 1;
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  const inference_metrics m = measure_inference(run, w);
  w.objective = {.ttft_s = m.ttft_s.mean * 1.0001, .tpot_s = {}, .e2e_s = {}, .means = true};
  CHECK(measure_inference(run, w).objective_met);
  w.objective.means = false;
  CHECK_FALSE(measure_inference(run, w).objective_met);
  w.objective = {.ttft_s = m.ttft_s.mean * 0.9999, .tpot_s = {}, .e2e_s = {}, .means = true};
  CHECK_FALSE(measure_inference(run, w).objective_met);
}

TEST_CASE("A run that ends ok reads what a much longer one reads; one that is too short says so") {
  const auto play = [](inference_workload w, std::int64_t requests) {
    w.requests = requests;
    const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
    result out;
    add_inference_sections(out, small_machine(), w, run);
    return out;
  };
  const auto rate = [](const result& r) { return *r.metrics.find("output_tokens_per_s")->number(); };
  int ok = 0, too_short = 0;
  for (const load_kind load : {load_kind::closed_loop, load_kind::open_loop})
    for (const std::int64_t clients : {4, 16, 64}) {
      inference_workload w = open_loop(1, 10.0 * static_cast<double>(clients) / 16);
      w.load = load;
      w.output = {90, 0.5};
      w.concurrency = load == load_kind::closed_loop ? clients : 0;
      w.measured = load == load_kind::closed_loop ? measured_part{.steady = true} : measured_part{0.1, 0.1};
      w.objective.e2e_s = 1000;
      const double whole = rate(play(w, 200 * clients));
      for (const std::int64_t each : {1, 2, 3, 5, 20}) {
        INFO(clients << " clients or a rate of as many, " << each << " requests each");
        const result r = play(w, each * clients);
        const bool is_ok = r.status == run_status::ok;
        (is_ok ? ok : too_short) += 1;
        if (is_ok && load == load_kind::closed_loop) CHECK(rate(r) == Approx(whole).epsilon(0.2));
        const bool met = std::any_of(r.notes.begin(), r.notes.end(), [](const std::string& n) {
          return n.find("the objective is met") != std::string::npos;
        });
        CHECK(met == is_ok);
        CHECK(r.reasons.empty() == is_ok);
      }
    }
  CHECK(ok > 5);
  CHECK(too_short > 2);
}

TEST_CASE("A closed loop whose steady part is thin is too short") {
  inference_workload w = small_workload();
  w.load = load_kind::closed_loop;
  w.concurrency = 16;
  w.output = {90, 0.5};
  w.measured = {.steady = true};
  int thin = 0, without = 0;
  for (std::int64_t requests = 16; requests <= 96; ++requests) {
    w.requests = requests;
    const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
    result out;
    add_inference_sections(out, small_machine(), w, run);
    const auto [from, to] = counted_time(run.outcome, w);
    const double life = measure_inference(run, w).e2e_s.mean;
    INFO(requests << " requests, measured from " << from << " to " << to << " s; a request takes " << life
                  << " s");
    const bool is_thin = from > 0 && to - from < 0.5 * life;
    CHECK((out.status == run_status::ok) == (from > 0 && !is_thin));
    thin += is_thin;
    without += from > 0 ? 0 : 1;
  }
  CHECK(thin > 0);
  CHECK(without > 0);
}

TEST_CASE("A queue of a few requests is no sign that a server is sent more than it can do") {
  inference_workload w = open_loop(6, 10'000);  // all at once
  w.engine.max_batch_size = 2;
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  CHECK(run.outcome.at_last.waiting > 0);
  CHECK_FALSE(measure_inference(run, w).saturated);
}

TEST_CASE("A server that is sent more than it can do is saturated") {
  inference_workload w = open_loop(3000, 10'000);
  w.engine.max_batch_size = 8;
  w.measured = {0.1, 0.1};
  const stack s = small_stack();
  CHECK(measure_inference(serve(small_machine(), s, small_model(), w), w).saturated);
  w.arrivals.rate_per_s = 5;
  CHECK_FALSE(measure_inference(serve(small_machine(), s, small_model(), w), w).saturated);
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
  CHECK(measure_inference(run, w).saturated);
  w.arrivals.rate_per_s = 1;
  CHECK_FALSE(measure_inference(serve(small_machine(), s, small_model(), w), w).saturated);
}

TEST_CASE("Little's law holds for the time of the rates, whatever is left out") {
  inference_workload w = open_loop(4000, 20);
  for (const double margin : {0.0, 0.1, 0.3}) {
    w.measured = {margin, margin};
    const inference_metrics m = measure_inference(serve(small_machine(), small_stack(), small_model(), w), w);
    CHECK(m.requests_in_flight == Approx(m.requests_per_s * m.time_in_system_s).epsilon(1e-9));
    CHECK(m.time_in_system_s == Approx(m.e2e_s.mean).epsilon(0.02));
  }
}

/// Mean number of requests in the system between two times.
double in_system(const serving_run& run, double from, double to) {
  std::vector<std::pair<double, double>> changes;
  for (const request_record& r : run.outcome.requests) {
    changes.emplace_back(r.arrival_s, r.workers);
    changes.emplace_back(r.last_token_s, -r.workers);
  }
  std::sort(changes.begin(), changes.end());
  double area = 0, number = 0, since = from;
  for (const auto& [t, change] : changes) {
    const double at = std::clamp(t, from, to);
    area += number * (at - since);
    since = at;
    number += change;
  }
  return (area + number * (to - since)) / (to - from);
}

TEST_CASE(
    "Little's law holds in what users read of random loads: in the measured time, and with e2e of whole runs") {
  test::small_server server;
  server.software.inference->front_end = behind_a_server().inference->front_end;
  int windows = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    inference_workload w = test::random_workload(seed);
    w.front_end = seed % 2 == 0;
    if (seed % 3 > 0) w.measured = {.warmup = 0.1, .tail = 0.2, .steady = w.load == load_kind::closed_loop};
    const serving_run run = server.run(w, {});
    if (!run.reasons.empty()) continue;
    const inference_metrics m = measure_inference(run, w);
    const auto [from, to] = counted_time(run.outcome, w);
    INFO("seed " << seed << ", from " << from << " to " << to << " s");
    CHECK(m.requests_in_flight == Approx(m.requests_per_s * m.time_in_system_s).epsilon(1e-9));
    const bool whole = from == 0 && to == run.outcome.end_s;
    std::int64_t all = 0;
    for (const request_record& r : run.outcome.requests) all += r.workers;
    if (whole && m.measured_requests == all && !behind_server(w))
      CHECK(m.requests_in_flight == Approx(m.requests_per_s * m.e2e_s.mean).epsilon(1e-9));
    CHECK(m.requests_in_flight == Approx(in_system(run, from, to)).epsilon(1e-9));
    windows += whole ? 0 : 1;
  }
  CHECK(windows > 50);
}

TEST_CASE("Arrivals are counted from the first to the last, where all count too") {
  inference_workload w = open_loop(400, 1000);
  w.engine.max_batch_size = 8;
  const inference_metrics m = measure_inference(serve(small_machine(), small_stack(), small_model(), w), w);
  CHECK(*m.offered_requests_per_s == Approx(1000).epsilon(0.2));
  CHECK(m.requests_per_s < 100);
}

TEST_CASE("A batch that still grows as the last request comes is said to") {
  inference_workload w = open_loop(300, 100);  // over in three seconds, of requests that take longer
  w.input = {20, 0};
  w.output = {2000, 0};
  const stack s = small_stack();
  CHECK(measure_inference(serve(small_machine(), s, small_model(), w), w).still_fills);
  w.output = {20, 0};
  w.arrivals.rate_per_s = 20;
  CHECK_FALSE(measure_inference(serve(small_machine(), s, small_model(), w), w).still_fills);
}

TEST_CASE("Requests a second are those whose tokens come, though they end in one wave") {
  inference_workload w = open_loop(300, 1e5);
  w.engine.max_batch_size = 300;  // they come at once, run together and end together
  w.input = {50, 0};
  w.output = {60, 0};
  const serving_run run = serve(small_machine(), small_stack(), small_model(), w);
  REQUIRE(run.reasons.empty());
  const inference_metrics whole = measure_inference(run, w);
  w.measured = {0.1, 0.1};
  const inference_metrics part = measure_inference(run, w);
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
  const inference_metrics whole = measure_inference(run, w);
  w.measured = {0.1, 0.1};
  const inference_metrics part = measure_inference(run, w);
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
