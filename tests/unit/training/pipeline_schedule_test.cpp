// Orders of passes, and the idle time they cause on a machine where nothing else costs.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "nvlsim/training/training.hpp"
#include "unit/training/training_fixture.hpp"

namespace nvlsim {
namespace {

using counts = std::vector<std::int64_t>;

/// "F0.1" is the forward pass of micro-batch 1 through chunk 0, I and W are the halves of its backward.
std::string text(const std::vector<pipeline_slot>& slots) {
  std::string out;
  for (const pipeline_slot& s : slots) {
    if (!out.empty()) out += ' ';
    out += "FBIW"[static_cast<int>(s.what)] + std::to_string(s.chunk) + "." + std::to_string(s.micro_batch);
  }
  return out;
}

std::string schedule(std::int64_t pp, std::int64_t vp, std::int64_t micro_batches, std::int64_t stage) {
  return text(stage_schedule({pipeline_schedule::interleaved, pp, vp, micro_batches}, stage));
}

pipeline_geometry shape(pipeline_schedule s, std::int64_t pp, std::int64_t micro_batches) {
  return {s, pp, s == pipeline_schedule::one_f_one_b || s == pipeline_schedule::zb_h1 ? 1 : 2, micro_batches};
}
constexpr std::array splitting = {pipeline_schedule::zb_h1, pipeline_schedule::zb_v, pipeline_schedule::dualpipe};

/// The share of the step that the compute streams of all stages idle.
double bubble_of(const plan& planned) {
  const timeline t = evaluate(planned);
  double busy = 0;
  for (const rank_class& c : planned.classes)
    for (const operation& o : c.streams.front().operations)
      busy += planned.templates[static_cast<std::size_t>(o.template_index)].duration.base();
  return 1 - busy / (t.makespan.base() * static_cast<double>(planned.classes.size()));
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

// Megatron-LM's forward_backward_pipelining_with_interleaving: warm-up of 2 (p - stage - 1) + (v - 1) p passes,
// then one forward and one backward, through the chunks in groups of p micro-batches. arXiv 2104.04473, figure 4.
TEST_CASE("Interleaved schedule runs groups of micro-batches through the chunks") {
  CHECK(schedule(2, 2, 4, 0) == "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  CHECK(schedule(2, 2, 4, 1) == "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
  CHECK(schedule(2, 2, 2, 0) == "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1");
}

TEST_CASE("Schedules run every pass once, and no backward pass before its forward") {
  for (std::int64_t pp = 1; pp <= 5; ++pp)
    for (std::int64_t vp = 1; vp <= (pp == 1 ? 1 : 4); ++vp)
      for (std::int64_t m = 1; m <= 11; ++m)
        for (std::int64_t stage = 0; stage < pp; ++stage) {
          std::set<std::tuple<bool, std::int32_t, std::int32_t>> ran;
          for (const pipeline_slot& s : stage_schedule({pipeline_schedule::interleaved, pp, vp, m}, stage)) {
            const bool forward = s.what == pass_kind::forward;
            REQUIRE(ran.emplace(forward, s.chunk, s.micro_batch).second);
            if (!forward) REQUIRE(ran.contains({true, s.chunk, s.micro_batch}));
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
        const double p = static_cast<double>(pp), workload = static_cast<double>(vp * groups * pp);
        CHECK(ideal_bubble(pp, vp, groups * pp) == Approx((p - 1) / (workload + p - 1)).margin(1e-12));
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

/// What each stage's schedule takes when a pass through a chunk does, sends being free: nothing when it never
/// ends.
struct unit_times {
  double forward = 1, input = 1, weight = 1;
};
struct stage_run {
  double first = 0, last = 0, busy = 0;
};
std::optional<std::vector<stage_run>> run_units(const pipeline_geometry& g, unit_times t) {
  std::vector<std::vector<pipeline_slot>> slots;
  for (std::int64_t s = 0; s < g.pp; ++s) slots.push_back(stage_schedule(g, s));
  std::map<std::tuple<bool, std::int64_t, std::int32_t>, double>
      done;  // forward or input gradient, chunk, micro-batch
  constexpr double never = 1e300;
  const auto input_of = [&](bool forward, std::int64_t k, std::int32_t mb) {
    if (forward ? k == 0 : k + 1 == g.chunks()) return 0.0;
    const auto it = done.find({forward, forward ? k - 1 : k + 1, mb});
    return it == done.end() ? never : it->second;
  };
  std::vector<std::size_t> next(slots.size(), 0);
  std::vector<stage_run> out(slots.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < slots.size(); ++s)
      for (; next[s] < slots[s].size(); ++next[s]) {
        const pipeline_slot& p = slots[s][next[s]];
        const std::int64_t k = g.chunk_of(static_cast<std::int64_t>(s), p.chunk);
        const bool forward = p.what == pass_kind::forward, weight = p.what == pass_kind::backward_weight;
        double ready = weight ? 0 : input_of(forward, k, p.micro_batch);
        const bool pairs = p.paired && forward;
        if (pairs) {  // starts, and hands on its output, with the backward pass beside it
          const pipeline_slot& other = slots[s][next[s] + 1];
          ready = std::max(
              ready, input_of(false, g.chunk_of(static_cast<std::int64_t>(s), other.chunk), other.micro_batch));
        }
        if (ready == never) break;
        const double begin = std::max(out[s].last, ready);
        const double length = forward ? t.forward
                                      : (p.what != pass_kind::backward_weight ? t.input : 0) +
                                            (p.what != pass_kind::backward_input ? t.weight : 0);
        if (next[s] == 0) out[s].first = begin;
        out[s].busy += length;
        out[s].last = begin + length;
        if (!weight) done[{forward, k, p.micro_batch}] = out[s].last + (pairs ? t.input + t.weight : 0);
        moved = true;
      }
  }
  for (std::size_t s = 0; s < slots.size(); ++s)
    if (next[s] < slots[s].size()) return {};
  return out;
}

/// As in the papers: the longest time from a stage's first pass to its last, less its work.
double idle_units(const pipeline_geometry& g, unit_times t = {}) {
  double max = 0;
  const std::vector<stage_run> runs = run_units(g, t).value();
  for (const stage_run& r : runs) max = std::max(max, r.last - r.first - r.busy);
  return max;
}

// The table of sail-sg/zero-bubble: with B = p - 1 passes of idle time in 1F1B (three units each), ZB-H1 idles a
// third of that at the same memory, and ZB-V not at all.
TEST_CASE("Zero-bubble table is reproduced with equal forward, input and weight passes") {
  for (const std::int64_t pp : {2, 3, 4, 8, 16})
    for (const std::int64_t m : {2 * pp, 3 * pp + 1, 8 * pp}) {
      INFO("pp " << pp << ", " << m << " micro-batches");
      const double p = static_cast<double>(pp);
      CHECK(idle_units(shape(pipeline_schedule::one_f_one_b, pp, m)) == 3 * (p - 1));
      CHECK(idle_units(shape(pipeline_schedule::zb_h1, pp, m)) == p - 1);
      CHECK(idle_units(shape(pipeline_schedule::zb_v, pp, m)) == 0);
    }
}

// DeepSeek-V3 report, table 2: (p/2 - 1) (F&B + B - 3 W) for DualPipe, where F&B is a pair of passes.
TEST_CASE("Bidirectional schedule idles as published") {
  const unit_times t;  // F 1, B 2 of which W 1, F&B 3
  for (const std::int64_t pp : {2, 4, 8, 16})
    for (const std::int64_t m : {2 * pp, 2 * pp + 4, 6 * pp}) {
      INFO("pp " << pp << ", " << m << " micro-batches");
      CHECK(idle_units(shape(pipeline_schedule::dualpipe, pp, m), t) ==
            (static_cast<double>(pp) / 2 - 1) * (3 + 2 - 3));
    }
}

bool legal(pipeline_schedule s, std::int64_t pp, std::int64_t m) {
  return s != pipeline_schedule::dualpipe || (pp % 2 == 0 && m % 2 == 0 && m >= 2 * pp);
}

TEST_CASE("Splitting schedules end and run every part once, whatever the sizes") {
  for (const pipeline_schedule s : splitting)
    for (const std::int64_t pp : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 23, 32, 48, 64})
      for (const std::int64_t m : {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 24, 31, 33, 48, 64, 100, 128}) {
        const pipeline_geometry g = shape(s, pp, m);
        if (!legal(s, pp, m) || (s == pipeline_schedule::zb_v && pp == 1)) continue;
        INFO("schedule " << static_cast<int>(s) << ", pp " << pp << ", " << m << " micro-batches");
        const auto runs = run_units(g, {1, 1, 1});
        REQUIRE(runs.has_value());
        const double chunks = s == pipeline_schedule::zb_v ? 2 : 1;
        for (const stage_run& r : *runs)
          REQUIRE(r.busy == 3 * chunks * static_cast<double>(m));  // work is conserved
      }
}

/// Whether every pass is reached when each stage runs its own in order.
bool ends(const pipeline_geometry& g) {
  std::vector<std::vector<pipeline_slot>> slots;
  for (std::int64_t s = 0; s < g.pp; ++s) slots.push_back(stage_schedule(g, s));
  const auto index = [&](std::int64_t chunk, std::int64_t mb) {
    return static_cast<std::size_t>(chunk * g.micro_batches + mb);
  };
  std::vector<char> forward(index(g.chunks(), 0), 0), backward(forward.size(), 0);
  std::vector<std::size_t> next(slots.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < slots.size(); ++s)
      for (; next[s] < slots[s].size(); ++next[s], moved = true) {
        const pipeline_slot& p = slots[s][next[s]];
        const std::int64_t k = g.chunk_of(static_cast<std::int64_t>(s), p.chunk);
        if (p.what == pass_kind::forward) {
          if (k > 0 && forward[index(k - 1, p.micro_batch)] == 0) break;
          forward[index(k, p.micro_batch)] = 1;
        } else {
          if (k + 1 < g.chunks() && backward[index(k + 1, p.micro_batch)] == 0) break;
          backward[index(k, p.micro_batch)] = 1;
        }
      }
  }
  const auto all = [](const std::vector<char>& done) {
    return std::find(done.begin(), done.end(), 0) == done.end();
  };
  return all(forward) && all(backward);
}

TEST_CASE("No legal pipeline of up to 64 stages, micro-batches and chunks locks up, and others are refused") {
  const auto problems = [](std::int64_t pp, std::int64_t vp, std::int64_t m) {
    return schedule_problems(test::even_workload(pp, vp, m));
  };
  for (std::int64_t pp = 1; pp <= 64; ++pp) {
    INFO("pp " << pp);
    for (const std::int64_t m : {1, 2, 3, 7, 16, 33, 64}) {
      REQUIRE(problems(pp, 1, m).empty());
      REQUIRE(ends({pipeline_schedule::one_f_one_b, pp, 1, m}));
    }
    if (pp == 1) continue;
    for (const std::int64_t vp : {2, 3, 7, 16, 64})
      for (const std::int64_t m : std::set<std::int64_t>{pp, 64 / pp * pp}) {
        INFO("vp " << vp << ", " << m << " micro-batches");
        REQUIRE(problems(pp, vp, m).empty());
        REQUIRE(ends({pipeline_schedule::interleaved, pp, vp, m}));
        REQUIRE_FALSE(problems(pp, vp, m + 1).empty());
        REQUIRE_FALSE(problems(pp, vp, m - 1).empty());
      }
  }
}

TEST_CASE("Splitting schedules hold no more than their papers say") {
  for (const std::int64_t pp : {2, 4, 7, 8})
    for (const std::int64_t m : {2 * pp, 6 * pp})
      for (const pipeline_schedule s : splitting) {
        if (!legal(s, pp, m)) continue;
        INFO("schedule " << static_cast<int>(s) << ", pp " << pp << ", " << m << " micro-batches");
        for (std::int64_t stage = 0; stage < pp; ++stage) {
          std::int64_t alive = 0, max = 0;
          for (const pipeline_slot& p : stage_schedule(shape(s, pp, m), stage)) {
            if (p.what == pass_kind::backward_input) continue;
            alive += p.what == pass_kind::forward ? 1 : -1;
            max = std::max(max, alive);
          }
          CHECK(max <= (s == pipeline_schedule::zb_v ? 2 * pp : s == pipeline_schedule::dualpipe ? pp + 1 : pp));
        }
      }
}

TEST_CASE("Splitting schedules run as plans, folded and not, with the work of 1F1B") {
  const platform p = test::ideal_machine();
  const stack s = test::ideal_stack();
  const model net = test::even_model(16);
  const auto busy_of = [&](const plan& planned) {
    double busy = 0;
    for (const rank_class& c : planned.classes)
      for (const operation& o : c.streams.front().operations)
        busy += planned.templates[static_cast<std::size_t>(o.template_index)].duration.base() *
                static_cast<double>(c.multiplicity);
    return busy;
  };
  const double plain = busy_of(plan_training(p, s, net, test::even_workload(4, 1, 16)));
  for (const pipeline_schedule schedule : splitting) {
    training_workload w = test::even_workload(4, schedule == pipeline_schedule::zb_v ? 2 : 1, 16);
    w.schedule = schedule;
    REQUIRE(training_problems(p, net, w).empty());
    const plan folded = plan_training(p, s, net, w);
    CHECK(busy_of(folded) == Approx(plain));
    w.par.dp = 2;
    w.global_batch_size *= 2;
    w.sharding = data_parallel_sharding::distributed_optimizer;
    CHECK(evaluate(plan_training(p, s, net, w, false)).makespan.base() ==
          Approx(evaluate(plan_training(p, s, net, w)).makespan.base()).epsilon(1e-9));
  }
}

TEST_CASE("Schedules refuse chunks and micro-batches that they cannot run") {
  const auto reasons = [](pipeline_schedule s, std::int64_t pp, std::int64_t vp, std::int64_t m) {
    training_workload w = test::even_workload(pp, vp, m);
    w.schedule = s;
    return schedule_problems(w);
  };
  using list = std::vector<std::string>;
  CHECK(reasons(pipeline_schedule::one_f_one_b, 4, 2, 4) ==
        list{"schedule 1f1b has one model chunk per stage; use interleaved for vp > 1"});
  CHECK(reasons(pipeline_schedule::zb_h1, 4, 2, 4) ==
        list{"schedule zb_h1 has one model chunk per stage: vp must be 1"});
  CHECK(reasons(pipeline_schedule::zb_v, 4, 1, 4) ==
        list{"schedule zb_v has two model chunks per stage: vp must be 2, not 1"});
  CHECK(reasons(pipeline_schedule::dualpipe, 3, 1, 5) ==
        list{"schedule dualpipe pairs opposite stages: pp must be even, not 3",
             "schedule dualpipe needs an even number of micro-batches, at least 2 x pp = 6; the global batch "
             "gives each replica 5"});
  CHECK(reasons(pipeline_schedule::dualpipe, 4, 1, 8).empty());
  CHECK(reasons(pipeline_schedule::zb_h1, 4, 1, 1).empty());
}

}  // namespace
}  // namespace nvlsim
