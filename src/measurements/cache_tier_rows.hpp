// Tables of prefix caches beyond HBM.
#pragma once

#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/tables.hpp"

namespace nvlsim {

/// Compares the ratio of TTFT with a tier to that without, of prompts that the tier holds whole.
std::vector<validation_record> validate_cache_tiers(const csv_table& t, const data_folders& data,
                                                    const progress& report);

}  // namespace nvlsim
