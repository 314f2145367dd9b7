// The actors of sleepers.cpp and of `sleepers_raw_simgrid`.
#pragma once

#include <cstdint>
#include <simgrid/s4u.hpp>

namespace nvlsim {

/// What actor `number` does: sleeps so many times, by steps of its own.
inline auto sleeper(std::int64_t number, std::int64_t sleeps) {
  return [number, sleeps] {
    for (std::int64_t i = 0; i < sleeps; ++i)
      simgrid::s4u::this_actor::sleep_for(1e-3 + 1e-6 * static_cast<double>(number));
  };
}

}  // namespace nvlsim
