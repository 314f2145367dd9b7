// What each rack of a cluster did over the time of a run, for traces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nvlsim {

/// `works`: the job is on it. `lent`: the job is on it and began elsewhere. `spare`: the job is not on it. `down`:
/// all of its trays are broken.
enum class rack_use { works, lent, spare, down };
inline constexpr std::array<std::string_view, 4> rack_use_names = {"job", "lent", "spare", "down"};

/// A stretch of a rack's time in which nothing about it changes.
struct rack_stretch {
  std::int32_t rack = 0;
  double begin = 0, end = 0;
  rack_use use = rack_use::spare;
  std::int32_t broken = 0;      ///< trays
  std::int32_t component = -1;  ///< that broke the last of them; -1: none is broken
};
/// The most stretches of a run that are kept, the first ones; each rack's last one is kept too.
inline constexpr std::size_t most_rack_stretches = 20'000;

/// The present stretch of each rack, and those that are over.
struct rack_log {
  std::vector<rack_stretch> now, over;  ///< `now`: by rack; empty: nothing is noted
  std::vector<bool> first;              ///< by rack: the job began there
  bool full = false;                    ///< stretches are missing
};

}  // namespace nvlsim
