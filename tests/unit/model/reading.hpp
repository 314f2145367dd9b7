// Reads a model from text and keeps what was wrong.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "nvlsim/model/load.hpp"

namespace nvlsim::test {

struct outcome {
  model m;
  config::document doc;
  std::string problems;
};

inline outcome finish(config::document doc, diagnostics& problems) {
  outcome out;
  out.doc = std::move(doc);
  out.m = read_model(out.doc, "m", problems);
  for (const problem& p : problems.sorted()) out.problems += p.text() + "\n";
  return out;
}

inline outcome read(std::string_view text) {
  diagnostics problems;
  config::document doc =
      config::parse(text, {"model", "m.json"}, problems, config::root_type::object, config::literals::python);
  return finish(std::move(doc), problems);
}

inline std::string supported() { return fmt::format("supported: {}", fmt::join(supported_model_types(), ", ")); }

}  // namespace nvlsim::test
