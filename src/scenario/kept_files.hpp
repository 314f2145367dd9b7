// Files that are read once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/scenario/scenario_digest.hpp"

namespace nvlsim {

/// Values by what they were read from. Those with problems are not kept, so that each reading reports them.
template <class T>
class kept_values {
 public:
  /// The value of `key`, from `read(problems)` unless it is kept.
  template <class Read>
  std::shared_ptr<const T> get(const std::string& key, diagnostics& problems, Read read) {
    {
      const std::lock_guard lock(looking_);
      if (const auto at = known_.find(key); at != known_.end()) return at->second;
    }
    diagnostics own;
    auto out = std::make_shared<const T>(read(own));
    if (own.empty()) {
      const std::lock_guard lock(looking_);
      return known_.try_emplace(key, std::move(out)).first->second;
    }
    for (problem& p : own.sorted()) problems.add(std::move(p));
    return out;
  }

 private:
  std::mutex looking_;
  std::map<std::string, std::shared_ptr<const T>> known_;
};

struct kept_files {
  kept_values<config::document> documents;
  kept_values<known_stack> stacks;
  kept_values<loaded<nvlsim::platform>> platforms;
  kept_values<loaded<nvlsim::model>> models;
};

/// A document, kept if files are.
template <class Find>
config::document kept_document(const data_folders& data, const std::string& key, diagnostics& problems,
                               Find find) {
  return data.kept ? *data.kept->documents.get(key, problems, find) : find(problems);
}

}  // namespace nvlsim
