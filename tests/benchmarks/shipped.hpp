// Shipped scenarios for benchmarks, with overrides.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim::bench {

/// `name` is a path below scenarios/ without its ".json".
inline scenario shipped(const std::string& name, const std::vector<override_option>& overrides = {}) {
  const std::filesystem::path root = NVLSIM_SOURCE_DIR;
  return load_scenario(root / "scenarios" / (name + ".json"), overrides, folders_under(root));
}

}  // namespace nvlsim::bench
