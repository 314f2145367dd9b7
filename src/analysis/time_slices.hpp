// Time of the main streams of a plan, by what it was spent on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// Time spent on one thing, or waited for one.
struct time_slice {
  std::string phase;  ///< "forward", "decode", "waiting"
  work_kind kind = work_kind::idle;
  std::string name;  ///< of the part
  std::shared_ptr<const part_facts> facts;
  double time_s = 0, calls = 0;
};

inline constexpr std::string_view waiting_phase = "waiting", no_work = "no work";
/// "forward" of "forward (2 layers, loss)", "backward (inputs)" of "backward (inputs) (2 layers)".
std::string phase_of(const work_template& t);

/// Of an operation that took so long: what is beyond its own time, in which other traffic slowed it down. 0 where
/// it is less than the engine's clock tells.
double slowed_by(const work_template& t, double took_s);
/// The part that other traffic slows down: the exchange that is waited for longest; null for an operation without
/// parts.
const work_part* slowed_part(const work_template& t);

/// Operations beside the first stream of each class, in phase "beside compute".
std::vector<time_slice> side_slices(const plan& work);

/// All time of the mean GPU; slices add up to the makespan. Of waits for other stages, kind `pp` is that in which
/// what was waited for, or what that had waited for, was being sent, `imbalance` what a stage waits because
/// another one has more to do, and `bubble` the rest.
std::vector<time_slice> slices_of_gpus(const plan& work, const timeline& times);

/// The chain of operations, each of which began because the one before it ended, that ends last. Slices add up to
/// the makespan; their phase is the class and what it did.
std::vector<time_slice> critical_path(const plan& work, const timeline& times);

/// Phase, then kind of work, then part.
cause by_phase(const std::vector<time_slice>& slices, std::string name);
/// Resource or wait, then part. [docs/models-and-assumptions.md#bounds]
cause by_bound(const std::vector<time_slice>& slices, std::string name);
/// Kind of work, then part.
cause by_kind(const std::vector<time_slice>& slices, std::string name);

/// Kernels, or transfers, longest first.
std::vector<time_use> uses_of_time(const std::vector<time_slice>& slices, bool transfers, double whole_s);

}  // namespace nvlsim
