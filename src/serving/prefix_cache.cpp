#include "serving/prefix_cache.hpp"

#include <algorithm>
#include <utility>

namespace nvlsim {

std::size_t prefix_cache::hits(std::span<const name> names) const {
  std::size_t n = 0;
  while (n < names.size() && table_[place_of(names[n])] != none) ++n;
  return n;
}

std::size_t prefix_cache::held(std::span<const name> names) const {
  return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [&](name n) {
    const std::uint32_t at = table_[place_of(n)];
    return at != none && nodes_[at].holders > 0;
  }));
}

void prefix_cache::grow() {
  const std::vector<std::uint32_t> old =
      std::exchange(table_, std::vector<std::uint32_t>(2 * table_.size(), none));
  --shift_;
  for (const std::uint32_t i : old)
    if (i != none) table_[place_of(nodes_[i].id)] = i;
}

/// Frees the place of a block, and moves those that follow nearer to their homes.
void prefix_cache::forget(name n) {
  const std::size_t mask = table_.size() - 1;
  std::size_t free = place_of(n);
  for (std::size_t at = (free + 1) & mask; table_[at] != none; at = (at + 1) & mask) {
    ++looked_at_;
    const std::size_t home = home_of(nodes_[table_[at]].id);
    if (((at - home) & mask) < ((at - free) & mask)) continue;
    table_[free] = table_[at];
    free = at;
  }
  table_[free] = none;
  --known_;
}

void prefix_cache::unlink(std::uint32_t i) {
  node& x = nodes_[i];
  (x.before == none ? oldest_ : nodes_[x.before].after) = x.after;
  (x.after == none ? newest_ : nodes_[x.after].before) = x.before;
  x.before = x.after = none;
  --idle_;
}

void prefix_cache::append(std::uint32_t i) {
  node& x = nodes_[i];
  x.before = newest_;
  x.after = none;
  (newest_ == none ? oldest_ : nodes_[newest_].after) = i;
  newest_ = i;
  ++idle_;
}

prefix_cache::state prefix_cache::hold(name n) {
  if (2 * (known_ + 1) > table_.size()) grow();
  std::uint32_t& at = table_[place_of(n)];
  if (at == none) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.emplace_back();
    }
    at = unused_.back();
    unused_.pop_back();
    nodes_[at] = {1, none, none, n};
    ++known_;
    return state::absent;
  }
  if (nodes_[at].holders++ > 0) return state::held;
  unlink(at);
  return state::idle;
}

bool prefix_cache::release(name n) {
  const std::uint32_t i = table_[place_of(n)];
  if (--nodes_[i].holders > 0) return false;
  append(i);
  return true;
}

prefix_cache::name prefix_cache::evict() {
  const std::uint32_t i = oldest_;
  unlink(i);
  forget(nodes_[i].id);
  unused_.push_back(i);
  return nodes_[i].id;
}

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
