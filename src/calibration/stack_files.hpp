// Stack files as fits rewrite them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/config/document.hpp"

namespace nvlsim {

/// Stack files with new numbers: each number goes into the file that says it for the stack, of a release into the
/// table of its framework.
class stack_files {
 public:
  explicit stack_files(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Sets the member `pointer` of the stack `name`, whatever it was.
  void set(const std::string& name, const std::string& pointer, value v);
  /// Sets a number, or a quantity from its text. One with a source of its own keeps it; one without takes that of
  /// the objects around it.
  void set_number(const std::string& name, const std::string& pointer, const std::string& text);
  /// The same, with `source` where the file gives none for the number.
  void set_number_from(const std::string& name, const std::string& pointer, const std::string& text,
                       std::string_view source);
  /// What the file says at `pointer` for this stack itself, or nullptr.
  const value* find(const std::string& name, const std::string& pointer);

  /// Files that were changed, by their path in the folder of stacks. Throws input_error when one could not be
  /// read.
  std::vector<std::pair<std::string, std::string>> texts() const;

 private:
  struct place {
    config::document* file;
    std::string pointer;
  };
  place at(const std::string& name, const std::string& pointer);

  std::filesystem::path folder_;
  std::map<std::string, config::document> files_;
  diagnostics problems_;
};

/// The text of a stack file: JSON in which an object or array that fits on a line stands on one, the cells of a
/// table of releases below each other.
std::string stack_file_text(const value& root);

/// A quantity in a unit that gives it up to three digits before the point, with its digits as they are: "24.23 ms"
/// for "2.423e+04 us". Anything else, and times up to a thousand of their unit, as it is.
std::string readable_quantity(const std::string& text);

}  // namespace nvlsim
