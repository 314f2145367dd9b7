// What a fit gives: parameters, errors, and stack files to write.
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

/// Absolute errors of so many values.
struct error_shares {
  std::size_t values = 0;
  double median = 0, p90 = 0;
};

struct fit_report {
  std::vector<fitted_parameter> parameters;
  std::size_t rows = 0;                                              ///< used for fitting
  double mean_error = 0, median_error = 0, p90_error = 0, bias = 0;  ///< of those rows, afterwards
  /// Stack files to write, as JSON text: file name -> text.
  std::vector<std::pair<std::string, std::string>> files;
  /// Errors on what was left out, when asked for: group -> mean absolute error.
  struct left_out {
    std::string group;
    std::size_t rows = 0;
    double mean_error = 0, worst_error = 0, bias = 0, median_error = 0, p90_error = 0;
    std::map<std::string, error_shares> by_metric = {};  ///< where a fit has several
  };
  std::vector<left_out> leave_out;
  std::map<std::string, std::map<std::string, error_shares>>
      held_out;                    ///< over all groups, by kind of row and metric
  std::optional<double> coverage;  ///< of left-out systems: share inside 90 % bands that come from the others
};

}  // namespace nvlsim
