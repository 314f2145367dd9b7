// A stack's document from its parts: libraries of kernels, collectives, serving and training costs, what a
// framework's releases have in common, and one release. [docs/stack-format.md#composition]
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/document.hpp"

namespace nvlsim {

/// A part of a stack: the member that names its library, which is also the folder of such libraries, and the
/// members that a library holds.
struct stack_part {
  std::string_view name;
  std::array<std::string_view, 2> sections;
};
/// In the order in which they are merged; only "sources" can meet.
inline constexpr std::array<stack_part, 4> stack_parts = {{{"collectives", {"collectives"}},
                                                           {"kernels", {"kernels", "kernel_spreads"}},
                                                           {"serving", {"inference"}},
                                                           {"training", {"training"}}}};

/// Where a stack's name leads.
struct stack_place {
  std::filesystem::path file;
  std::string release;  ///< a row of the file's table, or ""
};

/// Finds `NAME.json` in the folder or in its folders of libraries. FRAMEWORK-REL is also release REL in
/// FRAMEWORK.json; a file that cannot be parsed is taken to have the release.
std::optional<stack_place> find_stack(const std::filesystem::path& folder, std::string_view name);
/// Every name that find_stack knows, sorted.
std::vector<std::string> stack_names(const std::filesystem::path& folder);
/// Names of the stacks of a file: its own and, of a framework, its releases.
std::vector<std::string> stacks_of(const std::filesystem::path& file);
/// What the file, or its row, says of the stack in a line.
std::string stack_description(const stack_place& place);
/// The "releases" of the framework that `name` is, or null.
value releases_of(const std::filesystem::path& folder, std::string_view name);
/// Every JSON file that stacks of the folder may be composed of.
std::vector<std::filesystem::path> stack_files_in(const std::filesystem::path& folder);

/// Another library in the place of a part, by name or path.
struct part_swap {
  std::string part, library;
  config::origin by;
  std::string written_at;  ///< pointer for messages
};

struct compose_options {
  std::filesystem::path shipped = {};  ///< where bases and libraries are looked for that the folder lacks
  std::vector<part_swap> swaps = {};
  std::string_view left_out = {};  ///< a part whose library is not read
};

/// The document of the stack `name`: the parts in the order of `stack_parts`, each of them the sections of its
/// library alone, over them what "base" names, the file's own members, and the release (RFC 7386 each). Bases and
/// libraries are looked for beside the file that names them, then in `shipped`. Unknown names and circles are
/// problems where the name is written; `asked_by` locates `name`. An unknown stack, or one whose files cannot be
/// parsed, gives an empty document.
config::document compose_stack(const std::filesystem::path& folder, std::string_view name, const problem& asked_by,
                               diagnostics& problems, const compose_options& options = {});

}  // namespace nvlsim
