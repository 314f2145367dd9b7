#include "nvlsim/serving/pools.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/serving.hpp"
#include "nvlsim/serving/summary.hpp"
#include "support/play_server.hpp"
#include "support/token_time.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

using test::batching_schedule, test::loop_limits, test::requests_of, test::schedule_requests;

schedule_limits roomy() {
  schedule_limits out;
  out.settings.max_num_tokens = 1000;
  out.settings.max_batch_size = 100;
  out.settings.prefill = prefill_policy::exclusive;
  out.kv_capacity_tokens = 1'000'000;
  return out;
}

/// Pools of roomy workers; a transfer takes that many seconds.
server_settings pools(std::int64_t prefill, std::int64_t decode, double transfer_s) {
  server_settings out;
  out.worker = roomy();
  out.workers = decode;
  out.prefill = prefill_settings{roomy(), prefill, [=](std::int64_t, std::size_t, std::size_t) {
                                   return cache_transfer{transfer_s, nullptr};
                                 }};
  return out;
}

/// What the workers of pools ran, whose iterations take that many seconds.
struct pooled_run {
  serving_outcome outcome;
  std::vector<worker_iterations> workers;
};
pooled_run run_pools(const request_lengths& lengths, server_settings s, double prefill_s, double decode_s) {
  pooled_run out;
  s.keep_iterations = true;
  const auto decoding = static_cast<std::size_t>(s.workers);
  out.workers.resize(decoding + static_cast<std::size_t>(s.prefill ? s.prefill->workers : 0));
  out.outcome = test::serve_requests(requests_of(lengths), s, [&](std::size_t worker, const iteration& it) {
    out.workers[worker].contents.push_back(it);
    return iteration_price{worker < decoding ? decode_s : prefill_s, 0};
  });
  for (std::size_t i = 0; i < out.workers.size(); ++i) {
    out.workers[i].prefills = i >= decoding;
    for (const traced_iteration& t : out.outcome.workers[i].iterations) {
      out.workers[i].begin_s.push_back(t.begin_s);
      out.workers[i].end_s.push_back(t.end_s);
    }
  }
  return out;
}

inference_workload pooled_workload() {
  inference_workload w = test::small_workload();
  w.load = load_kind::closed_loop;
  w.concurrency = 12;
  w.replicas = 2;
  w.prefill_pool = pool_layout{};
  w.prefill_pool->tp = 2;
  return w;
}

}  // namespace

TEST_CASE("Expected tokens of a step follow the acceptance of guesses", "[disaggregation]") {
  CHECK(expected_tokens_per_step(0, 0.8) == 1);
  CHECK(expected_tokens_per_step(3, 0) == 1);
  CHECK(expected_tokens_per_step(3, 1) == 4);
  CHECK(expected_tokens_per_step(3, 0.8) == Approx(1 + 0.8 + 0.64 + 0.512));
  CHECK(decode_steps(0, 2.5) == 0);
  CHECK(decode_steps(1, 2.5) == 1);
  CHECK(decode_steps(100, 2.5) == 40);
}

TEST_CASE("Schedule with drafts takes fewer steps over the same context", "[disaggregation]") {
  loop_limits l;
  l.kv_capacity_tokens = 100'000;
  l.settings.kv_reserve = 1;
  const request_lengths one = {{100, 41}};
  const batching_schedule plain = schedule_requests(one, l);
  l.tokens_per_step = 2;
  const batching_schedule drafted = schedule_requests(one, l);
  CHECK(plain.iterations.size() == 41);
  CHECK(drafted.iterations.size() == 21);
  CHECK(plain.iterations.back().context == 140);
  CHECK(drafted.iterations.back().context == 140);
}

TEST_CASE("Drafts cost the rows that they are checked with", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::small_stack();
  model m = test::small_model();
  m.mtp_layers = 1;
  m.mtp_block = {m.layers.back()};
  inference_workload w = test::small_workload();
  iteration_costs plain(p, s, m, w);
  const serving_memory without = plan_serving_memory(p, s, m, w);
  w.drafts = {1, 1.8};
  iteration_costs drafted(p, s, m, w);
  const iteration_content ten{10, 10 * 1000.0, 0, 0, 0, 0}, twenty{20, 10 * 1000.0, 0, 0, 0, 0};
  CHECK(drafted.time(ten) > plain.time(ten));
  // One layer of sixteen, and the LM head twice, are what the module adds to a step.
  CHECK(drafted.time(ten) < plain.time(twenty) * 1.35);

  // The module's layers are its own, whatever the model's are.
  model other = m;
  other.mtp_block = {m.layers.back(), m.layers.back(), m.layers.back()};
  const seconds layer = (iteration_costs(p, s, other, w).time(ten) - drafted.time(ten)) / 2;
  other.mtp_block.clear();
  CHECK((drafted.time(ten) - iteration_costs(p, s, other, w).time(ten)).base() == Approx(layer.base()));
  CHECK(layer > seconds{});

  // Its weights, with what joins two hidden vectors, and its cache take memory.
  const serving_memory with = plan_serving_memory(p, s, m, w);
  const auto hidden = static_cast<double>(m.hidden);
  const double weights =
      slice_layers(m.mtp_block, m.hidden, {1, 1, 1}).front().gemm_weights(hidden) + 2 * 2 * hidden * hidden;
  CHECK((with.report.items.front().size - without.report.items.front().size).base() == Approx(weights));
  CHECK((with.kv_per_token / without.kv_per_token) == Approx(1 + 1.0 / static_cast<double>(m.layers.size())));
}

TEST_CASE("Pools with one request take prefill, transfer and decode in turn", "[disaggregation]") {
  const pooled_run run = run_pools({{500, 11}}, pools(1, 1, 0.1), 0.5, 0.01);
  const request_record& r = run.outcome.requests.front();
  CHECK(r.prefilled_s == Approx(0.5));
  CHECK(r.first_token_s == Approx(0.6));
  CHECK(r.last_token_s == Approx(0.7));
  CHECK(run.workers.front().contents.size() == 10);
  CHECK(run.workers.front().contents.back().context == 510);
}

TEST_CASE("Pools do all the work of their requests once", "[disaggregation]") {
  server_settings s = pools(3, 2, 0.001);
  s.worker.settings.max_batch_size = 4;
  s.clients = 20;
  request_lengths lengths;
  for (int i = 0; i < 100; ++i) lengths.emplace_back(100 + 37 * i % 1900, 1 + 13 * i % 50);
  std::int64_t prompts = 0, decodes = 0, inputs = 0, outputs = 0;
  double pairs = 0, causal = 0;
  for (const worker_iterations& w : run_pools(lengths, s, 0.02, 0.01).workers)
    for (const iteration& it : w.contents) {
      CHECK(it.prompt_tokens <= 1000);
      CHECK(it.decodes <= 4);
      prompts += it.prompt_tokens;
      decodes += it.decodes;
      pairs += it.prompt_pairs;
    }
  for (const auto& [input, output] : lengths) {
    inputs += input;
    outputs += output - 1;
    causal += 0.5 * static_cast<double>(input) * static_cast<double>(input + 1);
  }
  CHECK(prompts == inputs);
  CHECK(decodes == outputs);
  CHECK(pairs == Approx(causal));
}

TEST_CASE("Decode workers alone run the iterations of an engine whose prompts cost nothing", "[disaggregation]") {
  const request_lengths lengths(16, {200, 33});
  server_settings s;
  s.prompts_cached = true;
  s.worker = roomy();
  const pooled_run apart = run_pools(lengths, s, 0, 0.01);
  loop_limits l;
  l.kv_capacity_tokens = 1'000'000;
  const batching_schedule together = schedule_requests(lengths, l);
  const std::vector<iteration>& decoded = apart.workers.front().contents;
  REQUIRE(decoded.size() == together.iterations.size() - 1);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    CHECK(decoded[i].decodes == together.iterations[i + 1].decodes);
    CHECK(decoded[i].context == together.iterations[i + 1].context);
  }
}

TEST_CASE("Prefill pool without bound leaves the decode pool its closed loop", "[disaggregation]") {
  // Little's law: requests in flight over their time is the rate. A cache that comes in during an iteration waits
  // for its end, so a request takes one more than its hundred.
  server_settings s = pools(8, 1, 1e-9);
  s.clients = 10;
  const pooled_run run = run_pools(request_lengths(400, {100, 101}), s, 1e-9, 0.01);
  CHECK(400 / run.outcome.end_s == Approx(10 / (101 * 0.01)).epsilon(1e-4));
}

TEST_CASE("Saturated prefill pool sets the rate whatever the decode pool could do", "[disaggregation]") {
  server_settings s = pools(2, 4, 0);
  s.prefill->worker.settings.max_num_tokens = 100;  // one prompt at a time
  s.clients = 50;
  const pooled_run run = run_pools(request_lengths(1000, {100, 11}), s, 0.1, 0.001);
  CHECK(1000 / run.outcome.end_s == Approx(2 / 0.1).epsilon(0.01));
}

TEST_CASE("KV transfer sends what a rank holds of a prompt", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  const model m = test::small_model();
  inference_workload w = pooled_workload();
  w.prefill_pool->tp = 1;
  // Keys and values of 4 heads of 128 in 16 layers, one byte each.
  const double token = 2 * 4 * 128 * 16;
  const priced_transfer whole = kv_transfer({p, s, m, w}, 1000);
  CHECK(whole.traffic.nvlink.out.base() == Approx(1000 * token));
  CHECK(whole.traffic.nic.out.base() == 0);
  CHECK(whole.time ==
        collective_time(s.collectives, p, {collective::send_recv, bytes::from_base(1000 * token), {.ranks = 2}})
            .time);
  w.prefill_pool->tp = 4;
  CHECK(kv_transfer({p, s, m, w}, 1000).traffic.nvlink.out.base() == Approx(1000 * token / 4));
  w.kv_cache = precision::bf16;
  CHECK(kv_transfer({p, s, m, w}, 1000).traffic.nvlink.out.base() == Approx(1000 * token / 2));
}

TEST_CASE("Classes of the iterations of pools give their means", "[disaggregation]") {
  server_settings s = pools(2, 2, 0.003);
  s.worker.settings.max_batch_size = 6;
  s.clients = 20;
  request_lengths lengths;
  for (int i = 0; i < 100; ++i) lengths.emplace_back(100 + 37 * i % 900, 2 + 13 * i % 50);
  const pooled_run run = run_pools(lengths, s, 0.02, 0.01);
  const run_summary sum = summarise(run.workers, run.outcome.requests);
  const client_times t = mean_times(
      sum, {std::vector<double>(sum.prefill.size(), 0.02), std::vector<double>(sum.decode.size(), 0.01)}, {});
  double ttft = 0, tpot = 0;
  for (const request_record& r : run.outcome.requests) {
    ttft += (r.first_token_s - r.arrival_s) / 100;
    tpot += (r.last_token_s - r.first_token_s) / static_cast<double>(r.output - 1) / 100;
  }
  CHECK(t.tpot_s == Approx(tpot));
  CHECK(t.ttft_s == Approx(ttft));
}

TEST_CASE("Time of the workers of pools is the time of their iterations", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  const inference_workload w = pooled_workload();
  const serving_run served = serve(p, s, test::small_model(), w);
  REQUIRE(served.reasons.empty());
  double seconds_used = 0, busy = 0;
  for (const iteration_use& u : served.uses) seconds_used += u.seconds * u.gpus;
  for (const worker_record& l : served.outcome.workers) busy += l.busy_s * (l.prefills ? 2 : w.tp);
  CHECK(seconds_used == Approx(busy));
}

TEST_CASE("Pools that cannot be are refused with every reason", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  inference_workload w = pooled_workload();
  w.prefill_pool->tp = 3;
  w.prefill_pool->replicas = 100;
  const auto reasons = serve(p, s, test::small_model(), w).reasons;
  REQUIRE(!reasons.empty());
  for (const std::string& r : reasons) CHECK(r.starts_with("prefill pool: "));
}

}  // namespace nvlsim
