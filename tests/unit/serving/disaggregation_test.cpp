#include "nvlsim/serving/disaggregation.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/layers/layer_slices.hpp"
#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/pooled_plan.hpp"
#include "nvlsim/serving/serving.hpp"
#include "nvlsim/serving/summary.hpp"
#include "unit/serving/inference_fixture.hpp"

namespace nvlsim {
namespace {

pool_limits roomy(int workers) {
  pool_limits out;
  out.workers = workers;
  out.worker.settings.max_num_tokens = 1000;
  out.worker.settings.max_batch_size = 100;
  out.worker.settings.prefill = prefill_policy::exclusive;
  out.worker.kv_capacity_tokens = 1'000'000;
  return out;
}

pool_prices flat(double prefill, double decode, double transfer) {
  pool_prices out;
  out.prefill = [=](const iteration&) { return prefill; };
  out.decode = [=](const iteration&) { return decode; };
  out.transfer = [=](std::int64_t) { return transfer; };
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
  schedule_limits l;
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
  pool_setup setup;
  setup.prefill = roomy(1);
  setup.decode = roomy(1);
  const pooled_schedule s = schedule_pools({{500, 11}}, setup, flat(0.5, 0.01, 0.1));
  const pooled_request& r = s.requests.front();
  CHECK(r.prefill_end_s == Approx(0.5));
  CHECK(r.decode_begin_s == Approx(0.6));
  CHECK(r.end_s == Approx(0.7));
  CHECK(s.decode.front().size() == 10);
  CHECK(s.decode.front().back().context == 510);
}

TEST_CASE("Pools do all the work of their requests once", "[disaggregation]") {
  pool_setup setup;
  setup.prefill = roomy(3);
  setup.decode = roomy(2);
  setup.decode.worker.settings.max_batch_size = 4;
  setup.concurrency = 20;
  request_lengths lengths;
  for (int i = 0; i < 100; ++i) lengths.emplace_back(100 + 37 * i % 1900, 1 + 13 * i % 50);
  const pooled_schedule s = schedule_pools(lengths, setup, flat(0.02, 0.01, 0.001));
  std::int64_t prompts = 0, decodes = 0, inputs = 0, outputs = 0;
  for (const auto& worker : s.prefill)
    for (const iteration& it : worker) {
      CHECK(it.prompt_tokens <= 1000);
      prompts += it.prompt_tokens;
    }
  for (const auto& worker : s.decode)
    for (const iteration& it : worker) {
      CHECK(it.decodes <= 4);
      decodes += it.decodes;
    }
  double pairs = 0, causal = 0;
  for (const auto& worker : s.prefill)
    for (const iteration& it : worker) pairs += it.prompt_pairs;
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
  pool_setup setup;
  setup.prompts_cached = true;
  setup.decode = roomy(1);
  const pooled_schedule apart = schedule_pools(lengths, setup, flat(0, 0.01, 0));
  schedule_limits l;
  l.kv_capacity_tokens = 1'000'000;
  const batching_schedule together = schedule_requests(lengths, l);
  REQUIRE(apart.decode.front().size() == together.iterations.size() - 1);
  for (std::size_t i = 0; i < apart.decode.front().size(); ++i) {
    CHECK(apart.decode.front()[i].decodes == together.iterations[i + 1].decodes);
    CHECK(apart.decode.front()[i].context == together.iterations[i + 1].context);
  }
}

TEST_CASE("Prefill pool without bound leaves the decode pool its closed loop", "[disaggregation]") {
  // Little's law: requests in flight over their time is the rate. A cache that comes in during an iteration waits
  // for its end, so a request takes one more than its hundred.
  pool_setup setup;
  setup.prefill = roomy(8);
  setup.decode = roomy(1);
  setup.concurrency = 10;
  const request_lengths lengths(400, {100, 101});
  const pooled_schedule s = schedule_pools(lengths, setup, flat(1e-9, 0.01, 1e-9));
  CHECK(400 / s.makespan_s == Approx(10 / (101 * 0.01)).epsilon(1e-4));
}

TEST_CASE("Saturated prefill pool sets the rate whatever the decode pool could do", "[disaggregation]") {
  pool_setup setup;
  setup.prefill = roomy(2);
  setup.prefill.worker.settings.max_num_tokens = 100;  // one prompt at a time
  setup.decode = roomy(4);
  setup.concurrency = 50;
  const pooled_schedule s = schedule_pools(request_lengths(1000, {100, 11}), setup, flat(0.1, 0.001, 0));
  CHECK(1000 / s.makespan_s == Approx(2 / 0.1).epsilon(0.01));
}

TEST_CASE("KV transfer sends what a rank holds of a prompt", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  const model m = test::small_model();
  inference_workload w = pooled_workload();
  w.prefill_pool->tp = 1;
  // Keys and values of 4 heads of 128 in 16 layers, one byte each.
  const double token = 2 * 4 * 128 * 16;
  const priced_transfer whole = kv_transfer(p, s, m, w, 1000);
  CHECK(whole.traffic.nvlink.out.base() == Approx(1000 * token));
  CHECK(whole.traffic.nic.out.base() == 0);
  CHECK(whole.time ==
        collective_time(s.collectives, p, {collective::send_recv, bytes::from_base(1000 * token), {.ranks = 2}})
            .time);
  w.prefill_pool->tp = 4;
  CHECK(kv_transfer(p, s, m, w, 1000).traffic.nvlink.out.base() == Approx(1000 * token / 4));
  w.kv_cache = precision::bf16;
  CHECK(kv_transfer(p, s, m, w, 1000).traffic.nvlink.out.base() == Approx(1000 * token / 2));
}

TEST_CASE("Classes of a schedule of pools give its means", "[disaggregation]") {
  pool_setup setup;
  setup.prefill = roomy(2);
  setup.decode = roomy(2);
  setup.decode.worker.settings.max_batch_size = 6;
  setup.concurrency = 20;
  request_lengths lengths;
  for (int i = 0; i < 100; ++i) lengths.emplace_back(100 + 37 * i % 900, 2 + 13 * i % 50);
  const pooled_schedule s = schedule_pools(lengths, setup, flat(0.02, 0.01, 0.003));
  const pooled_summary sum = summarise(s, 1);
  const client_times decode = mean_times(sum.decode, std::vector<double>(sum.decode.classes.size(), 0.01), {});
  const client_times prefill = mean_times(sum.prefill, std::vector<double>(sum.prefill.classes.size(), 0.02), {});
  double ttft = 0, tpot = 0;
  for (const pooled_request& r : s.requests) {
    ttft += (r.decode_begin_s - r.sent_s) / 100;
    tpot += (r.end_s - r.decode_begin_s) / static_cast<double>(r.output - 1) / 100;
  }
  CHECK(decode.tpot_s == Approx(tpot));
  CHECK(prefill.ttft_s + decode.ttft_s + sum.between_s == Approx(ttft));
}

TEST_CASE("Plan of pools keeps the dates of their schedule", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  const model m = test::small_model();
  const inference_workload w = pooled_workload();
  const inference_run run = plan_inference(p, s, m, w);
  REQUIRE(run.reasons.empty());
  REQUIRE(run.pools);
  CHECK(run.planned.classes.size() == 3);
  const timeline t = evaluate(run.planned);
  CHECK(t.makespan.base() == Approx(run.pools->makespan_s).epsilon(1e-12));
  for (const pooled_request& r : run.pools->requests) {
    const span last =
        t.spans[1 + static_cast<std::size_t>(r.decode_worker)].front()[static_cast<std::size_t>(r.decode_last)];
    CHECK(last.end_s == Approx(r.end_s).epsilon(1e-12));
  }
}

TEST_CASE("Pools on a clock keep the dates of the schedule of pools", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  inference_workload w = pooled_workload();
  const inference_run planned = plan_inference(p, s, test::small_model(), w);
  REQUIRE(planned.reasons.empty());
  w.objective.ttft_s = 10;
  REQUIRE(needs_clock(s, w));
  const serving_run served = serve(p, s, test::small_model(), w);
  REQUIRE(served.reasons.empty());
  CHECK(served.outcome.end_s ==
        Approx(planned.pools->makespan_s).epsilon(0.002));  // decodes are priced by interpolation
  CHECK(served.kv_capacity_tokens == planned.kv_capacity_tokens);
  double seconds_used = 0, busy = 0;
  for (const iteration_use& u : served.uses) seconds_used += u.seconds * u.gpus;
  for (const worker_record& l : served.outcome.workers) busy += l.busy_s * (l.prefills ? 2 : w.tp);
  CHECK(seconds_used == Approx(busy));
}

TEST_CASE("Pools that cannot be are refused with every reason", "[disaggregation]") {
  const platform p = test::small_machine();
  const stack s = test::stack_with_sends();
  inference_workload w = pooled_workload();
  w.load = load_kind::static_batch;
  CHECK(plan_inference(p, s, test::small_model(), w).reasons.size() == 1);
  w.load = load_kind::closed_loop;
  w.prefill_pool->tp = 3;
  w.prefill_pool->replicas = 100;
  const auto reasons = plan_inference(p, s, test::small_model(), w).reasons;
  REQUIRE(!reasons.empty());
  for (const std::string& r : reasons) CHECK(r.starts_with("prefill pool: "));
}

}  // namespace nvlsim
