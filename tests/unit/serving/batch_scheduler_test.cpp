#include "serving/batch_scheduler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace nvlsim {
namespace {

schedule_limits limits_with(preemption_policy p, std::int64_t kv_tokens, int block) {
  schedule_limits l;
  l.settings.max_num_tokens = 256;
  l.settings.max_batch_size = 64;
  l.settings.kv_reserve = 0;
  l.settings.preemption = p;
  l.kv_capacity_tokens = kv_tokens;
  l.kv_block_tokens = block;
  l.swap_capacity_tokens = 100'000;
  return l;
}

struct totals {
  std::int64_t prompt_tokens = 0, decodes = 0, prompts_ended = 0, preempted = 0, recomputed = 0, swapped = 0;
  std::map<std::int32_t, int> finished;
  bool within = true;
};

/// Sends `count` requests at once, lengths from a fixed seed, and runs the worker dry.
totals run_dry(const schedule_limits& l, int count, std::int64_t& inputs, std::int64_t& outputs) {
  batch_scheduler one(l);
  std::mt19937_64 g(7);
  inputs = outputs = 0;
  for (int i = 0; i < count; ++i) {
    const auto input = static_cast<std::int64_t>(1 + g() % 120), output = static_cast<std::int64_t>(1 + g() % 90);
    inputs += input;
    outputs += output;
    one.submit(i, input, output);
  }
  totals t;
  while (!one.idle()) {
    const iteration it = one.step();
    t.prompt_tokens += it.prompt_tokens;
    t.decodes += it.decodes;
    t.prompts_ended += it.finished_prompts;
    t.swapped += it.swapped_tokens;
    t.preempted += static_cast<std::int64_t>(one.last().preempted.size());
    t.recomputed += one.last().recomputed_tokens;
    for (const std::int32_t i : one.last().finished) ++t.finished[i];
    t.within = t.within && one.kv_tokens() >= 0 && one.kv_tokens() <= l.kv_capacity_tokens;
  }
  t.within = t.within && one.kv_tokens() == 0 && one.load() == 0;
  return t;
}

TEST_CASE("Worker conserves work through preemption by recompute") {
  for (const prefill_policy prefill :
       {prefill_policy::chunked, prefill_policy::whole_prompt, prefill_policy::exclusive}) {
    schedule_limits l = limits_with(preemption_policy::recompute, 640, 16);
    l.settings.prefill = prefill;
    std::int64_t inputs = 0, outputs = 0;
    const totals t = run_dry(l, 60, inputs, outputs);
    CHECK(t.preempted > 0);
    CHECK(t.decodes + t.prompts_ended == outputs);  // every token once
    CHECK(t.finished.size() == 60);
    CHECK(std::all_of(t.finished.begin(), t.finished.end(), [](const auto& f) { return f.second == 1; }));
    // What was given up is computed again, with the token that each preempted sequence would have cached next.
    CHECK(t.prompt_tokens == inputs + t.recomputed + t.preempted);
    CHECK(t.within);
  }
}

std::vector<iteration> iterations_of(const schedule_limits& l) {
  batch_scheduler one(l);
  std::mt19937_64 g(11);
  for (int i = 0; i < 60; ++i)
    one.submit(i, static_cast<std::int64_t>(1 + g() % 120), static_cast<std::int64_t>(1 + g() % 90));
  std::vector<iteration> out;
  while (!one.idle()) out.push_back(one.step());
  return out;
}

TEST_CASE("Worker with drafts grows caches as one without does when a step gives one token") {
  for (const auto preemption : {preemption_policy::recompute, preemption_policy::swap})
    for (const prefill_policy prefill : {prefill_policy::chunked, prefill_policy::exclusive}) {
      schedule_limits l = limits_with(preemption, 640, 16);
      l.settings.prefill = prefill;
      const auto plain = iterations_of(l);
      l.tokens_per_step = 1 + 1e-9;
      CHECK(iterations_of(l) == plain);
    }
}

TEST_CASE("Worker with drafts preempts, holds no more than there is, and ends every request") {
  for (const auto preemption : {preemption_policy::recompute, preemption_policy::swap})
    for (const int block : {1, 16}) {
      schedule_limits l = limits_with(preemption, 640, block);
      l.tokens_per_step = 2.6;
      std::int64_t inputs = 0, outputs = 0;
      const totals t = run_dry(l, 60, inputs, outputs);
      CHECK(t.preempted > 0);
      CHECK(t.finished.size() == 60);
      CHECK(std::all_of(t.finished.begin(), t.finished.end(), [](const auto& f) { return f.second == 1; }));
      CHECK(t.decodes < outputs / 2);
      CHECK(t.within);
    }
}

TEST_CASE("Worker decodes caches that come from elsewhere, and computes only what it gave up") {
  for (const auto preemption : {preemption_policy::none, preemption_policy::recompute, preemption_policy::swap}) {
    schedule_limits l = limits_with(preemption, 640, 16);
    if (preemption == preemption_policy::none) l.settings.kv_reserve = 1;
    batch_scheduler one(l);
    std::mt19937_64 g(7);
    std::int64_t left = 0, decodes = 0, prompt_tokens = 0, preempted = 0, recomputed = 0, resumed = 0, taken = 0,
                 finished = 0;
    for (int i = 0; i < 60; ++i) {
      const auto input = static_cast<std::int64_t>(1 + g() % 120),
                 output = static_cast<std::int64_t>(2 + g() % 90);
      left += output - 1;
      one.submit_cached(i, input, output);
    }
    while (!one.idle()) {
      const iteration it = one.step();
      decodes += it.decodes;
      prompt_tokens += it.prompt_tokens;
      preempted += static_cast<std::int64_t>(one.last().preempted.size());
      recomputed += one.last().recomputed_tokens;
      resumed += static_cast<std::int64_t>(one.last().resumed.size());
      taken += static_cast<std::int64_t>(one.last().taken_over.size());
      finished += static_cast<std::int64_t>(one.last().finished.size());
      CHECK(one.kv_tokens() <= l.kv_capacity_tokens);
    }
    CHECK(taken == 60);
    CHECK(finished == 60);
    CHECK(decodes + resumed == left);  // what is computed again gives a token, too
    CHECK((preempted > 0) == (preemption != preemption_policy::none));
    CHECK(prompt_tokens == recomputed + (preemption == preemption_policy::recompute ? preempted : 0));
    CHECK(one.kv_tokens() == 0);
  }
}

TEST_CASE("Worker conserves work through preemption by swapping") {
  for (const prefill_policy prefill : {prefill_policy::chunked, prefill_policy::exclusive}) {
    schedule_limits l = limits_with(preemption_policy::swap, 640, 16);
    l.settings.prefill = prefill;
    std::int64_t inputs = 0, outputs = 0;
    const totals t = run_dry(l, 60, inputs, outputs);
    CHECK(t.preempted > 0);
    CHECK(t.decodes + t.prompts_ended == outputs);
    CHECK(t.prompt_tokens == inputs + t.recomputed);
    CHECK(t.swapped > 0);
    CHECK(t.swapped % 2 == 0);  // out and in
    CHECK(t.finished.size() == 60);
    CHECK(t.within);
  }
}

TEST_CASE("Worker that never fills its cache preempts nobody and holds less than reservations") {
  std::int64_t inputs = 0, outputs = 0;
  const totals t = run_dry(limits_with(preemption_policy::recompute, 1 << 20, 16), 60, inputs, outputs);
  CHECK(t.preempted == 0);
  CHECK(t.prompt_tokens == inputs);
  batch_scheduler grown(limits_with(preemption_policy::recompute, 1 << 20, 16));
  grown.submit(0, 20, 100);
  grown.step();
  CHECK(grown.kv_tokens() == 32);
  for (int i = 0; i < 12; ++i) grown.step();
  CHECK(grown.kv_tokens() == 32);
  grown.step();  // the 33rd token is cached
  CHECK(grown.kv_tokens() == 48);
}

TEST_CASE("A scheduler that works ahead has decided on the next iteration when a request comes") {
  // Requests come before the fourth iteration, and are admitted `due` iterations later.
  struct arrival {
    bool ahead;
    std::int64_t poll;
    int due;
  };
  for (const auto& [ahead, poll, due] : {arrival{false, 1, 0}, {true, 1, 1}, {false, 4, 2}, {true, 4, 3}}) {
    CAPTURE(ahead, poll);
    schedule_limits l = limits_with(preemption_policy::none, 1 << 20, 16);
    l.settings.schedule_ahead = ahead;
    l.settings.poll_interval = poll;
    batch_scheduler one(l);
    one.submit(0, 100, 50);
    CHECK(one.step().prompt_tokens == 100);  // nothing else was there to decide on
    one.step();                              // a poll
    one.step();
    one.submit(1, 70, 50);
    one.submit(2, 30, 50);
    for (int i = 0; i < due; ++i) CHECK(one.step().prompt_tokens == 0);
    const iteration it = one.step();
    CHECK(it.prompt_tokens == 100);
    CHECK(it.decodes == 1);
    while (!one.idle()) one.step();
    one.submit(3, 40, 5);
    CHECK(one.step().prompt_tokens == 40);
  }
}

TEST_CASE("A scheduler that works ahead has counted on what waited for it") {
  schedule_limits l = limits_with(preemption_policy::none, 1 << 20, 16);
  l.settings.schedule_ahead = true;
  batch_scheduler one(l);
  one.submit_cached(0, 100, 50);
  CHECK(one.step().decodes == 1);
  one.submit_cached(1, 100, 50);
  CHECK(one.step().decodes == 2);
  one.submit(2, 70, 50);
  one.submit(3, 30, 50, {.prefixes = {}, .fetched_from = 0, .fetched_to = 0, .expected = true});
  CHECK(one.step().prompt_tokens == 30);
  CHECK(one.step().prompt_tokens == 70);
}

TEST_CASE("Worker computes only what its prefix cache lacks") {
  schedule_limits l = limits_with(preemption_policy::none, 1 << 20, 16);
  l.settings.prefix_cache = true;
  l.prefix_tokens = 32;
  batch_scheduler one(l);
  const std::vector<prefix_cache::name> first = {1, 2, 3, 4}, second = {1, 2, 9, 10};
  one.submit(0, 130, 3, {first});
  CHECK(one.step().prompt_tokens == 130);
  CHECK(one.cached_tokens(second, 128) == 64);
  CHECK(one.cached_tokens(first, 128) == 96);  // the last token is computed anew, and its block with it
  one.submit(1, 130, 3, {second});
  const iteration it = one.step();
  CHECK(it.prompt_tokens == 66);
  CHECK(it.prompt_pairs == 130.0 * 131 / 2 - 64.0 * 65 / 2);
  CHECK(one.last().admitted.front() == batch_scheduler::admission{1, 64, 0});
  while (!one.idle()) one.step();
  CHECK(one.kv_tokens() == 0);
  one.submit(2, 130, 1, {first});
  CHECK(one.step().prompt_tokens == 2);  // kept after its request has gone
}

TEST_CASE("What was fetched of a prompt counts once, and only where it joins what is cached") {
  schedule_limits l = limits_with(preemption_policy::none, 1 << 20, 16);
  l.settings.prefix_cache = true;
  l.prefix_tokens = 32;
  const std::vector<prefix_cache::name> whole = {1, 2, 3, 4}, half = {1, 2};
  // The cache has `cached` tokens of the prompt when a request begins for which [from, to) were fetched.
  const auto begins = [&](std::int64_t cached, std::int64_t from, std::int64_t to) {
    batch_scheduler one(l);
    if (cached > 0) one.submit(0, cached + 1, 1, {cached > 64 ? whole : half, 0, 0});
    while (!one.idle()) one.step();
    one.submit(1, 130, 2, {whole, from, to});
    one.step();
    return one.last().admitted.front();
  };
  CHECK(begins(64, 64, 128) == batch_scheduler::admission{1, 128, 64});
  CHECK(begins(128, 64, 128) ==
        batch_scheduler::admission{1, 128, 0});  // another request has computed it meanwhile
  CHECK(begins(128, 0, 64) == batch_scheduler::admission{1, 128, 0});
  CHECK(begins(0, 64, 128) == batch_scheduler::admission{1, 0, 0});  // what lay before it has gone
  CHECK(begins(0, 0, 128) == batch_scheduler::admission{1, 128, 128});
}

TEST_CASE("Worker gives up cached blocks used longest ago when requests need the room") {
  schedule_limits l = limits_with(preemption_policy::none, 256, 16);
  l.settings.prefix_cache = true;
  l.prefix_tokens = 32;
  batch_scheduler one(l);
  const auto serve = [&](std::int32_t i, const std::vector<prefix_cache::name>& names) {
    one.submit(i, 97, 1, {names});
    const std::int64_t computed = one.step().prompt_tokens;
    CHECK(one.idle());
    return computed;
  };
  const std::vector<prefix_cache::name> a = {1, 2, 3}, b = {4, 5, 6}, c = {7, 8, 9};
  CHECK(serve(0, a) == 97);
  CHECK(serve(1, b) == 97);
  CHECK(serve(2, a) == 1);
  CHECK(serve(3, c) == 97);  // 112 tokens of its own leave four blocks of 32 besides
  CHECK(serve(4, a) == 1);   // the end of b went first
  CHECK(serve(5, b) == 65);
}

}  // namespace
}  // namespace nvlsim
