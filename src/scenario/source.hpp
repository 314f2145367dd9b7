// What a scenario was read from: documents, and the typed values that they gave.
#pragma once

#include <memory>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

struct scenario_source {
  config::document text;
  loaded<nvlsim::platform> hardware;
  std::shared_ptr<const known_stack> software = std::make_shared<const known_stack>();
  loaded<nvlsim::model> net;
  value workload;  ///< as `write_workload` has it
};

/// For results: resolved inputs, origin of each value that no file gave, digest.
value inputs_of(const scenario_source& from, const scenario& s);
/// The digest among these inputs: of the scenario's text, and of the digests of the files that it names.
std::string digest_of_inputs(const scenario_source& from, const scenario& s);
/// Appends the constants that a document has, whose pointers continue `prefix`.
void list_constants(const config::document& doc, const std::string& prefix, std::vector<input_constant>& out);

/// Workload, placement, degraded hardware and simulation options as a scenario's file would say them.
value write_workload(const scenario& s);

}  // namespace nvlsim
