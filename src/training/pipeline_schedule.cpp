// Order of passes on a pipeline stage. [docs/models-and-assumptions.md#pipeline]
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "nvlsim/training/training.hpp"

namespace nvlsim {
namespace {

/// Appends passes of one stage.
class order {
 public:
  explicit order(std::int64_t micro_batches) : micro_batches_(micro_batches) {}

  void run(pass_kind what, std::int64_t chunk, std::int64_t micro_batch, bool paired = false) {
    // Schedules are made for a full pipeline; missing micro-batches are left out.
    if (micro_batch < micro_batches_)
      slots_.push_back({what, static_cast<std::int32_t>(chunk), static_cast<std::int32_t>(micro_batch), paired});
  }
  std::vector<pipeline_slot> take() { return std::move(slots_); }

 private:
  std::int64_t micro_batches_;
  std::vector<pipeline_slot> slots_;
};

/// 1F1B and Megatron's interleaved schedule.
std::vector<pipeline_slot> alternating(const pipeline_geometry& g, std::int64_t stage) {
  const std::int64_t pp = g.pp, vp = g.local, m = g.micro_batches, total = m * vp;
  // Micro-batches pass through the chunks in groups of PP (Megatron's microbatch_group_size_per_vp_stage).
  std::vector<std::pair<std::int64_t, std::int64_t>> sequence;  // (micro-batch, chunk)
  sequence.reserve(static_cast<std::size_t>(total));
  const std::int64_t group = vp == 1 ? m : pp;
  for (std::int64_t first = 0; first < m; first += group)
    for (std::int64_t chunk = 0; chunk < vp; ++chunk)
      for (std::int64_t mb = first; mb < std::min(first + group, m); ++mb) sequence.emplace_back(mb, chunk);

  const std::int64_t wanted = vp == 1 ? pp - stage - 1 : (pp - stage - 1) * 2 + (vp - 1) * pp;
  const std::int64_t warmup = std::min(wanted, total);
  order out(m);
  const auto forward = [&](std::int64_t i) {
    const auto& [mb, chunk] = sequence[static_cast<std::size_t>(i)];
    out.run(pass_kind::forward, chunk, mb);
  };
  const auto backward = [&](std::int64_t i) {
    const auto& [mb, chunk] = sequence[static_cast<std::size_t>(i)];
    out.run(pass_kind::backward, vp - 1 - chunk, mb);
  };
  for (std::int64_t i = 0; i < warmup; ++i) forward(i);
  for (std::int64_t i = warmup; i < total; ++i) {
    forward(i);
    backward(i - warmup);
  }
  for (std::int64_t i = total - warmup; i < total; ++i) backward(i);
  return out.take();
}

// 1F1B with weight gradients that lag by as many backward passes as there are earlier stages. No stage holds more
// than PP micro-batches, and the last stage fills its bubble with weight gradients.
std::vector<pipeline_slot> zero_bubble_h1(const pipeline_geometry& g, std::int64_t stage) {
  const std::int64_t m = g.micro_batches, warmup = std::min(g.pp - stage - 1, m);
  order out(m);
  std::int64_t forward = 0, weight = 0;
  while (forward < warmup) out.run(pass_kind::forward, 0, forward++);
  for (std::int64_t backward = 0; backward < m; ++backward) {
    if (forward < m) out.run(pass_kind::forward, 0, forward++);
    out.run(pass_kind::backward_input, 0, backward);
    if (backward >= stage) out.run(pass_kind::backward_weight, 0, weight++);
  }
  while (weight < m) out.run(pass_kind::backward_weight, 0, weight++);
  return out.take();
}

// Two chunks per stage, arranged in a V. A full pipeline has 2 PP - 1 micro-batches.
std::vector<pipeline_slot> zero_bubble_v(const pipeline_geometry& g, std::int64_t stage) {
  const std::int64_t pp = g.pp, m = g.micro_batches, full = std::max(2 * pp - 1, m);
  order out(m);
  std::int64_t forward[2] = {0, 0}, input[2] = {0, 0}, weight[2] = {0, 0};
  const auto f = [&](int c) { out.run(pass_kind::forward, c, forward[c]++); };
  const auto b = [&](int c) { out.run(pass_kind::backward_input, c, input[c]++); };
  const auto w = [&](int c) { out.run(pass_kind::backward_weight, c, weight[c]++); };
  for (std::int64_t i = 0; i < 2 * (pp - stage) - 1; ++i) f(0);
  for (std::int64_t i = 0; i < stage; ++i) f(1), f(0);
  for (std::int64_t i = 0; i < pp - stage; ++i) f(1), b(1), w(1);
  while (forward[1] < forward[0] || forward[0] < full) {
    if (forward[0] < full) f(0);
    b(0), w(0), f(1), b(1), w(1);
  }
  for (std::int64_t i = 0; i < stage; ++i) b(0), b(1);
  for (std::int64_t i = 0; i < pp - stage; ++i) b(0), w(0);
  while (weight[1] < input[1]) w(1);
  while (weight[0] < input[0]) w(0);
  return out.take();
}

// DeepSeek's bidirectional schedule: a stage runs its own chunk for half of the micro-batches and that of the
// opposite stage for the other half. `near` is the direction that enters the pipeline on this side.
class dual_order {
 public:
  dual_order(const pipeline_geometry& g, std::int64_t stage)
      : out_(g.micro_batches), half_(g.micro_batches / 2), mirrored_(2 * stage >= g.pp) {}

  void f(int side, bool paired = false) { run(pass_kind::forward, side, forward_[side]++, paired); }
  void b(int side, bool split, bool paired = false) {
    const std::int64_t mb = backward_[side]++;
    run(split ? pass_kind::backward_input : pass_kind::backward, side, mb, paired);
    if (split) owed_.emplace_back(side, mb);
  }
  /// The oldest deferred weight gradient.
  void w() {
    const auto [side, mb] = owed_[paid_++];
    run(pass_kind::backward_weight, side, mb, false);
  }
  void both(int forward_side, int backward_side) {
    f(forward_side, true);
    b(backward_side, false, true);
  }
  std::vector<pipeline_slot> take() { return out_.take(); }

 private:
  void run(pass_kind what, int side, std::int64_t mb, bool paired) {
    const int chunk = mirrored_ ? 1 - side : side;
    out_.run(what, chunk, chunk * half_ + mb, paired);
  }
  order out_;
  std::int64_t half_;
  bool mirrored_;
  std::int64_t forward_[2] = {0, 0}, backward_[2] = {0, 0};
  std::vector<std::pair<int, std::int64_t>> owed_;
  std::size_t paid_ = 0;
};

std::vector<pipeline_slot> bidirectional(const pipeline_geometry& g, std::int64_t stage) {
  constexpr int near = 0, far = 1;
  const std::int64_t half = g.pp / 2, rank = std::min(stage, g.pp - 1 - stage), left = half - rank - 1;
  dual_order o(g, stage);
  for (std::int64_t i = 0; i < 2 * left; ++i) o.f(near);
  for (std::int64_t i = 0; i <= rank; ++i) o.f(near), o.f(far);
  for (std::int64_t i = 0; i < left; ++i) o.b(far, true), o.w(), o.f(far);
  for (std::int64_t i = 0; i < g.micro_batches / 2 - g.pp + rank + 1; ++i) {
    if (i == 0 && left == 0) o.f(near), o.b(far, false);  // middle stages receive each other's first pass
    else o.both(near, far);
    o.both(far, near);
  }
  for (std::int64_t i = 0; i < left; ++i) o.b(far, false), o.both(far, near);
  bool split = false;
  for (std::int64_t i = 0; i <= rank; ++i) {
    const bool turn = i == (rank + 1) / 2;
    if (turn && rank % 2 == 1) split = true;
    o.b(far, split);
    if (turn && rank % 2 == 0) split = true;
    o.b(near, split);
  }
  for (std::int64_t i = 0; i < left; ++i) o.w(), o.b(near, true);
  for (std::int64_t i = 0; i <= rank; ++i) o.w();
  return o.take();
}

}  // namespace

std::vector<pipeline_slot> stage_schedule(const pipeline_geometry& g, std::int64_t stage) {
  switch (g.schedule) {
    case pipeline_schedule::one_f_one_b:
    case pipeline_schedule::interleaved:
      break;
    case pipeline_schedule::zb_h1:
      return zero_bubble_h1(g, stage);
    case pipeline_schedule::zb_v:
      return zero_bubble_v(g, stage);
    case pipeline_schedule::dualpipe:
      return bidirectional(g, stage);
  }
  return alternating(g, stage);
}

std::vector<std::string> schedule_problems(const training_workload& w) {
  std::vector<std::string> out;
  const std::int64_t pp = w.par.pp, vp = w.par.vp, m = w.micro_batches();
  const auto one_chunk = [&](const char* name, const char* instead) {
    if (vp > 1) out.push_back(fmt::format("schedule {} has one model chunk per stage{}", name, instead));
  };
  switch (w.schedule) {
    case pipeline_schedule::one_f_one_b:
      one_chunk("1f1b", "; use interleaved for vp > 1");
      break;
    case pipeline_schedule::zb_h1:
      one_chunk("zb_h1", ": vp must be 1");
      break;
    case pipeline_schedule::zb_v:
      if (vp != 2)
        out.push_back(fmt::format("schedule zb_v has two model chunks per stage: vp must be 2, not {}", vp));
      break;
    case pipeline_schedule::dualpipe:
      one_chunk("dualpipe", " and direction: vp must be 1");
      if (pp % 2 != 0)
        out.push_back(fmt::format("schedule dualpipe pairs opposite stages: pp must be even, not {}", pp));
      if (m % 2 != 0 || m < 2 * pp)
        out.push_back(
            fmt::format("schedule dualpipe needs an even number of micro-batches, at least 2 x pp = {}; the "
                        "global batch gives each replica {}",
                        2 * pp, m));
      break;
    case pipeline_schedule::interleaved:
      if (vp > 1 && pp > 1 && m % pp != 0)
        out.push_back(fmt::format(
            "schedule interleaved needs a multiple of pp {} micro-batches; the global batch gives each replica {}",
            pp, m));
      break;
  }
  return out;
}

}  // namespace nvlsim
