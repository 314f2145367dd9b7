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

/// Copies the widths that are known.
void take_widths(error_widths& out, const error_widths& from, bool widest) {
  for (double error_widths::*metric : {&error_widths::tpot, &error_widths::ttft, &error_widths::throughput})
    if (from.*metric > 0) out.*metric = widest ? std::max(out.*metric, from.*metric) : from.*metric;
}

/// Says which measurement is missing. Empty if this GPU was measured at this precision, or if nothing is known.
std::string gap_in(const serving_calibration& c, const scenario& s, const inference_workload& w) {
  if (!c.measured) return {};
  const auto formats = c.measured->find(s.platform.gpu.name);
  if (formats == c.measured->end())
    return fmt::format("no measurement of {} with {}", s.platform.gpu.name, s.stack.name);
  const precision wanted = error_format(s.model, w);
  if (std::find(formats->second.begin(), formats->second.end(), wanted) != formats->second.end()) return {};
  return fmt::format("no measurement of {} at {} with {}", s.platform.gpu.name, name(wanted), s.stack.name);
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
  const inference_profile& engine = s.stack.inference.value();
  const serving_calibration& c = engine.calibration;
  served_band out{engine.band, std::string(error_kind(s.model, w)), false, {}};
  if (const auto kind = c.kinds.find(out.kind); kind != c.kinds.end()) {
    out.by_kind = kind->second.known();
    take_widths(out.widths, kind->second, false);
  }
  out.gap = gap_in(c, s, w);
  if (!out.gap.empty()) take_widths(out.widths, c.elsewhere, true);
  return out;
}

}  // namespace nvlsim
