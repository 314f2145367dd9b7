// How closely communication is simulated.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace nvlsim {

enum class fidelity {
  closed,  ///< the modelled time, regardless of other traffic
  flow,    ///< a flow per port, which shares the port with other flows
  exact,   ///< a flow for every message of the algorithm
};
inline const std::array<std::string, 3> fidelity_names = {"closed", "flow", "exact"};

}  // namespace nvlsim
