#include "analysis/explain_latency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace nvlsim {
namespace {

constexpr std::array<std::string_view, 5> latencies = {"ttft_s", "tpot_s", "itl_s", "e2e_s", "queue_s"};

/// Operations first..last of one class, and what the server in front adds; it counts `weight` times.
struct interval {
  std::size_t rank_class = 0;
  std::int32_t first = 0, last = -1;
  bool gap_before = false;  ///< the gap before `first` belongs to it
  double in_front_s = 0,
         held_s = 0;  ///< added by the server: per request, and the iterations that it holds a token back
  double scale = 1;   ///< of the operations: one token of several
  double value_s = 0, weight = 0;
};

// The same sums as measure_inference makes.
std::vector<interval> request_intervals(const inference_run& run, const timeline& times, std::string_view metric) {
  std::vector<interval> out;
  for (std::size_t c = 0; c < run.schedules.size(); ++c) {
    const std::vector<span>& spans = times.spans[c].front();
    const auto lanes = static_cast<double>(run.lanes[c]);
    const auto begin = [&](std::int32_t i) { return spans[static_cast<std::size_t>(i)].begin_s; };
    const auto end = [&](std::int32_t i) { return spans[static_cast<std::size_t>(i)].end_s; };
    for (const request_progress& r : run.schedules[c].requests) {
      const double gaps = static_cast<double>(r.output - 1);
      const double decode = end(r.last_token) - end(r.first_token);
      interval i{.rank_class = c, .first = r.arrived, .last = r.first_token, .weight = lanes};
      if (metric == "queue_s") {
        i.last = r.admitted - 1;
        i.value_s = begin(r.admitted) - begin(r.arrived);
      } else if (metric == "e2e_s") {
        i.last = r.last_token;
        i.value_s = end(r.last_token) - begin(r.arrived);
      } else if (metric == "ttft_s") {
        i.held_s = gaps > 0 ? decode * std::min(run.front_end.first_token_iterations / gaps, 1.0) : 0;
        i.in_front_s = run.front_end.first_token_delay.base();
        i.value_s = end(r.first_token) - begin(r.arrived) + i.held_s + i.in_front_s;
      } else {
        if (!(gaps > 0)) continue;
        i.first = r.first_token + 1;
        i.last = r.last_token;
        i.gap_before = true;
        i.scale = 1 / gaps;
        i.value_s = decode / gaps;
      }
      out.push_back(i);
    }
  }
  return out;
}

/// The gaps of one class: since the last iteration that decoded or, for requests that joined since, their first token.
void add_token_gaps(std::vector<interval>& out, const inference_run& run, const timeline& times, std::size_t c) {
  const batching_schedule& s = run.schedules[c];
  const std::vector<span>& spans = times.spans[c].front();
  std::vector<std::int64_t> begun(s.iterations.size());
  for (const request_progress& r : s.requests)
    if (r.output > 1) ++begun[static_cast<std::size_t>(r.first_token)];
  std::vector<std::pair<std::int32_t, std::int64_t>> joined;  // iteration, requests
  std::int32_t decoded = -1;
  const auto add = [&](std::int32_t since, std::int32_t at, std::int64_t count) {
    const double from = since < 0 ? 0 : spans[static_cast<std::size_t>(since)].end_s;
    out.push_back({.rank_class = c,
                   .first = since + 1,
                   .last = at,
                   .gap_before = true,
                   .scale = 1 / run.tokens_per_step,
                   .value_s = (spans[static_cast<std::size_t>(at)].end_s - from) / run.tokens_per_step,
                   .weight = static_cast<double>(count * run.lanes[c])});
  };
  for (std::size_t i = 0; i < s.iterations.size(); ++i) {
    const auto at = static_cast<std::int32_t>(i);
    std::int64_t old = s.iterations[i].decodes;
    if (old > 0) {
      for (const auto& [since, count] : joined) {
        add(since, at, count);
        old -= count;
      }
      if (old > 0) add(decoded, at, old);
      joined.clear();
      decoded = at;
    }
    if (begun[i] > 0) joined.emplace_back(at, begun[i]);
  }
}

std::vector<interval> token_gaps(const inference_run& run, const timeline& times) {
  std::vector<interval> out;
  for (std::size_t c = 0; c < run.schedules.size(); ++c) add_token_gaps(out, run, times, c);
  return out;
}

/// Adds an interval to running sums of differences, made into weights once all are in.
void add_differences(weighting& w, const interval& i, double weight) {
  if (i.last < i.first) return;
  const auto from = static_cast<std::size_t>(i.first), to = static_cast<std::size_t>(i.last) + 1;
  auto& operations = w.operations[i.rank_class];
  auto& gaps = w.gaps[i.rank_class];
  const std::size_t gap_from = from + (i.gap_before ? 0 : 1);
  operations[from] += weight;
  if (to < operations.size()) operations[to] -= weight;
  gaps[gap_from] += weight;
  gaps[to] -= weight;
}

void integrate(std::vector<double>& v) {
  double sum = 0, most = 0;
  for (double& x : v) {
    sum += x;
    most = std::max(most, sum);
    x = sum > 1e-11 * most ? sum : 0;  // beyond rounding
  }
}

void add_server(std::vector<time_slice>& out, const char* name, double time_s) {
  if (time_s > 0) out.push_back({"server", work_kind::host, name, nullptr, time_s, 0});
}

}  // namespace

bool is_latency(std::string_view metric) {
  return std::find(latencies.begin(), latencies.end(), metric) != latencies.end();
}

latency_parts parts_of_latency(const inference_run& run, const plan& work, const timeline& times,
                               std::string_view metric, std::string_view statistic, double wanted) {
  std::vector<interval> all = metric == "itl_s" ? token_gaps(run, times) : request_intervals(run, times, metric);
  latency_parts out;
  if (all.empty()) return out;
  if (statistic != "mean") {
    const auto nearest = std::min_element(all.begin(), all.end(), [&](const interval& a, const interval& b) {
      return std::abs(a.value_s - wanted) < std::abs(b.value_s - wanted);
    });
    all = {*nearest};
    all.front().weight = 1;
    out.note = fmt::format("of one request with this value, on {}", work.classes[all.front().rank_class].name);
  }
  double weights = 0, in_front = 0, held = 0;
  for (const interval& i : all) weights += i.weight;
  weighting w = no_weight(work);
  for (const interval& i : all) {
    add_differences(w, i, i.scale * i.weight / weights);
    in_front += i.in_front_s * i.weight / weights;
    held += i.held_s * i.weight / weights;
  }
  for (auto* table : {&w.operations, &w.gaps})
    for (std::vector<double>& v : *table) integrate(v);
  for (auto& gaps : w.gaps) gaps.back() = 0;  // nothing is waited for after the last operation
  out.slices = slices_of(work, times, w, false);
  add_server(out.slices, "first token delay", in_front);
  add_server(out.slices, "first token held back", held);
  return out;
}

}  // namespace nvlsim
