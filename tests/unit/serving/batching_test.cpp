#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/serving/inference.hpp"
#include "support/steps.hpp"
#include "support/token_time.hpp"

namespace nvlsim {
namespace {

using test::batching_schedule, test::loop_limits, test::schedule_offline, test::schedule_requests;

constexpr auto chunked = prefill_policy::chunked, whole_prompts = prefill_policy::whole_prompt;
constexpr std::int64_t plenty = std::int64_t{1} << 40;

request_lengths random_lengths(std::uint64_t seed, int count, int longest_input, int longest_output) {
  std::mt19937_64 g(seed);
  request_lengths out;
  for (int i = 0; i < count; ++i)
    out.emplace_back(1 + static_cast<std::int64_t>(g() % static_cast<std::uint64_t>(longest_input)),
                     1 + static_cast<std::int64_t>(g() % static_cast<std::uint64_t>(longest_output)));
  return out;
}

/// The scheduler again, slowly: every running sequence is looked at in every iteration.
struct replayed {
  std::vector<std::int64_t> decodes, context, first_tokens, sequences, kv_tokens;
};
replayed replay(const batching_schedule& s, int block) {
  const std::size_t n = s.iterations.size();
  replayed r{std::vector<std::int64_t>(n), std::vector<std::int64_t>(n), std::vector<std::int64_t>(n),
             std::vector<std::int64_t>(n), std::vector<std::int64_t>(n)};
  for (const test::token_progress& q : s.requests) {
    r.first_tokens[static_cast<std::size_t>(q.first_token)] += 1;
    for (std::int32_t i = q.admitted; i <= q.last_token; ++i) {
      const auto at = static_cast<std::size_t>(i);
      r.sequences[at] += 1;
      r.kv_tokens[at] += (q.input + q.output + block - 1) / block * block;
      if (i <= q.first_token) continue;
      r.decodes[at] += 1;
      r.context[at] += q.input + (i - q.first_token);
    }
  }
  return r;
}

struct limits {
  std::int64_t tokens, sequences;
  bool chunked;
  std::int64_t kv;
  int block;
};

void check_invariants(const request_lengths& lengths, const limits& l) {
  const batching_schedule s =
      schedule_offline(lengths, l.tokens, l.sequences, l.chunked ? chunked : whole_prompts, l.kv, l.block);
  const replayed r = replay(s, l.block);
  std::int64_t inputs = 0, outputs = 0, prompt_tokens = 0, decodes = 0, first_tokens = 0;
  double pairs = 0, prompt_pairs = 0;
  for (const auto& [i, o] : lengths) {
    inputs += i;
    outputs += o;
    pairs += static_cast<double>(i) * static_cast<double>(i + 1) / 2;
  }
  std::int64_t peak = 0;
  bool same = true, within = true;
  for (std::size_t i = 0; i < s.iterations.size(); ++i) {
    const iteration& it = s.iterations[i];
    prompt_tokens += it.prompt_tokens;
    decodes += it.decodes;
    first_tokens += it.finished_prompts;
    prompt_pairs += it.prompt_pairs;
    peak = std::max(peak, r.kv_tokens[i]);
    same = same && it.decodes == r.decodes[i] && it.context == r.context[i] &&
           it.finished_prompts == r.first_tokens[i];
    within = within && it.decodes + it.prompt_tokens <= l.tokens && it.decodes + it.prompt_tokens > 0 &&
             r.sequences[i] <= l.sequences && r.kv_tokens[i] <= l.kv && it.prompts <= it.finished_prompts + 1 &&
             (l.chunked || it.prompts == it.finished_prompts);
  }
  CHECK(same);
  CHECK(within);
  CHECK(peak == s.peak_kv_tokens);
  CHECK(prompt_tokens == inputs);
  CHECK(prompt_pairs == pairs);
  CHECK(first_tokens == static_cast<std::int64_t>(lengths.size()));
  CHECK(decodes == outputs - first_tokens);

  bool in_order = true, whole_output = true;
  for (std::size_t i = 0; i < s.requests.size(); ++i) {
    const test::token_progress& q = s.requests[i];
    whole_output = whole_output && q.last_token - q.first_token == q.output - 1 && q.admitted <= q.first_token &&
                   q.input == lengths[i].first && q.output == lengths[i].second;
    if (i)
      in_order =
          in_order && s.requests[i - 1].admitted <= q.admitted && s.requests[i - 1].first_token <= q.first_token;
  }
  CHECK(in_order);
  CHECK(whole_output);
}

TEST_CASE("Offline schedule of one request is its prompt and then its output") {
  const batching_schedule s = schedule_offline({{100, 4}}, 64, 8, chunked, plenty, 32);
  REQUIRE(s.iterations.size() == 5);  // two chunks, the second with the first token, and three decodes
  CHECK(s.iterations[0].prompt_tokens == 64);
  CHECK(s.iterations[0].prompt_pairs == 64 * 65 / 2);
  CHECK(s.iterations[0].finished_prompts == 0);
  CHECK(s.iterations[1].prompt_tokens == 36);
  CHECK(s.iterations[1].prompt_pairs == 100 * 101 / 2 - 64 * 65 / 2);
  CHECK(s.iterations[1].finished_prompts == 1);
  for (int i = 2; i < 5; ++i) {
    CHECK(s.iterations[static_cast<std::size_t>(i)].decodes == 1);
    CHECK(s.iterations[static_cast<std::size_t>(i)].context == 100 + i - 1);
  }
  CHECK(s.peak_kv_tokens == 128);  // 104 tokens in blocks of 32
}

TEST_CASE("Offline schedule of equal requests that fit together is one prefill and O - 1 decodes") {
  const request_lengths equal(16, {32, 10});
  const batching_schedule s = schedule_offline(equal, 16 * 32, 16, whole_prompts, plenty, 1);
  REQUIRE(s.iterations.size() == 10);
  CHECK(s.iterations[0].prompts == 16);
  CHECK(s.iterations[0].decodes == 0);
  for (std::int64_t i = 1; i < 10; ++i) {
    CHECK(s.iterations[static_cast<std::size_t>(i)].decodes == 16);
    CHECK(s.iterations[static_cast<std::size_t>(i)].context == 16 * (32 + i));
  }
}

TEST_CASE("Offline schedule of waves needs whole waves when the batch limit binds") {
  const request_lengths equal(12, {8, 5});
  // Four at a time; the next four enter the iteration after the last token of those before.
  CHECK(schedule_offline(equal, 1000, 4, chunked, plenty, 1).iterations.size() == 3 * 5);
  // The same limit by memory: 13 tokens a request.
  CHECK(schedule_offline(equal, 1000, 100, chunked, 4 * 13 + 12, 1).iterations.size() == 3 * 5);
}

TEST_CASE("Offline schedule keeps whole prompts together without chunked prefill") {
  const batching_schedule s = schedule_offline({{40, 2}, {40, 2}}, 64, 8, whole_prompts, plenty, 1);
  CHECK(s.iterations[0].prompt_tokens == 40);
  CHECK(s.iterations[1].prompt_tokens == 40);
  CHECK(s.iterations[1].decodes == 1);
}

TEST_CASE("Offline schedule ends a request of one output token with its prompt") {
  const batching_schedule s = schedule_offline({{5, 1}, {5, 1}, {5, 1}}, 100, 1, chunked, plenty, 1);
  REQUIRE(s.iterations.size() == 3);
  for (const iteration& it : s.iterations) {
    CHECK(it.decodes == 0);
    CHECK(it.finished_prompts == 1);
  }
}

TEST_CASE("Offline schedule conserves tokens, keeps every limit and serves in order") {
  const request_lengths mixed = random_lengths(1, 400, 300, 200);
  for (const limits& l :
       {limits{4096, 256, true, plenty, 32}, limits{300, 64, false, plenty, 16}, limits{97, 1000, true, 1200, 32},
        limits{1, 5, true, 512, 32}, limits{64, 1, true, 512, 1}, limits{1000, 1000, true, 512, 7}})
    check_invariants(mixed, l);
  for (std::uint64_t seed = 2; seed < 40; ++seed) {
    std::mt19937_64 g(seed * 977);
    const limits l{static_cast<std::int64_t>(40 + g() % 200), static_cast<std::int64_t>(1 + g() % 60),
                   g() % 2 == 0, static_cast<std::int64_t>(128 + g() % 2000), static_cast<int>(1 + g() % 64)};
    check_invariants(random_lengths(seed, 120, 40, 24), l);
  }
}

TEST_CASE("Offline schedule with no requests is empty") {
  CHECK(schedule_offline({}, 10, 10, chunked, plenty, 32).iterations.empty());
}

TEST_CASE("Offline schedule refuses a request that fits no iteration") {
  CHECK_THROWS_AS(schedule_offline({{100, 1}}, 50, 8, whole_prompts, plenty, 1), internal_error);
  CHECK_THROWS_AS(schedule_offline({{100, 1}}, 50, 8, chunked, 64, 32), internal_error);
}

loop_limits closed(prefill_policy prefill, std::int64_t tokens, std::int64_t clients) {
  loop_limits l;
  l.settings.prefill = prefill;
  l.settings.max_num_tokens = tokens;
  l.settings.max_batch_size = 1000;
  l.kv_capacity_tokens = plenty;
  l.concurrency = clients;
  return l;
}

TEST_CASE("Closed loop keeps as many requests in flight as there are clients") {
  const request_lengths mixed = random_lengths(5, 300, 60, 40);
  for (const prefill_policy policy : {chunked, whole_prompts, prefill_policy::exclusive}) {
    const batching_schedule s = schedule_requests(mixed, closed(policy, 128, 7));
    std::vector<int> in_flight(s.iterations.size());
    std::int64_t decodes = 0, prompt_tokens = 0, inputs = 0, outputs = 0;
    for (const test::token_progress& q : s.requests) {
      inputs += q.input;
      outputs += q.output;
      CHECK(q.arrived <= q.admitted);
      for (std::int32_t i = q.arrived; i <= q.last_token; ++i) ++in_flight[static_cast<std::size_t>(i)];
    }
    for (const iteration& it : s.iterations) {
      decodes += it.decodes;
      prompt_tokens += it.prompt_tokens;
    }
    CHECK(prompt_tokens == inputs);
    CHECK(decodes == outputs - static_cast<std::int64_t>(mixed.size()));
    // Little's law in iterations: until the last client has sent its last request, seven are there at every one.
    const auto last_arrival = static_cast<std::size_t>(s.requests.back().arrived);
    CHECK(std::all_of(in_flight.begin(), in_flight.begin() + static_cast<std::ptrdiff_t>(last_arrival),
                      [](int n) { return n == 7; }));
  }
}

TEST_CASE("Closed loop of one client is one request after the other") {
  const batching_schedule s = schedule_requests({{10, 3}, {10, 1}, {10, 2}}, closed(chunked, 100, 1));
  REQUIRE(s.iterations.size() == 6);
  CHECK(s.requests[1].arrived == 3);
  CHECK(s.requests[2].arrived == 4);
  CHECK(s.requests[2].last_token == 5);
}

TEST_CASE("Exclusive prefill makes running sequences wait") {
  // The third prompt comes when the first request ends, and misses an iteration; the one that is left decodes
  // around it.
  const batching_schedule s =
      schedule_requests({{10, 2}, {10, 4}, {10, 2}}, closed(prefill_policy::exclusive, 100, 2));
  REQUIRE(s.iterations.size() == 5);
  CHECK(s.iterations[0].prompts == 2);
  CHECK(s.iterations[1].decodes == 2);
  CHECK(s.iterations[2].decodes == 1);
  CHECK(s.iterations[3].prompts == 1);
  CHECK(s.iterations[3].decodes == 0);
  CHECK(s.iterations[4].decodes == 2);
  CHECK(s.requests[1].last_token == 4);
  CHECK(s.requests[2].last_token == 4);
}

TEST_CASE("A poll interval and a batch wait delay first tokens and lose no token") {
  const loop_limits plain = closed(chunked, 256, 8);
  const auto wait = [&](const loop_limits& l) {
    const batching_schedule s = schedule_requests(random_lengths(9, 200, 20, 40), l);
    double sum = 0;
    for (const test::token_progress& q : s.requests) sum += q.admitted - q.arrived;
    return sum / static_cast<double>(s.requests.size());
  };
  CHECK(wait(plain) > 0.5);  // all but the first prompts miss an iteration
  CHECK(wait(plain) < 1);
  loop_limits polled = plain;
  polled.settings.poll_interval = 10;
  CHECK(wait(polled) > 1);
  CHECK(wait(polled) < 10);
  loop_limits waiting = plain;
  waiting.settings.batch_wait_iterations = 5;
  waiting.settings.batch_wait_ratio = 0.9;
  CHECK(wait(waiting) > 1);
  CHECK(wait(waiting) < 10);
}

TEST_CASE("An engine that looks for requests now and then does so whether there were some or not") {
  // One request decodes for a thousand iterations; others of one token come far apart, each at a random phase.
  loop_limits l = closed(prefill_policy::exclusive, 4096, 2);
  l.settings.poll_interval = 10;
  request_lengths lengths = {{10, 1000}};
  const request_lengths others = random_lengths(3, 40, 10, 60);
  lengths.insert(lengths.end(), others.begin(), others.end());
  const batching_schedule s = schedule_requests(lengths, l);
  double sum = 0;
  for (std::size_t i = 2; i < 32; ++i) sum += s.requests[i].admitted - s.requests[i].arrived;
  CHECK(sum / 30 > 3.5);  // half of the interval, and not none
  CHECK(sum / 30 < 7.5);
}

TEST_CASE("Ranks of attention data parallelism each work on a prompt of their own") {
  loop_limits l;
  l.kv_capacity_tokens = plenty;
  l.ranks = 4;
  l.settings.prefill = chunked;
  l.settings.max_num_tokens = 4 * 1000;
  const batching_schedule one = schedule_requests({{3000, 2}}, l);
  CHECK(one.iterations[0].prompt_tokens == 1000);  // three ranks have nothing
  CHECK(one.requests[0].first_token == 2);
  const batching_schedule many = schedule_requests(request_lengths(8, {3000, 2}), l);
  for (int i = 0; i < 3; ++i) CHECK(many.iterations[static_cast<std::size_t>(i)].prompts == 4);
  CHECK(many.iterations[0].prompt_tokens == 4000);
  std::int64_t tokens = 0;
  for (const iteration& it : many.iterations) tokens += it.prompt_tokens;
  CHECK(tokens == 8 * 3000);
}

TEST_CASE("Prompts wait until each rank has one, and no longer than the time-out") {
  loop_limits l = closed(chunked, 4 * 4096, 16);
  l.ranks = 4;
  const auto wait = [&] {
    const batching_schedule s = schedule_requests(random_lengths(5, 400, 100, 400), l);
    double sum = 0;
    for (std::size_t i = 16; i < 300; ++i) sum += s.requests[i].admitted - s.requests[i].arrived;
    return sum / 284;
  };
  CHECK(wait() < 1.5);
  l.settings.rank_wait_iterations = 20;  // less than what four ends take: half of it on average
  const double some = wait();
  CHECK(some > 6);
  CHECK(some < 14);
  l.settings.rank_wait_iterations = 100'000;  // until four are there
  const double all = wait();
  CHECK(all > some);
  CHECK(all < 200);
  l.ranks = 1;
  CHECK(wait() < 1.5);
}

TEST_CASE(
    "Ranks with full batches have no prompt to take, however many wait, so those of others wait for theirs") {
  loop_limits l = closed(chunked, 4 * 4096, 64);
  l.ranks = 4;
  l.settings.max_batch_size = 16;
  const auto prompts_at_once = [&](std::int64_t wait) {
    l.settings.rank_wait_iterations = wait;
    const batching_schedule s = schedule_requests(random_lengths(5, 400, 100, 400), l);
    double prompts = 0, iterations = 0;
    for (std::size_t i = 50; i + 500 < s.iterations.size(); ++i) {
      prompts += static_cast<double>(s.iterations[i].prompts);
      iterations += s.iterations[i].prompts > 0 ? 1 : 0;
    }
    return prompts / iterations;
  };
  const double at_once = prompts_at_once(0), some = prompts_at_once(30), all = prompts_at_once(100'000);
  CHECK(at_once < 1.2);
  CHECK(some > 1.5 * at_once);
  CHECK(all > some);
}

TEST_CASE("Windows and states are taken of the cache with each request") {
  const request_lengths equal(30, {50, 50});
  loop_limits l = closed(chunked, 4096, 30);
  l.kv_capacity_tokens = 1000;
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 10);
  l.sequence.windowed = {{20, 3.0}};  // three layers of four see twenty tokens back
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 6);
  l.sequence.windowed = {{100'000, 3.0}};
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 2);
  l.sequence = {.states = 150, .windowed = {}};
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 4);
}

TEST_CASE("Reserving a part of the output admits more requests into the same cache, where some can be preempted") {
  const request_lengths equal(30, {50, 100});
  loop_limits l = closed(chunked, 4096, 30);
  l.kv_capacity_tokens = 1500;
  l.settings.kv_reserve = 0.5;
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 10);  // none can
  l.settings.preemption = preemption_policy::recompute;
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 15);
  l.settings.kv_reserve = 0;
  CHECK(schedule_requests(equal, l).iterations[1].decodes == 29);  // the thirtieth makes room
}

TEST_CASE("What is held is what running requests have cached, and never more than there is") {
  for (const double reserve : {0.0, 0.4, 1.0})
    for (const std::int64_t decay : {0, 50}) {
      loop_limits l = closed(chunked, 256, 40);
      l.settings.preemption = preemption_policy::recompute;
      l.settings.kv_reserve = reserve;
      l.settings.kv_reserve_decay = decay;
      l.kv_capacity_tokens = 1024;
      l.kv_block_tokens = 16;
      const request_lengths lengths = random_lengths(11, 200, 120, 200);
      batch_scheduler one(l);
      for (std::size_t i = 0; i < lengths.size(); ++i)
        one.submit(static_cast<std::int32_t>(i), lengths[i].first, lengths[i].second);
      struct held {
        std::int64_t prompt = 0, cached = 0;  ///< `cached`: 0 until it decodes
        std::int64_t tokens() const { return (std::max(prompt, cached) + 15) / 16 * 16; }
      };
      std::map<std::int32_t, held> now;
      std::map<std::int32_t, std::int64_t> again;  ///< prompt of a preempted request, by request
      std::int64_t preempted = 0;
      bool never_above = true, equal = true;
      while (!one.idle()) {
        const iteration it = one.step();
        const batch_scheduler::events& e = one.last();
        for (const std::int32_t i : e.preempted) {
          again[i] = now.at(i).cached + 1;
          now.erase(i);
          ++preempted;
        }
        if (it.decodes > 0)
          for (auto& [i, h] : now)
            if (h.cached > 0) ++h.cached;
        for (const auto& [i, cached, fetched] : e.admitted)
          now[i] = {lengths[static_cast<std::size_t>(i)].first, 0};
        for (const std::int32_t i : e.resumed) now[i] = {again.at(i), again.at(i)};
        for (const std::int32_t i : e.first_tokens) now.at(i).cached = now.at(i).prompt;
        for (const std::int32_t i : e.finished) now.erase(i);
        std::int64_t sum = 0;
        for (const auto& [i, h] : now) sum += h.tokens();
        never_above = never_above && one.peak_kv_tokens() <= l.kv_capacity_tokens;
        // Preempted prompts in progress hold memory that no event tells of.
        equal = equal && (one.kv_tokens() == sum || preempted > 0);
        if (preempted > 0) equal = equal && one.kv_tokens() >= 0;
      }
      CHECK(never_above);
      CHECK(equal);
      CHECK(one.kv_tokens() == 0);
      if (reserve == 0) CHECK(preempted > 0);
      if (reserve == 1 && decay == 0) CHECK(preempted < 10);  // blocks are whole
    }
}

TEST_CASE("Offline schedule costs changes and not batches") {
  const auto steps_of = [](int output) {
    const request_lengths lengths = random_lengths(3, 24576, 390, output);
    return test::steps_of([&] {
      const batching_schedule s = schedule_offline(lengths, 3584, 2048, chunked, plenty, 32);
      REQUIRE(s.requests.size() == lengths.size());
    });
  };
  CHECK(steps_of(8 * 548) < 4 * steps_of(548));  // visits of each request of a batch would be 8 times as many
}

}  // namespace
}  // namespace nvlsim
