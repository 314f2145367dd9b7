#include "calibration/collective_families.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "calibration/collective_knobs.hpp"
#include "calibration/least_squares.hpp"

namespace nvlsim {
namespace {

/// Simulated time in the row's unit.
double simulated(const collective_row& r, const collective_profile& c) {
  return r.price(c).base() * (r.record.metric == "latency_ms" ? 1e3 : 1e6);
}

struct weighting {
  std::vector<double> of_row;  ///< empty: weight 1 for every row
  double robust_scale = 0.05;
  std::function<void(collective_profile&)> tie = {};  ///< sets the parameters that depend on fitted ones
};

/// NICs give trees what they give rings. Trees of chains have the latencies of in-switch trees.
void tie_trees(fabric_collective& f) {
  for (auto* t : {&f.tree, &f.nvls_tree})
    if (*t) (*t)->nic_share = f.ring.nic_share;
  if (!f.tree || !f.nvls_tree) return;
  f.tree->latency = f.nvls_tree->latency;
  f.tree->hop = f.nvls_tree->hop;
  f.tree->many_share = f.nvls_tree->many_share;
  f.tree->per_latency = f.nvls_tree->per_latency;
}

void tie_all_trees(collective_profile& c) {
  for (auto& [fabric, table] : c.fabric)
    for (auto& [name, f] : table) tie_trees(f);
}

/// Fits `knobs` in `profile`. The profile's values are the priors.
std::vector<fitted_parameter> fit_knobs(const std::vector<collective_knob>& knobs, const rows_view& rows,
                                        collective_profile& profile, const weighting& weights = {}) {
  std::vector<free_parameter> parameters;
  for (const collective_knob& k : knobs) {
    const double start = std::clamp(k.get(profile), k.low * 1.001, k.high * 0.999);
    parameters.push_back({k.pointer, start, k.low, k.high, k.prior_width, true});
  }
  const auto residuals = [&](const std::vector<double>& v) {
    for (std::size_t i = 0; i < knobs.size(); ++i) knobs[i].set(profile, v[i]);
    tie_all_trees(profile);
    if (weights.tie) weights.tie(profile);
    std::vector<double> out;
    out.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      out.push_back(std::log(simulated(*rows[i], profile) / *rows[i]->record.published) *
                    (weights.of_row.empty() ? 1 : weights.of_row[i]));
    return out;
  };
  const auto search = [&] {
    std::pair<double, std::vector<double>> found;
    found.second = fit_parameters(parameters, residuals,
                                  {.robust_scale = weights.robust_scale, .iterations = 200, .tolerance = 1e-7},
                                  [&](int, double cost) { found.first = cost; });
    return found;
  };
  auto [cost, best] = search();
  bool again = false;
  for (std::size_t i = 0; i < knobs.size(); ++i)
    if (knobs[i].other_start) parameters[i].search_from = knobs[i].other_start, again = true;
  if (again)
    if (auto other = search(); other.first < cost) best = std::move(other.second);
  std::vector<fitted_parameter> out;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    knobs[i].set(profile, best[i]);
    out.push_back({parameters[i].name, parameters[i].start, best[i]});
  }
  tie_all_trees(profile);
  if (weights.tie) weights.tie(profile);
  return out;
}

/// Removes the parameters of all measured fabrics.
collective_profile only_default(collective_profile c) {
  std::erase_if(c.fabric, [](const auto& f) { return f.first != "default"; });
  std::erase_if(c.all_to_all, [](const auto& f) { return f.first != "default"; });
  std::erase_if(c.measured_on, [](const auto& m) { return m.first != "default" && m.second.latency; });
  return c;
}

struct pooled_rows {
  rows_view rows;
  std::vector<double> weights;
};
/// Fabrics with fewer rows are not pooled.
constexpr std::size_t rows_to_pool = 10;
/// Residual scale of the pooled fit: fabrics differ by more than the error within one.
constexpr double pool_scale = 0.15;

/// Sets all-gather and reduce-scatter to all-reduce's parameters, without trees and SHARP.
void gathers_as_rings(collective_profile& c) {
  auto& table = c.fabric.at("default");
  for (const char* kind : {"all_gather", "reduce_scatter"}) {
    fabric_collective& f = table.at(kind);
    f = table.at("all_reduce");
    f.tree = f.nvls_tree = std::nullopt;
    f.sharp = std::nullopt;
  }
}

std::vector<fitted_parameter> fit_pool(const std::vector<collective_knob>& knobs, const pooled_rows& p,
                                       collective_profile& c) {
  if (p.rows.empty()) return {};
  return fit_knobs(knobs, p.rows, c, {p.weights, pool_scale, gathers_as_rings});
}

pooled_rows rows_of(const families& by_family, const std::string& group) {
  std::vector<const rows_view*> fabrics;
  std::size_t all = 0;
  for (const auto& [family, rows] : by_family) {
    const family_parts p(family);
    if (p.group != group || rows.empty()) continue;
    fabrics.push_back(&rows);
    all += rows.size();
  }
  pooled_rows out;
  for (const rows_view* f : fabrics) {
    out.rows.insert(out.rows.end(), f->begin(), f->end());
    const double even = static_cast<double>(all) / static_cast<double>(fabrics.size() * f->size());
    out.weights.insert(out.weights.end(), f->size(), std::sqrt(even));
  }
  return out;
}

}  // namespace

family_parts::family_parts(const std::string& family) {
  const auto first = family.find('/'), second = family.find('/', first + 1);
  group = family.substr(0, first);
  kind = family.substr(first + 1, second - first - 1);
  if (second != std::string::npos) collective = family.substr(second + 1);
}

bool leaves_domain(const std::string& family) {
  return family.starts_with("fabric/") || family.starts_with("all_to_all/");
}

double error_of(const collective_row& r, const collective_profile& c) {
  return simulated(r, c) / *r.record.published - 1;
}

error_summary errors_of(const rows_view& rows, const collective_profile& c) {
  std::vector<double> all;
  for (const collective_row* r : rows) all.push_back(error_of(*r, c));
  return summary_of(all);
}

std::vector<fitted_parameter> fit_family(const std::string& family, const rows_view& rows,
                                         collective_profile& profile) {
  return fit_knobs(collective_knobs_of(family, profile), rows, profile);
}

void fill_unmeasured(collective_profile& c) {
  for (auto& [kind, table] : c.domain) {
    const auto reduce = table.find("all_reduce");
    for (auto& [name, d] : table) {
      if (name == "all_reduce" || !d.nvls_rate || reduce == table.end()) continue;
      d.nvls_rate = d.simple.rate;
      d.nvls_latency = reduce->second.nvls_latency;
      d.nvls_pipeline_per_rank = reduce->second.nvls_pipeline_per_rank;
      d.nvls_pipeline_limit = reduce->second.nvls_pipeline_limit;
    }
  }
  tie_all_trees(c);
}

std::vector<fitted_parameter> fit_default_fabric(const families& by_family, collective_profile& c) {
  collective_profile bare = only_default(c);
  std::vector<collective_knob> knobs = collective_knobs_of("fabric/default/all_reduce", bare);
  for (collective_knob& k : collective_knobs_of("measured_on/default", bare)) knobs.push_back(std::move(k));
  std::vector<fitted_parameter> out = fit_pool(knobs, rows_of(by_family, "fabric"), bare);
  fill_unmeasured(bare);
  for (fitted_parameter& p :
       fit_pool(collective_knobs_of("all_to_all/default", bare), rows_of(by_family, "all_to_all"), bare))
    out.push_back(std::move(p));
  c.fabric["default"] = bare.fabric.at("default");
  c.all_to_all["default"] = bare.all_to_all.at("default");
  c.measured_on["default"] = bare.measured_on.at("default");
  return out;
}

bool default_fabric_knows(const families& by_family, const std::string& family) {
  return rows_of(by_family, family_parts(family).group).rows.size() >= rows_to_pool;
}

}  // namespace nvlsim
