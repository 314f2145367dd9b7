#include "study/serving_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "study/fit_errors.hpp"
#include "workload/serving_layers.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t least_values = 20;
constexpr std::array<const char*, 3> metrics = {"tpot", "ttft", "throughput"};

double rounded(double x) { return std::round(x * 1000) / 1000; }

/// Widths of the metrics that have enough values.
template <class Wanted>
std::map<std::string, double> widths_of(const std::vector<served_error>& all, Wanted wanted) {
  std::map<std::string, std::vector<double>> errors;
  for (const served_error& e : all)
    if (wanted(e)) errors[e.metric].push_back(std::abs(e.log_error));
  std::map<std::string, double> out;
  for (const auto& [metric, v] : errors)
    if (v.size() >= least_values) out[metric] = share_below(v, band_share);
  return out;
}

/// Takes what an object of widths states.
bool take_widths(error_widths& out, const value* from, bool widest) {
  if (!from || !from->members()) return false;
  bool any = false;
  for (const auto& [metric, member] :
       {std::pair{"tpot", &error_widths::tpot}, {"ttft", &error_widths::ttft}, {"throughput", &error_widths::throughput}}) {
    const value* v = from->find(metric);
    if (!v || !v->number()) continue;
    out.*member = widest ? std::max(out.*member, *v->number()) : *v->number();
    any = true;
  }
  return any;
}

/// What there is no measurement of; nothing when there is one, or when nobody says.
std::string gap_in(const value& measured, const scenario& s, const inference_workload& w) {
  const value* formats = measured.find(s.platform.gpu.name);
  if (!formats || !formats->items()) return fmt::format("no measurement of {} with {}", s.platform.gpu.name, s.stack.name);
  const std::string_view wanted = name(error_format(s.model, w));
  for (const value& f : *formats->items())
    if (f.string() && *f.string() == wanted) return {};
  return fmt::format("no measurement of {} at {} with {}", s.platform.gpu.name, wanted, s.stack.name);
}

value widths_value(const std::map<std::string, double>& widths, double factor) {
  value out{value::object{}};
  for (const char* m : metrics)
    if (const auto it = widths.find(m); it != widths.end()) out.set(m, rounded(factor * it->second));
  return out;
}

}  // namespace

std::string_view error_kind(const model& m, const inference_workload& w) {
  return w.pooled() ? "pools" : has_routed_experts(m) ? "experts" : "dense";
}

precision error_format(const model& m, const inference_workload& w) {
  return weights_of(w, has_routed_experts(m) ? weight_role::expert : weight_role::dense);
}

served_band band_of(const scenario& s) {
  const auto& w = std::get<inference_workload>(s.workload);
  const auto& all = s.stack.inference.value().band;
  served_band out{{all.tpot, all.ttft, all.throughput}, std::string(error_kind(s.model, w)), false, {}};
  const value* calibration = s.inputs.at_pointer("/stack/parameters/inference/calibration");
  if (!calibration) return out;
  out.by_kind = take_widths(out.widths, calibration->find(out.kind), false);
  if (const value* measured = calibration->find("measured")) out.gap = gap_in(*measured, s, w);
  if (!out.gap.empty()) take_widths(out.widths, calibration->find("elsewhere"), true);
  return out;
}

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
    const auto widths = widths_of(fitted, [&](const served_error& e) { return e.engine == engine && e.kind == kind; });
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
