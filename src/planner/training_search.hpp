// The best training layout of a number of GPUs, in stages: the usual choices first, then all choices around the
// best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/planner/training_plan.hpp"

namespace nvlsim {

/// GPUs, and how many of them a rack has; 0: the platform's segment.
struct training_place {
  std::int64_t gpus = 0, per_rack = 0;
};

struct found_training {
  std::optional<planned_training> best;
  std::vector<lost_training> lost;     ///< next best layouts
  std::vector<pruned_layouts> pruned;  ///< why others do not run, most first
  std::int64_t evaluated = 0, candidates = 0;
};

/// Searches the layouts of the base on these GPUs. A `flexible` batch is moved to the nearest that divides.
found_training best_training(const plan_base& base, const training_place& at, bool flexible,
                             const plan_watch& watch);

/// The places that `gpus` GPUs fill evenly: segments of the platform, and whole racks where those differ.
std::vector<training_place> places_of(const scenario& s, std::int64_t gpus);

/// The layout with the least peak of memory, as if a GPU had any amount. Nothing if none runs even so.
std::optional<closest_training> min_memory(const plan_base& base, const training_place& at, bool flexible,
                                           const plan_watch& watch);

/// The better of `best_training` at all places.
found_training best_of_places(const plan_base& base, const scenario& s, std::int64_t gpus, bool flexible,
                              const plan_watch& watch);

}  // namespace nvlsim
