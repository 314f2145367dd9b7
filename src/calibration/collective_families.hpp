// The rows of a collective fit by families of parameters, and one family fitted to its rows.
// [docs/collectives.md#fit]
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/left_out.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/measurements/collective_rows.hpp"

namespace nvlsim {

using rows_view = std::vector<const collective_row*>;
using families = std::map<std::string, rows_view>;

/// Group, fabric and collective of "fabric/efa-3200/all_gather"; no collective of "all_to_all/efa-3200".
struct family_parts {
  std::string group, kind, collective;
  explicit family_parts(const std::string& family);
};

/// Whether a family is of what leaves a domain.
bool leaves_domain(const std::string& family);

/// Relative, of computed time.
double error_of(const collective_row& r, const collective_profile& c);
error_summary errors_of(const rows_view& rows, const collective_profile& c);

/// Fits the parameters of a family in `profile`, whose values are their priors.
std::vector<fitted_parameter> fit_family(const std::string& family, const rows_view& rows,
                                         collective_profile& profile);

/// What is not measured of a fabric follows what is: a tree over rings has the latencies of that over in-switch
/// reductions, and gather and scatter in the switch the rates of the ring.
void fill_unmeasured(collective_profile& c);

/// Sets the `default` entries of `c`, the fabric that was never measured: one set of parameters for all that were,
/// from which they differ only by their hardware. Every fabric counts as much, however many rows it has.
std::vector<fitted_parameter> fit_default_fabric(const families& by_family, collective_profile& c);
/// Whether the rows show anything of this family's collective on another fabric.
bool default_fabric_knows(const families& by_family, const std::string& family);

}  // namespace nvlsim
