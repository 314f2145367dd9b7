#include "calibration/step_residuals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "nvlsim/analysis/error_summary.hpp"

namespace nvlsim {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double above = sorted[std::min(below + 1, sorted.size() - 1)];
  return sorted[below] + (above - sorted[below]) * (at - static_cast<double>(below));
}

/// The 5 % and 95 % quantiles of one kind. With few rows they are shrunk towards those of all dense models, or of
/// all models with experts, as if ten more rows were distributed like these.
step_residuals quantiles_of(step_residuals kind, const std::vector<unseen_step>& steps,
                            const std::vector<unseen_step>& pool) {
  std::vector<double> like, all;
  for (const unseen_step& s : pool)
    if (s.kind.experts == kind.experts) all.push_back(s.miss);
  for (const unseen_step& s : steps)
    if (s.kind.experts == kind.experts && s.kind.rack == kind.rack && s.kind.weight_bits == kind.weight_bits)
      like.push_back(s.miss);
  std::sort(like.begin(), like.end());
  std::sort(all.begin(), all.end());
  kind.rows = static_cast<int>(like.size());
  constexpr double pooled_rows = 10;
  const double own = static_cast<double>(like.size()) / (static_cast<double>(like.size()) + pooled_rows);
  const auto mixed = [&](double share) {
    return (like.empty() ? 0 : own * quantile(like, share)) + (all.empty() ? 0 : (1 - own) * quantile(all, share));
  };
  kind.low = mixed(0.05), kind.high = mixed(0.95);
  return kind;
}

}  // namespace

std::vector<step_residuals> residuals_by_kind(const std::vector<unseen_step>& steps,
                                              const std::vector<unseen_step>& pool) {
  std::vector<step_residuals> out;
  for (const bool experts : {false, true})
    for (const bool rack : {true, false})
      for (const int bits : {16, 8, 4}) {
        step_residuals kind;
        kind.rack = rack, kind.weight_bits = bits, kind.experts = experts;
        kind = quantiles_of(kind, steps, pool);
        if (kind.rows > 0) out.push_back(kind);
      }
  return out;
}

namespace {

/// Whether a step is inside the band that the other groups give it.
bool inside_of_others(const unseen_step& s, const std::vector<unseen_step>& steps,
                      const std::vector<unseen_step>& pool) {
  const auto without = [&](const std::vector<unseen_step>& all) {
    std::vector<unseen_step> others;
    std::copy_if(all.begin(), all.end(), std::back_inserter(others),
                 [&](const unseen_step& o) { return o.group != s.group; });
    return others;
  };
  const step_residuals q = quantiles_of(s.kind, without(steps), without(pool));
  return q.low <= s.miss && s.miss <= q.high;
}

}  // namespace

double coverage_of(const std::vector<unseen_step>& steps, const std::vector<unseen_step>& pool) {
  const auto inside = std::count_if(steps.begin(), steps.end(),
                                    [&](const unseen_step& s) { return inside_of_others(s, steps, pool); });
  return static_cast<double>(inside) / static_cast<double>(steps.size());
}

std::vector<cell_coverage> coverage_by_cell(const std::vector<unseen_step>& steps,
                                            const std::vector<unseen_step>& pool) {
  std::map<std::string, cell_coverage> cells;
  for (const unseen_step& s : steps) {
    cell_coverage& c = cells[s.cell];
    c.cell = s.cell;
    ++c.rows;
    c.inside += inside_of_others(s, steps, pool) ? 1 : 0;
  }
  std::vector<cell_coverage> out;
  for (const auto& [name, c] : cells)
    if (c.rows >= fewest_rows_of_cell) out.push_back(c);
  return out;
}

value residuals_value(const std::vector<step_residuals>& residuals) {
  const auto rounded = [](double x) { return std::round(x * 1e4) / 1e4; };
  value::array out;
  for (const step_residuals& r : residuals)
    out.push_back(value{value::object{{"domain", r.rack ? "rack" : "server"},
                                      {"operands", fmt::format("{}-bit", r.weight_bits)},
                                      {"experts", r.experts},
                                      {"rows", std::int64_t{r.rows}},
                                      {"low", rounded(r.low)},
                                      {"high", rounded(r.high)}}});
  return value{std::move(out)};
}

}  // namespace nvlsim
