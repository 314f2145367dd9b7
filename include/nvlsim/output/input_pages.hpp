// What `platform show`, `stack show` and `model show` print.
#pragma once

#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

/// Totals, dense and sparse peaks, nominal and usable memory, links, rack, fabric, power, price, and the source of
/// each number in `doc` (as left by `read_platform`). Text for a terminal of 80 columns.
std::string platform_page(const platform& p, const config::document& doc);
/// The same as JSON (schema "nvlsim.platform_page/1") in plain SI numbers.
value platform_json(const platform& p, const config::document& doc);

/// The files of all parts, then every member in force with its file, for a terminal of 80 columns. Without a
/// machine, tables by GPU, NVLink generation, fabric and kernel are named only, with their files. `doc` is as left
/// by `read_stack`; `releases` the "releases" of a framework's file, printed side by side with what their details
/// say, or null. The kind of a value that the user set is "what-if".
std::string stack_page(const stack& s, const config::document& doc, const platform* machine,
                       const value& releases);
/// The same members, of all hardware without a machine, and the merged stack, which is a stack file (schema
/// "nvlsim.stack_page/1").
value stack_json(const stack& s, const config::document& doc, const platform* machine);

/// A stack with its document, as left by `read_stack`.
struct shown_stack {
  const stack& content;
  const config::document& source;
};
/// The members in force that differ between two stacks, side by side ("-" where a stack lacks one), for a terminal
/// of 80 columns; with a machine, only what applies to it.
std::string stack_difference_page(const shown_stack& a, const shown_stack& b, const platform* machine);
/// The same as JSON (schema "nvlsim.stack_difference/1"): of each member the pointer, two values and their files.
value stack_difference_json(const shown_stack& a, const shown_stack& b, const platform* machine);

/// Shape, parameters by part, training FLOPs and bytes by precision, as text for a terminal of 80 columns.
std::string model_page(const model& m);
/// The same as JSON (schema "nvlsim.model_page/1").
value model_json(const model& m);

}  // namespace nvlsim
