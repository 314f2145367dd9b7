// Names of measured systems and releases, and the shipped platform or stack that stands for each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Loads shipped inputs once each. A failure to load is remembered and thrown again as input_error.
class input_cache {
 public:
  explicit input_cache(const data_folders& data) : data_(data) {}
  /// Throw input_error with the reason when there is no such input.
  const platform& platform_named(const std::string& name);
  const stack& stack_named(const std::string& name);
  const model& model_named(const std::string& name);
  const data_folders& folders() const { return data_; }

 private:
  data_folders data_;
  std::map<std::string, platform> platforms_;
  std::map<std::string, stack> stacks_;
  std::map<std::string, model> models_;
};

/// Platform of a `system` of training.csv or inference.csv ("gb300"); "" when there is none.
std::string_view platform_of_system(std::string_view system);

}  // namespace nvlsim
