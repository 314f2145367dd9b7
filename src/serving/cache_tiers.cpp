#include "serving/cache_tiers.hpp"

#include <algorithm>

namespace nvlsim {

void block_store::put(prefix_cache::name n, std::vector<prefix_cache::name>& gone) {
  if (capacity_ == 0) {
    gone.push_back(n);
    return;
  }
  known_.hold(n);
  known_.release(n);
  while (known_.idle() > capacity_) gone.push_back(known_.evict());
}

std::size_t cache_tiers::hits(std::span<const prefix_cache::name> names) const {
  std::size_t n = 0;
  const auto stored = [&](const auto& s) { return s->has(names[n]); };
  while (n < names.size() && std::any_of(stores_.begin(), stores_.end(), stored)) ++n;
  return n;
}

double cache_tiers::fetch(std::span<const prefix_cache::name> names, std::vector<std::int64_t>& from) {
  double time_s = 0;
  std::vector<bool> used(stores_.size());
  std::vector<prefix_cache::name> gone;
  for (const prefix_cache::name n : names)
    for (std::size_t k = 0; k < stores_.size(); ++k) {
      if (!stores_[k]->has(n)) continue;
      stores_[k]->put(n, gone);
      time_s += (*tiers_)[k].block_s;
      from[k] += 1;
      used[k] = true;
      break;
    }
  for (std::size_t k = 0; k < used.size(); ++k)
    if (used[k]) time_s += (*tiers_)[k].latency_s;
  return time_s;
}

void cache_tiers::evicted(prefix_cache::name n) {
  if (tiers_->front().write == cache_write::back) put(0, n);
}

void cache_tiers::computed(prefix_cache::name n) {
  for (std::size_t k = 0; k < stores_.size(); ++k)
    if ((*tiers_)[k].write == cache_write::through) put(k, n);
}

/// What a tier has no room for goes to the next, if that is written to when blocks go.
void cache_tiers::put(std::size_t tier, prefix_cache::name n) {
  std::vector<prefix_cache::name> gone;
  stores_[tier]->put(n, gone);
  if (tier + 1 == stores_.size() || (*tiers_)[tier + 1].write != cache_write::back) return;
  for (const prefix_cache::name g : gone) put(tier + 1, g);
}

}  // namespace nvlsim
