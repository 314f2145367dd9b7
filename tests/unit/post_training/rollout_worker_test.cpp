#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "nvlsim/post_training/response_lengths.hpp"
#include "nvlsim/post_training/rollout_worker.hpp"
#include "nvlsim/serving/server.hpp"

namespace nvlsim {
namespace {

/// A price that is linear in what an iteration holds, as that of a memory-bound engine nearly is.
double price_of(const iteration& it) {
  return 2e-3 + 4e-5 * static_cast<double>(it.decodes) + 2e-8 * static_cast<double>(it.context) +
         1e-6 * static_cast<double>(it.prompt_tokens);
}

rollout_engine engine(std::int64_t kv_tokens, std::int64_t max_batch) {
  rollout_engine e;
  e.iteration_s = [](const iteration& it, std::int64_t) { return price_of(it); };
  e.kv_tokens = kv_tokens;
  e.max_batch = max_batch;
  e.max_tokens = 8192;
  return e;
}

/// Dates at which samples end that all come at once.
std::vector<double> played(const rollout_engine& e, std::vector<rollout_sample>& samples) {
  rollout_worker w(e, samples);
  for (std::size_t i = 0; i < samples.size(); ++i) w.add(static_cast<std::int32_t>(i), 0);
  std::vector<double> out(samples.size(), -1);
  std::vector<std::int32_t> ended;
  while (w.date() < rollout_worker::never) {
    const double t = w.date();
    ended.clear();
    w.act(t, ended);
    for (const std::int32_t i : ended) out[static_cast<std::size_t>(i)] = t;
  }
  CHECK(w.unfinished() == 0);
  CHECK(w.idle());
  return out;
}

std::vector<rollout_sample> samples_of(const std::vector<std::int64_t>& lengths, std::int64_t prompt) {
  std::vector<rollout_sample> out;
  for (const std::int64_t l : lengths) {
    rollout_sample s;
    s.prompt = prompt;
    s.response = l;
    s.group = static_cast<std::int32_t>(out.size());  // nothing is shared
    out.push_back(std::move(s));
  }
  return out;
}

/// The same requests on the serving simulator, one iteration at a time.
serving_outcome served(const std::vector<rollout_sample>& samples, const rollout_engine& e) {
  server_case c;
  for (const rollout_sample& s : samples) {
    served_request r;
    r.input = s.prompt;
    r.output = s.response;
    c.list.requests.push_back(r);
  }
  c.settings.worker.settings.prefill = prefill_policy::chunked;
  c.settings.worker.settings.preemption = preemption_policy::recompute;
  c.settings.worker.settings.kv_reserve = 0.0;
  c.settings.worker.settings.max_num_tokens = e.max_tokens;
  c.settings.worker.settings.max_batch_size = e.max_batch;
  c.settings.worker.kv_capacity_tokens = e.kv_tokens;
  c.price = [](std::size_t, const iteration& it) { return iteration_price{price_of(it), 0}; };
  std::vector<server_case> cases;
  cases.push_back(std::move(c));
  return std::move(serve_by_queue(cases).outcomes.front());
}

TEST_CASE("A worker ends its samples when the serving simulator does") {
  for (const std::int64_t max_batch : {1024, 48}) {  // all at once, and through a queue
    auto samples = samples_of(sample_responses({800, 2000, 10, 0.3}, 30, 8, 4), 130);
    const rollout_engine e = engine(1 << 22, max_batch);
    const serving_outcome s = served(samples, e);
    const std::vector<double> ours = played(e, samples);
    CHECK(*std::max_element(ours.begin(), ours.end()) == Approx(s.end_s).epsilon(0.01));
    double mean = 0, theirs = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      mean += ours[i];
      theirs += s.requests[i].last_token_s;
    }
    CHECK(mean == Approx(theirs).epsilon(0.015));
  }
}

TEST_CASE("A full cache preempts samples, and costs what the serving simulator says") {
  auto samples = samples_of(sample_responses({800, 2000, 10, 0.3}, 30, 8, 4), 130);
  const rollout_engine e = engine(60'000, 1024);
  const serving_outcome s = served(samples, e);
  const std::vector<double> ours = played(e, samples);
  CHECK(*std::max_element(ours.begin(), ours.end()) == Approx(s.end_s).epsilon(0.05));
  CHECK(s.recomputed_tokens > 0);
  const auto recomputed = [](std::int64_t sum, const rollout_sample& x) { return sum + x.recomputed; };
  CHECK(std::accumulate(samples.begin(), samples.end(), std::int64_t{0}, recomputed) > 0);
}

TEST_CASE("One sample takes its prompt and its tokens") {
  auto samples = samples_of({100}, 50);
  const std::vector<double> at = played(engine(1 << 20, 8), samples);
  // a prefill of 50 tokens, then 100 steps at a mean context of 100
  CHECK(at[0] == Approx(2e-3 + 50e-6 + 100 * (2e-3 + 4e-5 + 2e-8 * 100)));
}

TEST_CASE("Samples of a prompt compute it once, and hold it once") {
  auto apart = samples_of(std::vector<std::int64_t>(8, 100), 6000);
  auto together = apart;
  for (rollout_sample& s : together) s.group = 0;
  auto tight = together;
  const double t_apart = played(engine(1 << 20, 8), apart).back();
  const double t_together = played(engine(1 << 20, 8), together).back();
  // 42,000 tokens more, in six iterations of at most 8,192 instead of one
  CHECK(t_apart - t_together == Approx(7 * 6000 * 1e-6 + 5 * (2e-3 + 4e-5 + 2e-8 * 6000)).epsilon(0.05));
  // Eight copies of the prompt do not fit this cache; one does.
  const double t_tight = played(engine(8'000, 8), tight).back();
  CHECK(t_tight == Approx(t_together));
}

TEST_CASE("Tools hold a sample up and add to its context, while others go on") {
  auto samples = samples_of({100, 100}, 50);
  samples[0].turns = 2;
  samples[0].tool_tokens = 40;
  samples[0].tool_s = {10};
  const std::vector<double> at = played(engine(1 << 20, 8), samples);
  CHECK(at[1] < 0.3);
  CHECK(at[0] > 10 + 0.2);
  CHECK(at[0] < 10 + 0.25);
}

TEST_CASE("A pause delays all by its length; lost caches cost their prefill") {
  std::vector<double> end;
  for (const int how : {0, 1, 2}) {
    auto samples = samples_of({1000}, 1000);
    const rollout_engine e = engine(1 << 20, 8);
    rollout_worker w(e, samples);
    w.add(0, 0);
    std::vector<std::int32_t> ended;
    w.act(w.date(), ended);  // the prompt
    if (how > 0) w.pause(1, 5, how == 2);
    while (ended.empty()) {
      end.resize(static_cast<std::size_t>(how) + 1);
      end.back() = w.date();
      w.act(w.date(), ended);
    }
  }
  CHECK(end[1] - end[0] == Approx(5));
  CHECK(end[2] - end[1] == Approx(2e-3 + 1e-6 * (1000 + 480)).margin(3e-3));
}

TEST_CASE("What is stopped keeps its tokens") {
  auto samples = samples_of({1000, 1000}, 100);
  const rollout_engine e = engine(1 << 20, 8);
  rollout_worker w(e, samples);
  w.add(0, 0);
  w.add(1, 0);
  std::vector<std::int32_t> ended;
  while (w.date() < 1.0) w.act(w.date(), ended);
  const auto taken = w.stop(1.0);
  CHECK(taken.size() == 2);
  CHECK(w.idle());
  // 1 s at about 2.08 ms a step
  CHECK(samples[0].done + samples[1].done == Approx(2 * 1.0 / 2.085e-3).epsilon(0.02));
}

}  // namespace
}  // namespace nvlsim
