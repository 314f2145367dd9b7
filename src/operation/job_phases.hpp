// The phases of a job from a failure to its next step.
#pragma once

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {

/// A number as an index.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline const component& component_of(const operation_state& s, std::int32_t c) {
  return s.setup->failures.components[at(c)];
}

/// A failure that affects the job.
struct job_hit {
  std::int32_t component = -1;
  cluster_part lost = cluster_part::process;
  double detection = 0;  ///< seconds
  std::vector<std::int32_t> slots;
  bool corrupted = false;  ///< work since the last copy before the corruption is lost
};

/// A job on a machine, before the first event.
operation_state begin_job(const operation_setup& s, machine_state machine);
/// Redistributes the shards of a redundant job after replicas left or returned.
void share_shards(operation_state& s);
/// Accounts for the time until `now`.
void account(operation_state& s, double now);
/// Handles a failure: the job stops, or drops replicas.
void hit_job(operation_state& s, const job_hit& h);
/// Handles a failure that stops the whole job in any mode.
void hit_whole_job(operation_state& s, const job_hit& h);
/// Ends the current span.
void close_span(operation_state& s);
/// A planned stop without lost work: the job enters `phase` and continues after `lasts` seconds.
void stop_planned(operation_state& s, gpu_use phase, double lasts);
/// The running job stops to save before it loses a part.
void stop_to_save(operation_state& s, std::int32_t component);
/// What the job has done is in all copies that take no more than `within` seconds.
void keep_progress(operation_state& s, double within);
/// Gives the job trays, ascending. It starts there, or continues from its newest copy.
void come(operation_state& s, const std::vector<std::int32_t>& trays);
/// Takes the job off its trays. Unless it is done, it returns to its newest copy.
void go(operation_state& s);
/// Ends the current phase and starts the next.
void end_phase(operation_state& s);
/// Called after trays are repaired: a job that lacks hardware looks for trays again.
void look_for_trays(operation_state& s);
/// A replica that dropped out is ready again.
void rejoin(operation_state& s, const operation_event& e);
/// Speed of the job relative to its full speed.
double speed_of(const operation_state& s);
/// Orders the event of the work's end, if no failure comes before.
void order_finish(operation_state& s);

inline bool is_running(const operation_state& s) { return s.phase == gpu_use::useful; }
/// Whether the job restarts on trays that it already has. It does not look at trays that break before it runs.
inline bool restarts(const operation_state& s) {
  return s.phase == gpu_use::readying || s.phase == gpu_use::initialising || s.phase == gpu_use::loading ||
         s.phase == gpu_use::first_step || s.phase == gpu_use::stalled;
}
/// Orders an event `after` seconds from now.
void order_at(operation_state& s, double after, const operation_event& e);

}  // namespace nvlsim
