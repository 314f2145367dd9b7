// nvlsim fit
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/support.hpp"
#include "nvlsim/fit.hpp"
#include "nvlsim/output.hpp"

namespace nvlsim::cli {
namespace {

std::string text_of(const fit_report& f) {
  std::string out = fmt::format("{:<34} {:>12} {:>12}\n", "parameter", "start", "fitted");
  for (const fitted_parameter& p : f.parameters) out += fmt::format("{:<34} {:>12.5g} {:>12.5g}\n", p.name, p.start, p.value);
  out += fmt::format("\n{} rows: mean {:.1f} %, median {:.1f} %, p90 {:.1f} %, bias {:+.1f} %\n", f.rows, 100 * f.mean_error,
                     100 * f.median_error, 100 * f.p90_error, 100 * f.bias);
  for (const auto& l : f.leave_out)
    out += fmt::format("without {:<26} {:>4} rows: mean {:>5.1f} %, {}worst {:>5.1f} %, bias {:>+6.1f} %\n", l.group, l.rows,
                       100 * l.mean_error,
                       l.p90_error > 0 ? fmt::format("median {:>5.1f} %, p90 {:>5.1f} %, ", 100 * l.median_error,
                                                     100 * l.p90_error)
                                       : std::string(),
                       100 * l.worst_error, 100 * l.bias);
  const auto by_metric = [&](const std::string& what, const std::map<std::string, error_shares>& all) {
    for (const auto& [metric, e] : all)
      out += fmt::format("{:<34} {:<11} {:>5}: median {:>5.1f} %, p90 {:>5.1f} %\n", what, metric, e.values, 100 * e.median, 100 * e.p90);
  };
  for (const auto& l : f.leave_out) by_metric("without " + l.group, l.by_metric);
  for (const auto& [kind, all] : f.held_out) by_metric("left out, " + kind, all);
  if (f.coverage) out += fmt::format("{:.1f} % of the values of left-out systems lie inside bands from the others\n", 100 * *f.coverage);
  return out;
}

}  // namespace

exit_code execute(const fit_arguments& a) {
  const data_folders data = folders_under(data_root());
  const std::vector<std::filesystem::path> tables(a.tables.begin(), a.tables.end());
  std::filesystem::create_directories(a.output);  // before minutes of work
  for (const std::string& t : a.tables) detail("reads " + t);
  const auto report = [](const std::string& line) { note("fit: " + line); };
  const auto fit = a.kind == fit_kind::training    ? fit_training
                   : a.kind == fit_kind::inference ? fit_inference
                                                   : fit_collectives;
  const fit_report f = a.kind == fit_kind::kernels ? fit_kernels(tables, data, a.only, a.leave_out, report) : fit(tables, data, a.leave_out, report);
  for (const auto& [file, text] : f.files) write_file(std::filesystem::path(a.output) / file, text);
  print(text_of(f));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
