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

std::string cell_of(const serving_case& s) { return s.hardware.gpu.name + "/" + s.net.name; }

/// Says which measurement is missing. Empty if this GPU was measured at this precision with this model, or if
/// nothing is known.
std::string gap_in(const serving_calibration& c, const serving_case& s) {
  if (!c.measured) return {};
  const std::string& gpu = s.hardware.gpu.name;
  const auto formats = c.measured->find(gpu);
  if (formats == c.measured->end()) return fmt::format("no measurement of {} with {}", gpu, s.software.name);
  const precision wanted = error_format(s.net, s.workload);
  if (std::find(formats->second.begin(), formats->second.end(), wanted) == formats->second.end())
    return fmt::format("no measurement of {} at {} with {}", gpu, name(wanted), s.software.name);
  const bool by_cell = std::any_of(c.kinds.begin(), c.kinds.end(),
                                   [](const auto& kind) { return kind.first.find('/') != std::string::npos; });
  if (!by_cell || c.kinds.contains(cell_of(s))) return {};
  return fmt::format("no measurement of {} on {} with {}", s.net.name, gpu, s.software.name);
}

}  // namespace

std::string_view error_kind(const model& m, const inference_workload& w) {
  return w.pooled() ? "pools" : has_routed_experts(m) ? "experts" : "dense";
}

precision error_format(const model& m, const inference_workload& w) {
  return weights_of(w, has_routed_experts(m) ? weight_role::expert : weight_role::dense);
}

served_band band_of(const serving_case& s) {
  const inference_profile& engine = s.software.inference.value();
  const serving_calibration& c = engine.calibration;
  served_band out{engine.band, std::string(error_kind(s.net, s.workload)), false, {}};
  if (const auto kind = c.kinds.find(out.kind); kind != c.kinds.end()) {
    out.by_kind = kind->second.known();
    take_widths(out.widths, kind->second, false);
  }
  // Rows of the same GPU and model say more than all rows of the engine.
  const auto cell = c.kinds.find(cell_of(s));
  const bool known = cell != c.kinds.end() && cell->second.known();
  if (known) take_widths(out.widths, cell->second, false);
  if (const auto its = c.kinds.find("release"); its != c.kinds.end()) take_widths(out.widths, its->second, true);
  if (const auto its = c.kinds.find(s.hardware.gpu.architecture); !known && its != c.kinds.end())
    take_widths(out.widths, its->second, true);
  out.gap = gap_in(c, s);
  if (!out.gap.empty()) take_widths(out.widths, c.elsewhere, true);
  return out;
}

served_band band_of(const scenario& s) {
  return band_of(serving_case{s.platform, s.stack, s.model, std::get<inference_workload>(s.workload)});
}

}  // namespace nvlsim
