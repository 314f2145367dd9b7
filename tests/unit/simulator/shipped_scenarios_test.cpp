// The engine against the longest path, on the steps that users run.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/simulator/simulation.hpp"

namespace nvlsim {
namespace {

/// A shipped training scenario with overrides.
scenario shipped(const std::string& name, const std::vector<override_option>& overrides = {}) {
  return load_scenario(std::string(NVLSIM_SOURCE_DIR "/scenarios/training/") + name + ".json", overrides,
                       folders_under(NVLSIM_SOURCE_DIR));
}

plan planned(const scenario& s, bool fold = true) {
  return plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload), fold);
}

TEST_CASE("Shipped training steps run on the engine as on paper") {
  for (const char* name : {"llama3.1-405b-gb200-512", "llama3.1-405b-gb200-rack", "llama3.1-405b-gb300-512",
                           "llama3.1-405b-gb300-rack"}) {
    INFO(name);
    const scenario s = shipped(name);
    const plan p = planned(s);
    const timeline found = simulate(p, s.platform), expected = evaluate(p);
    const double step = expected.makespan.base();
    CHECK(found.makespan.base() == Approx(step).epsilon(1e-12));
    double max = 0;
    for (std::size_t c = 0; c < p.classes.size(); ++c)
      for (std::size_t i = 0; i < p.classes[c].streams.size(); ++i)
        for (std::size_t o = 0; o < p.classes[c].streams[i].operations.size(); ++o)
          max = std::max(max, std::abs(found.spans[c][i][o].end_s - expected.spans[c][i][o].end_s));
    CHECK(max < 1e-12 * step);
  }
}

TEST_CASE("A folded step takes as long as one of every rank on the engine") {
  using sets = std::vector<override_option>;
  const sets rack = {{"/placement/gpus_per_rack", "72"},
                     {"/workload/tp", "4"},
                     {"/workload/pp", "3"},
                     {"/workload/vp", "1"},
                     {"/workload/schedule", "1f1b"},
                     {"/workload/cp", "1"},
                     {"/workload/dp", "6"},
                     {"/workload/global_batch_size", "36"}};
  sets eight = rack;  // racks: 576 GPUs
  eight.insert(eight.end(), {{"/workload/pp", "9"},
                             {"/workload/dp", "16"},
                             {"/workload/vp", "2"},
                             {"/workload/schedule", "interleaved"},
                             {"/workload/global_batch_size", "144"}});
  for (const sets& overrides : {rack, eight}) {
    const scenario s = shipped("llama3.1-405b-gb300-512", overrides);
    const plan every = planned(s, false);
    CHECK(every.classes.size() == static_cast<std::size_t>(std::get<training_workload>(s.workload).par.gpus()));
    CHECK(simulate(every, s.platform).makespan.base() ==
          Approx(simulate(planned(s), s.platform).makespan.base()).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace nvlsim
