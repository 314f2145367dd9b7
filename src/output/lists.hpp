// Lists of values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"

namespace nvlsim::output {

/// What `as_value` makes of each item, in order.
template <class T, class F>
value list_of(const std::vector<T>& items, F&& as_value) {
  value out{value::array{}};
  for (const T& i : items) out.items()->push_back(as_value(i));
  return out;
}

/// Texts as they are.
inline value list_of(const std::vector<std::string>& texts) {
  return list_of(texts, [](const std::string& t) { return value{t}; });
}

}  // namespace nvlsim::output
