#include "nvlsim/analysis/memory_over_time.hpp"

#include <algorithm>

namespace nvlsim {
namespace {

double item_bytes(const result& r, std::string_view wanted) {
  const value* items = r.memory.find("items");
  if (!items || !items->items()) return 0;
  for (const value& i : *items->items())
    if (const value* n = i.find("name"); n && n->string() && *n->string() == wanted)
      return i.find("bytes")->number() ? *i.find("bytes")->number() : 0;
  return 0;
}

/// Scales the levels so that the highest is `top`, on top of a constant `below`.
std::vector<std::pair<double, double>> scaled(std::vector<std::pair<double, double>> points, double below,
                                              double top, std::size_t max) {
  double highest = 0;
  for (const auto& [t, level] : points) highest = std::max(highest, level);
  const std::size_t stride = (points.size() + max - 1) / std::max<std::size_t>(max, 1);
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = 0; i < points.size(); i += stride) {
    // Keeps the highest of the points that are merged.
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), i + stride));
    const auto at = std::max_element(points.begin() + static_cast<std::ptrdiff_t>(i), end,
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
    out.emplace_back(points[i].first, below + (highest > 0 ? top * std::max(0.0, at->second) / highest : 0));
  }
  if (!points.empty())
    out.emplace_back(points.back().first,
                     below + (highest > 0 ? top * std::max(0.0, points.back().second) / highest : 0));
  return out;
}

/// Forward work in flight (completed forward minus completed backward) after each operation, as a fraction.
std::vector<std::pair<double, double>> passes_in_flight(const plan& planned, const timeline& times,
                                                        std::size_t c) {
  const auto& operations = planned.classes[c].streams.front().operations;
  const auto direction = [&](const operation& o) {
    const std::string& n = planned.templates[static_cast<std::size_t>(o.template_index)].name;
    return n.starts_with("forward") ? 1 : n.starts_with("backward") ? -1 : 0;
  };
  const auto length = [&](std::size_t i) {
    return times.spans[c].front()[i].end_s - times.spans[c].front()[i].begin_s;
  };
  double all[2] = {};
  for (std::size_t i = 0; i < operations.size(); ++i)
    if (const int d = direction(operations[i])) all[d > 0 ? 0 : 1] += length(i);
  std::vector<std::pair<double, double>> out = {{0, 0}};
  double level = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const int d = direction(operations[i]);
    if (d == 0) continue;
    level += d > 0 ? length(i) / all[0] : -length(i) / all[1];
    const span& ran = times.spans[c].front()[i];
    out.emplace_back(d > 0 ? ran.begin_s : ran.end_s, level);  // a forward pass needs its memory from its start
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace

std::vector<memory_curve> memory_over_time(const run_record& run, std::size_t max) {
  const result& r = run.outcome;
  const value* peak = r.memory.find("peak_bytes");
  if (!peak || !peak->number() || run.planned.classes.empty()) return {};
  std::vector<memory_curve> out;
  if (!run.counters.empty()) {
    const double cache = item_bytes(r, "kv_cache");
    for (const trace_counter& used : run.counters) {
      if (used.name != kv_used_counter || used.rank_class >= 8) continue;
      double most = 0;
      for (const auto& [t, share] : used.points) most = std::max(most, share);
      out.push_back({run.planned.classes[used.rank_class].name,
                     scaled(used.points, *peak->number() - cache, cache * most, max)});
    }
    return out;
  }
  const double activations = item_bytes(r, "activations");
  const value* where = r.memory.find("where");
  for (std::size_t c = 0; c < run.planned.classes.size(); ++c) {
    if (!where || !where->string() || run.planned.classes[c].name != *where->string()) continue;
    out.push_back({run.planned.classes[c].name, scaled(passes_in_flight(run.planned, run.times, c),
                                                       *peak->number() - activations, activations, max)});
  }
  return out;
}

}  // namespace nvlsim
