// Names of enumerators, as a scenario spells them.
#pragma once

#include <cstddef>
#include <string>

namespace nvlsim {

/// The name of `x` in the table of its enumeration's names.
template <class E, class Names>
const std::string& named(E x, const Names& names) {
  return names[static_cast<std::size_t>(x)];
}

}  // namespace nvlsim
