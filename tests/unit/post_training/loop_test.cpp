#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "nvlsim/post_training/loop.hpp"

namespace nvlsim {
namespace {

loop_prices prices(std::int64_t workers, double update_s) {
  loop_prices p;
  p.engine.iteration_s = [](const iteration& it, std::int64_t) {
    return 5e-3 + 2e-5 * static_cast<double>(it.decodes) + 1e-6 * static_cast<double>(it.prompt_tokens);
  };
  p.engine.kv_tokens = 1 << 22;
  p.engine.max_batch = 256;
  p.engine.max_tokens = 8192;
  p.workers = workers;
  // In proportion to tokens: `update_s` for 64 x 8 samples of 900 tokens.
  p.train = [update_s](const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>&) {
    const double share = std::accumulate(lengths.begin(), lengths.end(), 0.0) / (64 * 8 * 900.0);
    return update_times{0.25 * update_s * share, 0.75 * update_s * share};
  };
  p.transfer_s = 0.5;
  return p;
}

loop_settings settings() {
  loop_settings s;
  s.prompts = 64;
  s.samples = 8;
  s.prompt_tokens = 100;
  s.response = {800, 4096, 10, 0.5};
  s.mini_batch_prompts = 16;
  s.steps = 6;
  s.warmup = 4;
  return s;
}

double mean_step(const loop_record& r) { return r.measured_s / static_cast<double>(r.steps.size()); }
double mean_wait(const loop_record& r) {
  double sum = 0;
  for (const step_record& s : r.steps) sum += s.wait_s;
  return sum / static_cast<double>(r.steps.size());
}

TEST_CASE("All samples of the prompts that are trained are scored, also those that are not chosen") {
  loop_settings s = settings();
  s.trained_samples = 1;
  loop_prices p = prices(4, 10);
  std::size_t batches = 0;
  p.train = [&](const std::vector<std::int64_t>& trained, const std::vector<std::int64_t>& scored) {
    CHECK(trained.size() * 8 == scored.size());
    ++batches;
    return update_times{1, 1};
  };
  play_by_queue(s, p);
  CHECK(batches >= 6);
}

TEST_CASE("Samples of prompts that teach nothing are scored, too") {
  for (const double kept : {1.0, 0.5}) {
    loop_settings s = settings();
    s.kept_share = kept;
    loop_prices p = prices(4, 10);
    double chosen = 0, all = 0;
    p.train = [&](const std::vector<std::int64_t>& trained, const std::vector<std::int64_t>& scored) {
      chosen += static_cast<double>(trained.size());
      all += static_cast<double>(scored.size());
      return update_times{1, 1};
    };
    play_by_queue(s, p);
    CHECK(all / chosen == Approx(1 / kept).epsilon(0.15));
  }
}

TEST_CASE("The parts of every step add up to it") {
  for (const bool colocated : {true, false})
    for (const double stale : {0.0, 0.5, 1.0, 4.0})
      for (const on_update update : {on_update::drain, on_update::keep_cache, on_update::recompute})
        for (const bool streaming : {false, true}) {
          loop_settings s = settings();
          s.colocated = colocated;
          s.staleness = stale;
          s.update = update;
          s.streaming = streaming;
          loop_prices p = prices(16, 20);
          p.sample_s = 1e-3;
          p.reward_s = 0.3;
          p.to_training_s = 1;
          p.to_rollout_s = 2;
          const loop_record r = play_by_queue(s, p);
          REQUIRE(r.steps.size() == 6);
          for (const step_record& x : r.steps) {
            CHECK(x.wait_s + x.logprobs_s + x.update_s + x.remainder_s() == Approx(x.step_s()).epsilon(1e-9));
            CHECK(x.samples == 512);
          }
        }
}

TEST_CASE("Colocated phases follow one another; a batch a step early takes the longer of both") {
  loop_settings s = settings();
  s.response = {800, 4096, 1, 0};  // equal lengths: 16 workers with 32 samples, 5.64 ms a step
  const double prompts = 5e-3 + 1e-6 * (4 * 100 + 28);
  const double rollout = prompts + 800 * 5.64e-3;
  s.colocated = true;
  const loop_record turns = play_by_queue(s, prices(16, 3));
  CHECK(mean_wait(turns) == Approx(rollout).epsilon(0.01));
  CHECK(mean_step(turns) == Approx(rollout + 3 + 0.5).epsilon(0.01));
  s.colocated = false;
  s.staleness = 1;
  s.admission = admission_policy::batch;
  CHECK(mean_step(play_by_queue(s, prices(16, 3))) == Approx(rollout + 0.5).epsilon(0.01));
  CHECK(mean_step(play_by_queue(s, prices(16, 9))) == Approx(9 + 0.5).epsilon(0.01));
}

TEST_CASE("Waiting falls as staleness is allowed, and saturates") {
  std::vector<double> waits;
  for (const double stale : {0.0, 0.1, 0.3, 0.5, 1.0, 2.0}) {
    loop_settings s = settings();
    s.colocated = false;
    s.streaming = true;
    s.staleness = stale;
    s.update = on_update::keep_cache;
    s.steps = 8;
    waits.push_back(mean_wait(play_by_queue(s, prices(16, 25))));
  }
  for (std::size_t i = 1; i < waits.size(); ++i) CHECK(waits[i] <= waits[i - 1] * 1.02 + 0.05);
  CHECK(waits[2] < 0.8 * waits[0]);
  CHECK(waits[4] - waits[5] < 0.2 * (waits[0] - waits[2]));
}

TEST_CASE("No sample is older than the bound, and on-policy samples are fresh") {
  for (const double stale : {0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0})
    for (const on_update update : {on_update::drain, on_update::keep_cache, on_update::recompute})
      for (const double train_s : {0.5, 2.0, 20.0})
        for (const bool streaming : {false, true})
          for (const double kept : {1.0, 0.4}) {
            loop_settings s = settings();
            s.colocated = false;
            s.staleness = stale;
            s.update = update;
            s.streaming = streaming;
            s.kept_share = kept;
            s.response.max = 1 << 15;  // the longest outlast several steps
            s.warmup = 12;
            const loop_record r = play_by_queue(s, prices(16, train_s));
            INFO(stale << " " << static_cast<int>(update) << " " << train_s << " " << streaming << " " << kept);
            CHECK(std::accumulate(r.stale_samples.begin(), r.stale_samples.end(), std::int64_t{0}) == 6 * 512);
            CHECK(r.stale_samples.size() <= 1 + static_cast<std::size_t>(std::ceil(stale)));
            if (stale >= 1) CHECK(r.stale_samples.size() > 1);
          }
}

TEST_CASE("Rounds that give more than the bound of staleness lets train drop the oldest") {
  for (const double stale : {0.0, 1.0, 2.0}) {
    loop_settings s = settings();
    s.colocated = false;
    s.staleness = stale;
    s.admission = admission_policy::batch;
    s.kept_share = 0.5;
    s.round_prompts = 192;
    const loop_record r = play_by_queue(s, prices(16, 2));
    CHECK(r.stale_samples.size() <= 1 + static_cast<std::size_t>(stale));
  }
}

TEST_CASE("Samples of a prompt that are not trained count as dropped") {
  for (const bool colocated : {true, false}) {
    loop_settings s = settings();
    s.colocated = colocated;
    s.warmup = 0;
    s.trained_samples = 2;
    const loop_record r = play_by_queue(s, prices(16, 3));
    double trained = 0;
    for (const step_record& x : r.steps) {
      CHECK(x.samples == 64 * 2);
      trained += x.response_tokens;
    }
    CHECK(r.dropped_tokens + trained == Approx(r.generated_tokens));
    CHECK(r.dropped_tokens == Approx(0.75 * r.generated_tokens).epsilon(0.1));
  }
}

TEST_CASE("The tail of lengths costs a colocated step its slowest sample") {
  loop_settings s = settings();
  s.response.max = 1 << 16;
  double before = 0;
  for (const double tail : {1.0, 3.0, 10.0, 20.0}) {
    s.response.tail = tail;
    const double now = mean_wait(play_by_queue(s, prices(16, 3)));
    CHECK(now > before);
    before = now;
  }
  const loop_record r = play_by_queue(s, prices(16, 3));
  for (const step_record& x : r.steps) CHECK(x.all_s > 1.5 * x.nine_tenths_s);
}

TEST_CASE("More prompts than needed cut the tail, and lose its tokens or carry them on") {
  loop_settings s = settings();
  const loop_record plain = play_by_queue(s, prices(16, 3));
  s.oversample = 0.25;
  const loop_record dropped = play_by_queue(s, prices(16, 3));
  s.tail = tail_policy::resume;
  const loop_record resumed = play_by_queue(s, prices(16, 3));
  CHECK(mean_wait(dropped) < 0.9 * mean_wait(plain));
  CHECK(dropped.dropped_tokens > 0);
  CHECK(dropped.dropped_prompts == 16 * 10);
  CHECK(resumed.dropped_tokens == 0);
  CHECK(mean_wait(resumed) < 0.9 * mean_wait(plain));
  CHECK(resumed.stale_samples.size() > 1);
}

TEST_CASE("Samples of more prompts than needed come from the newest weights where staleness is 0") {
  for (const admission_policy admission : {admission_policy::prompt, admission_policy::batch})
    for (const double oversample : {0.02, 0.25, 0.5}) {
      loop_settings s = settings();
      s.colocated = false;
      s.admission = admission;
      s.oversample = oversample;
      INFO(oversample);
      CHECK(play_by_queue(s, prices(16, 3)).stale_samples.size() == 1);
    }
}

TEST_CASE("Rewards wait for a free slot, in the order in which samples end") {
  loop_settings s = settings();
  s.warmup = 0;
  s.response = {800, 4096, 1, 0};  // all 512 samples end together
  loop_prices p = prices(16, 3);
  const double none = mean_wait(play_by_queue(s, p));
  p.reward_s = 0.5;
  CHECK(mean_wait(play_by_queue(s, p)) == Approx(none + 0.5));
  double before = 1e9;
  for (const std::int64_t slots : {16, 64, 128, 512, 4096}) {
    p.reward_slots = slots;
    const double now = mean_wait(play_by_queue(s, p));
    const double rounds = std::ceil(512.0 / static_cast<double>(slots));
    CHECK(now == Approx(none + 0.5 * rounds).epsilon(0.05));
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("Prompts that teach nothing are generated for nothing") {
  loop_settings s = settings();
  const double all = mean_wait(play_by_queue(s, prices(16, 3)));
  s.kept_share = 0.5;
  const loop_record half = play_by_queue(s, prices(16, 3));
  CHECK(mean_wait(half) > 1.2 * all);
  CHECK(half.dropped_prompts == Approx(64 * 10).epsilon(0.2));
  s.admission = admission_policy::batch;
  s.round_prompts = 192;
  const loop_record rounds = play_by_queue(s, prices(16, 3));
  CHECK(rounds.dropped_prompts == 128 * 10);  // one round gives enough, and the surplus is lost
}

TEST_CASE("More workers never take longer, and idle longer") {
  double before = 1e9;
  for (const std::int64_t workers : {2, 4, 8, 16, 64}) {
    const loop_record r = play_by_queue(settings(), prices(workers, 3));
    CHECK(mean_wait(r) <= before * 1.01);
    before = mean_wait(r);
    CHECK(r.rollout_busy_s <= r.measured_s * static_cast<double>(workers) * (1 + 1e-9));
  }
}

TEST_CASE("Equal seeds give equal loops") {
  const loop_record a = play_by_queue(settings(), prices(16, 3)), b = play_by_queue(settings(), prices(16, 3));
  CHECK(a.measured_s == b.measured_s);
  loop_settings other = settings();
  other.seed = 2;
  CHECK(play_by_queue(other, prices(16, 3)).measured_s != a.measured_s);
}

TEST_CASE("Decisions grow with samples, not with workers times samples") {
  loop_settings s = settings();
  s.steps = 2;
  s.warmup = 0;
  const auto of = [&](std::int64_t prompts, std::int64_t workers) {
    s.prompts = prompts;
    return static_cast<double>(play_by_queue(s, prices(workers, 3)).decisions);
  };
  CHECK(of(256, 16) < 5 * of(64, 16));
  CHECK(of(256, 256) < 3 * of(256, 64));
}

}  // namespace
}  // namespace nvlsim
