#include "nvlsim/run/serving_bands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "nvlsim/serving/rank_weights.hpp"

namespace nvlsim {
namespace {

/// Copies the widths that an object gives.
bool take_widths(error_widths& out, const value* from, bool widest) {
  if (!from || !from->members()) return false;
  bool any = false;
  for (const auto& [metric, member] : {std::pair{"tpot", &error_widths::tpot},
                                       {"ttft", &error_widths::ttft},
                                       {"throughput", &error_widths::throughput}}) {
    const value* v = from->find(metric);
    if (!v || !v->number()) continue;
    out.*member = widest ? std::max(out.*member, *v->number()) : *v->number();
    any = true;
  }
  return any;
}

/// Says which measurement is missing. Empty if this GPU was measured at this precision.
std::string gap_in(const value& measured, const scenario& s, const inference_workload& w) {
  const value* formats = measured.find(s.platform.gpu.name);
  if (!formats || !formats->items())
    return fmt::format("no measurement of {} with {}", s.platform.gpu.name, s.stack.name);
  const std::string_view wanted = name(error_format(s.model, w));
  for (const value& f : *formats->items())
    if (f.string() && *f.string() == wanted) return {};
  return fmt::format("no measurement of {} at {} with {}", s.platform.gpu.name, wanted, s.stack.name);
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

}  // namespace nvlsim
