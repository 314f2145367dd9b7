#include "nvlsim/model/attended_keys.hpp"

#include <algorithm>

namespace nvlsim {

double causal_pairs(double s, double window) { return window * (window + 1) / 2 + (s - window) * window; }

double chosen_keys(double chosen, double available) {
  const double kept = std::min(chosen, available);
  return available > 0 ? kept * (1 - kept / (2 * available)) : kept;
}

mean_keys keys_of(const layer_spec& l, double s) {
  mean_keys k;
  const bool pools = l.attention == attention_kind::compressed;
  if (pools && l.window > 0) k.window = causal_pairs(s, std::min(static_cast<double>(l.window), s)) / s;
  if (pools && l.compressed.ratio == 0) return k;
  const double available = pools ? s / static_cast<double>(l.compressed.ratio) : s;
  k.pooled = chosen_keys(l.sparse_keys > 0 ? static_cast<double>(l.sparse_keys) : available, available);
  k.scored = l.index_heads > 0 ? available / 2 : 0;
  return k;
}

bool attends_sparsely(const layer_spec& l, std::int64_t sequence) {
  return l.attention == attention_kind::compressed || (l.sparse_keys > 0 && l.sparse_keys < sequence);
}

}  // namespace nvlsim
