// Maps measured systems and releases to shipped platforms and stacks.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Loads each shipped input once. Thread-safe.
class input_cache {
 public:
  explicit input_cache(const data_folders& data) : data_(data) {}
  /// These throw input_error with the reason if the input cannot be loaded.
  const platform& platform_named(const std::string& name);
  const stack& stack_named(const std::string& name);
  const model& model_named(const std::string& name);
  const data_folders& folders() const { return data_; }

 private:
  data_folders data_;
  std::mutex loading_;
  std::map<std::string, platform> platforms_;
  std::map<std::string, stack> stacks_;
  std::map<std::string, model> models_;
};

/// The platform for a `system` of training.csv or inference.csv ("gb300"). "" if unknown.
std::string_view platform_of_system(std::string_view system);

}  // namespace nvlsim
