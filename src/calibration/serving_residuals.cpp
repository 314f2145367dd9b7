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
  std::set<std::string> kinds;
  for (const served_error& e : fitted)
    if (e.engine == engine) {
      measured[e.gpu].insert(e.format);
      kinds.insert(e.kind);
    }
  value cells{value::object{}}, out{value::object{}};
  for (const auto& [gpu, formats] : measured) {
    value list{value::array{}};
    for (const precision f : formats) list.items()->push_back(value{std::string(name(f))});
    cells.set(gpu, std::move(list));
  }
  out.set("measured", std::move(cells));
  for (const std::string& kind : kinds) {
    const auto widths =
        widths_of(fitted, [&](const served_error& e) { return e.engine == engine && e.kind == kind; });
    if (!widths.empty()) out.set(kind, widths_value(widths, unseen_widening));
  }
  return out;
}

value widths_elsewhere(const std::vector<served_error>& left_out) {
  return widths_value(widths_of(left_out, [](const served_error&) { return true; }), 1);
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
