// Formats a fit for a terminal.
#include <fmt/format.h>

#include "nvlsim/output/studies.hpp"

namespace nvlsim {

std::string fit_text(const fit_report& f) {
  std::string out = fmt::format("{:<34} {:>12} {:>12}\n", "parameter", "start", "fitted");
  for (const fitted_parameter& p : f.parameters)
    out += fmt::format("{:<34} {:>12.5g} {:>12.5g}\n", p.name, p.start, p.value);
  out += fmt::format("\n{} rows: mean {:.1f} %, median {:.1f} %, p90 {:.1f} %, bias {:+.1f} %\n", f.rows,
                     100 * f.mean_error, 100 * f.median_error, 100 * f.p90_error, 100 * f.bias);
  for (const auto& l : f.leave_out)
    out += fmt::format("without {:<32} {:>4} rows: mean {:>5.1f} %, {}worst {:>5.1f} %, bias {:>+6.1f} %\n",
                       l.group, l.rows, 100 * l.mean_error,
                       l.p90_error > 0 ? fmt::format("median {:>5.1f} %, p90 {:>5.1f} %, ", 100 * l.median_error,
                                                     100 * l.p90_error)
                                       : std::string(),
                       100 * l.worst_error, 100 * l.bias);
  const auto by_metric = [&](const std::string& what, const std::map<std::string, error_shares>& all) {
    for (const auto& [metric, e] : all)
      out += fmt::format("{:<34} {:<11} {:>5}: median {:>5.1f} %, p90 {:>5.1f} %\n", what, metric, e.values,
                         100 * e.median, 100 * e.p90);
  };
  for (const auto& l : f.leave_out) by_metric("without " + l.group, l.by_metric);
  for (const auto& [kind, all] : f.held_out) by_metric("left out, " + kind, all);
  if (f.coverage)
    out += fmt::format("{:.1f} % of the values of left-out systems are inside the bands from the others\n",
                       100 * *f.coverage);
  return out;
}

}  // namespace nvlsim
