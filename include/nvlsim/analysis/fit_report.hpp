// The outcome of a fit: parameters, errors, and stack files to write.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nvlsim {

struct fitted_parameter {
  std::string name;
  double start = 0, value = 0;
};

/// Statistics of absolute errors.
struct error_shares {
  std::size_t values = 0;
  double median = 0, p90 = 0;
};

struct fit_report {
  std::vector<fitted_parameter> parameters;
  std::size_t rows = 0;                                              ///< used for fitting
  double mean_error = 0, median_error = 0, p90_error = 0, bias = 0;  ///< errors on those rows after the fit
  /// Stack files to write, as JSON text: path in the folder of stacks -> text.
  std::vector<std::pair<std::string, std::string>> files;
  /// Cross-validation errors of one left-out group. Filled on request.
  struct left_out {
    std::string group;
    std::size_t rows = 0;
    double mean_error = 0, worst_error = 0, bias = 0, median_error = 0, p90_error = 0;
    std::map<std::string, error_shares> by_metric = {};  ///< if the fit has several metrics
  };
  std::vector<left_out> leave_out;
  std::map<std::string, std::map<std::string, error_shares>>
      held_out;                    ///< over all left-out groups, by kind of row and metric
  std::optional<double> coverage;  ///< fraction of left-out systems inside the 90 % bands derived from the others
};

}  // namespace nvlsim
