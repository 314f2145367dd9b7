// Error bands of serving metrics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"
#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// "pools" for disaggregated serving, else "experts" or "dense".
std::string_view error_kind(const model& m, const inference_workload& w);
/// The precision of most weights.
precision error_format(const model& m, const inference_workload& w);

struct served_band {
  error_widths widths;
  std::string kind;
  bool by_kind = false;  ///< widths come from rows of this kind; else from all rows of the engine
  std::string gap;  ///< says which measurement is missing, if this GPU was not measured at this precision or with
                    ///< this model
};
/// The band of a workload, from its stack's `"calibration"` or else its `"band"`. [docs/explain.md#bands]
served_band band_of(const serving_case& c);
/// The same of an inference scenario.
served_band band_of(const scenario& s);

}  // namespace nvlsim
