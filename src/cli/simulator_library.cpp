// The functions of the simulation engine in the program: they load the library that has them.
#include <dlfcn.h>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/simulator/library.hpp"

namespace nvlsim {
namespace {

const simulator_functions& simulator() {
  static const simulator_functions* const loaded = [] {
    void* const library =
        ::dlopen(simulator_file, RTLD_LAZY | RTLD_LOCAL);  // what is never called is never looked up
    if (library == nullptr) throw io_error(::dlerror());
    void* const entry = ::dlsym(library, simulator_entry);
    if (entry == nullptr) throw io_error(::dlerror());
    return reinterpret_cast<const simulator_functions* (*)()>(entry)();
  }();
  return *loaded;
}

}  // namespace

void load_simulator() { simulator(); }

timeline simulate(const plan& p, const platform& hardware, const simulation_options& options) {
  return simulator().simulate(p, hardware, options);
}

served_cases serve_by_actors(const std::vector<server_case>& cases, const platform& hardware,
                             const simulation_options& options) {
  return simulator().serve_by_actors(cases, hardware, options);
}

joint_outcome simulate_jointly(const plan& p, const std::vector<placed_servers>& servers,
                               const platform& hardware) {
  return simulator().simulate_jointly(p, servers, hardware);
}

loop_record play_by_actors(const loop_settings& s, const loop_prices& p, const platform& hardware) {
  return simulator().play_by_actors(s, p, hardware);
}

operation_outcome run_operation_by_actors(const operation_setup& setup, std::uint64_t seed,
                                          const platform& hardware) {
  return simulator().run_operation_by_actors(setup, seed, hardware);
}

}  // namespace nvlsim
