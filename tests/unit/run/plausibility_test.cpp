#include "nvlsim/run/plausibility.hpp"

#include <catch2/catch.hpp>

namespace {

using namespace nvlsim;

result with(value::object metrics, value::object bands) {
  result r;
  r.notes = {"first"};
  r.metrics = value{std::move(metrics)};
  r.bands = value{std::move(bands)};
  return r;
}

TEST_CASE("Metrics that no machine can have are noted and lose their bands") {
  const value band = value::array{1.0, 2.0};
  result r = with({{"step_time_s", 4e9}, {"mfu", 1.2}, {"tokens_per_s", 5.0}},
                  {{"step_time_s", band}, {"mfu", band}, {"tokens_per_s", band}});
  mark_impossible(r);
  REQUIRE(r.notes.size() == 3);
  CHECK(r.notes[0] == "step_time_s is 4e+09 and implausible: more than a hundred years");
  CHECK(r.notes[1] ==
        "mfu is 1.2 and cannot be above 1: the stack's kernels are faster than the platform's peaks");
  CHECK(r.notes[2] == "first");
  CHECK_FALSE(r.bands.find("step_time_s"));
  CHECK_FALSE(r.bands.find("mfu"));
  CHECK(r.bands.find("tokens_per_s"));
}

TEST_CASE("A statistic that cannot be takes the bands of its distribution") {
  const value band = value::array{1.0, 2.0};
  result r =
      with({{"ttft_s", value::object{{"p50", 1.0}, {"p99", -1.0}}}, {"tpot_s", value::object{{"p50", 1.0}}}},
           {{"ttft_s.p50", band}, {"tpot_s.p50", band}});
  mark_impossible(r);
  REQUIRE(r.notes.size() == 2);
  CHECK(r.notes[0] == "ttft_s.p99 is -1 and cannot be below zero");
  CHECK_FALSE(r.bands.find("ttft_s.p50"));
  CHECK(r.bands.find("tpot_s.p50"));
}

TEST_CASE("Possible results stay as they are") {
  result r = with({{"step_time_s", 3e9}, {"mfu", 1.0}, {"makespan_s", 0.0}, {"cost_per_step_usd", value{}}}, {});
  mark_impossible(r);
  CHECK(r.notes.size() == 1);
}

}  // namespace
