// How communication takes its time.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace nvlsim {

enum class fidelity {
  closed,  ///< the modelled time, whatever else goes on
  flow,    ///< a flow per port, slowed by others on the same port
  exact,   ///< every chunk of the algorithm a flow of its own
};
inline const std::array<std::string, 3> fidelity_names = {"closed", "flow", "exact"};

}  // namespace nvlsim
