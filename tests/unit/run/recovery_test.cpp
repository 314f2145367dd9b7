// Times of recovery of the shipped profile against published ones.
#include <catch2/catch.hpp>

#include "nvlsim/run/run.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

TEST_CASE("A restart of Llama 3 70B on 256 H100 takes what AWS published, within 30 %") {
  // 292 s (AWS blog of December 2025); the machines stay, so that no spare has to start.
  const std::vector<override_option> h100 = {
      {"/platform", R"({"use": "h100-efa", "racks": 34})"},
      {"/jobs/0/model", "llama3.1-70b"},
      {"/jobs/0/placement", "null"},
      {"/jobs/0/workload",
       R"({"kind": "training", "seq_length": 8192, "global_batch_size": 256, "precision": "bf16", "tp": 4, "pp": 4,
           "dp": 16, "sequence_parallel": true, "schedule": "1f1b"})"},
      {"/workload/recovery/spare_ready", "0 s"},
      {"/workload/seeds", "1"}};
  const scenario s = test::shipped_scenario("operation/llama3.1-405b-gb300-4608-90-days", h100);
  const result r = run_scenario(s, {.explained = false, .simulate = false}).outcome;
  REQUIRE(r.status == run_status::ok);
  const value* restart = r.breakdown.at_pointer("/estimates/restart_s");
  REQUIRE((restart && restart->number()));
  CHECK(*restart->number() == Approx(292).epsilon(0.3));
}

}  // namespace
}  // namespace nvlsim
