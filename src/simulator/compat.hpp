// Calls that differ between SimGrid 3.32 and 4.1, except those for zones, which are in simulator/simgrid_zone.cpp.
#pragma once

#include <simgrid/s4u.hpp>
// Must follow s4u.hpp: on its own it does not compile with SimGrid 3.32.
#include <simgrid/version.h>

#include <string>
#include <utility>

namespace nvlsim::simulator::compat {

namespace sg4 = simgrid::s4u;

#if SIMGRID_VERSION >= 40100
template <class Body>
sg4::ActorPtr add_actor(sg4::Host* host, const std::string& name, Body body) {
  return host->add_actor(name, std::move(body));
}
#else
template <class Body>
sg4::ActorPtr add_actor(sg4::Host* host, const std::string& name, Body body) {
  return sg4::Actor::create(name, host, std::move(body));
}
#endif

// Renamed in SimGrid 3.34.
#if SIMGRID_VERSION >= 33400
inline constexpr const char* timing_precision = "precision/timing";
inline constexpr const char* work_precision = "precision/work-amount";
#else
inline constexpr const char* timing_precision = "surf/precision";
inline constexpr const char* work_precision = "maxmin/precision";
#endif

}  // namespace nvlsim::simulator::compat
