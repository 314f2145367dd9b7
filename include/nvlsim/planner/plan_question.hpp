// What every plan is asked, and how it says how far it is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// A scenario in the making: its text, and overrides of files that a scenario cannot hold.
struct plan_base {
  value text;                              ///< as a file would have it
  std::vector<override_option> overrides;  ///< of the stack and the model
  data_folders data;
  std::vector<std::string> set = {};  ///< pointers in `text` that overrides wrote
  std::string file = {};              ///< the scenario's; empty: a plan's arguments make all of the text
  value said = {};                    ///< what that file says, by usual names
};

/// The base of a plan that starts from a scenario file with this text.
plan_base base_of_file(value text, std::string file, data_folders data);

/// How a plan is watched and stopped. `report` is called by one thread at a time.
struct plan_watch {
  std::function<void(std::string_view stage, std::int64_t done, std::int64_t all)> report;
  std::function<bool()> stop;  ///< polled between runs; once true, the plan gives what it has

  bool stopped() const { return stop && stop(); }
};

/// Puts overrides into the text of a scenario, in order: those of the platform under `/platform/set`, those of a
/// stack or a model into `overrides`. Members get their usual names, so that what a plan writes replaces them.
/// Adds a pointer that leads nowhere to `problems`.
void apply_to(plan_base& base, const std::vector<override_option>& sets, diagnostics& problems);

/// Reads the scenario as it stands, with `more` written over it. Problems of what an override wrote are those of
/// "--set", with the override's pointer; those of what the scenario's file says name the file, all others the
/// "command line".
scenario read_base(const plan_base& base, const std::vector<std::pair<std::string, value>>& more = {});
/// The text with values written at JSON pointers; null removes a member.
value with_members(value text, const std::vector<std::pair<std::string, value>>& more);

}  // namespace nvlsim
