// The free parameters of the serving fit: where each acts, and how it is applied to a stack.
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

/// The name of a parameter in reports.
std::string name_of(const knob& k);
/// Whether the time of a row depends on the parameter.
bool acts_on(const knob& k, const inference_row& r);
/// Names of the costs that a parameter changes for a row.
std::vector<std::string> fields_of(const knob& k, const inference_row& r);
/// Applies a parameter's value to the profile of the stack `name`. Ignores pooled parameters.
void apply_own(const std::string& name, inference_profile& p, const knob& k, double x);

/// A front-end cost by name, in base units.
double get_server(const front_end_costs& f, const std::string& field);
void set_server(front_end_costs& f, const std::string& field, double x);

}  // namespace nvlsim
