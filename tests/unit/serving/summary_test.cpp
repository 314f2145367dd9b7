#include "nvlsim/serving/summary.hpp"

#include <catch2/catch.hpp>

#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using namespace nvlsim::test;

schedule_limits limits_of(std::int64_t clients) {
  schedule_limits l;
  l.settings.max_num_tokens = 512;
  l.settings.max_batch_size = 256;
  l.kv_capacity_tokens = std::int64_t{1} << 40;
  l.kv_block_tokens = 16;
  l.concurrency = clients;
  return l;
}

batching_schedule closed_loop(std::int64_t clients) {
  inference_workload w = small_workload();
  return schedule_requests(draw_lengths(w, 20 * clients), limits_of(clients));
}

TEST_CASE("Summary of a schedule keeps its tokens, and its times when all iterations are equal") {
  const batching_schedule s = closed_loop(12);
  double ttft = 0, outputs = 0, decodes = 0;
  for (const request_progress& r : s.requests) {
    ttft += r.first_token - r.arrived + 1;
    outputs += static_cast<double>(r.output);
  }
  ttft /= static_cast<double>(s.requests.size());
  const auto n = static_cast<double>(s.iterations.size()), streams = static_cast<double>(s.requests.size());
  const schedule_summary sum = summarise(s);
  for (const iteration_class& c : sum.classes) decodes += c.count * c.mean.decodes;
  CHECK(sum.output_tokens == outputs);
  CHECK(decodes == Approx(outputs - streams));
  CHECK(sum.classes.size() < s.iterations.size() / 4);

  const std::vector<double> ones(sum.classes.size(), 1.0);
  const client_times t = mean_times(sum, ones, {});
  CHECK(t.tpot_s == Approx(1));
  CHECK(t.ttft_s == Approx(ttft));
  CHECK(t.makespan_s == Approx(n));
  CHECK(median_times(sum, ones, {}).tpot_s == Approx(1));

  const client_times held = mean_times(sum, ones,
                                       {.sequence_host = {},
                                        .request_host = {},
                                        .first_token_delay = 2.0_s,
                                        .first_token_iterations = 3,
                                        .prompt_token_delay = 0.01_s});
  double prompt = 0;
  for (const request_progress& r : s.requests) prompt += static_cast<double>(r.input) / streams;
  CHECK(held.ttft_s == Approx(ttft + 3 + 2 + 0.01 * prompt));
  CHECK(held.tpot_s == t.tpot_s);
}

TEST_CASE("Classes of iterations give the times of the iterations themselves within half a percent") {
  const platform p = small_machine();
  const stack s = small_stack();
  const model m = small_model();
  const inference_workload w = small_workload();
  iteration_costs costs(p, s, m, w);
  const batching_schedule schedule = closed_loop(40);
  double exact = 0;
  for (const iteration& it : schedule.iterations) exact += costs.time(content_of(it)).base();
  const schedule_summary sum = summarise(schedule);
  std::vector<double> times;
  for (const iteration_class& c : sum.classes) times.push_back(costs.time(c.mean).base());
  CHECK(mean_times(sum, times, {}).makespan_s == Approx(exact).epsilon(0.005));
}

TEST_CASE("More clients slow each token down and speed the whole up") {
  const platform p = small_machine();
  const stack s = small_stack();
  const model m = small_model();
  const inference_workload w = small_workload();
  iteration_costs costs(p, s, m, w);
  double tpot = 0, rate_before = 0;
  for (const std::int64_t clients : {1, 4, 16, 64}) {
    const schedule_summary sum = summarise(closed_loop(clients));
    std::vector<double> times;
    for (const iteration_class& c : sum.classes) times.push_back(costs.time(c.mean).base());
    const client_times t = mean_times(sum, times, {});
    const double tokens_per_s = sum.output_tokens / t.makespan_s;
    CHECK(t.tpot_s > tpot);
    CHECK(tokens_per_s > rate_before);
    tpot = t.tpot_s;
    rate_before = tokens_per_s;
  }
}

}  // namespace
}  // namespace nvlsim
