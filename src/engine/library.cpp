#include "nvlsim/engine/library.hpp"

/// Found by its name, `engine_entry`.
extern "C" const nvlsim::engine_functions* nvlsim_engine() {
  static const nvlsim::engine_functions all{&nvlsim::simulate, &nvlsim::serve_by_actors, &nvlsim::simulate_jointly,
                                            &nvlsim::play_by_actors, &nvlsim::run_operation_by_actors};
  return &all;
}

namespace nvlsim {

void load_engine() {}

}  // namespace nvlsim
