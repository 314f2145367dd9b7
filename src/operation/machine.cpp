#include "nvlsim/operation/machine.hpp"

#include <algorithm>
#include <utility>

#include "operation/job_phases.hpp"

namespace nvlsim {
namespace {

bool is_up(const machine_state& m, std::int64_t tray) { return m.causes[at(tray)] == 0; }

void put(machine_state& m, std::int32_t slot, std::int64_t tray) {
  if (m.notes_moves && m.tray_of[at(slot)] >= 0)
    m.trail.emplace_back(m.tray_of[at(slot)], static_cast<std::int32_t>(tray));
  m.slot_of[at(tray)] = slot;
  m.tray_of[at(slot)] = static_cast<std::int32_t>(tray);
}

/// The slots of one of the job's racks.
struct slot_range {
  std::int64_t first = 0, end = 0;
};
slot_range slots_of(const machine_state& m, std::int64_t job_rack) {
  return {m.first_slots[at(job_rack)], m.first_slots[at(job_rack + 1)]};
}

/// A spare tray of a rack that is up, or -1.
std::int64_t spare_in(const machine_state& m, std::int64_t rack) {
  const std::int64_t first = rack * m.shape.trays_per_rack;
  for (std::int64_t t = first; t < first + m.shape.trays_per_rack; ++t)
    if (m.slot_of[at(t)] < 0 && is_up(m, t)) return t;
  return -1;
}

std::int64_t trays_up(const machine_state& m, std::int64_t rack) {
  const auto first = m.causes.begin() + static_cast<std::ptrdiff_t>(rack * m.shape.trays_per_rack);
  return std::count(first, first + static_cast<std::ptrdiff_t>(m.shape.trays_per_rack), 0);
}

/// Moves all slots of a rack to a free one, and returns how many; 0 if no free rack has enough trays up.
std::int64_t move_rack(machine_state& m, std::int64_t from) {
  const std::int32_t job_rack = m.job_rack_on[at(from)];
  const slot_range slots = slots_of(m, job_rack);
  const auto found = std::find_if(m.free_racks.begin(), m.free_racks.end(),
                                  [&](std::int32_t r) { return trays_up(m, r) >= slots.end - slots.first; });
  if (found == m.free_racks.end()) return 0;
  const std::int32_t to = *found;
  *found = static_cast<std::int32_t>(from);
  m.job_rack_on[at(from)] = -1;
  m.job_rack_on[at(to)] = job_rack;
  std::int64_t tray = to * m.shape.trays_per_rack;
  for (std::int64_t s = slots.first; s < slots.end; ++s, ++tray) {
    while (!is_up(m, tray)) ++tray;
    m.slot_of[at(m.tray_of[at(s)])] = -1;
    put(m, static_cast<std::int32_t>(s), tray);
  }
  return slots.end - slots.first;
}

/// Moves the unit of a slot to a rack that has as many trays for it, its own among them if they are up.
std::int64_t move_unit(machine_state& m, std::int32_t slot) {
  const std::int64_t first = slot / m.asked.unit * m.asked.unit,
                     end = std::min(first + m.asked.unit, m.asked.slots);
  for (std::int64_t rack = 0; rack < m.shape.racks; ++rack) {
    std::vector<std::int64_t> found;
    for (std::int64_t t = rack * m.shape.trays_per_rack; t < (rack + 1) * m.shape.trays_per_rack; ++t)
      if (m.slot_of[at(t)] < 0 && is_up(m, t)) found.push_back(t);
    if (static_cast<std::int64_t>(found.size()) < end - first) continue;
    for (std::int64_t s = first; s < end; ++s) {
      m.slot_of[at(m.tray_of[at(s)])] = -1;
      put(m, static_cast<std::int32_t>(s), found[at(s - first)]);
    }
    return end - first;
  }
  return 0;
}

}  // namespace

machine_state machine_without_job(const cluster_shape& s, const tray_request& asked) {
  machine_state m;
  m.shape = s;
  m.asked = asked;
  m.causes.resize(at(s.trays()));
  m.slot_of.assign(at(s.trays()), -1);
  m.tray_of.assign(at(asked.slots), -1);
  m.job_rack_on.assign(at(s.racks), -1);
  for (std::int64_t r = 0; r < s.racks; ++r) m.free_racks.push_back(static_cast<std::int32_t>(r));
  return m;
}

void occupy(machine_state& m, const std::vector<std::int32_t>& trays) {
  m.first_slots.clear();
  std::int32_t slot = 0;
  for (const std::int32_t tray : trays) {
    const auto rack = tray / m.shape.trays_per_rack;
    if (m.job_rack_on[at(rack)] < 0) {
      m.job_rack_on[at(rack)] = static_cast<std::int32_t>(m.first_slots.size());
      m.first_slots.push_back(slot);
    }
    put(m, slot, tray);
    if (!is_up(m, tray)) m.hurt.push_back(slot);
    ++slot;
  }
  m.first_slots.push_back(slot);
  std::erase_if(m.free_racks, [&](std::int32_t r) { return m.job_rack_on[at(r)] >= 0; });
}

void vacate(machine_state& m) {
  for (std::int32_t& tray : m.tray_of)
    if (tray >= 0) m.slot_of[at(std::exchange(tray, -1))] = -1;
  m.hurt.clear();
  m.trail.clear();
  m.first_slots.clear();
  m.job_rack_on.assign(at(m.shape.racks), -1);
  m.free_racks.clear();
  for (std::int64_t r = 0; r < m.shape.racks; ++r) m.free_racks.push_back(static_cast<std::int32_t>(r));
}

machine_state whole_machine(const cluster_shape& s, const tray_request& asked) {
  machine_state m = machine_without_job(s, asked);
  std::vector<std::int32_t> trays;
  for (std::int64_t slot = 0; slot < asked.slots; ++slot)
    trays.push_back(static_cast<std::int32_t>(slot / asked.per_rack * s.trays_per_rack + slot % asked.per_rack));
  occupy(m, trays);
  return m;
}

void break_trays(machine_state& m, const tray_range& r) {
  for (std::int64_t t = r.first; t < r.first + r.count; ++t) {
    if (m.causes[at(t)]++ > 0) continue;
    ++m.broken;
    if (m.notes_flips) m.flips.push_back(static_cast<std::int32_t>(t));
    if (m.slot_of[at(t)] >= 0) m.hurt.push_back(m.slot_of[at(t)]);
  }
}

void mend_trays(machine_state& m, const tray_range& r) {
  bool healed = false;
  for (std::int64_t t = r.first; t < r.first + r.count; ++t) {
    if (is_up(m, t) || --m.causes[at(t)] > 0) continue;
    --m.broken;
    if (m.notes_flips) m.flips.push_back(static_cast<std::int32_t>(t));
    healed = healed || m.slot_of[at(t)] >= 0;
  }
  if (healed) std::erase_if(m.hurt, [&](std::int32_t slot) { return is_up(m, m.tray_of[at(slot)]); });
}

std::int64_t move_hurt(machine_state& m) {
  std::int64_t moved = 0;
  const std::vector<std::int32_t> wanting = m.hurt;
  for (const std::int32_t slot : wanting) {
    const std::int64_t old = m.tray_of[at(slot)];
    if (is_up(m, old)) continue;  // its rack has moved
    const std::int64_t rack = old / m.shape.trays_per_rack, spare = spare_in(m, rack);
    if (spare >= 0) {
      m.slot_of[at(old)] = -1;
      put(m, slot, spare);
      ++moved;
    } else {
      moved += m.asked.unit > 0 ? move_unit(m, slot) : move_rack(m, rack);
    }
  }
  std::erase_if(m.hurt, [&](std::int32_t slot) { return is_up(m, m.tray_of[at(slot)]); });
  return moved;
}

bool uses(const machine_state& m, const tray_range& r) {
  const auto first = m.slot_of.begin() + static_cast<std::ptrdiff_t>(r.first);
  return std::any_of(first, first + static_cast<std::ptrdiff_t>(r.count), [](std::int32_t s) { return s >= 0; });
}

bool leaves(machine_state& trial, const tray_range& r) {
  break_trays(trial, r);
  move_hurt(trial);
  return !uses(trial, r);
}

replica_range replicas_of(const machine_state& m, std::int32_t slot, std::int64_t replicas) {
  return {slot * replicas / m.asked.slots, ((slot + 1) * replicas - 1) / m.asked.slots};
}

}  // namespace nvlsim
