// Compares two sets of results and applies pass/fail rules (gates).
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

/// A rule that fails the comparison when it holds. `step_time_s>+2%` tests the relative change; `mfu<0.4` and
/// `memory_peak_bytes>235 GB`, without a per cent sign, test the value in B.
struct gate {
  std::string text;    ///< as written
  std::string metric;  ///< "ttft_s.p99" inside a distribution
  relation op = relation::more;
  double threshold = 0;  ///< in the unit of the metric; a fraction if the rule is relative
  bool relative = false;
};

/// Parses `METRIC OP [+-]NUMBER[%]` or `METRIC OP NUMBER UNIT`, where OP is one of > >= < <= and the unit is one
/// of the metric's: "235 GB", "30 d", "5 tok/s". Reports a malformed rule as a problem of `option` with its
/// column; the returned gate is then unusable.
gate parse_gate(std::string_view text, diagnostics& problems, std::string_view option = "--fail-if");
/// Whether `x OP bound` holds.
bool holds(const gate& g, double x);
/// Parses all rules. Throws input_error with every problem found.
std::vector<gate> parse_gates(std::span<const std::string> texts);

struct metric_change {
  std::string scenario;  ///< "a -> b" when the names differ
  std::string metric;
  std::optional<double> a, b;
  std::optional<double> change;  ///< (b - a) / |a|; empty when either is missing, or when a is zero and b is not
};

struct scenario_pair {
  std::string scenario;
  run_status a = run_status::ok, b = run_status::ok;
  std::vector<input_change> inputs;  ///< inputs that differ
  std::vector<std::string> reasons;  ///< why a side did not run; each begins with "A: " or "B: "
};

/// The text of the rule that a comparison with gates always has: B lacks nothing that A has.
inline constexpr std::string_view nothing_vanishes = "nothing vanishes";

struct gate_outcome {
  gate rule;
  metric_change on;
  bool failed = false;
  std::string reason;  ///< what was found, or why the rule could not be tested
};

struct comparison {
  std::vector<scenario_pair> scenarios;
  std::vector<metric_change> rows;  ///< by scenario, then by metric: A's order first, then metrics only in B
  std::vector<std::string> only_in_a, only_in_b;  ///< scenarios without a counterpart
  std::vector<gate_outcome> gates;                ///< by rule, then scenario
  /// What to know although no gate failed: another version, a baseline that is stale.
  std::vector<std::string> remarks;
  bool passed() const;
};

/// A number of a metric with its unit: "11.7 s"; six digits. Without a unit where the metric is a share or a
/// count.
std::string with_unit(const std::string& metric, double x);

/// Compares results with the same name. If each side has exactly one result, compares those whatever their names.
/// A rule fails if its metric is null or absent, and every rule fails if no results could be compared. Exception:
/// a rule skips runs of a kind that never has the metric (a serving run has no step time), as long as other runs
/// have it; one that no run has fails once. With gates, a scenario or metric that A has and B lacks fails as well,
/// unless `may_vanish` names it, or "*". Throws input_error if a name occurs twice on one side.
comparison compare(std::span<const result> a, std::span<const result> b, std::span<const gate> gates = {},
                   std::span<const std::string> may_vanish = {});

}  // namespace nvlsim::analysis
