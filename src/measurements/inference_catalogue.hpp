// Maps names in inference.csv to stacks, precisions and layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nvlsim/units/precision.hpp"

namespace nvlsim {

/// The shipped stack for an engine release.
std::string serving_stack_of(const std::string& engine, const std::string& version);

/// The stack of the same release as built for AMD's GPUs, where it is one of its own: AITER's kernels come and go
/// with other releases than those for NVIDIA's.
std::string rocm_stack(const std::string& named);

/// The engine's stack of no stated release. Throws cell_error for an engine that is not known.
std::string generic_serving_stack(const std::string& engine);

struct weight_formats {
  precision dense, attention, expert;
};
/// Precision of each kind of weight in a checkpoint described as `cell` ("fp4").
weight_formats formats_of(const std::string& cell, const std::string& model_name, bool routed, bool latent);

/// The mean prompt length of a model's MLPerf data set, which is not published and is assumed.
std::optional<double> mlperf_prompt_of(const std::string& model_name);

/// A parsed layout such as "tp8 ep8 attention-dp", "tp4 dp4", "dep8" or "TP4 + EP4".
struct named_layout {
  int tp = 1, pp = 1, ep = 1;
  bool attention_dp = false;
  bool recipe = false;  ///< from a published recipe, not from a launch file
};
std::optional<named_layout> parse_layout(std::string_view given);

}  // namespace nvlsim
