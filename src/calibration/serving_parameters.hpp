// The free parameters of the serving fit: where each acts, and how it gets into a stack.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/stack/inference_profile.hpp"

namespace nvlsim {

/// One free parameter and where it acts. An empty member acts everywhere.
struct knob {
  enum class type { pooled, engine, release, expert_release, server } what;
  std::string field, architecture, engine, stack;
  std::optional<precision> format;
  bool routed_only = false;
};

/// As reports call it.
std::string name_of(const knob& k);
/// Whether the time of a row depends on it.
bool acts_on(const knob& k, const inference_row& r);
/// Costs that a parameter moves, by name.
std::vector<std::string> fields_of(const knob& k, const inference_row& r);
/// Puts its value into the profile of the stack `name`, all but a pooled one.
void apply_own(const std::string& name, inference_profile& p, const knob& k, double x);

/// A member of what servers add, in base units.
double get_server(const front_end_costs& f, const std::string& field);
void set_server(front_end_costs& f, const std::string& field, double x);

}  // namespace nvlsim
