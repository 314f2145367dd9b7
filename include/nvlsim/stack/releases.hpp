// The table of a framework's releases: "releases" of a stack file. [docs/stack-format.md#releases]
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/config/document.hpp"

namespace nvlsim {

/// Members that a file says, and where it says them.
struct stack_layer {
  value own;
  config::origin by;
  std::string below = {};  ///< pointer in the file under which all of it stands
  std::vector<std::pair<std::string, std::string>> cells = {};  ///< pointer in a stack -> pointer in the file
};

/// Where the file says the member `pointer` of the layer.
std::string pointer_in_file(const stack_layer& l, const std::string& pointer);

/// Names of the rows, in file order; empty where there is no table or it is broken.
std::vector<std::string> release_names(const value& root);
/// Adds everything wrong with the form of the table of `root`, a file called `file`.
void check_releases(const value& root, const std::string& file, diagnostics& problems);
/// What release `name` says, the release that it builds on first. Requires a table without problems and with that
/// row; a chain of releases that comes back to itself is a problem. `by` is the origin of the file's own members.
std::vector<stack_layer> release_layers(const value& root, const std::string& name, const config::origin& by,
                                        diagnostics& problems);
/// Where the file says the member `pointer` of release `name`: in the row's cell, else under the release's
/// details.
std::string release_pointer(const value& root, std::string_view name, std::string_view pointer);

}  // namespace nvlsim
