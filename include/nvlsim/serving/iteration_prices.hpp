// Fast iteration times, for millions of iterations. [docs/models-and-assumptions.md#inference-online]
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Prices iterations like `iteration_costs`: exactly if they contain prompts, else by interpolation between cache
/// lengths (eight per doubling). Records iterations by classes of similar ones, over all workers.
class iteration_prices {
 public:
  /// `swap_rate`: cached tokens per second to or from CPU memory. `traffic`: prices and uses have the demands of
  /// the iterations on the network.
  iteration_prices(iteration_costs& costs, double swap_rate, bool traffic = false)
      : costs_(costs), swap_rate_(swap_rate), traffic_(traffic) {}

  /// `workers`: number of equal workers that run the iteration.
  iteration_price price(const iteration& it, std::int64_t workers = 1);
  /// Times of iterations that only decode the same sequences. They need not run.
  void price_decodes(std::int64_t decodes, std::span<const std::int64_t> contexts, std::vector<double>& took);
  /// They ran, on so many workers.
  void count_decodes(std::int64_t decodes, std::span<const std::int64_t> contexts, std::span<const double> took,
                     std::int64_t workers);
  /// Begins another run, under the load and limits of `w`, and forgets the uses of the one before.
  void begin_run(const inference_workload& w);
  limit_use prompt_tokens_use() const { return costs_.prompt_tokens_use(); }
  /// `explained` adds facts to parts.
  std::vector<iteration_use> uses(bool explained);

 private:
  struct use {
    iteration_content sum;
    double swapped = 0, count = 0, seconds = 0;
  };
  double decode_time(std::int64_t decodes, std::int64_t context);
  double decode_time_at(std::int64_t decodes, std::size_t point);
  std::int32_t kind_of(const iteration& it);
  const operation_template& exchanges_of(const iteration& it);

  iteration_costs& costs_;
  double swap_rate_;
  bool traffic_;
  std::map<iteration, operation_template> exchanges_;  ///< by content without what was cached
  std::vector<std::vector<double>> decode_times_;      ///< by decodes and grid point; 0: not computed yet
  std::vector<std::uint16_t> bins_;                    ///< by count
  std::unordered_map<std::uint32_t, std::int32_t> kinds_;
  std::vector<use> uses_;
};

}  // namespace nvlsim
