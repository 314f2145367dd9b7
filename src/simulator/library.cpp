#include "nvlsim/simulator/library.hpp"

/// Found by its name, `simulator_entry`.
extern "C" const nvlsim::simulator_functions* nvlsim_simulator() {
  static const nvlsim::simulator_functions all{&nvlsim::simulate, &nvlsim::serve_by_actors,
                                               &nvlsim::simulate_jointly, &nvlsim::play_by_actors,
                                               &nvlsim::run_operation_by_actors};
  return &all;
}

namespace nvlsim {

void load_simulator() {}

}  // namespace nvlsim
