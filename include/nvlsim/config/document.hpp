// A parsed JSON file, with the origin of its values: base files, overrides, defaults, provenance.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::config {

/// The origin of a value. Results show `label`, which has no paths; messages show `where`.
struct origin {
  std::string label;       ///< "scenario", "platform gb300-nvl72", "--set", "default"
  std::string where;       ///< the file as the user named it, or "--set"
  bool overrides = false;  ///< set by the user over the file; its numbers need no source
  std::string at = {};     ///< its pointer in the file, if the file has it elsewhere; else ""
};

/// The source of a number: read from `{"value": ..., "source": ..., "kind": ...}`.
struct provenance {
  std::string pointer;
  std::string text;    ///< the value as written
  std::string kind;    ///< "measured", "vendor", "derived" or "assumed"
  std::string source;  ///< the source in full
};

struct document {
  value root;
  origin self;                            ///< origin of every value that `origins` does not name
  std::map<std::string, origin> origins;  ///< pointer -> origin, for the subtree below it
  std::vector<value::member> defaults;  ///< pointer -> value taken because the file is silent (filled by readers)
  std::vector<provenance> sources;      ///< filled by readers
  std::map<std::string, std::string> spelled;  ///< pointer -> that of the other spelling used (filled by readers)
  std::set<std::string> replaced;  ///< members that an override in another spelling replaces (filled by readers)

  /// Origin of the value at `pointer`: its own or that of its nearest ancestor, else `self`.
  const origin& origin_of(std::string_view pointer) const;
  /// `root` with the defaults filled in and without what is replaced: the input as it was understood.
  value resolved() const;
};

inline constexpr std::size_t max_document_bytes = std::size_t{64} << 20;
inline constexpr int max_document_depth = 64;

enum class root_type { object, any };

/// Accepted literals. `python` also reads the bare `Infinity`, `-Infinity` and `NaN` of Python's json module as
/// null. Published model files have them in members that nvlsim does not use.
enum class literals { json, python };

/// Parses JSON text. Adds syntax errors (with line and column), duplicate keys, excessive depth and, unless
/// `wanted` is `any`, a root that is not an object to `problems`. The document is then incomplete and must not be
/// used.
document parse(std::string_view text, origin self, diagnostics& problems, root_type wanted = root_type::object,
               literals accepted = literals::json);

/// Reads and parses a file. Throws io_error if it cannot be read. A file larger than `max_document_bytes` is a
/// problem.
document load(const std::filesystem::path& path, origin self, diagnostics& problems,
              literals accepted = literals::json);

/// An input by name. `what` is "platform", "stack" or "model"; `asked_by` locates the name in the file that asked
/// for it.
struct named_input {
  std::string_view what, name;
  const problem& asked_by;
};
struct load_options {
  literals accepted = literals::json;
  std::filesystem::path shipped = {};  ///< where bases are looked for that the folder lacks
};

/// Finds `NAME.json` in `folder`, follows its `"base"` chain in the same folder and then in the shipped one (a
/// file's own members are merged over those of its base, RFC 7386) and returns the merged document. An unknown
/// name is a problem that lists the nearest.
document load_named(const std::filesystem::path& folder, const named_input& input, diagnostics& problems,
                    const load_options& options = {});

/// Sorted names of the `*.json` files in a folder; empty if the folder does not exist.
std::vector<std::string> names_in(const std::filesystem::path& folder);
/// Whether `name` can be the name of a file: not empty, and no path.
bool is_name(std::string_view name);
/// Adds that there is no such input, with the nearest of `names`. `listed_by` is the command that lists them.
void add_unknown(const named_input& input, const std::vector<std::string>& names, std::string_view listed_by,
                 diagnostics& problems);

/// Merges the members of `patch` over the document (RFC 7386: null removes; a number with its source is replaced
/// as a whole). They then come from `by`, whose file has them below the pointer `below`.
void merge(document& into, const value& patch, const origin& by, std::string_view below = {});
/// Gives a problem the pointer that its file has for it.
void relocate(problem& p, const document& doc);

/// Writes `text`, as JSON if it parses and else as a string, at `pointer`. Creates members, but no elements beyond
/// the end of an array. A pointer that does not begin with "/" or leads through a scalar is a problem.
void override_value(document& doc, std::string_view pointer, std::string_view text, const origin& by,
                    diagnostics& problems);
void override_value(document& doc, std::string_view pointer, value v, const origin& by, diagnostics& problems);

/// Parses one JSON value. Text that is not JSON becomes a string.
value parse_scalar(std::string_view text);

}  // namespace nvlsim::config
