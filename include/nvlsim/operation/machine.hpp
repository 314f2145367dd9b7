// The trays of a cluster: which are broken, which a job uses, which are spare.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "nvlsim/operation/failures.hpp"

namespace nvlsim {

/// A job asks for `slots` trays, `per_rack` of them in one rack; the last rack may have fewer.
struct tray_request {
  std::int64_t slots = 0;
  std::int64_t per_rack = 0;
  std::int64_t unit = 0;  ///< slots, from the first on, that share a rack and move alone; 0: all of a rack do
};

/// Which tray each slot of the job is on. A tray without a slot is spare. Counts are kept, so that a change costs
/// what it touches.
struct machine_state {
  cluster_shape shape;
  tray_request asked;
  std::vector<std::uint16_t> causes;      ///< by tray: how many repairs it waits for; 0: up
  std::vector<std::int32_t> slot_of;      ///< by tray; -1: spare
  std::vector<std::int32_t> tray_of;      ///< by slot
  std::vector<std::int32_t> first_slots;  ///< of each of the job's racks, and the number of slots
  std::vector<std::int32_t> job_rack_on;  ///< by rack: which of the job's racks is on it; -1: none
  std::vector<std::int32_t> hurt;         ///< slots whose tray is broken, in the order in which they broke
  std::vector<std::int32_t> free_racks;   ///< racks without a part of the job
  std::int64_t broken = 0;                ///< trays
  bool notes_moves = false;               ///< keeps `trail`
  std::vector<std::pair<std::int32_t, std::int32_t>> trail;  ///< trays that slots left, and where they went
  bool notes_flips = false;                                  ///< keeps `flips`
  std::vector<std::int32_t> flips;  ///< trays that broke or came back, for who takes them out
};

/// All trays up; the job fills racks in order, and the first trays of each.
machine_state whole_machine(const cluster_shape& s, const tray_request& asked);
/// All trays up, and none of them the job's.
machine_state machine_without_job(const cluster_shape& s, const tray_request& asked);

/// Puts the job's slots on trays, ascending, as many as it asks for; those of one rack move together.
void occupy(machine_state& m, const std::vector<std::int32_t>& trays);
/// The job leaves its trays.
void vacate(machine_state& m);

/// Adds a cause to each of the trays, or takes one away. Slots enter or leave `hurt`.
void break_trays(machine_state& m, const tray_range& r);
void mend_trays(machine_state& m, const tray_range& r);

/// Moves hurt slots to spare trays of their rack, else the slots of the rack to a free rack that has as many trays
/// up. Returns how many trays it moved. Slots that found no place stay in `hurt`.
std::int64_t move_hurt(machine_state& m);

/// The first and last of the job's `replicas` that use a slot: replicas take its GPUs in order.
struct replica_range {
  std::int64_t first = 0, last = 0;
};
replica_range replicas_of(const machine_state& m, std::int32_t slot, std::int64_t replicas);

}  // namespace nvlsim
