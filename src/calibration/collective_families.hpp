// Groups the rows of a collective fit by parameter family and fits one family.
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

/// Parts of a family name: group, fabric and collective of "fabric/efa-3200/all_gather". "all_to_all/efa-3200" has
/// no collective.
struct family_parts {
  std::string group, kind, collective;
  explicit family_parts(const std::string& family);
};

/// Whether a family covers traffic between domains.
bool leaves_domain(const std::string& family);

/// Relative error of the simulated time.
double error_of(const collective_row& r, const collective_profile& c);
error_summary errors_of(const rows_view& rows, const collective_profile& c);

/// Fits the parameters of a family in `profile`. The profile's values are the priors.
std::vector<fitted_parameter> fit_family(const std::string& family, const rows_view& rows,
                                         collective_profile& profile);

/// Fills unmeasured parameters from measured ones. `tree` takes latencies and NIC shares from `nvls_tree`.
/// In-switch all-gather and reduce-scatter take the rate of the Simple protocol and the latencies of in-switch
/// all-reduce.
void fill_unmeasured(collective_profile& c);

/// Sets the `default` entries of `c`, used for unmeasured fabrics. Fits one set of parameters to all measured
/// fabrics, which then differ only by their hardware. All fabrics have equal weight, whatever their number of
/// rows.
std::vector<fitted_parameter> fit_default_fabric(const families& by_family, collective_profile& c);
/// Whether the rows contain this family's collective on another fabric.
bool default_fabric_knows(const families& by_family, const std::string& family);

}  // namespace nvlsim
