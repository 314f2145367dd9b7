#include "nvlsim/serving/summary.hpp"

#include <catch2/catch.hpp>

#include "support/play_server.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using namespace nvlsim::test;

/// A closed loop on one worker.
struct recorded {
  std::vector<worker_iterations> workers = std::vector<worker_iterations>(1);
  std::vector<request_record> requests;

  run_summary summary() const { return summarise(workers, requests); }
};
recorded closed_loop(std::int64_t clients) {
  server_settings s;
  s.worker.settings.max_num_tokens = 512;
  s.worker.settings.max_batch_size = 256;
  s.worker.kv_capacity_tokens = std::int64_t{1} << 40;
  s.worker.kv_block_tokens = 16;
  s.clients = clients;
  s.keep_iterations = true;
  recorded out;
  const serving_outcome o =
      serve_requests(requests_of(sample_lengths(small_workload(), 20 * clients)), s, [&](const iteration& it) {
        out.workers.front().contents.push_back(it);
        return iteration_price{1, 0};
      });
  for (const traced_iteration& t : o.workers.front().iterations) {
    out.workers.front().begin_s.push_back(t.begin_s);
    out.workers.front().end_s.push_back(t.end_s);
  }
  out.requests = o.requests;
  return out;
}

class_times priced(const run_summary& sum, iteration_costs& costs) {
  class_times out;
  for (const iteration_class& c : sum.decode) out.decode.push_back(costs.time(c.mean).base());
  return out;
}

TEST_CASE("Summary of a schedule keeps its tokens, and its times when all iterations are equal") {
  const recorded s = closed_loop(12);
  double ttft = 0, outputs = 0, decodes = 0;
  for (const request_record& r : s.requests) {
    ttft += r.first_token_s - r.arrival_s;
    outputs += static_cast<double>(r.output);
  }
  ttft /= static_cast<double>(s.requests.size());
  const auto n = static_cast<double>(s.workers.front().contents.size()),
             streams = static_cast<double>(s.requests.size());
  const run_summary sum = s.summary();
  for (const iteration_class& c : sum.decode) decodes += c.count * c.mean.decodes;
  CHECK(sum.output_tokens == outputs);
  CHECK(decodes == Approx(outputs - streams));
  CHECK(sum.decode.size() < s.workers.front().contents.size() / 4);

  const class_times ones{{}, std::vector<double>(sum.decode.size(), 1.0)};
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
  for (const request_record& r : s.requests) prompt += static_cast<double>(r.input) / streams;
  CHECK(held.ttft_s == Approx(ttft + 3 + 2 + 0.01 * prompt));
  CHECK(held.tpot_s == t.tpot_s);
}

TEST_CASE("Classes of iterations give the times of the iterations themselves within half a percent") {
  const platform p = small_machine();
  const stack s = small_stack();
  const model m = small_model();
  const inference_workload w = small_workload();
  iteration_costs costs(p, s, m, w);
  const recorded loop = closed_loop(40);
  double exact = 0;
  for (const iteration& it : loop.workers.front().contents) exact += costs.time(content_of(it)).base();
  const run_summary sum = loop.summary();
  CHECK(mean_times(sum, priced(sum, costs), {}).makespan_s == Approx(exact).epsilon(0.005));
}

TEST_CASE("More clients slow each token down and speed the whole up") {
  const platform p = small_machine();
  const stack s = small_stack();
  const model m = small_model();
  const inference_workload w = small_workload();
  iteration_costs costs(p, s, m, w);
  double tpot = 0, rate_before = 0;
  for (const std::int64_t clients : {1, 4, 16, 64}) {
    const run_summary sum = closed_loop(clients).summary();
    const client_times t = mean_times(sum, priced(sum, costs), {});
    const double tokens_per_s = sum.output_tokens / t.makespan_s;
    CHECK(t.tpot_s > tpot);
    CHECK(tokens_per_s > rate_before);
    tpot = t.tpot_s;
    rate_before = tokens_per_s;
  }
}

}  // namespace
}  // namespace nvlsim
