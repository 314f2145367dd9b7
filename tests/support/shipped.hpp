// Shipped scenarios, with overrides.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/scenario/scenario.hpp"
#include "support/root.hpp"

namespace nvlsim::test {

/// `name` is a path below scenarios/ without its ".json".
inline scenario shipped_scenario(const std::string& name, const std::vector<override_option>& sets = {}) {
  return load_scenario(root / "scenarios" / (name + ".json"), sets, folders_under(root));
}

}  // namespace nvlsim::test
