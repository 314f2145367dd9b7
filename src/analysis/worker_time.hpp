// Sums what serving workers did during given intervals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/time_slices.hpp"

namespace nvlsim {

/// Sums weighted intervals of worker time. A worker is the first stream of a class. An iteration's time is divided
/// over the parts of its template in proportion; time between iterations counts as "no work". Adding an interval
/// takes logarithmic time in the worker's iterations.
class worker_time {
 public:
  worker_time(const plan& planned, const timeline& times);

  void add(std::size_t worker, double from_s, double to_s, double weight);
  /// Returns the sums since the last call. The slices add up to the weighted time of the intervals.
  std::vector<time_slice> take();

 private:
  struct worker_weights {
    std::vector<double> whole;  ///< differences of weights by iteration
    std::vector<double> gaps;   ///< differences of weights by the gap before the iteration
  };
  void add_part(std::size_t worker, std::size_t iteration, double time_s);

  const plan& planned_;
  const timeline& times_;
  std::vector<worker_weights> workers_;
  std::vector<double> by_template_;  ///< weighted seconds
  double idle_s_ = 0;
};

/// Time of the mean GPU between two times. The slices add up to `to_s - from_s`.
std::vector<time_slice> slices_of_workers(const plan& planned, const timeline& times, double from_s, double to_s);

}  // namespace nvlsim
