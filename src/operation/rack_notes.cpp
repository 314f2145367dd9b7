#include "operation/rack_notes.hpp"

#include <algorithm>
#include <set>

#include "operation/job_phases.hpp"

namespace nvlsim {
namespace {

/// A rack as it is, from now on.
rack_stretch stretch_of(const operation_state& s, std::int32_t rack) {
  const machine_state& m = s.machine;
  rack_stretch out;
  out.rack = rack;
  out.begin = s.now;
  bool used = false;
  const std::int64_t first = rack * m.shape.trays_per_rack;
  for (std::int64_t t = first; t < first + m.shape.trays_per_rack; ++t) {
    const bool is_broken = m.causes[at(t)] > 0, is_used = m.slot_of[at(t)] >= 0;
    out.broken += is_broken;
    out.held += is_used && !is_broken;
    used = used || is_used;
  }
  const std::vector<bool>& began = s.outcome.racks.first;
  if (out.broken == m.shape.trays_per_rack) out.use = rack_use::down;
  else if (used) out.use = began.empty() || began[at(rack)] ? rack_use::works : rack_use::lent;
  return out;
}

void keep(rack_log& log, const rack_stretch& x) {
  if (!(x.end > x.begin)) return;
  if (log.over.size() < max_rack_stretches) log.over.push_back(x);
  else ++log.left_out;
}

}  // namespace

void begin_rack_notes(operation_state& s) {
  s.machine.notes_flips = s.machine.notes_moves = true;
  rack_log& log = s.outcome.racks;
  for (std::int64_t r = 0; r < s.machine.shape.racks; ++r)
    log.now.push_back(stretch_of(s, static_cast<std::int32_t>(r)));
  for (const rack_stretch& x : log.now) log.first.push_back(x.use == rack_use::works);
}

void note_racks(operation_state& s, std::int32_t component) {
  machine_state& m = s.machine;
  if (m.flips.empty() && m.trail.empty()) return;
  std::set<std::int32_t> changed;
  const auto note = [&](std::int32_t tray) {
    changed.insert(static_cast<std::int32_t>(tray / m.shape.trays_per_rack));
  };
  for (const std::int32_t tray : m.flips) note(tray);
  for (const auto& [from, to] : m.trail) note(from), note(to);
  m.flips.clear();
  m.trail.clear();
  for (const std::int32_t rack : changed) {
    rack_stretch& now = s.outcome.racks.now[at(rack)];
    rack_stretch next = stretch_of(s, rack);
    if (next.broken > 0) next.component = next.broken > now.broken ? component : now.component;
    if (next.use == now.use && next.broken == now.broken && next.held == now.held &&
        next.component == now.component)
      continue;
    now.end = s.now;
    keep(s.outcome.racks, now);
    now = next;
  }
}

void close_rack_notes(operation_state& s, double end) {
  rack_log& log = s.outcome.racks;
  for (rack_stretch& x : log.now) {
    x.end = end;
    if (end > x.begin) log.over.push_back(x);
  }
  log.now.clear();
  std::stable_sort(log.over.begin(), log.over.end(), [](const rack_stretch& a, const rack_stretch& b) {
    return a.rack != b.rack ? a.rack < b.rack : a.begin < b.begin;
  });
}

}  // namespace nvlsim
