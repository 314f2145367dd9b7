// How many keys the queries of a layer attend to.
#pragma once

#include <cstdint>

#include "nvlsim/model/model.hpp"

namespace nvlsim {

/// Causal (query, key) pairs of a sequence of `s` tokens: a query attends to itself and at most `window` - 1
/// earlier keys. Requires a window of at most `s`.
double causal_pairs(double s, double window);

/// Mean keys of a query that takes at most `chosen` of the keys before it, `available` at the end of the sequence.
/// While there are fewer, it has half of them on average.
double chosen_keys(double chosen, double available);

/// Mean keys per query over a sequence of `s` tokens, in layers with selected, pooled or windowed keys.
struct mean_keys {
  double window = 0;  ///< nearest keys
  double pooled = 0;  ///< selected or pooled keys further back
  double scored = 0;  ///< keys that an indexer scores
};
mean_keys keys_of(const layer_spec& l, double s);
/// Whether queries attend to fewer keys than there are. Otherwise an indexer has nothing to select.
bool attends_sparsely(const layer_spec& l, std::int64_t sequence);

}  // namespace nvlsim
