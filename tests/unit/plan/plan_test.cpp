#include "nvlsim/plan/plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "support/plans.hpp"

using namespace nvlsim;
using Catch::Matchers::Contains;

namespace {

/// Every operation begins when its stream is free and the last arrival of every event it waits for has come, and
/// takes its duration: checked against the plan itself, by a way other than the evaluator's.
void require_earliest(const plan& p, const timeline& t) {
  std::vector<double> happened(p.arrivals.size(), 0);
  const auto each = [&](auto&& f) {
    for (std::size_t c = 0; c < p.classes.size(); ++c) {
      for (std::size_t s = 0; s < p.classes[c].streams.size(); ++s) {
        const auto& operations = p.classes[c].streams[s].operations;
        REQUIRE(t.spans[c][s].size() == operations.size());
        for (std::size_t i = 0; i < operations.size(); ++i) {
          f(operations[i], t.spans[c][s][i], i == 0 ? 0 : t.spans[c][s][i - 1].end_s);
        }
      }
    }
  };
  double makespan = 0;
  each([&](const operation& o, span at, double) {
    makespan = std::max(makespan, at.end_s);
    if (o.signals == no_event) return;
    double& when = happened[static_cast<std::size_t>(o.signals)];
    when = std::max(when, at.end_s);
  });
  std::size_t late = 0;
  each([&](const operation& o, span at, double free) {
    for (std::uint32_t w = 0; w < o.waits; ++w) {
      free = std::max(free, happened[static_cast<std::size_t>(p.waits[o.first_wait + w])]);
    }
    late += at.begin_s != free;
    late += at.end_s != free + p.templates[static_cast<std::size_t>(o.template_index)].duration.base();
  });
  CHECK(late == 0);
  CHECK(t.makespan.base() == makespan);
}

}  // namespace

TEST_CASE("Template takes the sum of its parts") {
  plan p;
  operation_template t;
  t.name = "forward";
  t.parts.push_back({part_kind::gemm, "qkv", 2.0_s, 3});
  t.parts.push_back({part_kind::tp, "all-reduce", 0.5_s});
  CHECK(p.templates[static_cast<std::size_t>(p.add_template(t))].duration == 6.5_s);
}

TEST_CASE("Names of kinds of work and streams are distinct") {
  std::vector<std::string> names;
  for (int k = 0; k < part_kinds; ++k) names.emplace_back(name(static_cast<part_kind>(k)));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(std::find(names.begin(), names.end(), "") == names.end());
  CHECK(name(part_kind::memory_bound) == "memory_bound");
  CHECK(name(part_kind::decode) == "decode");
  CHECK(name(stream_kind::data_parallel) == "data_parallel");
}

TEST_CASE("Append skips absent events") {
  plan p;
  stream s;
  const event_id e = p.new_event();
  p.append(s, 0, {no_event, e, no_event}, no_event, {4});
  p.append(s, 0, {}, e);
  REQUIRE(s.operations.size() == 2);
  CHECK(s.operations[0].waits == 1);
  CHECK(s.operations[0].micro_batch == 4);
  CHECK(s.operations[1].waits == 0);
  CHECK(s.operations[1].signals == e);
  CHECK(p.waits == std::vector<event_id>{e});
}

TEST_CASE("Evaluate joins streams at a rendezvous") {
  plan p;
  const std::int32_t slow = plans::add_template(p, "slow", 3), quick = plans::add_template(p, "quick", 1);
  const event_id met = p.new_event(2);
  plans::add_class(p, "a");
  plans::add_class(p, "b");
  plans::add_class(p, "c");
  p.append(p.classes[0].streams[0], quick, {met});
  p.append(p.classes[1].streams[0], slow, {}, met);
  p.append(p.classes[2].streams[0], quick, {}, met);
  const timeline t = evaluate(p);
  CHECK(t.spans[0][0][0].begin_s == 3);
  CHECK(t.spans[2][0][0].end_s == 1);
  CHECK(t.makespan == 4.0_s);
  CHECK(t.activities == 0);
}

TEST_CASE("Evaluate gives 1F1B its bubble") {
  const int stages = 4, micro_batches = 11;
  const plan p = plans::one_f_one_b(stages, micro_batches, 1, 2);
  const timeline t = evaluate(p);
  CHECK(t.makespan.base() == (micro_batches + stages - 1) * 3.0);
  const double busy = micro_batches * 3.0;
  CHECK(1 - busy / t.makespan.base() == Approx((stages - 1.0) / (micro_batches + stages - 1)));
}

TEST_CASE("Evaluate begins every operation as early as it can") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const plan p = plans::random_plan(seed, 400);
    require_earliest(p, evaluate(p));
  }
}

TEST_CASE("Evaluate of an empty plan is empty") {
  CHECK(evaluate(plan{}).makespan == 0.0_s);
  plan p;
  plans::add_class(p, "idle");
  const timeline t = evaluate(p);
  CHECK(t.spans.at(0).at(0).empty());
}

TEST_CASE("Evaluate names the streams of a cycle") {
  plan p;
  const std::int32_t w = plans::add_template(p, "exchange", 1);
  const event_id a = p.new_event(), b = p.new_event(2);
  plans::add_class(p, "stage 0");
  plans::add_class(p, "stage 1");
  p.append(p.classes[0].streams[0], w, {a}, b, {7});
  p.append(p.classes[1].streams[0], w, {});
  p.append(p.classes[1].streams[0], w, {b}, a);
  REQUIRE_THROWS_AS(evaluate(p), internal_error);
  REQUIRE_THROWS_WITH(evaluate(p),
                      Contains("deadlock: 2 streams cannot go on") &&
                          Contains("stage 0.compute: operation 0, \"exchange\" of micro-batch 7, waits for "
                                   "event 0 (0 of 1 arrived)") &&
                          Contains("stage 1.compute: operation 1, \"exchange\", waits for event 1 (0 of 2 "
                                   "arrived)"));
}

TEST_CASE("Evaluate refuses malformed plans") {
  plan p;
  const std::int32_t w = plans::add_template(p, "gemm", 1);
  const event_id e = p.new_event();
  stream& s = plans::add_class(p, "stage 0");
  p.append(s, w, {}, e);
  REQUIRE_NOTHROW(evaluate(p));

  SECTION("one arrival too many") {
    p.append(s, w, {}, e);
    REQUIRE_THROWS_WITH(evaluate(p),
                        Contains("event 0 needs 1 arrivals; \"gemm\" at stage 0.compute is one too many"));
  }
  SECTION("unknown template") {
    p.append(s, w + 1, {});
    REQUIRE_THROWS_WITH(evaluate(p), Contains("operation 1 of stage 0.compute has an index out of range"));
  }
  SECTION("unknown event") {
    p.append(s, w, {e + 1});
    REQUIRE_THROWS_AS(evaluate(p), internal_error);
  }
  SECTION("waits beyond the pool") {
    s.operations[0].waits = 1;
    REQUIRE_THROWS_AS(evaluate(p), internal_error);
  }
  SECTION("an event without arrivals") {
    p.new_event(0);
    REQUIRE_THROWS_AS(evaluate(p), internal_error);
  }
  SECTION("durations that are none") {
    const double wrong =
        GENERATE(-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
    plans::add_template(p, "odd", wrong);
    REQUIRE_THROWS_WITH(evaluate(p), Contains("\"odd\" takes"));
  }
}
