// Phases of a job between a failure and the next step.
#pragma once

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {

/// A number as an index.
inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline const component& component_of(const operation_state& s, std::int32_t c) {
  return s.setup->failures.components[at(c)];
}

/// What hit the job.
struct job_hit {
  std::int32_t component = -1;
  cluster_part lost = cluster_part::process;
  double detection = 0;  ///< seconds
  std::vector<std::int32_t> slots;
  bool corrupted = false;  ///< what it computed since the last copy before the corruption is worthless
};

/// A job on a machine, before anything happened.
operation_state begin_job(const operation_setup& s, machine_state machine);
/// Some replicas of a redundant job went or came: the others share the shards of the batch anew.
void share_shards(operation_state& s);
/// Accounts for the time until `now`.
void account(operation_state& s, double now);
/// A failure hit the job: it stops, or drops replicas.
void hit_job(operation_state& s, const job_hit& h);
/// A failure hit the whole job, whatever its mode.
void hit_whole_job(operation_state& s, const job_hit& h);
/// Ends the span under way.
void close_span(operation_state& s);
/// A stop that the job prepares for, and that loses no work: it goes on from `phase` after `lasts`.
void stop_planned(operation_state& s, gpu_use phase, double lasts);
/// The job gets trays, ascending, on which it starts or goes on from what it saved.
void come(operation_state& s, const std::vector<std::int32_t>& trays);
/// The job leaves its trays: it is done, or goes back to its newest copy.
void go(operation_state& s);
/// The present phase is over.
void end_phase(operation_state& s);
/// Trays came back: a job that lacks hardware looks again.
void look_for_trays(operation_state& s);
/// A replica is ready again.
void rejoin(operation_state& s, const operation_event& e);
/// The speed of the job over its full speed.
double speed_of(const operation_state& s);
/// When the work will be done, if nothing happens: an order.
void order_finish(operation_state& s);

inline bool is_running(const operation_state& s) { return s.phase == gpu_use::useful; }
void order_at(operation_state& s, double after, const operation_event& e);

}  // namespace nvlsim
