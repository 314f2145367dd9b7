// Numbers as text: exact for machines, scaled for people.
#pragma once

#include <string>
#include <string_view>

#include "nvlsim/config/value.hpp"

namespace nvlsim::output {

/// Appends 12 significant digits, always recognisable as a floating-point number ("5.0"). Requires a finite
/// number.
void append_number(std::string& out, double d);
std::string number_text(double d);

inline bool is_number(const value& v) { return v.number() || v.integer(); }
/// Whether `v` is a number or an integer, then in `out`.
bool as_double(const value& v, double& out);

/// A value in the unit that its key ends with, scaled: ("step_time_s", 0.0123) is "12.3 ms",
/// ("mfu", 0.4) "40 %", ("memory_peak_bytes", 2e11) "200 GB". Numbers of an unknown unit have six digits.
std::string scaled(std::string_view key, double v);
/// The same for any scalar: "-" for null, "yes" and "no", text as it is.
std::string scaled(std::string_view key, const value& v);

/// "+2.35 %", "0 %" when nothing changed.
std::string percent_change(double fraction);

}  // namespace nvlsim::output
