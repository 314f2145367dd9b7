// Actors whose exceptions reach the caller of the simulation.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "simulator/compat.hpp"

namespace nvlsim::simulator {

/// Adds an actor that keeps its exception in `first_error`, unless one is there, and then calls `failed`: one that
/// left an actor would end the process. `first_error` must outlive the simulation.
template <class Body, class Failed>
compat::sg4::ActorPtr add_guarded_actor(compat::sg4::Host* host, const std::string& name,
                                        std::exception_ptr& first_error, Body body, Failed failed) {
  return compat::add_actor(host, name, [&first_error, body = std::move(body), failed = std::move(failed)] {
    try {
      body();
    } catch (const simgrid::ForcefulKillException&) {
      throw;  // SimGrid uses it to unwind actors, as those of a deadlock
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
      failed();
    }
  });
}
template <class Body>
compat::sg4::ActorPtr add_guarded_actor(compat::sg4::Host* host, const std::string& name,
                                        std::exception_ptr& first_error, Body body) {
  return add_guarded_actor(host, name, first_error, std::move(body), [] {});
}

}  // namespace nvlsim::simulator
