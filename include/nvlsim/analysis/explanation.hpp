// Explains a metric: the factors it is computed from and the parts it consists of.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// A contribution to a number. If it has `parts`, they add up to `amount`.
struct cause {
  std::string name;
  double amount = 0;  ///< in the unit of the root
  std::string note;   ///< shape or reason
  std::vector<cause> parts = {};
};

/// One decomposition of a number.
struct cause_tree {
  std::string title;  ///< "by phase", "by bound"
  cause whole;
};

/// A factor of a metric; a divisor when `power` is -1.
struct factor {
  std::string name;  ///< ends with its unit, as the keys of results do
  double amount = 0;
  int power = 1;
};

/// All calls of one kernel or transfer together, averaged over the GPUs.
struct time_use {
  std::string name, phase, shape;
  resource limit = resource::latency;
  double calls = 0, time_s = 0;
  double share = 0;    ///< fraction of the run
  double rate = 0;     ///< rate achieved while it runs: FLOP/s if tensor cores limit it, else B/s
  double ceiling = 0;  ///< data-sheet rate in the same unit; 0 if unknown
  double work_flop = 0, moved_bytes = 0;  ///< mean per call
  std::optional<part_facts> facts = {};   ///< of a call, if all are of one shape
  /// FLOP/s of the same shape in kernels that were measured alone. Empty: it was not asked for, or there is none.
  std::optional<double> table_rate = {};
};

/// Relative change of a metric when one constant changes by 10 %.
struct sensitivity {
  input_constant what;
  std::optional<double> less,
      more;  ///< at 0.9 and at 1.1 times the value; empty if the input is then rejected
};

/// The value of a constant at which another resource takes over as the largest consumer of time.
struct turning_point {
  input_constant what;
  double factor = 1;     ///< multiplies the present value
  std::string from, to;  ///< largest consumer of time before and after
};

struct explanation {
  std::string scenario;
  std::string metric;            ///< "ttft_s.p99" inside a distribution
  std::optional<double> amount;  ///< empty when the result has no value
  std::vector<factor> factors;   ///< their product is `amount`; empty when the trees decompose the metric itself
  std::string taken_apart;       ///< what the trees decompose: the metric or one factor; empty without trees
  std::vector<cause_tree> trees;
  std::vector<time_use> kernels, transfers;  ///< longest first
  std::vector<std::string> notes;
  /// What text calls the links of a domain, which are the resource "nvlink" in JSON.
  std::string domain_link = "nvlink";

  // What the value depends on.
  std::optional<std::pair<double, double>> band;  ///< 90 %
  std::vector<std::string> band_reasons;          ///< where the band comes from, or why there is none
  std::vector<input_constant> constants;          ///< constants the run read
  std::vector<value::member> defaults;            ///< pointer and value of settings no file gives
  std::vector<std::string> assumptions;           ///< the notes of the result

  // Filled on request.
  std::vector<sensitivity> sensitivities;  ///< largest first
  /// Sorted pointers of `constants` that do not bind: no output changes at a third and at three times the value.
  std::optional<std::vector<std::string>> not_binding;
  std::vector<turning_point> turning_points;
};

/// Metric names that `explain` accepts: every metric in the result, including null ones. A distribution appears
/// once, by its name.
std::vector<std::string> explained_metrics(const result& r);
/// The headline metric of a result: step time, token rate or completion time.
std::string main_metric(const result& r);

/// Explains a metric of a finished run. `metric` is a name from `explained_metrics`; for a distribution,
/// `NAME.STATISTIC`, or `NAME` for its mean. An inference run must have been run with explanation enabled
/// (`run_options`). Throws input_error if the result has no such metric. [docs/models-and-assumptions.md#bounds]
explanation explain(const scenario& s, const run_record& run, std::string_view metric);

}  // namespace nvlsim
