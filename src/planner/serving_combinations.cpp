#include "planner/serving_combinations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace nvlsim {
namespace {

constexpr double alike = 1e-9;  // relative; a worker that adds no more is not needed
constexpr std::int64_t min_tokens = 2048, max_tokens = 65'536;

constexpr double max_workers = 1e8;

int whole(double x) { return static_cast<int>(std::ceil(std::min(x, max_workers) * (1 - alike))); }

void place(const rated_shapes& r, server_trial& t) {
  t.racks = static_cast<int>((t.gpus() + r.domain - 1) / r.domain);
}

server_trial combined(const rated_shapes& r, const rated_worker& w, int replicas) {
  server_trial t;
  t.workers = w.shape;
  t.workers.replicas = replicas;
  t.guess = w.requests_per_s * replicas;
  t.tpot_s = w.tpot_s;
  place(r, t);
  return t;
}

server_trial pools(const rated_shapes& r, const rated_worker& p, const rated_worker& d,
                   std::pair<int, int> counts) {
  server_trial t;
  t.pooled = true;
  t.prefill = p.shape;
  t.workers = d.shape;
  std::tie(t.prefill.replicas, t.workers.replicas) = counts;
  t.guess = std::min(p.requests_per_s * counts.first, d.requests_per_s * counts.second);
  t.tpot_s = d.tpot_s;
  place(r, t);
  return t;
}

/// How many workers of each pool give the highest rate on `gpus` GPUs, and no more than that takes.
std::pair<int, int> best_split(const rated_worker& p, const rated_worker& d, std::int64_t gpus) {
  const std::int64_t gp = p.shape.gpus_per_replica(), gd = d.shape.gpus_per_replica();
  const auto prefilled = [&](std::int64_t x) { return static_cast<double>(x) * p.requests_per_s; };
  const auto decoded = [&](std::int64_t x) {
    return static_cast<double>((gpus - x * gp) / gd) * d.requests_per_s;
  };
  if (gp + gd > gpus) return {0, 0};
  // What is prefilled grows with x and what is decoded shrinks: the lesser of both is highest where they cross.
  std::int64_t before = 0, at = (gpus - gd) / gp;
  while (at - before > 1) {
    const std::int64_t x = before + (at - before) / 2;
    (prefilled(x) < decoded(x) ? before : at) = x;
  }
  double best = std::min(prefilled(at), decoded(at));
  if (before > 0) best = std::max(best, std::min(prefilled(before), decoded(before)));
  if (best == 0) return {0, 0};
  return {std::max(1, whole(best / p.requests_per_s)), std::max(1, whole(best / d.requests_per_s))};
}

bool usable(const rated_worker& w) { return w.reason.empty() && w.requests_per_s > 0; }

void keep_best(std::vector<server_trial>& all, std::size_t most, bool fewest_gpus) {
  std::stable_sort(all.begin(), all.end(), [&](const server_trial& a, const server_trial& b) {
    if (fewest_gpus && a.gpus() != b.gpus()) return a.gpus() < b.gpus();
    if (a.guess != b.guess) return a.guess > b.guess;
    return a.gpus() < b.gpus();
  });
  if (all.size() > most) all.resize(most);
}

}  // namespace

std::vector<server_trial> combinations(const rated_shapes& r, bool pooled, std::int64_t gpus, std::size_t most) {
  std::vector<server_trial> out;
  if (!pooled) {
    for (const rated_worker& w : r.combined)
      if (const std::int64_t n = gpus / w.shape.gpus_per_replica(); usable(w) && n > 0)
        out.push_back(combined(r, w, static_cast<int>(n)));
  } else {
    for (const rated_worker& p : r.prefill)
      for (const rated_worker& d : r.decode) {
        if (!usable(p) || !usable(d)) continue;
        if (const auto counts = best_split(p, d, gpus); counts.first > 0) out.push_back(pools(r, p, d, counts));
      }
  }
  keep_best(out, most, false);
  return out;
}

std::vector<server_trial> combinations_for(const rated_shapes& r, bool pooled, double wanted, std::size_t most) {
  std::vector<server_trial> out;
  const auto needed = [&](const rated_worker& w) { return std::max(1, whole(wanted / w.requests_per_s)); };
  if (!pooled) {
    for (const rated_worker& w : r.combined)
      if (usable(w)) out.push_back(combined(r, w, needed(w)));
  } else {
    for (const rated_worker& p : r.prefill)
      for (const rated_worker& d : r.decode)
        if (usable(p) && usable(d)) out.push_back(pools(r, p, d, {needed(p), needed(d)}));
  }
  keep_best(out, most, true);
  return out;
}

std::vector<server_trial> neighbours(const rated_shapes& r, const server_trial& t, int by, std::int64_t gpus) {
  std::vector<server_trial> out;
  for (const bool first : {true, false}) {
    if (first && !t.pooled) continue;
    server_trial n = t;
    int& count = first ? n.prefill.replicas : n.workers.replicas;
    const double before = count;
    count += by;
    if (count < 1 || (gpus > 0 && n.gpus() > gpus)) continue;
    n.guess = std::max(t.guess, t.guess * count / before);
    if (by < 0) n.guess = t.guess * count / before;
    place(r, n);
    out.push_back(n);
  }
  return out;
}

std::vector<server_trial> shifted(const rated_shapes& r, const server_trial& t, std::int64_t gpus) {
  std::vector<server_trial> out;
  if (!t.pooled) return out;
  const int gp = t.prefill.gpus_per_replica(), gd = t.workers.gpus_per_replica();
  const auto add = [&](int x, int y) {
    if (x < 1 || y < 1 || std::int64_t{x} * gp + std::int64_t{y} * gd > gpus) return;
    server_trial n = t;
    n.prefill.replicas = x;
    n.workers.replicas = y;
    place(r, n);
    out.push_back(n);
  };
  for (const int by : {-1, 1}) {
    const int x = t.prefill.replicas + by, y = t.workers.replicas + by;
    add(x, static_cast<int>((gpus - std::int64_t{x} * gp) / gd));
    add(static_cast<int>((gpus - std::int64_t{y} * gd) / gp), y);
  }
  return out;
}

std::vector<server_trial> with_other_limits(const server_trial& t, std::int64_t own_tokens) {
  std::vector<server_trial> out;
  for (const double by : {0.5, 2.0, 4.0}) {
    server_trial n = t;
    std::int64_t& tokens = t.pooled ? n.prefill_tokens : n.max_num_tokens;
    tokens = static_cast<std::int64_t>(static_cast<double>(tokens > 0 ? tokens : own_tokens) * by);
    if (tokens >= min_tokens && tokens <= max_tokens) out.push_back(n);
  }
  return out;
}

std::vector<serving_point> points_of(const rated_shapes& r, std::int64_t gpus, double output_tokens,
                                     double ttft_s) {
  std::vector<serving_point> out;
  for (const rated_worker& w : r.combined) {
    const std::int64_t n = gpus / w.shape.gpus_per_replica();
    for (const worker_point& p : w.points)
      if (n > 0 && p.tpot_s > 0 && p.ttft_s <= ttft_s) {
        rank_counts all = w.shape;
        all.replicas = static_cast<int>(n);
        out.push_back({false, layout_text(all), 1 / p.tpot_s,
                       static_cast<double>(n) * p.requests_per_s * output_tokens / static_cast<double>(gpus),
                       p.ttft_s});
      }
  }
  for (const rated_worker& d : r.decode)
    for (const worker_point& at : d.points) {
      if (!(at.tpot_s > 0)) continue;
      rated_worker here = d;
      here.requests_per_s = at.requests_per_s;
      server_trial best;
      for (const rated_worker& p : r.prefill) {
        if (!usable(p) || !(at.requests_per_s > 0)) continue;
        const auto counts = best_split(p, here, gpus);
        if (counts.first == 0) continue;
        const server_trial t = pools(r, p, here, counts);
        if (!best.pooled || t.guess > best.guess) best = t;
      }
      if (best.pooled)
        out.push_back({true, layout_text(best.prefill) + " + " + layout_text(best.workers), 1 / at.tpot_s,
                       best.guess * output_tokens / static_cast<double>(gpus), 0});
    }
  std::stable_sort(out.begin(), out.end(), [](const serving_point& a, const serving_point& b) {
    return a.per_user > b.per_user || (a.per_user == b.per_user && a.per_gpu > b.per_gpu);
  });
  double best = 0;
  for (serving_point& p : out) {
    p.efficient = p.per_gpu > best;
    best = std::max(best, p.per_gpu);
  }
  return out;
}

}  // namespace nvlsim
