// Layouts that a search tries, and what one gives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/search/search.hpp"

namespace nvlsim {

/// What became of a layout.
struct evaluation {
  std::string reason;                          ///< why it was left out; empty when it runs
  std::vector<std::optional<double>> metrics;  ///< when it runs
};

/// The layouts of one kind of workload, as groups of layouts that are legal or not for the same reasons.
class search_space {
 public:
  virtual ~search_space() = default;
  std::vector<std::string> parameters, pointers, metrics;
  std::vector<std::pair<std::string, value>> everywhere;

  virtual std::size_t groups() const = 0;
  /// In which order groups are best tried.
  virtual std::vector<std::size_t> visiting_order() const;
  /// Layouts of a group.
  virtual std::size_t size(std::size_t group) const = 0;
  virtual std::vector<value> layout(std::size_t group, std::size_t index) const = 0;
  /// Why no layout of the group can run; empty when some may.
  virtual std::string group_reason(std::size_t group) const = 0;
  /// Requires that the group has no reason. `in_full` also gives the metrics of `dear`. Called by several threads.
  virtual evaluation evaluate_layout(std::size_t group, std::size_t index, bool in_full) const = 0;
  std::vector<std::string> dear;  ///< metrics that take longer
};

/// A parameter of layouts, with the scenario's own value of it as text.
struct search_parameter {
  std::string name, own;
  std::vector<std::string> words = {};  ///< what it may be; none for a count
  std::int64_t least = 1;               ///< of a count
};

/// The values that a search may give to its parameters.
class allowed_values {
 public:
  /// Reports what is unknown. A word of parts, "a+b", is known in any order of them.
  allowed_values(const std::vector<search_restriction>& restrictions, const std::vector<search_parameter>& known,
                 diagnostics& problems);
  bool allows(std::string_view parameter, std::string_view text) const;
  /// Whether a restriction names the value.
  bool asks(std::string_view parameter, std::string_view text) const;
  bool allows(std::string_view parameter, std::int64_t v) const;
  /// Those of `usual` that are allowed; whatever is given where it is.
  std::vector<std::int64_t> integers(std::string_view parameter, std::vector<std::int64_t> usual) const;

 private:
  std::vector<search_restriction> restrictions_;
};

/// Where GPUs of a job of that size sit on the scenario's platform.
struct job_place {
  placement place;
  int racks = 1;
};
job_place place_of(const scenario& s, std::int64_t gpus);

std::vector<std::int64_t> divisors(std::int64_t n);

/// `s` must outlive them.
std::unique_ptr<search_space> training_space(const scenario& s, const search_options& o, diagnostics& problems);
std::unique_ptr<search_space> serving_space(const scenario& s, const search_options& o, diagnostics& problems);

}  // namespace nvlsim
