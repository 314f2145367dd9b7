#include "analysis/worker_time.hpp"

#include <algorithm>
#include <utility>

namespace nvlsim {
namespace {

/// Turns differences into running sums and sets rounding residue to zero.
void integrate(std::vector<double>& v) {
  double sum = 0, max = 0;
  for (double& x : v) {
    sum += x;
    max = std::max(max, sum);
    x = sum > 1e-11 * max ? sum : 0;
  }
}

}  // namespace

worker_time::worker_time(const plan& planned, const timeline& times)
    : planned_(planned), times_(times), by_template_(planned.templates.size()) {
  for (const rank_class& c : planned.classes) {
    const std::size_t n = c.streams.front().operations.size() + 1;
    workers_.push_back({std::vector<double>(n), std::vector<double>(n)});
  }
}

void worker_time::add_part(std::size_t worker, std::size_t iteration, double time_s) {
  const operation& o = planned_.classes[worker].streams.front().operations[iteration];
  by_template_[static_cast<std::size_t>(o.template_index)] += time_s;
}

void worker_time::add(std::size_t worker, double from_s, double to_s, double weight) {
  if (!(to_s > from_s)) return;
  const std::vector<span>& spans = times_.spans[worker].front();
  const auto ends_later = [](double t, const span& s) { return t < s.end_s; };
  const auto begins_earlier = [](const span& s, double t) { return s.begin_s < t; };
  const auto first =
      static_cast<std::size_t>(std::upper_bound(spans.begin(), spans.end(), from_s, ends_later) - spans.begin());
  const auto end =
      static_cast<std::size_t>(std::lower_bound(spans.begin(), spans.end(), to_s, begins_earlier) - spans.begin());
  if (first >= end) {
    idle_s_ += weight * (to_s - from_s);
    return;
  }
  const std::size_t last = end - 1;
  const auto inside = [&](std::size_t i) {
    return std::min(spans[i].end_s, to_s) - std::max(spans[i].begin_s, from_s);
  };
  idle_s_ += weight * (std::max(0.0, spans[first].begin_s - from_s) + std::max(0.0, to_s - spans[last].end_s));
  add_part(worker, first, weight * inside(first));
  if (first == last) return;
  add_part(worker, last, weight * inside(last));
  worker_weights& w = workers_[worker];
  w.whole[first + 1] += weight;
  w.whole[last] -= weight;
  w.gaps[first + 1] += weight;
  w.gaps[last + 1] -= weight;
}

std::vector<time_slice> worker_time::take() {
  for (std::size_t c = 0; c < workers_.size(); ++c) {
    const std::vector<span>& spans = times_.spans[c].front();
    integrate(workers_[c].whole);
    integrate(workers_[c].gaps);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (const double w = workers_[c].whole[i]; w > 0) add_part(c, i, w * (spans[i].end_s - spans[i].begin_s));
      if (const double w = workers_[c].gaps[i]; w > 0 && i > 0)
        idle_s_ += w * (spans[i].begin_s - spans[i - 1].end_s);
    }
    std::fill(workers_[c].whole.begin(), workers_[c].whole.end(), 0);
    std::fill(workers_[c].gaps.begin(), workers_[c].gaps.end(), 0);
  }
  std::vector<time_slice> out;
  for (std::size_t t = 0; t < by_template_.size(); ++t) {
    const operation_template& w = planned_.templates[t];
    if (!(by_template_[t] > 0) || !(w.duration > seconds{})) continue;
    const double calls = by_template_[t] / w.duration.base();
    for (const operation_part& p : w.parts)
      out.push_back(
          {phase_of(w), p.kind, p.name, p.facts, p.duration.base() * p.repeat * calls, p.repeat * calls});
    by_template_[t] = 0;
  }
  if (idle_s_ > 0)
    out.push_back({std::string(waiting_phase), part_kind::idle, std::string(no_work), nullptr, idle_s_, 0});
  idle_s_ = 0;
  return out;
}

std::vector<time_slice> slices_of_workers(const plan& planned, const timeline& times, double from_s, double to_s) {
  double gpus = 0;
  for (const rank_class& c : planned.classes) gpus += static_cast<double>(c.multiplicity);
  worker_time sum(planned, times);
  for (std::size_t c = 0; c < planned.classes.size(); ++c)
    sum.add(c, from_s, to_s, static_cast<double>(planned.classes[c].multiplicity) / gpus);
  return sum.take();
}

}  // namespace nvlsim
