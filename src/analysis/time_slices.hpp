// Divides the time of a plan's main streams by what it was spent on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/wait_chain.hpp"
#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// Time spent on one thing or waiting for it.
struct time_slice {
  std::string phase;  ///< "forward", "decode", "waiting"
  part_kind kind = part_kind::idle;
  std::string name;  ///< name of the part
  std::shared_ptr<const part_facts> facts;
  double time_s = 0, calls = 0;
};

inline constexpr std::string_view waiting_phase = "waiting", no_work = "no work";
/// The template name without its detail: "forward" for "forward (2 layers, loss)", "backward (inputs)" for
/// "backward (inputs) (2 layers)".
std::string phase_of(const operation_template& t);

/// Operations on all streams but the first of each class. Their phase is "beside compute".
std::vector<time_slice> side_slices(const plan& planned);

/// All time of the mean GPU. The slices add up to the makespan. Waits for other stages are divided into three:
/// communication by its kind, while what led to the end of the wait was being sent between stages, or was itself
/// waiting for its collectives; `imbalance`, because another stage has more work; and `bubble`, the rest.
std::vector<time_slice> slices_of_gpus(const plan& planned, const timeline& times);

/// The chain of dependent operations that ends last. The slices add up to the makespan; their phase is the class
/// and its activity.
std::vector<time_slice> critical_path(const plan& planned, const timeline& times);

/// A tree by phase, then kind of work, then part.
cause by_phase(const std::vector<time_slice>& slices, std::string name);
/// A tree by resource or wait, then part. [docs/models-and-assumptions.md#bounds]
cause by_resource(const std::vector<time_slice>& slices, std::string name);
/// A tree by kind of work, then part.
cause by_kind(const std::vector<time_slice>& slices, std::string name);

/// Kernels or transfers, longest first.
std::vector<time_use> uses_of_time(const std::vector<time_slice>& slices, bool transfers, double whole_s);

}  // namespace nvlsim
