// Profiles of fleets: what fails, and how jobs are saved and restarted, where a scenario does not say it.
#pragma once

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Fills members of `/workload` that the scenario lacks with those of the profile that `/workload/profile` names,
/// by default `usual_profile`: a file of `platforms/operations`, or a path. A null member stays absent. Adds
/// problems with the name and the file.
void fill_from_profile(config::document& scenario, const data_folders& data, diagnostics& problems);
inline constexpr const char* usual_profile = "nvl72-fleet";

}  // namespace nvlsim
