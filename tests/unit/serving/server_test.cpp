#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "nvlsim/serving/server.hpp"
#include "support/play_server.hpp"
#include "support/steps.hpp"

namespace nvlsim {
namespace {

using test::serve_requests;

inference_workload open_loop(double rate, std::int64_t requests) {
  inference_workload w;
  w.load = load_kind::open_loop;
  w.requests = requests;
  w.arrivals.rate_per_s = rate;
  w.input = {1, 0};
  w.output = {1, 0};
  return w;
}

server_settings plain(std::int64_t workers) {
  server_settings s;
  s.workers = workers;
  s.worker.settings.max_num_tokens = 4096;
  s.worker.settings.max_batch_size = 256;
  s.worker.kv_capacity_tokens = 1 << 20;
  s.worker.kv_block_tokens = 16;
  return s;
}

iteration_price by_content(const iteration& it) {
  return {1e-3 + 2e-5 * static_cast<double>(it.decodes) + 1e-6 * static_cast<double>(it.prompt_tokens), 0};
}

double mean_time_in_system(const serving_outcome& o) {
  double sum = 0;
  for (const request_record& r : o.requests) sum += r.last_token_s - r.arrival_s;
  return sum / static_cast<double>(o.requests.size());
}

TEST_CASE("Server that takes one request an iteration waits as M/D/1 does") {
  for (const double load : {0.3, 0.6, 0.8}) {
    const inference_workload w = open_loop(load, 400'000);
    server_settings s = plain(1);
    s.worker.settings.max_batch_size = 1;
    s.worker.settings.max_num_tokens = 1;
    const serving_outcome o = serve_requests(generate_requests(w, 0), s, [](const iteration&) {
      return iteration_price{1, 0};
    });
    double wait = 0;
    for (const request_record& r : o.requests) wait += r.admitted_s - r.arrival_s;
    wait /= static_cast<double>(o.requests.size());
    CHECK(wait == Approx(load / (2 * (1 - load))).epsilon(0.02));  // Pollaczek and Khinchine
  }
}

TEST_CASE("Server obeys Little's law") {
  for (const router_policy router :
       {router_policy::round_robin, router_policy::least_loaded, router_policy::prefix_aware})
    for (const auto preemption :
         {preemption_policy::none, preemption_policy::recompute, preemption_policy::swap}) {
      inference_workload w = open_loop(60, 3000);
      w.input = {300, 0.9};
      w.output = {100, 0.9};
      server_settings s = plain(3);
      s.router = router;
      s.worker.settings.preemption = preemption;
      s.worker.settings.kv_reserve = preemption == preemption_policy::none ? 1 : 0;
      s.worker.kv_capacity_tokens = 4096;
      s.worker.swap_capacity_tokens = 1 << 16;
      const serving_outcome o = serve_requests(generate_requests(w, 0), s, by_content);
      CHECK(o.requests_times_s == Approx(mean_time_in_system(o) * 3000).epsilon(1e-9));
      std::int64_t outputs = 0;
      for (const request_record& r : o.requests) outputs += r.output;
      CHECK(o.output_tokens == outputs);
      std::int64_t gaps = 0;
      for (const weighted& g : o.gaps.values()) gaps += g.count;
      CHECK(gaps == outputs - 3000);
      const bool ordered = std::all_of(o.requests.begin(), o.requests.end(), [](const request_record& r) {
        return r.arrival_s <= r.admitted_s && r.admitted_s < r.first_token_s && r.first_token_s <= r.last_token_s;
      });
      CHECK(ordered);
    }
}

server_settings in_pools(std::int64_t prefill_workers, std::int64_t decode_workers) {
  server_settings s = plain(decode_workers);
  s.prefill = prefill_settings{s.worker, prefill_workers, [](std::int64_t tokens, std::size_t, std::size_t) {
                                 return cache_transfer{1e-6 * static_cast<double>(tokens), nullptr};
                               }};
  return s;
}

TEST_CASE("Pools under arrivals obey Little's law and give every token once") {
  for (const auto preemption : {preemption_policy::none, preemption_policy::recompute, preemption_policy::swap}) {
    inference_workload w = open_loop(60, 3000);
    w.input = {300, 0.9};
    w.output = {100, 1};  // of one token, too
    server_settings s = in_pools(2, 3);
    s.worker.settings.preemption = preemption;
    s.worker.settings.kv_reserve = preemption == preemption_policy::none ? 1 : 0;
    s.worker.kv_capacity_tokens = 2048;
    s.worker.swap_capacity_tokens = 1 << 16;
    const serving_outcome o = serve_requests(generate_requests(w, 0), s, by_content);
    CHECK(o.requests_times_s == Approx(mean_time_in_system(o) * 3000).epsilon(1e-9));
    std::int64_t outputs = 0, inputs = 0, gaps = 0, preempted = 0;
    for (const request_record& r : o.requests) {
      outputs += r.output;
      inputs += r.input;
      preempted += r.preemptions;
    }
    for (const weighted& g : o.gaps.values()) gaps += g.count;
    CHECK(o.output_tokens == outputs);
    CHECK(gaps == outputs - 3000);
    CHECK((preempted > 0) == (preemption != preemption_policy::none));
    if (preemption == preemption_policy::none) CHECK(o.prompt_tokens == inputs);
    const bool ordered = std::all_of(o.requests.begin(), o.requests.end(), [](const request_record& r) {
      return r.arrival_s <= r.admitted_s && r.admitted_s < r.first_token_s && r.first_token_s <= r.last_token_s;
    });
    CHECK(ordered);
    CHECK(std::count_if(o.workers.begin(), o.workers.end(), [](const worker_record& l) { return l.prefills; }) ==
          2);
  }
}

TEST_CASE("Pools under a light load take prefill, transfer and decode in turn") {
  inference_workload w = open_loop(0.01, 50);
  w.input = {500, 0};
  w.output = {11, 0};
  const serving_outcome o = serve_requests(generate_requests(w, 0), in_pools(1, 1), by_content);
  for (const request_record& r : o.requests) {
    CHECK(r.first_token_s - r.arrival_s == Approx(1e-3 + 500e-6 + 500e-6));
    CHECK(r.last_token_s - r.first_token_s == Approx(10 * (1e-3 + 2e-5)));
  }
}

TEST_CASE("Prefill workers wait as M/D/1 does, however fast the others decode") {
  constexpr double load = 0.7, each = 1;
  const inference_workload w = open_loop(load / each, 200'000);
  server_settings s = in_pools(1, 1);
  s.prefill->worker.settings.max_batch_size = s.prefill->worker.settings.max_num_tokens = 1;
  const serving_outcome o =
      serve_requests(generate_requests(w, 0), s, [](std::size_t worker, const iteration& it) {
        return worker > 0 ? iteration_price{each, 0} : by_content(it);
      });
  double wait = 0;
  for (const request_record& r : o.requests) wait += r.admitted_s - r.arrival_s;
  CHECK(wait / 200'000 == Approx(load / (2 * (1 - load))).epsilon(0.02));
}

TEST_CASE("Server gives the same for the same seed, and other arrivals for another") {
  inference_workload w = open_loop(40, 500);
  w.output = {50, 0.5};
  const auto end = [&] { return serve_requests(generate_requests(w, 0), plain(2), by_content).end_s; };
  const double first = end();
  CHECK(end() == first);
  w.seed = 2;
  CHECK(end() != first);
}

TEST_CASE("Server's closed loop keeps its clients busy") {
  inference_workload w = open_loop(1, 200);
  w.load = load_kind::closed_loop;
  w.output = {20, 0.5};
  server_settings s = plain(1);
  s.clients = 8;
  const serving_outcome o = serve_requests(generate_requests(w, 0), s, by_content);
  std::vector<double> arrivals;
  for (const request_record& r : o.requests) arrivals.push_back(r.arrival_s);
  CHECK(std::count(arrivals.begin(), arrivals.end(), 0.0) == 8);
  for (std::size_t i = 8; i < o.requests.size(); ++i) {
    const double at = o.requests[i].arrival_s;
    CHECK(std::any_of(o.requests.begin(), o.requests.end(),
                      [&](const request_record& r) { return r.last_token_s == at; }));
  }
  // Between the first and the last arrival there are always eight.
  const double last = *std::max_element(arrivals.begin(), arrivals.end());
  double area = 0;
  for (const request_record& r : o.requests) area += std::min(r.last_token_s, last) - std::min(r.arrival_s, last);
  CHECK(area == Approx(8 * last));
}

TEST_CASE("Server's sessions send what was said before, once it was answered") {
  inference_workload w = open_loop(5, 300);
  w.input = {50, 0.5};
  w.output = {30, 0.5};
  w.sessions = session_settings{.turns = {4, 0.5}, .wait_mean_s = 2, .shared_prompt = 200};
  const request_list list = generate_requests(w, 0);
  REQUIRE(list.requests.size() == 300);
  server_settings s = plain(2);
  s.router = router_policy::prefix_aware;
  s.worker.settings.prefix_cache = true;
  s.worker.prefix_tokens = list.prefix_tokens;
  const serving_outcome o = serve_requests(list, s, by_content);
  int later = 0;
  double cached = 0, prompts = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    const served_request& r = list.requests[i];
    cached += o.requests[i].cached;
    prompts += static_cast<double>(r.input);
    if (r.after < 0) continue;
    ++later;
    const auto before = static_cast<std::size_t>(r.after);
    CHECK(o.requests[i].arrival_s == Approx(o.requests[before].last_token_s + r.wait_s));
    CHECK(r.input > list.requests[before].input + list.requests[before].output);
  }
  CHECK(later > 150);
  CHECK(cached / prompts > 0.6);  // all but the new turn and the end of a block
}

/// Requests that share beginnings of their prompts at random: each goes on from a block of an earlier one.
request_list with_shared_prompts(std::uint64_t seed, int count) {
  std::mt19937_64 g(seed);
  request_list list;
  list.prefix_tokens = 32;
  std::vector<std::vector<std::uint64_t>> earlier;
  std::uint64_t fresh = 1;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    std::vector<std::uint64_t> names;
    if (!earlier.empty()) {
      const auto& like = earlier[g() % earlier.size()];
      names.assign(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(g() % (like.size() + 1)));
    }
    for (auto more = 1 + g() % 12; more > 0; --more) names.push_back(++fresh);
    served_request r;
    r.arrival_s = now += g() % 3 == 0 ? 0 : 1e-3 * static_cast<double>(g() % 20);
    r.input = 32 * static_cast<std::int64_t>(names.size()) + static_cast<std::int64_t>(g() % 32) + 1;
    r.output = 1 + static_cast<std::int64_t>(g() % 40);
    r.first_prefix = list.prefixes.size();
    r.prefixes = static_cast<std::uint32_t>(names.size());
    list.prefixes.insert(list.prefixes.end(), names.begin(), names.end());
    list.requests.push_back(r);
    earlier.push_back(std::move(names));
  }
  return list;
}

TEST_CASE("No request finds more of its prompt than it has in common with others that began by then") {
  std::int64_t fetched = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const request_list list = with_shared_prompts(seed, 200);
    server_settings s = plain(1 + static_cast<std::int64_t>(seed % 3));
    s.router = static_cast<router_policy>(seed / 3 % 3);
    s.worker.settings.prefix_cache = true;
    s.worker.prefix_tokens = list.prefix_tokens;
    s.worker.kv_capacity_tokens = seed % 2 == 0 ? 4096 : 1 << 20;
    s.worker.settings.preemption = static_cast<preemption_policy>(seed % 2);
    s.worker.settings.kv_reserve = seed % 2 == 0 ? 1 : 0;
    if (seed % 4 == 3)
      s.prefill = prefill_settings{s.worker, 2, [](std::int64_t, std::size_t, std::size_t) {
                                     return cache_transfer{1e-4, nullptr};
                                   }};
    s.tiers = {{40, 2e-3, 1e-3, cache_write::back, false}, {4000, 4e-3, 2e-3, cache_write::through, true}};
    const serving_outcome o = serve_requests(list, s, by_content);
    // One that waits for its blocks can be overtaken: earlier ones are those that began earlier.
    std::vector<std::size_t> order(list.requests.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto began = [&](std::size_t i) { return o.requests[i].admitted_s; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return began(x) < began(y); });
    std::map<std::uint64_t, std::set<std::size_t>> having;
    std::size_t told = 0;
    for (const std::size_t i : order) {
      for (; told < order.size() && began(order[told]) <= began(i); ++told) {
        const served_request& r = list.requests[order[told]];
        for (std::uint32_t b = 0; b < r.prefixes; ++b)
          having[list.prefixes[r.first_prefix + b]].insert(order[told]);
      }
      const served_request& r = list.requests[i];
      std::int64_t common = 0;
      while (common < r.prefixes &&
             having[list.prefixes[r.first_prefix + static_cast<std::size_t>(common)]].size() > 1)
        ++common;
      CHECK(o.requests[i].cached <= common * list.prefix_tokens);
      CHECK(o.requests[i].fetched <= o.requests[i].cached);
      fetched += o.requests[i].fetched;
    }
  }
  CHECK(fetched > 0);
}

TEST_CASE("A queue in front of many workers loses what a slow one is worth") {
  std::int64_t workers = 24;
  const auto tokens_per_s = [&workers](double speed, load_kind load, double rate) {
    inference_workload w = open_loop(rate, 250 * workers);
    w.load = load;
    w.input = {200, 0.5};
    w.output = {60, 0.5};
    server_settings s = plain(workers);
    s.router = router_policy::least_loaded;
    s.worker.settings.max_batch_size = 16;
    s.clients = load == load_kind::closed_loop ? 20 * workers : 0;
    s.hardware.assign(static_cast<std::size_t>(workers), 0);
    s.hardware[5] = speed < 1 ? 1 : 0;
    const serving_outcome o =
        serve_requests(generate_requests(w, 0), s, [speed](std::size_t worker, const iteration& it) {
          iteration_price p = by_content(it);
          if (worker == 5) p.seconds /= speed;
          return p;
        });
    return static_cast<double>(o.output_tokens) / o.end_s;
  };
  const double worth = 0.2 / workers;  // of a worker at 0.8 of the speed of the others
  for (const auto& [load, rate] :
       {std::pair(load_kind::offline, 1.0), {load_kind::closed_loop, 1.0}, {load_kind::open_loop, 20'000.0}}) {
    const double whole = tokens_per_s(1, load, rate), degraded = tokens_per_s(0.8, load, rate);
    CHECK(1 - degraded / whole < worth + 0.01);
  }
  workers = 72;
  // The last requests are not left to the slow worker: with them it would end 25 % of a request's time later.
  CHECK(1 - tokens_per_s(0.8, load_kind::offline, 1) / tokens_per_s(1, load_kind::offline, 1) < 0.2 / 72 + 0.003);
}

serving_outcome serve_batch(std::int64_t workers, std::vector<std::size_t> hardware,
                            request_list* list = nullptr) {
  inference_workload w = open_loop(1, 30 * workers);
  w.load = load_kind::offline;
  w.input = {200, 0.5};
  w.output = {60, 0.5};
  server_settings s = plain(workers);
  s.router = router_policy::least_loaded;
  s.worker.settings.max_batch_size = 8;
  s.hardware = std::move(hardware);
  const request_list sampled = generate_requests(w, 0);
  return serve_requests(list ? *list : sampled, s, by_content);
}

TEST_CASE("A queue asks workers of different hardware in steps that grow with their number") {
  // The work per worker is the same. The scan that finds a worker for each request at the start is the rest.
  const auto steps = [](std::size_t workers, bool differ) {
    std::vector<std::size_t> hardware(workers);
    for (std::size_t i = 0; i < workers; ++i) hardware[i] = differ ? i % 2 : 0;
    return test::steps_of([&] { serve_batch(static_cast<std::int64_t>(workers), hardware); });
  };
  for (const std::size_t n : {std::size_t{25}, std::size_t{200}})
    CHECK(static_cast<double>(steps(n, true)) < 1.3 * static_cast<double>(steps(n, false)));
  CHECK(steps(200, true) < 12 * steps(25, true));
}

TEST_CASE("A queue passes over no worker of equal hardware, whatever long requests it got") {
  inference_workload w = open_loop(1, 120);
  w.load = load_kind::offline;
  w.input = {200, 0.5};
  w.output = {60, 0.5};
  request_list list = generate_requests(w, 0);
  list.requests.front().output = 400;
  const auto served = [&](const std::vector<std::size_t>& hardware) {
    std::vector<int> out(4);
    const serving_outcome o = serve_batch(4, hardware, &list);
    for (const request_record& r : o.requests) ++out[static_cast<std::size_t>(r.worker)];
    return out;
  };
  const std::vector<int> alike = served({});
  for (const int n : alike) CHECK(n >= 25);
  CHECK(served({3, 3, 3, 3}) == alike);
  // Hardware that is as fast is passed over no more often than by chance.
  for (const int n : served({0, 1, 0, 1})) CHECK(n >= 25);
}

TEST_CASE("Pools take every router, serve every request and send prompts and caches where it says") {
  for (const auto router :
       {router_policy::round_robin, router_policy::least_loaded, router_policy::prefix_aware}) {
    inference_workload w = open_loop(200, 2000);
    w.input = {300, 0.9};
    w.output = {40, 0.9};
    server_settings s = in_pools(4, 5);
    s.pool_router = router;
    s.worker.settings.max_batch_size = s.prefill->worker.settings.max_batch_size = 8;
    const serving_outcome o = serve_requests(generate_requests(w, 0), s, by_content);
    std::vector<int> prompts(9), decodes(9);
    for (const request_record& r : o.requests) {
      ++prompts[static_cast<std::size_t>(r.prompt_worker)];
      ++decodes[static_cast<std::size_t>(r.worker)];
    }
    CHECK(std::accumulate(prompts.begin() + 5, prompts.end(), 0) == 2000);
    CHECK(o.requests_times_s == Approx(mean_time_in_system(o) * 2000).epsilon(1e-9));
    if (router != router_policy::round_robin) continue;
    CHECK(std::all_of(prompts.begin() + 5, prompts.end(), [](int n) { return n == 500; }));
    CHECK(std::count_if(decodes.begin(), decodes.end(), [](int n) { return n > 0; }) == 5);
  }
}

TEST_CASE("A queue in front of prefill workers loses what a slow one is worth") {
  const auto end = [](double speed) {
    inference_workload w = open_loop(1, 4000);
    w.load = load_kind::offline;
    w.input = {800, 0.5};
    w.output = {2, 0};
    server_settings s = in_pools(16, 8);
    s.pool_router = router_policy::least_loaded;
    s.hardware.assign(24, 0);
    s.hardware[8] = speed < 1 ? 1 : 0;
    return serve_requests(generate_requests(w, 0), s,
                          [speed](std::size_t worker, const iteration& it) {
                            iteration_price p = by_content(it);
                            if (worker == 8) p.seconds /= speed;
                            return p;
                          })
        .end_s;
  };
  CHECK(end(0.8) / end(1) - 1 < 0.2 / 16 + 0.02);
}

TEST_CASE("Least loaded routing waits less than dealing in turn when lengths differ") {
  inference_workload w = open_loop(55, 4000);
  w.input = {200, 0};
  w.output.mean = 100;
  w.output.shape = length_shape::lognormal;
  w.output.variation = 2;
  server_settings s = plain(4);
  s.worker.settings.max_batch_size = 2;
  const request_list list = generate_requests(w, 0);
  const double in_turn = mean_time_in_system(serve_requests(list, s, by_content));
  s.router = router_policy::least_loaded;
  CHECK(mean_time_in_system(serve_requests(list, s, by_content)) < 0.9 * in_turn);
}

TEST_CASE("Arrivals have the rate and the variation asked for") {
  for (const double variation : {0.5, 1.0, 3.0}) {
    inference_workload w = open_loop(20, 100'000);
    w.arrivals.process = variation == 1 ? arrival_process::poisson : arrival_process::gamma;
    w.arrivals.variation = variation;
    const request_list list = generate_requests(w, 0);
    double before = 0, sum = 0, squares = 0;
    for (const served_request& r : list.requests) {
      const double gap = r.arrival_s - before;
      before = r.arrival_s;
      sum += gap;
      squares += gap * gap;
    }
    const double mean = sum / 1e5;
    CHECK(mean == Approx(0.05).epsilon(0.03));
    CHECK(std::sqrt(squares / 1e5 - mean * mean) / mean == Approx(variation).epsilon(0.04));
  }
}

TEST_CASE("Lengths have the mean and the limits asked for") {
  inference_workload w = open_loop(1, 100'000);
  w.input.mean = 1000;
  w.input.shape = length_shape::lognormal;
  w.input.variation = 1.2;
  w.output.mean = 300;
  w.output.shape = length_shape::exponential;
  w.output.max = 2000;
  w.images = image_settings{{2, 0}, 500, {}};
  double inputs = 0, outputs = 0;
  std::int64_t longest = 0;
  for (const served_request& r : generate_requests(w, 0).requests) {
    inputs += static_cast<double>(r.input);
    outputs += static_cast<double>(r.output);
    longest = std::max(longest, r.output);
  }
  CHECK(inputs / 1e5 == Approx(2000).epsilon(0.02));
  CHECK(outputs / 1e5 == Approx(300).epsilon(0.02));
  CHECK(longest == 2000);
}

// What an hour takes: tests/benchmarks/serving_bench.cpp. Here only that nothing scans what is already served.
TEST_CASE("Twice as many requests take no more than in proportion, and are kept in no more room") {
  const auto steps_of = [](std::int64_t requests) {
    inference_workload w = open_loop(5.4, requests);
    w.input = {1155, 0.9};  // the means of Azure's conversations
    w.output = {211, 0.9};
    server_settings s = plain(18);
    s.router = router_policy::least_loaded;
    const request_list list = generate_requests(w, 0);
    return test::steps_of([&] {
      const serving_outcome o = serve_requests(list, s, by_content);
      std::size_t kept = 0;
      for (const worker_record& l : o.workers) kept += l.iterations.size();
      CHECK(kept <= 100'000);  // whatever the length of the run
    });
  };
  const std::int64_t one = steps_of(10'000), two = steps_of(20'000);
  CHECK(one > 10'000);
  CHECK(two < 2.1 * static_cast<double>(one));
}

TEST_CASE("A client's next request misses the iteration that begins as it answers") {
  // One sequence decodes all the time; a client's requests of one token come in between. Each sees the whole of
  // the iteration that it missed.
  inference_workload w = open_loop(1, 12);
  w.load = load_kind::closed_loop;
  w.output = {1, 0};
  server_settings s = plain(1);
  s.clients = 2;
  request_list list = generate_requests(w, 0);
  list.requests.front().output = 200;
  const serving_outcome o = serve_requests(list, s, [](const iteration&) { return iteration_price{1, 0}; });
  for (std::size_t i = 2; i < o.requests.size(); ++i)
    CHECK(o.requests[i].admitted_s - o.requests[i].arrival_s == Approx(1));
}

TEST_CASE("Time series keeps the area whatever its length") {
  time_series s;
  double area = 0;
  for (int i = 0; i < 20'000; ++i) {
    s.add(0.013 * i, 0.013 * i + 0.009, i % 7);
    area += 0.009 * (i % 7);
  }
  const auto points = s.points();
  REQUIRE(points.size() <= 1025);
  double kept = 0;
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    kept += points[i].second * (points[i + 1].first - points[i].first);
  CHECK(kept == Approx(area));
}

TEST_CASE("Clients of decode workers alone are met midway, with as many tokens in all") {
  inference_workload w;
  w.load = load_kind::closed_loop;
  w.requests = 300;
  w.concurrency = 100;
  w.input = {1000, 0};
  w.output = {1001, 0};
  w.prompts_cached = true;
  const request_list list = generate_requests(w, 0);
  double made = 0;
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const served_request& r = list.requests[i];
    CHECK(r.input + r.output == 2001);
    CHECK(r.output >= 1);
    if (i >= 100) CHECK(r.input == 1000);
    made += static_cast<double>(r.input - 1000);
  }
  CHECK(made / 100 == Approx(500).epsilon(0.02));
  w.prompts_cached = false;
  for (const served_request& r : generate_requests(w, 0).requests) CHECK(r.input == 1000);
}

TEST_CASE("First turns have lengths of their own where the load says so") {
  inference_workload w = open_loop(5, 4000);
  w.input = {50, 0.5};
  w.output = {30, 0.5};
  w.sessions = session_settings{.turns = {4, 0.5}, .wait_mean_s = 2, .shared_prompt = 100};
  w.sessions->first_input = token_lengths{900, 0.5};
  const request_list list = generate_requests(w, 0);
  double first = 0, firsts = 0, later = 0, laters = 0;
  for (const served_request& r : list.requests) {
    if (r.after < 0) {
      first += static_cast<double>(r.input) - 100;
      ++firsts;
    } else {
      const served_request& before = list.requests[static_cast<std::size_t>(r.after)];
      later += static_cast<double>(r.input - before.input - before.output);
      ++laters;
    }
  }
  CHECK(first / firsts == Approx(900).epsilon(0.03));
  CHECK(later / laters == Approx(50).epsilon(0.03));
  w.sessions->first_input = w.input;  // said, but alike
  const request_list alike = generate_requests(w, 0);
  w.sessions->first_input.reset();
  const request_list unsaid = generate_requests(w, 0);
  REQUIRE(alike.requests.size() == unsaid.requests.size());
  for (std::size_t i = 0; i < alike.requests.size(); ++i)
    CHECK(alike.requests[i].input == unsaid.requests[i].input);
}

}  // namespace
}  // namespace nvlsim
