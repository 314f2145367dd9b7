// How far published measurements of served loads were from their simulation: what a fit says of it, and the bands that
// results get from that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/inference.hpp"
#include "nvlsim/scenario.hpp"
#include "nvlsim/value.hpp"

namespace nvlsim {

/// "pools" of disaggregated workers, else "experts" or "dense".
std::string_view error_kind(const model& m, const inference_workload& w);
/// The format of most weights.
precision error_format(const model& m, const inference_workload& w);

/// Nine of ten published rows lie within a factor of e^this of the simulation; zero when not known.
struct error_widths {
  double tpot = 0, ttft = 0, throughput = 0;
};
struct served_band {
  error_widths widths;
  std::string kind;
  bool by_kind = false;  ///< the widths are those of its kind; else of all rows of the engine
  std::string gap;       ///< what there is no measurement of, where there is none of this GPU at this precision
};
/// Of an inference scenario: what its stack's `"calibration"` says, else its `"band"`. [docs/explain.md#bands]
served_band band_of(const scenario& s);

/// Share of the errors that a band holds, and what those of a fit are multiplied by: rows outside it miss by more.
inline constexpr double band_share = 0.9, unseen_widening = 1.25;

/// Of one published value: the logarithm of simulated over published.
struct served_error {
  std::string engine, kind, gpu, metric;  ///< kind as of `error_kind`; metric "tpot", "ttft" or "throughput"
  precision format = precision::bf16;
  double log_error = 0;
};

/// `"calibration"` of an engine's stack: GPUs and formats measured, and widths of 90 % by kind, wider than the errors of
/// the fit because rows outside it miss by more. A kind with few values has none.
value calibration_of(const std::vector<served_error>& fitted, const std::string& engine);

/// `"elsewhere"`: the widths on systems that were left out of the fit in turn, over all engines.
value widths_elsewhere(const std::vector<served_error>& left_out);
/// Share of the values of left-out systems inside bands that come from the other left-out systems alone.
double coverage_elsewhere(const std::vector<served_error>& left_out);

}  // namespace nvlsim
