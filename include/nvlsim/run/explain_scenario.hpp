// Explains a scenario: its run, the inputs the run depends on, and its sensitivity to constants.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// Pointers and values of the settings that no file gives.
std::vector<value::member> defaults_of(const scenario& s);

/// Returns the constants that an explained run (`run_options::explained`) read, in the order of the files.
std::vector<input_constant> used_constants(const scenario& s, const run_record& run);

/// Explains a metric of a finished run, with band, constants, defaults and assumptions. An empty `metric` selects
/// the main one. The run needs facts (`run_options::explained`). Throws input_error if the result has no such
/// metric.
explanation explain_run(const scenario& s, const run_record& run, const std::string& metric);

/// Runs the scenario in this process and explains a metric. An empty `metric` selects the main one. Throws
/// input_error if the scenario has no such metric. If the scenario cannot run, sets `status` to infeasible and
/// returns an explanation without a value.
explanation explain_scenario(const scenario& s, const std::string& metric, run_status& status);

/// Fills the table's rate of kernels of a training step that tensor cores limit: GEMMs and attention, each of one
/// shape. `table` has the kernels of this GPU as they were measured alone, whose MXFP8 is that of `fp8_block`.
/// Latent attention counts as heads of the mean width of keys and values. Others stay empty.
/// `attention_again`: attention is computed again beside its backward pass, whose rate then stays empty.
void add_table_rates(explanation& e, const gpu_spec& gpu, const kernel_profile& table,
                     bool attention_again = false);

/// Returns the scenario with further overrides. Throws input_error if they are invalid.
using changed_scenario = std::function<scenario(const std::vector<override_option>&)>;

/// Returns what can depend on a constant: status, reasons, metrics, breakdown, memory, energy and cost.
value outputs_of(const result& r);

/// Multiplies a number with a unit by `factor`. A zero becomes `factor` units. Empty if the text is not a number.
std::string scaled_text(const std::string& text, double factor);

/// Whether any output changes with a constant between a third and three times its value. `outputs` are those of
/// the unchanged scenario. A value that the run refuses binds. A value that a file may not have says nothing.
bool binds(const input_constant& c, const value& outputs, const changed_scenario& change);

/// Fills `sensitivities`, `not_binding` and `turning_points`. Runs the scenario with each of its constants at 0.9
/// and 1.1 times the value; varies the most influential ones between 0.25 and 4 times. Calls `report(done, all)`
/// with numbers of runs. `only` are beginnings of pointers ("/platform"): other constants stay as they are; empty:
/// all are varied. Throws input_error for a beginning that no constant of the run has.
void add_sensitivity(explanation& e, const changed_scenario& change,
                     const std::function<void(std::size_t, std::size_t)>& report,
                     const std::vector<std::string>& only = {});

}  // namespace nvlsim
