#include "nvlsim/units/constant.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

namespace nvlsim {
namespace {

/// A name, or the ids of the constants that it stands for.
struct entry {
  std::string name;
  std::vector<constant_id> sources;
};

struct registry {
  std::mutex looking;
  std::deque<entry> entries = std::deque<entry>(1);  // by id
  std::map<std::string, constant_id, std::less<>> by_name;
  std::map<std::vector<constant_id>, constant_id> by_sources;
};
registry& all() {
  static registry r;
  return r;
}

}  // namespace

constant_id constant_named(std::string_view name) {
  registry& r = all();
  const std::lock_guard lock(r.looking);
  if (const auto known = r.by_name.find(name); known != r.by_name.end()) return known->second;
  const auto id = static_cast<constant_id>(r.entries.size());
  r.entries.push_back({std::string(name), {}});
  r.by_name.emplace(name, id);
  return id;
}

void constant_recorder::add(constant_id id) {
  if (id >= seen_.size()) seen_.resize(2 * id + 64);
  if (seen_[id]) return;
  seen_[id] = true;
  registry& r = all();
  const std::vector<constant_id>* sources = nullptr;
  {
    const std::lock_guard lock(r.looking);
    sources = &r.entries[id].sources;  // entries stay where they are, and as they are
  }
  for (const constant_id source : *sources) add(source);
}

std::vector<std::string> constant_recorder::names() const {
  registry& r = all();
  const std::lock_guard lock(r.looking);
  std::vector<std::string> out;
  for (std::size_t id = 0; id < seen_.size(); ++id)
    if (seen_[id] && r.entries[id].sources.empty()) out.push_back(r.entries[id].name);
  std::sort(out.begin(), out.end());
  return out;
}

constant_id constant_recorder::together() const {
  registry& r = all();
  const std::lock_guard lock(r.looking);
  std::vector<constant_id> sources;
  for (std::size_t id = 0; id < seen_.size(); ++id)
    if (seen_[id] && r.entries[id].sources.empty()) sources.push_back(static_cast<constant_id>(id));
  if (sources.empty()) return 0;
  if (sources.size() == 1) return sources.front();
  const auto [at, fresh] = r.by_sources.try_emplace(sources, static_cast<constant_id>(r.entries.size()));
  if (fresh) r.entries.push_back({{}, sources});
  return at->second;
}

}  // namespace nvlsim
