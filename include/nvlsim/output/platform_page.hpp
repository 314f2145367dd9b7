// The output of `platform show`.
#pragma once

#include <string>

#include "nvlsim/config/document.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// Totals, dense and sparse peaks, nominal and usable memory, links, rack, fabric, power, price, and the source of
/// each number in `doc` (as left by `read_platform`). Text for a terminal of 80 columns.
std::string platform_page(const platform& p, const config::document& doc);

/// The same as JSON (schema "nvlsim.platform_page/1") in plain SI numbers.
value platform_json(const platform& p, const config::document& doc);

}  // namespace nvlsim
