#include "calibration/serving_residuals.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t min_values = 20;
constexpr std::array<const char*, 3> metrics = {"tpot", "ttft", "throughput"};

double rounded(double x) { return std::round(x * 1000) / 1000; }

/// Band widths of the metrics with enough values.
template <class Wanted>
std::map<std::string, double> widths_of(const std::vector<served_error>& all, Wanted wanted) {
  std::map<std::string, std::vector<double>> errors;
  for (const served_error& e : all)
    if (wanted(e)) errors[e.metric].push_back(std::abs(e.log_error));
  std::map<std::string, double> out;
  for (const auto& [metric, v] : errors)
    if (v.size() >= min_values) out[metric] = share_below(v, band_share);
  return out;
}

value widths_value(const std::map<std::string, double>& widths, double factor) {
  value out{value::object{}};
  for (const char* m : metrics)
    if (const auto it = widths.find(m); it != widths.end()) out.set(m, rounded(factor * it->second));
  return out;
}

}  // namespace

value calibration_of(const std::vector<served_error>& fitted, const std::string& engine) {
  std::map<std::string, std::set<precision>> measured;
  std::set<std::string> models;  // "GPU/model"
  std::set<std::string> kinds, architectures;
  for (const served_error& e : fitted)
    if (e.engine == engine) {
      measured[e.gpu].insert(e.format);
      models.insert(e.gpu + "/" + e.model);
      kinds.insert(e.kind);
      architectures.insert(e.architecture);
    }
  value cells{value::object{}}, known{value::object{}}, by_architecture{value::object{}}, out{value::object{}};
  for (const auto& [gpu, formats] : measured) {
    value list{value::array{}};
    for (const precision f : formats) list.items()->push_back(value{std::string(name(f))});
    cells.set(gpu, std::move(list));
  }
  for (const std::string& cell : models) {
    const auto widths = widths_of(
        fitted, [&](const served_error& e) { return e.engine == engine && e.gpu + "/" + e.model == cell; });
    known.set(cell, widths_value(widths, unseen_widening));
  }
  out.set("measured", std::move(cells));
  out.set("cells", std::move(known));
  for (const std::string& kind : kinds) {
    const auto widths =
        widths_of(fitted, [&](const served_error& e) { return e.engine == engine && e.kind == kind; });
    if (!widths.empty()) out.set(kind, widths_value(widths, unseen_widening));
  }
  for (const std::string& a : architectures) {
    const auto widths =
        widths_of(fitted, [&](const served_error& e) { return e.engine == engine && e.architecture == a; });
    if (!widths.empty()) by_architecture.set(a, widths_value(widths, unseen_widening));
  }
  if (!by_architecture.members()->empty()) out.set("architectures", std::move(by_architecture));
  return out;
}

value release_widths(const std::vector<served_error>& fitted, const std::string& stack) {
  return widths_value(widths_of(fitted, [&](const served_error& e) { return e.stack == stack; }), unseen_widening);
}

value widths_elsewhere(const std::vector<served_error>& left_out, const std::string& engine) {
  auto widths = widths_of(left_out, [](const served_error&) { return true; });
  for (const auto& [metric, w] : widths_of(left_out, [&](const served_error& e) { return e.engine == engine; }))
    widths[metric] = w;
  return widths_value(widths, 1);
}

double coverage_elsewhere(const std::vector<served_error>& left_out) {
  std::set<std::string> gpus;
  for (const served_error& e : left_out) gpus.insert(e.gpu);
  double inside = 0, all = 0;
  for (const std::string& gpu : gpus) {
    const auto widths = widths_of(left_out, [&](const served_error& e) { return e.gpu != gpu; });
    for (const served_error& e : left_out) {
      if (e.gpu != gpu || !widths.contains(e.metric)) continue;
      inside += std::abs(e.log_error) <= widths.at(e.metric) ? 1 : 0;
      ++all;
    }
  }
  return all > 0 ? inside / all : 0;
}

}  // namespace nvlsim
