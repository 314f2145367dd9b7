// What each rack of a cluster did during a run, for traces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nvlsim {

/// `works`: the job uses the rack. `lent`: the job uses it but began elsewhere. `spare`: the job does not use it.
/// `down`: all of its trays are broken.
enum class rack_use { works, lent, spare, down };
inline constexpr std::array<std::string_view, 4> rack_use_names = {"job", "lent", "spare", "down"};

/// A time span in which a rack's state does not change.
struct rack_stretch {
  std::int32_t rack = 0;
  double begin = 0, end = 0;
  rack_use use = rack_use::spare;
  std::int32_t broken = 0;      ///< trays
  std::int32_t held = 0;        ///< trays of the job that are not broken
  std::int32_t component = -1;  ///< cause of the latest broken tray; -1: none is broken
};
/// How many stretches of a run are kept, from the start. Each rack's last one is kept too.
inline constexpr std::size_t max_rack_stretches = 20'000;

/// The current stretch of each rack, and the completed ones.
struct rack_log {
  std::vector<rack_stretch> now, over;  ///< `now`: by rack; empty: nothing is recorded
  std::vector<bool> first;              ///< by rack: the job began there
  std::int64_t left_out = 0;            ///< stretches that are missing
};

/// A tray that is out of service, of a cluster that jobs share.
struct tray_repair {
  std::int32_t tray = 0, component = 0;  ///< `component`: that broke it
  double begin = 0, end = 0;
};
/// The most repairs of a run that are kept, the first ones.
inline constexpr std::size_t max_tray_repairs = 20'000;

}  // namespace nvlsim
