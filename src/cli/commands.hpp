// Implements the subcommands. Results go to stdout, everything else to stderr.
#pragma once

#include "cli/arguments.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::cli {

exit_code execute(const run_arguments& a);
exit_code execute(const compare_arguments& a);
exit_code execute(const explain_arguments& a);
exit_code execute(const report_arguments& a);
exit_code execute(const validate_arguments& a);
exit_code execute(const collective_arguments& a);
exit_code execute(const catalogue_arguments& a);
exit_code execute(const fit_arguments& a);
exit_code execute(const kernel_arguments& a);
exit_code execute(const prepared_output& a);
exit_code execute(const pareto_arguments& a);
exit_code execute(const search_arguments& a);
exit_code execute(const sweep_arguments& a);
exit_code execute(const plan_arguments& a);
exit_code execute(const new_arguments& a);

/// Runs a request. Turns exceptions into messages and exit codes. With `--format json`, also prints a failure as a
/// JSON document.
exit_code execute(const request& r);

}  // namespace nvlsim::cli
