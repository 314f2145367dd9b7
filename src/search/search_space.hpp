// The layouts a search tries, and the outcome of evaluating one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/search/search.hpp"

namespace nvlsim {

/// The outcome of evaluating a layout.
struct evaluation {
  std::string reason;                          ///< why it was left out; empty if it runs
  std::vector<std::optional<double>> metrics;  ///< set if it runs
};

/// What a layout takes and needs at least, for one thread. Ask for groups in `bounding_order`.
class floor_reader {
 public:
  virtual ~floor_reader() = default;
  /// Least step time and memory of a group's layouts.
  virtual double seconds(std::size_t group) = 0;
  virtual double bytes(std::size_t group) = 0;
  /// The same of one layout.
  virtual double seconds(std::size_t group, std::size_t index) = 0;
  virtual double bytes(std::size_t group, std::size_t index) = 0;
  /// Memory of a layout; empty if it does not fit.
  virtual std::optional<double> memory(std::size_t group, std::size_t index) = 0;
  virtual bool fits(double size) const = 0;
};

/// The layouts of one kind of workload. Layouts in a group are valid or invalid for the same reasons.
class search_space {
 public:
  virtual ~search_space() = default;
  std::vector<std::string> parameters, pointers, metrics;
  std::vector<std::pair<std::string, value>> everywhere;

  virtual std::size_t groups() const = 0;
  /// The order in which to visit the groups.
  virtual std::vector<std::size_t> visiting_order() const;
  /// Number of layouts in a group.
  virtual std::size_t size(std::size_t group) const = 0;
  /// Number of layouts that a group stands for: more than its size if others are refused for the same reason.
  virtual std::int64_t layouts_in(std::size_t group) const { return static_cast<std::int64_t>(size(group)); }
  virtual std::vector<value> layout(std::size_t group, std::size_t index) const = 0;
  /// Says why no layout of the group can run. Empty if some may run.
  virtual std::string group_reason(std::size_t group) const = 0;
  /// Evaluates a layout. Requires an empty `group_reason`. With `in_full`, also computes the metrics in `dear`.
  /// Called by several threads.
  virtual evaluation evaluate_layout(std::size_t group, std::size_t index, bool in_full) const = 0;
  /// Layouts take long: progress is told after each. Those of a group cost least from the last to the first.
  bool slow = false;
  std::vector<std::string> dear;  ///< metrics that are slow to compute

  /// Bounds of this space; none: every layout has to be evaluated.
  virtual std::unique_ptr<floor_reader> floors() const { return nullptr; }
  /// An order of the groups in which bounds cost least.
  virtual std::vector<std::size_t> bounding_order() const { return visiting_order(); }
  /// Groups near what recipes use, from which a search starts; and those that differ from a group in one choice.
  virtual std::vector<std::size_t> usual_groups() const { return {}; }
  virtual std::vector<std::size_t> groups_near(std::size_t) const { return {}; }
  /// So many consecutive layouts of a group differ only in what is computed again.
  virtual std::size_t part_size(std::size_t group) const { return size(group); }
  std::vector<std::string> by_time;  ///< metrics that follow from the step time alone

  /// Whether layouts have ceilings: each is worse, in all metrics that a ceiling has, than one of those of it.
  bool has_ceilings = false;
  virtual std::vector<std::vector<std::optional<double>>> ceilings(std::size_t, std::size_t) const { return {}; }
};

/// A layout parameter and its value in the scenario, as text.
struct search_parameter {
  std::string name, own;
  std::vector<std::string> words = {};  ///< allowed words; empty for a number
  std::int64_t min = 1;                 ///< lowest number
};

/// The parameter that an engine or Megatron-LM calls `name` ("max_num_seqs", "prefill_tensor_parallel_size"), if
/// it is one of `known`; else `name`.
std::string usual_parameter(const std::string& name, const std::vector<std::string>& known);
/// That of a training layout; empty for another name.
std::string_view training_parameter(std::string_view megatron);

/// The parameter values that a search may use.
class allowed_values {
 public:
  /// Reports unknown parameters and values. The parts of a word such as "a+b" may be in any order.
  allowed_values(const std::vector<search_restriction>& restrictions, const std::vector<search_parameter>& known,
                 diagnostics& problems);
  bool allows(std::string_view parameter, std::string_view text) const;
  /// Whether a restriction explicitly names the value.
  bool asks(std::string_view parameter, std::string_view text) const;
  bool allows(std::string_view parameter, std::int64_t v) const;
  /// The values given for the parameter; without a restriction, `usual`.
  std::vector<std::int64_t> integers(std::string_view parameter, std::vector<std::int64_t> usual) const;

 private:
  std::vector<search_restriction> restrictions_;
};

/// Placement of a job of a given size on the scenario's platform.
struct job_place {
  placement place;
  int racks = 1;
};
job_place place_of(const scenario& s, std::int64_t gpus);

std::vector<std::int64_t> divisors(std::int64_t n);

/// Build the search space. `s` must outlive it.
std::unique_ptr<search_space> training_space(const scenario& s, const search_options& o, diagnostics& problems);
std::unique_ptr<search_space> serving_space(const scenario& s, const search_options& o, diagnostics& problems);
std::unique_ptr<search_space> post_training_space(const scenario& s, const search_options& o,
                                                  diagnostics& problems);

std::unique_ptr<search_space> operation_space(const scenario& s, const search_options& o, diagnostics& problems);

}  // namespace nvlsim
