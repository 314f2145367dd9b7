// The simulation engine as a library, loaded when needed: loading SimGrid takes longer than most commands.
#pragma once

#include "nvlsim/simulator/operation_actors.hpp"
#include "nvlsim/simulator/post_training_actors.hpp"
#include "nvlsim/simulator/serving_actors.hpp"
#include "nvlsim/simulator/simulation.hpp"

namespace nvlsim {

/// The functions of the simulation engine.
struct simulator_functions {
  decltype(&nvlsim::simulate) simulate;
  decltype(&nvlsim::serve_by_actors) serve_by_actors;
  decltype(&nvlsim::simulate_jointly) simulate_jointly;
  decltype(&nvlsim::play_by_actors) play_by_actors;
  decltype(&nvlsim::run_operation_by_actors) run_operation_by_actors;
};

/// Name of the file, beside the program or in the folder of libraries that belongs to it.
inline constexpr const char* simulator_file = "nvlsim-simulator.so";
/// Name of the file's function that gives its functions: `const simulator_functions* nvlsim_simulator()`.
inline constexpr const char* simulator_entry = "nvlsim_simulator";

}  // namespace nvlsim
