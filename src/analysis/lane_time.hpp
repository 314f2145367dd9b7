// What serving lanes did in given stretches of their time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/time_slices.hpp"

namespace nvlsim {

/// Adds up stretches of the time of lanes, the first streams of a plan's classes, each counted by its weight:
/// iterations by the parts of their templates, whatever they took, and what lies between them as "no work". A
/// stretch costs the logarithm of a lane's iterations.
class lane_time {
 public:
  lane_time(const plan& work, const timeline& times);

  void add(std::size_t lane, double from_s, double to_s, double weight);
  /// Slices add up to the weighted time of the stretches since the last call.
  std::vector<time_slice> take();

 private:
  struct lane_weights {
    std::vector<double> whole;  ///< differences, by iteration; the gap before it counts like it but for the first
    std::vector<double> gaps;   ///< differences
  };
  void add_part(std::size_t lane, std::size_t iteration, double time_s);

  const plan& work_;
  const timeline& times_;
  std::vector<lane_weights> lanes_;
  std::vector<double> by_template_;  ///< weighted seconds
  double idle_s_ = 0;
};

/// All of the time from one date to another of the mean GPU. Slices add up to it.
std::vector<time_slice> slices_of_lanes(const plan& work, const timeline& times, double from_s, double to_s);

}  // namespace nvlsim
