// Formats numbers: exact for machines, scaled for people.
#pragma once

#include <string>
#include <string_view>

#include "nvlsim/config/value.hpp"

namespace nvlsim::output {

/// Appends `d` with 12 significant digits, always recognisable as floating point ("5.0"). Requires a finite
/// number.
void append_number(std::string& out, double d);
std::string number_text(double d);

inline bool is_number(const value& v) { return v.number() || v.integer(); }
/// Stores `v` in `out` and returns true if `v` is a number or an integer.
bool as_double(const value& v, double& out);

/// A value scaled in the unit at the end of its key: ("step_time_s", 0.0123) gives "12.3 ms", ("mfu", 0.4) "40 %",
/// ("memory_peak_bytes", 2e11) "200 GB". Numbers of unknown unit have six digits.
std::string scaled(std::string_view key, double v);
/// The same for any scalar: null gives "-", booleans "yes" or "no", strings themselves.
std::string scaled(std::string_view key, const value& v);

/// A count with its unit, in groups of three digits: "4,194,304 tokens"; from ten million on with an SI prefix:
/// "831.2 Mtokens". Without a unit "24,576" and "12.3 M".
std::string counted(double v, std::string_view unit);

/// A relative change as "+2.35 %", or "0 %" for no change.
std::string percent_change(double fraction);

}  // namespace nvlsim::output
