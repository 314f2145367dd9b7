// Builds JSON arrays.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim::output {

/// Applies `as_value` to each item, in order.
template <class T, class F>
value list_of(const std::vector<T>& items, F&& as_value) {
  value out{value::array{}};
  for (const T& i : items) out.items()->push_back(as_value(i));
  return out;
}

/// An array of strings.
inline value list_of(const std::vector<std::string>& texts) {
  return list_of(texts, [](const std::string& t) { return value{t}; });
}

}  // namespace nvlsim::output
