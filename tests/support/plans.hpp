// Plans with known or checkable timelines, for the tests of `evaluate` and of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/plan/plan.hpp"

namespace plans {

using namespace nvlsim;

inline std::int32_t add_template(plan& p, const std::string& name, double duration_s) {
  operation_template t;
  t.name = name;
  t.parts.push_back({part_kind::gemm, name, seconds::from_base(duration_s)});
  return p.add_template(std::move(t));
}

inline stream& add_class(plan& p, const std::string& name) {
  rank_class c;
  c.name = name;
  c.streams.emplace_back();
  p.classes.push_back(std::move(c));
  return p.classes.back().streams.front();
}

/// 1F1B with `stages` stages: its makespan is (micro_batches + stages - 1) (forward + backward).
inline plan one_f_one_b(int stages, int micro_batches, double forward_s, double backward_s) {
  plan p;
  const std::int32_t forward = add_template(p, "forward", forward_s),
                     backward = add_template(p, "backward", backward_s);
  std::vector<std::vector<event_id>> forward_done, backward_done;
  for (auto* done : {&forward_done, &backward_done}) {
    done->resize(static_cast<std::size_t>(stages));
    for (auto& row : *done) {
      for (int i = 0; i < micro_batches; ++i) row.push_back(p.new_event());
    }
  }
  for (int s = 0; s < stages; ++s) {
    stream& w = add_class(p, "stage " + std::to_string(s));
    const auto at = static_cast<std::size_t>(s);
    const auto run_forward = [&](int i) {
      const auto m = static_cast<std::size_t>(i);
      p.append(w, forward, {s > 0 ? forward_done[at - 1][m] : no_event}, forward_done[at][m], {i});
    };
    const auto run_backward = [&](int i) {
      const auto m = static_cast<std::size_t>(i);
      p.append(w, backward, {s + 1 < stages ? backward_done[at + 1][m] : no_event}, backward_done[at][m], {i});
    };
    const int warm_up = std::min(stages - 1 - s, micro_batches);
    for (int i = 0; i < warm_up; ++i) run_forward(i);
    for (int i = warm_up; i < micro_batches; ++i) {
      run_forward(i);
      run_backward(i - warm_up);
    }
    for (int i = micro_batches - warm_up; i < micro_batches; ++i) run_backward(i);
  }
  return p;
}

/// An acyclic plan: operations are made in one order, and wait only for events whose arrivals were all made
/// before.
inline plan random_plan(std::uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  plan p;
  const auto classes = 1 + below(6);
  for (std::uint64_t c = 0; c < classes; ++c) {
    add_class(p, "class " + std::to_string(c));
    p.classes.back().streams.resize(1 + below(3));
    for (std::size_t s = 0; s < p.classes.back().streams.size(); ++s) {
      p.classes.back().streams[s].kind = static_cast<stream_kind>(s);
    }
  }
  for (int t = 0; t < 40; ++t) {
    // Zero, under the engine's resolution, and up to a millisecond.
    const double uniform = static_cast<double>(below(1'000'000)) * 1e-6;
    const double scale[] = {0, 1e-9, 1e-6, 1e-3};
    add_template(p, "work " + std::to_string(t), uniform * scale[below(4)]);
  }
  std::vector<event_id> complete;
  event_id open = no_event;
  std::int32_t missing = 0;
  for (int i = 0; i < operations; ++i) {
    auto& streams = p.classes[below(classes)].streams;
    stream& s = streams[below(streams.size())];
    if (open == no_event) open = p.new_event(missing = static_cast<std::int32_t>(1 + below(4) * below(2)));
    const auto wait = [&] { return complete.empty() || below(2) ? no_event : complete[below(complete.size())]; };
    const event_id first = wait(), second = wait();
    const event_id signals = below(3) ? open : no_event;
    p.append(s, static_cast<std::int32_t>(below(40)), {first, second}, signals, {i});
    if (signals != no_event && --missing == 0) complete.push_back(std::exchange(open, no_event));
  }
  return p;
}

}  // namespace plans
