// Iteration times for millions of iterations. [docs/models-and-assumptions.md#inference-online]
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Prices iterations as `iteration_costs` does: exactly where they hold prompts, and by interpolation between
/// cache lengths (eight for each doubling) where all decode. Keeps what ran by classes of like iterations.
class iteration_prices {
 public:
  /// `swap_rate`: cached tokens a second to or from CPU memory.
  iteration_prices(iteration_costs& costs, double swap_rate) : costs_(costs), swap_rate_(swap_rate) {}

  iteration_price price(const iteration& it);
  /// `explained`: parts have facts.
  std::vector<iteration_use> uses(bool explained);

 private:
  struct use {
    iteration_content sum;
    double swapped = 0, count = 0, seconds = 0;
  };
  double decode_time(std::int64_t decodes, std::int64_t context);
  std::int32_t kind_of(const iteration& it);

  iteration_costs& costs_;
  double swap_rate_;
  std::vector<std::vector<double>> decode_times_;  ///< by decodes, then by grid point; 0 where not known yet
  std::vector<std::uint16_t> bins_;                ///< of counts
  std::unordered_map<std::uint32_t, std::int32_t> kinds_;
  std::vector<use> uses_;
};

}  // namespace nvlsim
