// Divides the time of a plan's main streams by what it was spent on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/plan/plan.hpp"

namespace nvlsim {

/// The end of an operation, by its position. Class -1: none.
struct signal {
  std::int32_t rank_class = -1, stream = 0;
  std::uint32_t operation = 0;
  double at_s = -1;
};

/// An operation of a chain, and the part of its time that lies in the wait.
struct chain_link {
  const operation_template* what = nullptr;
  stream_kind stream = stream_kind::compute;
  double took_s = 0, within_s = 0;
};

/// The dependencies of a finished run. Refers to the plan and the timeline.
class wait_chains {
 public:
  wait_chains(const plan& planned, const timeline& times);

  /// The last of the operations whose events `o` waits for.
  std::optional<signal> last_wait(const operation& o) const;
  /// The operation that the start of `at` depended on: its predecessor on the stream, or the last one it waited
  /// for.
  signal cause_of(const signal& at) const;
  /// The compute operation that ends last.
  signal last_compute() const;
  /// The operations that led from `from_s` to the end of `at`, last first.
  std::vector<chain_link> chain(signal at, double from_s) const;

  const stream& stream_of(const signal& s) const;
  const operation_template& template_of(const operation& o) const {
    return planned_.templates[static_cast<std::size_t>(o.template_index)];
  }

 private:
  const std::vector<span>& spans_of(const signal& s) const;

  const plan& planned_;
  const timeline& times_;
  std::vector<signal> signals_;  ///< by event: the operation that triggered it
};

/// Whether a part of this kind is communication that the operation waits for.
bool is_communication(part_kind k);

/// The time by which other traffic slowed an operation that took `took_s`. 0 if below the resolution of the
/// SimGrid clock.
double slowed_by(const operation_template& t, double took_s);
/// The part that other traffic slows down: the exchange with the longest wait. Null for an operation without
/// parts.
const operation_part* slowed_part(const operation_template& t);

/// Calls `add(part, seconds)` for each part of a link that is communication: a send or a data-parallel transfer as
/// a whole, and of a pass what it waits for, slowdown included, in proportion to the time within the wait.
template <class Add>
void communication_of(const chain_link& l, Add&& add) {
  if (!(l.within_s > 0)) return;
  if (l.stream != stream_kind::compute) {
    if (!l.what->parts.empty()) add(l.what->parts.front(), l.within_s);
    return;
  }
  const double share = l.within_s / l.took_s, longer = slowed_by(*l.what, l.took_s);
  for (const operation_part& p : l.what->parts)
    if (is_communication(p.kind)) add(p, p.duration.base() * p.repeat * share);
  if (const operation_part* const part = slowed_part(*l.what); part && longer > 0) add(*part, longer * share);
}

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
