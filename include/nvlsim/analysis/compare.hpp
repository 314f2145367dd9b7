// Two sets of results side by side, and the gates a comparison must pass.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvlsim/analysis/input_changes.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::analysis {

enum class relation { more, at_least, less, at_most };

/// A rule that, where it holds, fails the comparison: `step_time_s>+2%` on the relative change, `mfu<0.4` (no per
/// cent sign) on the value in B.
struct gate {
  std::string text;    ///< as written
  std::string metric;  ///< "ttft_s.p99" inside a distribution
  relation op = relation::more;
  double bound = 0;  ///< of a relative rule a fraction
  bool relative = false;
};

/// Reads `METRIC OP [+-]NUMBER[%]` with OP one of > >= < <=. A bad rule is a problem of `option` that tells the
/// column; the gate returned is then not to be used.
gate parse_gate(std::string_view text, diagnostics& problems, std::string_view option = "--fail-if");
/// Whether `x` is on the side of the bound that the rule names.
bool holds(const gate& g, double x);
/// All rules. Throws input_error with every problem.
std::vector<gate> parse_gates(std::span<const std::string> texts);

struct metric_change {
  std::string scenario;  ///< "a -> b" when the names differ
  std::string metric;
  std::optional<double> a, b;
  std::optional<double> change;  ///< (b - a) / |a|; nothing when either is missing or only a is zero
};

struct scenario_pair {
  std::string scenario;
  run_status a = run_status::ok, b = run_status::ok;
  std::vector<input_change> inputs;  ///< that differ
  std::vector<std::string> reasons;  ///< why a side did not run, which begins with "A: " or "B: "
};

struct gate_outcome {
  gate rule;
  metric_change on;
  bool failed = false;
  std::string reason;  ///< what was found, or why there is nothing to judge
};

struct comparison {
  std::vector<scenario_pair> scenarios;
  std::vector<metric_change> rows;  ///< by scenario, then metric in order of A, then those only B has
  std::vector<std::string> only_in_a, only_in_b;  ///< scenarios without a counterpart
  std::vector<gate_outcome> gates;                ///< by rule, then scenario
  bool passed() const;
};

/// Compares results of the same name; when each side has exactly one they are compared whatever their names. A
/// rule on a metric that is null or absent fails, and so does any rule when nothing could be compared; but runs of
/// a kind that does not have the metric, such as a served model's step time, are not judged by it if others are.
/// Throws input_error when a name occurs twice on one side.
comparison compare(std::span<const result> a, std::span<const result> b, std::span<const gate> gates = {});

}  // namespace nvlsim::analysis
