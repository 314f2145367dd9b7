// What a training run says of itself beside its metrics.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "nvlsim/run/run.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using test::shipped_scenario;

bool has_note(const result& r, std::string_view start) {
  return std::any_of(r.notes.begin(), r.notes.end(), [&](const std::string& n) { return n.starts_with(start); });
}

TEST_CASE("A step that overlap of the exchange slows says so, and no other") {
  const auto run = [](const char* precision, const char* graphs, bool overlap) {
    return run_scenario(shipped_scenario("training/qwen3-235b-a22b-gb300-256",
                                         {{"/workload/micro_batch_size", "1"},
                                          {"/workload/precision", std::string(precision)},
                                          {"/workload/cuda_graphs", std::string(graphs)},
                                          {"/workload/overlap_moe_expert_parallel_comm",
                                           std::string(overlap ? "true" : "false")}}))
        .outcome;
  };
  int slow = 0;
  for (const char* precision : {"bf16", "fp8", "mxfp8"})
    for (const char* graphs : {"none", "partial"}) {
      const result with = run(precision, graphs, true), without = run(precision, graphs, false);
      const double slower =
          *with.metrics.find("step_time_s")->number() / *without.metrics.find("step_time_s")->number();
      CAPTURE(precision, graphs, slower);
      CHECK(has_note(with, "overlap_moe_expert_parallel_comm slows this step by ") == (slower > 1.005));
      CHECK_FALSE(has_note(without, "overlap_moe_expert_parallel_comm"));
      slow += slower > 1.005 ? 1 : 0;
    }
  CHECK(slow == 2);  // in 8 bits without graphs
}

}  // namespace
}  // namespace nvlsim
