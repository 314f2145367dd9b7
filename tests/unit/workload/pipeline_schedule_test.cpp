// Orders of passes, and the idle time they cause on a machine where nothing else costs.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "nvlsim/training.hpp"
#include "training_fixture.hpp"

namespace nvlsim {
namespace {

using counts = std::vector<std::int64_t>;

/// "F0.1" is the forward pass of micro-batch 1 through chunk 0.
std::string text(const std::vector<pipeline_slot>& slots) {
  std::string out;
  for (const pipeline_slot& s : slots) {
    if (!out.empty()) out += ' ';
    out += (s.forward ? "F" : "B") + std::to_string(s.chunk) + "." + std::to_string(s.micro_batch);
  }
  return out;
}

std::string schedule(std::int64_t pp, std::int64_t vp, std::int64_t micro_batches, std::int64_t stage) {
  parallelism par;
  par.pp = pp, par.vp = vp;
  return text(stage_schedule(par, micro_batches, stage));
}

/// The share of the step that the compute streams of all stages idle.
double bubble_of(const plan& work) {
  const timeline t = evaluate(work);
  double busy = 0;
  for (const rank_class& c : work.classes)
    for (const operation& o : c.streams.front().operations)
      busy += work.templates[static_cast<std::size_t>(o.work)].duration.base();
  return 1 - busy / (t.makespan.base() * static_cast<double>(work.classes.size()));
}

double ideal_bubble(std::int64_t pp, std::int64_t vp, std::int64_t micro_batches) {
  return bubble_of(plan_training(test::ideal_machine(), test::ideal_stack(), test::even_model(pp * vp * 2),
                                 test::even_workload(pp, vp, micro_batches)));
}

TEST_CASE("Layers are dealt evenly when they divide") {
  CHECK(layers_by_chunk(80, 1) == counts{80});
  CHECK(layers_by_chunk(80, 4) == counts(4, 20));
  CHECK(layers_by_chunk(64, 64) == counts(64, 1));
}

TEST_CASE("Embedding and loss take a layer's place when layers do not divide") {
  counts expected(64, 2);
  expected.front() = expected.back() = 1;
  CHECK(layers_by_chunk(126, 64) == expected);  // Llama 3.1 405B, Table 4 of its paper
  CHECK(layers_by_chunk(126, 16) == counts{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  CHECK(layers_by_chunk(6, 8) == counts{0, 1, 1, 1, 1, 1, 1, 0});
}

TEST_CASE("Multi-token-prediction layers sit on the last chunk") {
  counts expected(16, 4);
  expected.back() = 2;
  CHECK(layers_by_chunk(61, 16, 1) == expected);  // DeepSeek-V3
  CHECK(layers_by_chunk(61, 1, 1) == counts{62});
}

TEST_CASE("No layer is lost or made up") {
  for (std::int64_t layers = 1; layers <= 130; ++layers)
    for (std::int64_t chunks = 1; chunks <= layers + 2; ++chunks)
      for (std::int64_t mtp = 0; mtp <= 2; ++mtp) {
        const counts n = layers_by_chunk(layers, chunks, mtp);
        INFO(layers << " layers and " << mtp << " on " << chunks << " chunks");
        REQUIRE(n.size() == static_cast<std::size_t>(chunks));
        REQUIRE(std::accumulate(n.begin(), n.end(), std::int64_t{0}) == layers + mtp);
        REQUIRE(*std::min_element(n.begin(), n.end()) >= 0);
      }
}

TEST_CASE("Schedule of one stage alternates forward and backward passes") {
  CHECK(schedule(1, 1, 3, 0) == "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
}

TEST_CASE("Schedule 1F1B fills the pipeline, alternates and drains it") {
  CHECK(schedule(3, 1, 4, 0) == "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3");
  CHECK(schedule(3, 1, 4, 1) == "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3");
  CHECK(schedule(3, 1, 4, 2) == "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3");
  CHECK(schedule(4, 1, 2, 0) == "F0.0 F0.1 B0.0 B0.1");
}

// Megatron-LM's forward_backward_pipelining_with_interleaving: warm-up of 2 (p - stage - 1) + (v - 1) p passes, then one
// forward and one backward, through the chunks in groups of p micro-batches. arXiv 2104.04473, figure 4.
TEST_CASE("Interleaved schedule runs groups of micro-batches through the chunks") {
  CHECK(schedule(2, 2, 4, 0) ==
        "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  CHECK(schedule(2, 2, 4, 1) ==
        "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
  CHECK(schedule(2, 2, 2, 0) == "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1");
}

TEST_CASE("Schedules run every pass once, and no backward pass before its forward") {
  for (std::int64_t pp = 1; pp <= 5; ++pp)
    for (std::int64_t vp = 1; vp <= (pp == 1 ? 1 : 4); ++vp)
      for (std::int64_t m = 1; m <= 11; ++m)
        for (std::int64_t stage = 0; stage < pp; ++stage) {
          parallelism par;
          par.pp = pp, par.vp = vp;
          std::set<std::tuple<bool, std::int32_t, std::int32_t>> ran;
          for (const pipeline_slot& s : stage_schedule(par, m, stage)) {
            REQUIRE(ran.emplace(s.forward, s.chunk, s.micro_batch).second);
            if (!s.forward) REQUIRE(ran.contains({true, s.chunk, s.micro_batch}));
          }
          REQUIRE(ran.size() == static_cast<std::size_t>(2 * vp * m));
        }
}

TEST_CASE("Bubble of 1F1B is (p-1) / (m+p-1)") {
  for (const std::int64_t pp : {1, 2, 4, 7})
    for (const std::int64_t m : {1, 2, 3, 8, 21}) {
      INFO("pp " << pp << ", " << m << " micro-batches");
      const double p = static_cast<double>(pp);
      CHECK(ideal_bubble(pp, 1, m) == Approx((p - 1) / (static_cast<double>(m) + p - 1)).margin(1e-12));
    }
}

// arXiv 2104.04473, section 2.2: the idle time of a step is 1/v of that of 1F1B, when p divides m.
TEST_CASE("Interleaving divides the idle time by the number of chunks") {
  for (const std::int64_t pp : {2, 4})
    for (const std::int64_t vp : {2, 3, 5})
      for (const std::int64_t groups : {1, 2, 6}) {
        INFO("pp " << pp << ", vp " << vp << ", " << groups * pp << " micro-batches");
        const double p = static_cast<double>(pp), work = static_cast<double>(vp * groups * pp);
        CHECK(ideal_bubble(pp, vp, groups * pp) == Approx((p - 1) / (work + p - 1)).margin(1e-12));
      }
}

TEST_CASE("Interleaved schedules end, or are refused, for every number of micro-batches") {
  const platform p = test::ideal_machine();
  for (std::int64_t pp = 2; pp <= 5; ++pp)
    for (std::int64_t vp = 2; vp <= 4; ++vp)
      for (std::int64_t m = 1; m <= 3 * pp + 1; ++m) {
        INFO("pp " << pp << ", vp " << vp << ", " << m << " micro-batches");
        const model net = test::even_model(pp * vp);
        const training_workload w = test::even_workload(pp, vp, m);
        if (!training_problems(p, net, w).empty()) continue;
        CHECK_NOTHROW(evaluate(plan_training(p, test::ideal_stack(), net, w)));
      }
}

}  // namespace
}  // namespace nvlsim
