// The trays of a cluster: which are broken, which the job uses, and which are spare.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "nvlsim/operation/failures.hpp"

namespace nvlsim {

/// A job's request for `slots` trays, `per_rack` in each rack; the last rack may have fewer.
struct tray_request {
  std::int64_t slots = 0;
  std::int64_t per_rack = 0;
  std::int64_t unit = 0;  ///< consecutive slots that share a rack and move together; 0: all slots of a rack
};

/// Which tray each slot of the job is on. A tray without a slot is spare. Counts are kept up to date, so the cost
/// of a change depends only on what it touches.
struct machine_state {
  cluster_shape shape;
  tray_request asked;
  std::vector<std::uint16_t> causes;      ///< by tray: number of repairs it waits for; 0: up
  std::vector<std::int32_t> slot_of;      ///< by tray; -1: spare
  std::vector<std::int32_t> tray_of;      ///< by slot
  std::vector<std::int32_t> first_slots;  ///< the first slot of each of the job's racks, then the number of slots
  std::vector<std::int32_t> job_rack_on;  ///< by rack: the number of the job's rack on it; -1: none
  std::vector<std::int32_t> hurt;         ///< slots whose tray is broken, in order of failure
  std::vector<std::int32_t> free_racks;   ///< racks that the job does not use
  std::int64_t broken = 0;                ///< trays
  bool notes_moves = false;               ///< keeps `trail`
  std::vector<std::pair<std::int32_t, std::int32_t>> trail;  ///< the tray that a slot left, and its new tray
  bool notes_flips = false;                                  ///< keeps `flips`
  std::vector<std::int32_t> flips;  ///< trays that broke or came back since the caller last emptied it
};

/// A machine with all trays up. The job fills racks in order, using the first trays of each.
machine_state whole_machine(const cluster_shape& s, const tray_request& asked);
/// A machine with all trays up and no job.
machine_state machine_without_job(const cluster_shape& s, const tray_request& asked);

/// Puts the job's slots on `trays`: ascending, as many as requested. Slots in one rack move together.
void occupy(machine_state& m, const std::vector<std::int32_t>& trays);
/// Takes the job off its trays.
void vacate(machine_state& m);

/// Adds a cause to each tray, or removes one. Slots enter or leave `hurt`. Mending a tray that is up does nothing.
void break_trays(machine_state& m, const tray_range& r);
void mend_trays(machine_state& m, const tray_range& r);

/// Moves hurt slots to spare trays of their rack; without a spare, moves all slots of the rack to a free rack with
/// enough trays up. Returns the number of slots moved. Slots that found no place stay in `hurt`.
std::int64_t move_hurt(machine_state& m);

/// Whether any of the job's slots is on these trays.
bool uses(const machine_state& m, const tray_range& r);
/// Breaks these trays of `trial` and moves hurt slots. Returns whether every slot on them found another tray. Call
/// it on a copy of a machine to ask whether the job could leave them.
bool leaves(machine_state& trial, const tray_range& r);

/// The first and last of the job's `replicas` that use a slot. Replicas take the job's GPUs in order.
struct replica_range {
  std::int64_t first = 0, last = 0;
};
replica_range replicas_of(const machine_state& m, std::int32_t slot, std::int64_t replicas);

}  // namespace nvlsim
