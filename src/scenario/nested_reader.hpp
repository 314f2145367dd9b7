// Reading members of a scenario that are scenarios of their own: jobs, rollouts and updates.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/config/reader.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Where overrides address the stack and the model that a nested scenario names: "/jobs/0" for "/jobs/0/stack";
/// empty for those of the whole scenario.
struct nested_places {
  std::string stack, model;
};

/// Reads a scenario from a document; adds its problems.
using scenario_reader = std::function<scenario(config::document, const nested_places&, diagnostics&)>;

/// Members of a job's placement that only say which racks it has. The nested scenario does not see them.
inline constexpr std::array<std::string_view, 2> place_members = {"racks", "first_gpu"};

/// Where a pointer goes into the file that the member `file` ("/stack") names: "" for the scenario's own,
/// "/jobs/0" for that of a part, an object with a workload. Nothing if it does not.
std::optional<std::string> place_inside(const value& root, std::string_view pointer, std::string_view file);
/// Pointers of the members by which parts of a scenario name such a file: "/jobs/0/stack".
std::vector<std::string> names_in_parts(const value& root, const std::string& file);

struct nested_options {
  std::string name;                 ///< of the nested scenario
  std::optional<fidelity> network;  ///< replaces that of the whole scenario
};

/// Reads `r`, an object of `doc` with members of a scenario (stack, model, workload, placement, degraded), as a
/// scenario of its own: what it does not say is as in `doc`. Other members are left to the caller. Its problems
/// are added at the pointers of `doc`. Null if it has problems.
std::shared_ptr<const scenario> read_nested(config::reader& r, const config::document& doc,
                                            const nested_options& options, const scenario_reader& read_alone,
                                            diagnostics& problems);

}  // namespace nvlsim
