// Times of recovery of the shipped profile against published ones.
#include <catch2/catch.hpp>
#include <string>

#include "nvlsim/run/operation_job.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

// AWS blog of December 2025, s: the machines stay, so that no spare has to start. 256 H100 pretrain, 16 fine-tune
// by LoRA (HyperPod's recipes for 2 machines).
constexpr double pretraining_from_store = 292, tuning_from_store = 310;
constexpr double pretraining_from_peers = 47, tuning_from_peers = 50;

/// A job of Llama 3 70B on H100 machines, priced. Copies go to the store and to neighbours' memory.
operation_setup llama_on_h100(int machines, const std::string& layout) {
  const std::vector<override_option> sets = {
      {"/platform", R"({"use": "h100-efa", "racks": )" + std::to_string(machines + 2) + "}"},
      {"/jobs/0/model", "llama3.1-70b"},
      {"/jobs/0/placement", "null"},
      {"/jobs/0/workload", R"({"kind": "training", "seq_length": 8192, "precision": "bf16",)" + layout + "}"},
      {"/workload/checkpoint/tiers/neighbour", R"({"write": "50 GB/s", "read": "50 GB/s"})"},
      {"/workload/recovery/spare_ready", "0 s"},
      {"/workload/seeds", "1"}};
  const priced_operation job =
      price_alone(test::shipped_scenario("operation/llama3.1-405b-gb300-4608-90-days", sets));
  REQUIRE(job.reasons.empty());
  return job.study.setup;
}

operation_setup pretraining() {
  return llama_on_h100(
      32,
      R"("global_batch_size": 256, "tp": 4, "pp": 4, "dp": 16, "sequence_parallel": true, "schedule": "1f1b")");
}
operation_setup tuning(const std::string& more = R"("task": "lora", "lora_rank": 16,)") {
  return llama_on_h100(2, more + R"("global_batch_size": 32, "tp": 8, "dp": 2, "sequence_parallel": true)");
}

double restart(const operation_setup& s) { return mean_costs(s, tiers_of(s)).restart.base(); }

TEST_CASE("Restarts of Llama 3 70B on 256 and 16 H100 take what AWS published, within 30 %") {
  CHECK(restart(pretraining()) == Approx(pretraining_from_store).epsilon(0.3));
  CHECK(restart(tuning()) == Approx(tuning_from_store).epsilon(0.3));
}

TEST_CASE("A job that tunes adapters saves them alone, and loads the frozen weights") {
  const operation_setup s = tuning();
  CHECK(s.save.state < s.save.frozen / 10);
  CHECK(s.save.frozen.base() == Approx(2 * 70.55e9).epsilon(0.01));
  // 8 ranks hold the weights, twice.
  CHECK(s.save.held.base() == Approx(2 * s.save.frozen.base()).epsilon(0.02));
  CHECK(pretraining().save.frozen == bytes{});
}

TEST_CASE("Recoveries from peers hardly depend on size: the one of 256 H100 gives that of 16, within 30 %") {
  const auto of_size = [](const operation_setup& s) {
    return (tiers_of(s).front().load + s.recovery.init_of(s.asked.slots * s.cluster.gpus_per_tray)).base();
  };
  const operation_setup large = pretraining(), small = tuning();
  const double rest = pretraining_from_peers - of_size(large);  // fitted: to notice, to decide and to warm up
  CHECK(rest > 30);
  CHECK(rest + of_size(small) == Approx(tuning_from_peers).epsilon(0.3));
}

}  // namespace
}  // namespace nvlsim
