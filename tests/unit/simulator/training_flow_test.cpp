// Training steps in which pipeline sends, data-parallel traffic and the exchanges inside passes share ports.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/simulator/simulation.hpp"
#include "support/root.hpp"

using namespace nvlsim;

namespace {

struct step {
  scenario s;
  plan planned(bool fold = true) const {
    return plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload), fold);
  }
  double run(fidelity f, bool fold = true) const {
    return simulate(planned(fold), s.platform, {f}).makespan.base();
  }
};

step shipped_step(const std::string& name, std::vector<override_option> sets = {}) {
  using test::root;
  return {load_scenario(root / "scenarios/training" / (name + ".json"), sets, folders_under(root))};
}

/// The same beside a trickle of a kilobyte through each port of every class, so that nothing is ever alone on one.
plan with_company(plan p) {
  const seconds whole = evaluate(p).makespan;
  operation_template w{"trickle", {{part_kind::dp, "trickle", whole, 1}}, {}, {}};
  const port_bytes both{bytes::from_base(1000), bytes::from_base(1000)};
  w.network = {{{both, both}, {}, whole}};
  const std::int32_t trickle = p.add_template(std::move(w));
  for (rank_class& c : p.classes) {
    c.streams.push_back({stream_kind::kv_transfer, {}});
    p.append(c.streams.back(), trickle, {});
  }
  return p;
}

}  // namespace

TEST_CASE("Exchanges inside passes take their closed time where nothing meets them") {
  const std::vector<std::pair<std::string, std::vector<override_option>>> steps = {
      {"llama3.1-405b-gb300-512", {{"/workload/global_batch_size", "128"}}},
      {"llama3.1-405b-gb300-512",
       {{"/workload/global_batch_size", "128"}, {"/platform/racks", "256"}, {"/placement/gpus_per_rack", "2"}}},
      {"llama3.1-405b-gb300-512",
       {{"/workload/data_parallel_sharding", "fsdp"},
        {"/workload/pp", "1"},
        {"/workload/vp", "1"},
        {"/workload/schedule", "1f1b"},
        {"/workload/dp", "128"},
        {"/workload/global_batch_size", "256"}}},
      {"kimi-k2-gb300-4608", {{"/workload/global_batch_size", "4608"}}},
      {"kimi-k2-gb300-4608",
       {{"/workload/global_batch_size", "4608"}, {"/platform/racks", "576"}, {"/placement/gpus_per_rack", "8"}}},
      {"kimi-k2-gb300-4608", {{"/workload/vp", "1"}, {"/workload/schedule", "dualpipe"}}},
  };
  for (const auto& [name, sets] : steps) {
    INFO(name << ", " << sets.size() << " changes");
    const step s = shipped_step(name, sets);
    plan p = s.planned();
    std::size_t exchanges = 0;
    for (operation_template& t : p.templates) {
      if (t.parts.size() == 1) t.network.clear();  // sends, gradients, parameters
      exchanges += t.network.size();
    }
    CHECK(exchanges > 0);
    const timeline closed = evaluate(p), quiet = simulate(p, s.s.platform, {fidelity::flow}),
                   busy = simulate(with_company(p), s.s.platform, {fidelity::flow});
    CHECK(quiet.makespan.base() == Approx(closed.makespan.base()).epsilon(1e-9));
    CHECK(busy.makespan.base() == Approx(closed.makespan.base()).epsilon(1e-9));
    CHECK(busy.activities > 2 * quiet.activities);  // flows are not simulated until somebody comes
  }
}

TEST_CASE("Step whose traffic has a port for each kind is as in closed") {
  // Tensor parallelism inside racks, sends between them, and no gradients to share.
  const step s = shipped_step("llama3.1-405b-gb300-512", {{"/workload/global_batch_size", "32"},
                                                          {"/workload/tp", "8"},
                                                          {"/workload/cp", "1"},
                                                          {"/workload/dp", "1"},
                                                          {"/placement/gpus_per_rack", "8"}});
  CHECK(s.run(fidelity::flow) == Approx(s.run(fidelity::closed)).epsilon(1e-9));
}

TEST_CASE("Experts that exchange over racks meet gradients on the NICs, and not where they stay in one") {
  const auto excess = [](const char* gpus_per_rack, const char* racks) {
    const step s = shipped_step("kimi-k2-gb300-4608", {{"/workload/global_batch_size", "4608"},
                                                       {"/platform/racks", racks},
                                                       {"/placement/gpus_per_rack", gpus_per_rack}});
    return s.run(fidelity::flow) / s.run(fidelity::closed) - 1;
  };
  CHECK(excess("48", "96") < 0.003);
  CHECK(excess("8", "576") > 0.005);
  CHECK(excess("8", "576") < 0.15);
}

TEST_CASE("Step whose sends meet data-parallel traffic on the NICs is longer, but not by all that traffic") {
  const step s = shipped_step(
      "llama3.1-405b-gb300-512",
      {{"/workload/global_batch_size", "128"}, {"/platform/racks", "128"}, {"/placement/gpus_per_rack", "4"}});
  const double closed = s.run(fidelity::closed), flow = s.run(fidelity::flow);
  CHECK(flow > closed * 1.001);
  CHECK(flow < closed * 1.1);
}

TEST_CASE("Folded and unfolded steps agree in flow") {
  const step s = shipped_step("llama3.1-405b-gb300-512", {{"/workload/global_batch_size", "32"},
                                                          {"/workload/dp", "4"},
                                                          {"/platform/racks", "32"},
                                                          {"/placement/gpus_per_rack", "4"}});
  const double folded = s.run(fidelity::flow);
  CHECK(folded > s.run(fidelity::closed) * 1.001);
  CHECK(s.run(fidelity::flow, false) == Approx(folded).epsilon(1e-9));
  CHECK(simulate(with_company(s.planned()), s.s.platform, {fidelity::flow}).makespan.base() ==
        Approx(folded).epsilon(1e-9));
}

TEST_CASE("Folded and unfolded steps of experts over racks agree in flow") {
  const step s = shipped_step("kimi-k2-gb300-4608", {{"/workload/global_batch_size", "64"},
                                                     {"/workload/dp", "8"},
                                                     {"/workload/ep", "8"},
                                                     {"/platform/racks", "16"},
                                                     {"/placement/gpus_per_rack", "4"}});
  const double folded = s.run(fidelity::flow);
  CHECK(folded > s.run(fidelity::closed) * 1.001);
  CHECK(s.run(fidelity::flow, false) == Approx(folded).epsilon(1e-9));
  CHECK(simulate(with_company(s.planned()), s.s.platform, {fidelity::flow}).makespan.base() ==
        Approx(folded).epsilon(1e-9));
}

namespace {

/// 405B in groups of eight GPUs with nothing but sends and gradients beyond them, on a platform of as many racks
/// as it fills.
std::vector<override_option> groups_of_eight(const char* dp, std::vector<override_option> more) {
  std::vector<override_option> sets = {{"/workload/tp", "4"},       {"/workload/cp", "2"},
                                       {"/workload/dp", dp},        {"/workload/global_batch_size", "256"},
                                       {"/platform/racks", "1024"}, {"/placement/gpus_per_rack", "8"}};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

}  // namespace

TEST_CASE("Up-links cut to a share are never faster than NICs cut as much, where all traffic crosses them") {
  for (const char* dp : {"16", "32"})
    for (const int ratio : {2, 4, 8}) {
      INFO("dp " << dp << ", " << ratio << " to 1");
      const std::string times = std::to_string(ratio), rate = std::to_string(800.0 / ratio) + " Gb/s";
      const step over = shipped_step("llama3.1-405b-gb300-512",
                                     groups_of_eight(dp, {{"/platform/fabric/oversubscription", times}})),
                 cut = shipped_step("llama3.1-405b-gb300-512",
                                    groups_of_eight(dp, {{"/platform/fabric/nic_bandwidth", rate}}));
      const double by_uplinks = over.run(fidelity::flow), by_nics = cut.run(fidelity::flow);
      CHECK(by_uplinks >= by_nics * (1 - 1e-6));
      CHECK(by_uplinks <= by_nics * 1.001);
      CHECK(by_uplinks >= over.run(fidelity::closed) * (1 - 1e-9));
    }
}

TEST_CASE("A step is slower with fewer up-links, and one under a leaf is not") {
  double before = 0;
  for (const char* ratio : {"1", "2", "4", "8", "16"}) {
    const double t = shipped_step("llama3.1-405b-gb300-512",
                                  groups_of_eight("16", {{"/platform/fabric/oversubscription", ratio}}))
                         .run(fidelity::flow);
    CHECK(t >= before);
    before = t;
  }
  const auto under_a_leaf = [](const char* ratio) {  // two of eight racks
    return shipped_step("llama3.1-405b-gb300-rack", {{"/platform/racks", "8"},
                                                     {"/placement/gpus_per_rack", "32"},
                                                     {"/platform/fabric/leaf/ports", "288"},
                                                     {"/platform/fabric/oversubscription", ratio}})
        .run(fidelity::flow);
  };
  CHECK(under_a_leaf("8") == Approx(under_a_leaf("1")).epsilon(1e-9));
}

TEST_CASE("More replicas on oversubscribed leaves cost no more activities") {
  const auto activities = [](const char* dp, const char* global_batch) {  // eight micro-batches
    const step s =
        shipped_step("llama3.1-405b-gb300-512", groups_of_eight(dp, {{"/platform/fabric/oversubscription", "8"},
                                                                     {"/workload/global_batch_size", global_batch},
                                                                     {"/platform/racks", "100000"}}));
    return simulate(s.planned(), s.s.platform, {fidelity::flow}).activities;
  };
  CHECK(activities("8192", "65536") <= activities("128", "1024"));
}
