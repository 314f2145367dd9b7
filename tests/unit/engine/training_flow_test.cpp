// Training steps in which pipeline sends and data-parallel traffic share ports.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/scenario.hpp"
#include "nvlsim/simulation.hpp"

using namespace nvlsim;

namespace {

struct step {
  scenario s;
  double run(fidelity f, bool fold = true) const {
    const plan p = plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload), fold);
    return simulate(p, s.platform, {f}).makespan.base();
  }
};

step shipped(const std::string& name, std::vector<override_option> sets = {}) {
  const std::filesystem::path root = NVLSIM_SOURCE_DIR;
  return {load_scenario(root / "scenarios/training" / (name + ".json"), sets, folders_under(root))};
}

}  // namespace

TEST_CASE("Step whose sends and data-parallel traffic use different ports is as in closed") {
  // A stage is 64 GPUs of a rack: gradients stay on NVLink, activations cross the fabric.
  const step s = shipped("llama3.1-405b-gb300-512", {{"/workload/global_batch_size", "128"}});
  CHECK(s.run(fidelity::flow) == Approx(s.run(fidelity::closed)).epsilon(1e-9));
}

TEST_CASE("Step whose sends meet data-parallel traffic on the NICs is longer, but not by all that traffic") {
  const step s = shipped(
      "llama3.1-405b-gb300-512",
      {{"/workload/global_batch_size", "128"}, {"/platform/racks", "128"}, {"/placement/gpus_per_rack", "4"}});
  const double closed = s.run(fidelity::closed), flow = s.run(fidelity::flow);
  CHECK(flow > closed * 1.001);
  CHECK(flow < closed * 1.1);
}

TEST_CASE("Folded and unfolded steps agree in flow") {
  const step s = shipped("llama3.1-405b-gb300-512", {{"/workload/global_batch_size", "32"},
                                                     {"/workload/dp", "4"},
                                                     {"/platform/racks", "32"},
                                                     {"/placement/gpus_per_rack", "4"}});
  const double folded = s.run(fidelity::flow);
  CHECK(folded > s.run(fidelity::closed) * 1.001);
  CHECK(s.run(fidelity::flow, false) == Approx(folded).epsilon(1e-9));
}
