// Quantities as text: "900 GB/s" in input files, short SI forms in tables.
#pragma once

#include <string>
#include <string_view>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// The result of parsing a quantity. `error` is empty on success, else a phrase to follow the name of the input.
struct parsed_quantity {
  double base = 0;
  std::string error;
  bool ok() const { return error.empty(); }
};

/// Parses `"<number> <unit>"` of the wanted dimension. Case counts: `b` is bits and `B` bytes, `GB` is 1e9
/// and `GiB` 2^30. A bare number is an error. Independent of the locale; never returns a non-finite number.
parsed_quantity parse_quantity(std::string_view text, dimension wanted);

/// The name of a dimension in messages: "a bandwidth such as \"900 GB/s\"".
std::string describe(dimension d);

/// `text` in double quotes for a message, truncated after about 60 bytes.
std::string in_quotes(std::string_view text);

/// Four significant digits with an SI prefix: "900 GB/s", "5.013 s", "1.08 EFLOPS". Zero and money
/// have no prefix: "98.32 USD/h".
std::string format_quantity(double base, dimension d);

/// The quantity of a text with four significant digits, in its own unit where that gives a number from 1 to 9999:
/// "1.818 us", "298 GB" of "298013687808 B". A text that is no quantity stays as it is.
std::string short_quantity(std::string_view text);

/// A text that parses to exactly this number, with the prefix that makes it shortest: "50 GB/s".
std::string exact_quantity(double base, dimension d);

template <class D>
std::string format_quantity(quantity<D> q) {
  return format_quantity(q.base(), D::value);
}
/// Unrecorded: a text.
template <class D>
std::string format_quantity(const constant<quantity<D>>& q) {
  return format_quantity(q.peek());
}

}  // namespace nvlsim
