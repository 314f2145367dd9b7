#include "serving/prefix_cache.hpp"

namespace nvlsim {

std::size_t prefix_cache::hits(std::span<const name> names) const {
  std::size_t n = 0;
  while (n < names.size() && known_.contains(names[n])) ++n;
  return n;
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
  const auto [at, is_new] = known_.try_emplace(n);
  if (is_new) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.emplace_back();
    }
    at->second = unused_.back();
    unused_.pop_back();
    nodes_[at->second] = {1, none, none, n};
    return state::absent;
  }
  if (nodes_[at->second].holders++ > 0) return state::held;
  unlink(at->second);
  return state::idle;
}

bool prefix_cache::release(name n) {
  const std::uint32_t i = known_.at(n);
  if (--nodes_[i].holders > 0) return false;
  append(i);
  return true;
}

prefix_cache::name prefix_cache::evict() {
  const std::uint32_t i = oldest_;
  unlink(i);
  known_.erase(nodes_[i].id);
  unused_.push_back(i);
  return nodes_[i].id;
}

}  // namespace nvlsim
