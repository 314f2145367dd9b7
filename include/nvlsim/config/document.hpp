// A parsed JSON file with what happened to it on the way: base files, overrides, defaults, provenance.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::config {

/// Where a value came from. `label` goes into results (no paths), `where` into messages.
struct origin {
  std::string label;       ///< "scenario", "platform gb300-nvl72", "--set", "default"
  std::string where;       ///< the file as the user named it, or "--set"
  bool overrides = false;  ///< written over the file by the user: a number then needs no source
  std::string at = {};     ///< its pointer there, where the file has it in another place; "" where it is the same
};

/// A number with where it was published: read from `{"value": ..., "source": ..., "kind": ...}`.
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

  /// Origin of the value at `pointer`: of its nearest ancestor that has one, else `self`.
  const origin& origin_of(std::string_view pointer) const;
  /// `root` with the defaults filled in: the input as it was understood.
  value resolved() const;
};

inline constexpr std::size_t max_document_bytes = std::size_t{64} << 20;
inline constexpr int max_document_depth = 64;

enum class root_type { object, any };

/// What may stand for a value. `python` also takes the bare `Infinity`, `-Infinity` and `NaN` that Python's json
/// module writes, as null: published model files have them where nvlsim does not look.
enum class literals { json, python };

/// Parses JSON text. Syntax errors (with line and column), duplicate keys, excessive depth and a root that is no
/// object (unless any will do) are added to `problems`; the document is then incomplete and must not be used.
document parse(std::string_view text, origin self, diagnostics& problems, root_type wanted = root_type::object,
               literals accepted = literals::json);

/// Reads and parses a file. Throws io_error when it cannot be read; a file over `max_document_bytes` is a problem.
document load(const std::filesystem::path& path, origin self, diagnostics& problems,
              literals accepted = literals::json);

/// Finds `NAME.json` in `folder`, follows its `"base"` chain in the same folder and then in `shipped` (a file's
/// own members are merged over those of its base, RFC 7386) and returns the merged document. An unknown name is a
/// problem that lists the nearest. `what` is "platform", "stack" or "model"; `asked_by` locates the name in the
/// file that asked for it.
document load_named(const std::filesystem::path& folder, std::string_view what, std::string_view name,
                    const problem& asked_by, diagnostics& problems, literals accepted = literals::json,
                    const std::filesystem::path& shipped = {});

/// Names of the `*.json` files of a folder, sorted; empty when there is no such folder.
std::vector<std::string> names_in(const std::filesystem::path& folder);
/// Whether `name` can be the name of a file: not empty, and no path.
bool is_name(std::string_view name);
/// Adds that there is no such thing as `name`, with the nearest of `names`. `listed_by` is the command that lists
/// them.
void add_unknown(std::string_view what, std::string_view name, const std::vector<std::string>& names,
                 std::string_view listed_by, const problem& asked_by, diagnostics& problems);

/// Merges the members of `patch` over the document (RFC 7386: null removes; a number with its source is replaced
/// as a whole). They then come from `by`, whose file has them below the pointer `below`.
void merge(document& into, const value& patch, const origin& by, std::string_view below = {});
/// Gives a problem the pointer that its file has for it.
void relocate(problem& p, const document& doc);

/// Writes `text` (JSON, else taken as a string) at `pointer`, creating members but not array elements past the
/// end. A pointer that does not begin with "/" or steps through a scalar is a problem.
void override_value(document& doc, std::string_view pointer, std::string_view text, const origin& by,
                    diagnostics& problems);
void override_value(document& doc, std::string_view pointer, value v, const origin& by, diagnostics& problems);

/// Parses one JSON value from text; text that is no JSON is a string.
value parse_scalar(std::string_view text);

}  // namespace nvlsim::config
