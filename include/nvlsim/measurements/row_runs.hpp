// Runs rows of inference.csv. [docs/models-and-assumptions.md#inference-open-loop]
#pragma once

#include <vector>

#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/serving/summary.hpp"

namespace nvlsim {

/// The workload that stands for a row: of an open loop some of the replicas, of a long run its middle.
inference_workload workload_of(const inference_row& r);

/// Whether the model of memory can hold the row.
bool fits(const inference_row& r, const stack& s);

/// Simulated values of the row's targets, in the units of their columns. Adds a note if the row does not fit as
/// modelled, and then ignores memory, because the published run did fit. Sets status and reason if it cannot run.
std::vector<double> simulate_row(inference_row& r, const stack& s);

/// Whether the iterations of a row change little with small changes of costs: all but open loops of several
/// replicas or with medians as targets.
bool can_freeze(const inference_row& r);
/// The iterations of a row on stack `s`, and its values computed from them with the costs of another.
run_summary freeze(const inference_row& r, const stack& s);
std::vector<double> simulate_frozen(const inference_row& r, const stack& s, const run_summary& summary);

}  // namespace nvlsim
