#include "nvlsim/simulator/simulation.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "simulator/actors.hpp"
#include "simulator/simgrid_zone.hpp"
#include "support/plans.hpp"
#include "support/ports.hpp"

using namespace nvlsim;
using Catch::Matchers::Contains;

namespace {

platform small_platform() { return test::bare_ports(2.5_us); }

timeline run(const plan& p) { return simulate(p, small_platform()); }

/// The largest difference of any date, over the makespan.
double difference(const timeline& a, const timeline& b) {
  double max = std::abs(a.makespan.base() - b.makespan.base());
  REQUIRE(a.spans.size() == b.spans.size());
  for (std::size_t c = 0; c < a.spans.size(); ++c) {
    REQUIRE(a.spans[c].size() == b.spans[c].size());
    for (std::size_t s = 0; s < a.spans[c].size(); ++s) {
      REQUIRE(a.spans[c][s].size() == b.spans[c][s].size());
      for (std::size_t i = 0; i < a.spans[c][s].size(); ++i) {
        max = std::max(max, std::abs(a.spans[c][s][i].begin_s - b.spans[c][s][i].begin_s));
        max = std::max(max, std::abs(a.spans[c][s][i].end_s - b.spans[c][s][i].end_s));
      }
    }
  }
  return max / std::max(b.makespan.base(), 1e-12);
}

}  // namespace

TEST_CASE("Chain takes the sum of its operations") {
  plan p;
  const std::int32_t a = plans::add_template(p, "a", 1e-3), b = plans::add_template(p, "b", 2e-6);
  stream& s = plans::add_class(p, "only");
  for (int i = 0; i < 100; ++i) {
    p.append(s, a, {});
    p.append(s, b, {});
  }
  const timeline t = run(p);
  CHECK(t.makespan.base() == Approx(100 * (1e-3 + 2e-6)).epsilon(1e-12));
  CHECK(t.spans[0][0][1].begin_s == Approx(1e-3).epsilon(1e-12));
  CHECK(t.activities == 200);
}

TEST_CASE("Fork and join wait for the slower branch") {
  plan p;
  const std::int32_t one = plans::add_template(p, "one", 1), three = plans::add_template(p, "three", 3);
  const event_id forked = p.new_event(), joined = p.new_event(2);
  plans::add_class(p, "rank");
  p.classes[0].streams.resize(3);
  auto& streams = p.classes[0].streams;
  streams[1].kind = stream_kind::pipeline;
  streams[2].kind = stream_kind::data_parallel;
  p.append(streams[0], one, {}, forked);
  p.append(streams[0], one, {joined});
  p.append(streams[1], three, {forked}, joined);
  p.append(streams[2], one, {forked}, joined);
  const timeline t = run(p);
  CHECK(t.makespan.base() == Approx(5).epsilon(1e-12));
  CHECK(t.spans[0][0][1].begin_s == Approx(4).epsilon(1e-12));
  CHECK(t.spans[0][2][0].end_s == Approx(2).epsilon(1e-12));
}

TEST_CASE("Pipeline has the bubble of 1F1B") {
  const int stages = 8, micro_batches = 24;
  const double slot = 3e-3;
  const timeline t = run(plans::one_f_one_b(stages, micro_batches, slot / 3, slot * 2 / 3));
  CHECK(t.makespan.base() == Approx((micro_batches + stages - 1) * slot).epsilon(1e-12));
  const double bubble = 1 - micro_batches * slot / t.makespan.base();
  CHECK(bubble == Approx((stages - 1.0) / (micro_batches + stages - 1)).epsilon(1e-9));
}

TEST_CASE("Rendezvous frees all its waiters at its last arrival") {
  plan p;
  const event_id met = p.new_event(5);
  for (int i = 0; i < 5; ++i) {
    const std::int32_t template_index = plans::add_template(p, "work", i + 1.0);
    stream& s = plans::add_class(p, "rank " + std::to_string(i));
    p.append(s, template_index, {}, met);
    p.append(s, template_index, {met});
  }
  const timeline t = run(p);
  for (std::size_t i = 0; i < 5; ++i) CHECK(t.spans[i][0][1].begin_s == Approx(5).epsilon(1e-12));
  CHECK(t.makespan.base() == Approx(10).epsilon(1e-12));
}

TEST_CASE("Operations without duration take no time") {
  plan p;
  const std::int32_t nothing = plans::add_template(p, "nothing", 0);
  const event_id e = p.new_event();
  plans::add_class(p, "a");
  plans::add_class(p, "b");
  for (int i = 0; i < 1000; ++i) p.append(p.classes[0].streams[0], nothing, {}, i == 999 ? e : no_event);
  p.append(p.classes[1].streams[0], nothing, {e});
  const timeline t = run(p);
  CHECK(t.makespan.base() == 0);
  CHECK(t.activities == 0);
}

TEST_CASE("Durations under the engine's resolution add up exactly") {
  plan p;
  const std::int32_t short_work = plans::add_template(p, "short", 0.4e-9),
                     other = plans::add_template(p, "other", 1e-6);
  const std::int32_t nearly = plans::add_template(p, "nearly other", 1e-6 + 0.3e-9);
  plans::add_class(p, "a");
  plans::add_class(p, "b");
  plans::add_class(p, "c");
  for (int i = 0; i < 1000; ++i) {
    p.append(p.classes[0].streams[0], short_work, {});
    p.append(p.classes[1].streams[0], other, {});
    p.append(p.classes[2].streams[0], nearly, {});
  }
  const timeline t = run(p);
  CHECK(t.spans[0][0].back().end_s == Approx(4e-7).epsilon(1e-9));
  CHECK(t.spans[1][0].back().end_s == Approx(1e-3).epsilon(1e-9));
  CHECK(t.spans[2][0].back().end_s == Approx(1e-3 + 3e-7).epsilon(1e-9));
}

TEST_CASE("Simulate agrees with evaluate, also in later runs of a process") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const plan p = plans::random_plan(seed, 300);
    INFO("seed " << seed);
    CHECK(difference(run(p), evaluate(p)) <= 1e-9);
  }
}

TEST_CASE("Simulate gives the same digits again") {
  const plan p = plans::random_plan(77, 500);
  CHECK(difference(run(p), run(p)) == 0);
}

TEST_CASE("Deadlock names actors, operations and events") {
  plan p;
  const std::int32_t w = plans::add_template(p, "exchange", 1);
  const event_id a = p.new_event(), b = p.new_event(2), never = p.new_event();
  for (int i = 0; i < 3; ++i) plans::add_class(p, "stage " + std::to_string(i));
  p.append(p.classes[0].streams[0], w, {});
  p.append(p.classes[0].streams[0], w, {a, never}, b, {3});
  p.append(p.classes[1].streams[0], w, {b}, a);
  p.append(p.classes[2].streams[0], w, {}, b);
  REQUIRE_THROWS_AS(run(p), internal_error);
  REQUIRE_THROWS_WITH(run(p),
                      Contains("deadlock: 2 streams cannot go on") &&
                          Contains("stage 0.compute: operation 1, \"exchange\" of micro-batch 3, waits for "
                                   "event 0 (0 of 1 arrived), event 2 (0 of 1 arrived)") &&
                          Contains("stage 1.compute: operation 0, \"exchange\", waits for event 1 (1 of 2 "
                                   "arrived)") &&
                          !Contains("stage 2"));
  REQUIRE_NOTHROW(run(plans::one_f_one_b(2, 2, 1, 1)));
}

TEST_CASE("Simulate takes more actors than stacks with guards could have") {
  plan p;
  const std::int32_t w = plans::add_template(p, "work", 1);
  for (int i = 0; i < 33'000; ++i) p.append(plans::add_class(p, "rank"), w, {});
  CHECK(run(p).makespan.base() == Approx(1));
}

TEST_CASE("A session refuses actors whose stacks would fill the memory") {
  simulator::session s;
  REQUIRE_THROWS_AS(s.expect_actors(1'000'000'000), input_error);
  REQUIRE_THROWS_WITH(s.expect_actors(1'000'000'000),
                      Contains("1000000000 actors") && Contains("fold equal ranks"));
}

TEST_CASE("Simulate refuses malformed plans") {
  plan p;
  p.append(plans::add_class(p, "rank"), 0, {});
  REQUIRE_THROWS_AS(run(p), internal_error);
}

TEST_CASE("Actor is named after its class and stream, on the host of its class") {
  plan p;
  const std::int32_t w = plans::add_template(p, "work", 1);
  plans::add_class(p, "stage 0");
  plans::add_class(p, "stage 1");
  p.classes[1].streams.resize(2);
  p.classes[1].streams[1].kind = stream_kind::data_parallel;
  p.append(p.classes[0].streams[0], w, {});
  p.append(p.classes[1].streams[1], w, {});
  static std::vector<std::string> seen;  // the callback stays for the life of the process
  simulator::compat::sg4::Actor::on_creation_cb([](const simulator::compat::sg4::Actor& a) {
    seen.push_back(a.get_name() + "@" + a.get_host()->get_name());
  });
  run(p);
  CHECK(seen == std::vector<std::string>{"stage 0.compute@g0", "stage 1.data_parallel@g1"});
}

TEST_CASE("Exception of an actor comes out of the run") {
  struct failing final : simulator::executor {
    double run(const operation_template& w, simulator::endpoints, double begin) override {
      if (w.name == "backward") throw io_error("disk on fire");
      return begin;
    }
  };
  const plan p = plans::one_f_one_b(3, 4, 1, 1);
  simulator::session s;
  const std::vector<std::int64_t> gpus{0, 1, 2};
  const network::zones z = network::build(s.simgrid(), network::describe(small_platform(), gpus));
  failing how;
  REQUIRE_THROWS_AS(simulator::run_actors(p, s, how, z.nvlink), io_error);
}
