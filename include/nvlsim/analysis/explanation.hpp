// Where a number of a result comes from: what it is the product of, and what its parts are.
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

/// A part of a number; where it has parts, they add up to it.
struct cause {
  std::string name;
  double amount = 0;  ///< in the unit of the whole
  std::string note;   ///< shape or reason
  std::vector<cause> parts = {};
};

/// One way to take a number apart.
struct cause_tree {
  std::string title;  ///< "by phase", "by bound"
  cause whole;
};

/// A factor of a metric, or with power -1 a divisor.
struct factor {
  std::string name;  ///< ends with its unit, as the keys of results do
  double amount = 0;
  int power = 1;
};

/// A kernel or transfer, all its calls of a kind together, on the mean GPU.
struct time_use {
  std::string name, phase, shape;
  resource limit = resource::latency;
  double calls = 0, time_s = 0;
  double share = 0;                       ///< of the run
  double rate = 0;                        ///< reached while it runs: FLOP/s where tensor cores limit it, else B/s
  double ceiling = 0;                     ///< of the data sheet, same unit; 0 where there is none
  double work_flop = 0, moved_bytes = 0;  ///< of one call, on the mean
};

/// What a metric does when one constant is moved by a tenth; relative changes.
struct sensitivity {
  input_constant what;
  std::optional<double> less,
      more;  ///< with nine tenths of it, and with eleven; nothing where the input is then refused
};

/// Where, as one constant moves, another resource becomes the one that most of the time is spent on.
struct turning_point {
  input_constant what;
  double factor = 1;     ///< of its value
  std::string from, to;  ///< what most time is spent on, before and after
};

struct explanation {
  std::string scenario;
  std::string metric;            ///< "ttft_s.p99" inside a distribution
  std::optional<double> amount;  ///< nothing when the result has none
  std::vector<factor> factors;   ///< their product is `amount`; empty when the trees take the metric itself apart
  std::string apart;             ///< what the trees take apart: the metric, or a factor; empty without trees
  std::vector<cause_tree> trees;
  std::vector<time_use> kernels, transfers;  ///< longest first
  std::vector<std::string> notes;

  // What it rests on.
  std::optional<std::pair<double, double>> band;  ///< 90 %
  std::vector<std::string> band_reasons;          ///< where the band comes from; why there is none
  std::vector<input_constant> constants;          ///< that the run made use of
  std::vector<value::member> defaults;            ///< pointer and value of what no file said
  std::vector<std::string> assumptions;           ///< the notes of the result

  // Filled when asked for.
  std::vector<sensitivity> sensitivities;  ///< greatest first
  std::vector<turning_point> turning_points;
};

/// Metrics that a result has a value or a null for, distributions by name: what `explain` takes.
std::vector<std::string> explained_metrics(const result& r);
/// The metric that says most of a result: its step time, its rate or its time.
std::string main_metric(const result& r);

/// Takes a metric of a finished run apart. `metric` is a name of `explained_metrics`; of a distribution
/// `NAME.STATISTIC` or its mean. An inference run must have been made to be explained (`run_options`). Throws
/// input_error for a name that the result lacks. [docs/models-and-assumptions.md#bounds]
explanation explain(const scenario& s, const run_record& run, std::string_view metric);

}  // namespace nvlsim
