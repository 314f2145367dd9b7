// Shipped model files, read without a problem.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "model/load.hpp"

namespace nvlsim::test {

inline const std::filesystem::path models_folder = std::filesystem::path(NVLSIM_SOURCE_DIR) / "scenarios/models";

inline model shipped(const std::string& name) {
  diagnostics problems;
  config::document doc = config::load_named(models_folder, "model", name, {"test", "/model", "", ""}, problems);
  problems.throw_if_any();
  model m = read_model(doc, name, problems);
  problems.throw_if_any();
  return m;
}

}  // namespace nvlsim::test
