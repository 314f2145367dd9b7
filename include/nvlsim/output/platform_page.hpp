// What `platform show` says.
#pragma once

#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Totals, peaks dense and sparse, memory nominal and usable, links, rack, fabric, power, price and where each
/// number of `doc` (as left by `read_platform`) was published, for a terminal of 80 columns.
std::string platform_page(const platform& p, const config::document& doc);

/// The same as a document (schema "nvlsim.platform_page/1") in plain SI numbers.
value platform_json(const platform& p, const config::document& doc);

}  // namespace nvlsim
