// Plays loops of rollouts and updates on the simulation engine, SimGrid.
#pragma once

#include "nvlsim/post_training/loop.hpp"
#include "nvlsim/simulator/simulation.hpp"

namespace nvlsim {

/// Plays a loop with actors on the platform's hosts: one for each rollout engine, and the trainer. The record is
/// that of `play_by_queue`. Throws as `simulate`; the same rules for repeated calls hold.
loop_record play_by_actors(const loop_settings& s, const loop_prices& p, const platform& hardware);

}  // namespace nvlsim
