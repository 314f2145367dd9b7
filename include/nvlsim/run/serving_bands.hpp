// How far the metrics of a served load may be off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/inference.hpp"

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

}  // namespace nvlsim
