#include "nvlsim/analysis/inference_metrics.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/play_server.hpp"

namespace nvlsim {
namespace {

/// A run of replicas that serve alone, whose iterations take what `time_of` says.
struct finished_run {
  serving_run run;
  inference_workload workload;

  finished_run() { workload.replicas = 0; }

  void add(const request_lengths& lengths, std::int64_t batch, int replicas, int gpus_each,
           double (*time_of)(const iteration&)) {
    workload.replicas += replicas;
    workload.tp = gpus_each;
    run.kv_capacity_tokens = 1000;
    server_settings s;
    s.worker.settings.prefill = prefill_policy::chunked;
    s.worker.settings.max_num_tokens = 1000;
    s.worker.settings.max_batch_size = batch;
    s.worker.kv_capacity_tokens = 1000;
    serving_outcome o = test::serve_requests(test::requests_of(lengths), s, [=](const iteration& it) {
      return iteration_price{time_of(it), 0};
    });
    for (request_record& r : o.requests) {
      r.workers = replicas;
      run.outcome.requests.push_back(r);
    }
    for (worker_record& w : o.workers) run.outcome.workers.push_back(std::move(w));
    run.outcome.gaps.add(o.gaps, replicas);
    run.outcome.end_s = std::max(run.outcome.end_s, o.end_s);
  }
  inference_metrics metrics() const { return measure_inference(run, workload); }
};

double one_second(const iteration&) { return 1.0; }
double by_prompt(const iteration& it) { return it.prompt_tokens > 0 ? 3.0 : 1.0; }

TEST_CASE("Inference metrics of one request follow its iterations") {
  finished_run f;
  f.add({{10, 5}}, 8, 1, 2, by_prompt);  // 3 s of prompt, then four tokens of 1 s
  const inference_metrics m = f.metrics();
  CHECK(m.ttft_s.mean == Approx(3));
  CHECK(m.e2e_s.max == Approx(7));
  CHECK(m.queue_s.max == 0);
  CHECK(m.tpot_s->p50 == Approx(1));
  CHECK(m.itl_s->max == Approx(1));
  CHECK(*m.output_tokens_per_s_per_user == Approx(1));
  CHECK(m.output_tokens_per_s == Approx(5.0 / 7));
  CHECK(m.output_tokens_per_s_per_gpu == Approx(2.5 / 7));
  CHECK(m.total_tokens_per_s == Approx(15.0 / 7));
  CHECK(m.total_tokens_per_s_per_gpu == Approx(7.5 / 7));
  CHECK(m.requests_per_s == Approx(1.0 / 7));
  CHECK(m.kv_cache_used_fraction == Approx(0.015));
}

TEST_CASE("A client behind a server has its last token as many gaps after its first as there are") {
  front_end_costs server;
  server.first_token_delay = seconds::from_base(5);
  server.first_token_iterations = 3;
  for (const int output : {1, 2, 3, 100}) {
    request_record r;
    r.arrival_s = r.admitted_s = 1;
    r.first_token_s = 2;
    r.last_token_s = 1.0 + output;
    r.output = output;
    const client_view c = seen_by_client(r, server);
    CHECK(c.ttft_s == Approx(1 + std::min(3, output - 1) + 5.0));
    CHECK(c.e2e_s == Approx(c.ttft_s + (output - 1) * c.tpot_s.value_or(0)));
  }
}

TEST_CASE("Inference metrics pool every gap of every sequence") {
  finished_run f;
  // One at a time: the second prompt waits for the first, so no sequence sees a prompt in a gap.
  f.add({{10, 3}, {10, 3}}, 1, 1, 1, by_prompt);
  CHECK(f.metrics().itl_s->max == Approx(1));
  CHECK(f.metrics().queue_s.max == Approx(5));
  CHECK(f.metrics().ttft_s.max == Approx(8));

  // The third prompt enters beside the second request: that request sees one gap of 3 s among three.
  finished_run g;
  g.add({{10, 1}, {10, 4}, {10, 1}}, 2, 1, 1, by_prompt);
  const inference_metrics m = g.metrics();
  CHECK(m.itl_s->mean == Approx(5.0 / 3));
  CHECK(m.itl_s->p50 == Approx(1));
  CHECK(m.itl_s->p90 == Approx(3));
  CHECK(m.tpot_s->mean == Approx(5.0 / 3));
}

TEST_CASE("Inference metrics take percentiles by nearest rank") {
  finished_run f;
  const request_lengths lengths(100, {1, 1});
  f.add(lengths, 1, 1, 1, one_second);  // the i-th request gets its token after i seconds
  const distribution d = f.metrics().ttft_s;
  CHECK(d.mean == Approx(50.5));
  CHECK(d.p50 == Approx(50));
  CHECK(d.p90 == Approx(90));
  CHECK(d.p95 == Approx(95));
  CHECK(d.p99 == Approx(99));
  CHECK(d.max == Approx(100));
}

TEST_CASE("Inference metrics weigh classes by their replicas") {
  finished_run f;
  f.add({{1, 2}}, 1, 3, 4, one_second);
  f.add({{1, 2}, {1, 2}}, 1, 1, 4, one_second);
  const inference_metrics m = f.metrics();
  // Three replicas see one request, one sees two: first tokens after 1, 1, 1, 1 and 3 s.
  CHECK(m.ttft_s.mean == Approx(7.0 / 5));
  CHECK(m.ttft_s.p50 == Approx(1));
  CHECK(m.ttft_s.p90 == Approx(3));
  CHECK(m.output_tokens_per_s == Approx(10.0 / 4));
  CHECK(m.output_tokens_per_s_per_gpu == Approx(10.0 / 4 / 16));
  CHECK(m.requests_per_s == Approx(5.0 / 4));
}

TEST_CASE("Inference metrics leave out what single tokens do not show") {
  finished_run f;
  f.add({{4, 1}, {4, 1}}, 8, 1, 1, one_second);
  const inference_metrics m = f.metrics();
  CHECK_FALSE(m.tpot_s);
  CHECK_FALSE(m.itl_s);
  CHECK_FALSE(m.output_tokens_per_s_per_user);
  CHECK(m.output_tokens_per_s == Approx(2));
}

TEST_CASE("Inference metrics count the GPUs of replicas without a request") {
  finished_run f;
  f.add({{4, 2}}, 8, 1, 1, one_second);
  f.add({}, 8, 3, 1, one_second);
  const inference_metrics m = f.metrics();
  CHECK(m.output_tokens_per_s == Approx(1));
  CHECK(m.output_tokens_per_s_per_gpu == Approx(0.25));
}

}  // namespace
}  // namespace nvlsim
