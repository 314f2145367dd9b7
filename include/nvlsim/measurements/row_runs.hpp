// Runs rows of inference.csv. [docs/models-and-assumptions.md#inference-open-loop]
#pragma once

#include <string>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/serving/summary.hpp"

namespace nvlsim {

/// The workload that stands for a row, which is that of its scenario: of an open loop some of the replicas.
inference_workload workload_of(const inference_row& r);

/// A column of a row as a metric of the run of its scenario.
struct row_figure {
  std::string column;
  std::string metric;     ///< as results name it
  std::string statistic;  ///< of a distribution: "mean" or "p50"
  double factor = 1;      ///< from the metric to the column's unit, and from the replicas that run to all

  double of(const inference_metrics& m) const;  ///< the metric
};
/// One for each target.
std::vector<row_figure> figures_of(const inference_row& r);

/// Whether the model of memory can hold the row.
bool fits(const inference_row& r, const stack& s);

/// Runs the row's scenario and returns its targets, in the units of their columns. If it cannot run, for example
/// because memory cannot hold it, sets the row's status and reason and returns nothing.
std::vector<double> simulate_row(inference_row& r, const stack& s);

/// Whether the iterations of a row change little with small changes of costs: all but open loops of several
/// replicas or with medians as targets.
bool can_freeze(const inference_row& r);
/// The iterations of a row on stack `s`, and its values computed from them with the costs of another.
run_summary freeze(const inference_row& r, const stack& s);
std::vector<double> simulate_frozen(const inference_row& r, const stack& s, const run_summary& summary);

}  // namespace nvlsim
