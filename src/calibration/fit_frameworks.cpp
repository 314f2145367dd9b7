// The fit of training frameworks other than Megatron: what each adds to its kernels, everything else as it is.
// [docs/accuracy.md#other-frameworks]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibration/least_squares.hpp"
#include "calibration/left_out.hpp"
#include "calibration/stack_files.hpp"
#include "calibration/step_residuals.hpp"
#include "calibration/training_knobs.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/measurements/training_rows.hpp"

namespace nvlsim {
namespace {

constexpr const char* fit_source = "fit-frameworks";
/// Fewer steps fit no parameter and give no band.
constexpr std::size_t fewest_rows = 5;

struct framework_values {
  double time_factor = 1, dp_interference = 0;
};

const std::vector<free_parameter>& parameters() {
  // The reference release of Megatron-Core hides data-parallel traffic almost wholly; a framework may hide
  // nothing.
  static const std::vector<free_parameter> list = {{"time factor", 1, 0.4, 2.5, 0.2, true},
                                                   {"dp interference", 0.5, 0, 1, 0.5, false}};
  return list;
}

double log_error(const training_row& r, const framework_values& v) {
  stack software = *r.software;
  software.training->time_factor = v.time_factor;
  software.training->dp_interference = v.dp_interference;
  training_row at = r;
  at.software = &software;
  return std::log(metric_of_step(r, step_time(at)) / *r.record.published);
}

using rows_of_framework = std::vector<const training_row*>;

framework_values fitted_to(const rows_of_framework& rows) {
  const std::vector<double> best = fit_parameters(parameters(),
                                                  [&](const std::vector<double>& at) {
                                                    std::vector<double> out;
                                                    for (const training_row* r : rows)
                                                      out.push_back(log_error(*r, {at[0], at[1]}));
                                                    return out;
                                                  },
                                                  {.robust_scale = 0.05});
  return {best[0], best[1]};
}

/// Rows of one model, system and number of GPUs are left out together.
std::string part_of(const training_row& r) {
  return twelfth_of(fmt::format("{} {} {}", r.record.model, r.record.system, r.workload.par.gpus()));
}

/// The errors on rows that a fit has not seen.
std::vector<unseen_step> unseen_of(const rows_of_framework& rows, std::vector<double>& relative) {
  std::vector<unseen_step> out;
  for (const auto& [part, left, kept] : split_by_group(rows, [](const training_row& r) { return part_of(r); })) {
    const framework_values without = fitted_to(kept);
    for (const training_row* r : left) {
      const double e = log_error(*r, without);
      relative.push_back(std::exp(e) - 1);
      out.push_back(
          {part, kind_of_step(r->hardware, *r->net, r->workload), r->record.metric == "step_time_s" ? -e : e});
    }
  }
  return out;
}

}  // namespace

fit_report fit_frameworks(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                          const std::string& leave_out, const fit_progress& report) {
  input_cache inputs(data);
  std::vector<training_row> rows;
  for (const auto& table : tables) {
    const csv_table t = read_csv(table);
    for (const csv_row& row : t.rows)
      if (training_row r = read_training_row(row, t.stem, inputs); usable(r) && !of_fitted_release(r))
        rows.push_back(std::move(r));
  }
  std::map<std::string, rows_of_framework> by_stack;
  for (const training_row& r : rows) by_stack[r.software->name].push_back(&r);
  std::erase_if(by_stack, [](const auto& s) { return s.second.size() < fewest_rows; });
  if (by_stack.empty())
    throw input_error(
        {{tables.front().string(),
          "",
          fmt::format("no framework but Megatron has {} rows with a complete configuration", fewest_rows),
          {}}});
  fit_report out;
  stack_files files(data.stacks);
  std::vector<double> errors;
  std::map<std::string, std::vector<unseen_step>> unseen;
  std::vector<unseen_step> pool;
  for (const auto& [stack, known] : by_stack) {
    const framework_values v = fitted_to(known);
    files.set_number_from(stack, "/training/time_factor", fmt::format("{:.6g}", v.time_factor), fit_source);
    files.set_number_from(stack, "/training/dp_interference", fmt::format("{:.6g}", v.dp_interference),
                          fit_source);
    out.parameters.push_back({stack + " time factor", parameters()[0].start, v.time_factor});
    out.parameters.push_back({stack + " dp interference", parameters()[1].start, v.dp_interference});
    for (const training_row* r : known) errors.push_back(std::exp(log_error(*r, v)) - 1);
    std::vector<double> left;
    unseen[stack] = unseen_of(known, left);
    pool.insert(pool.end(), unseen[stack].begin(), unseen[stack].end());
    if (leave_out.empty() || left.empty()) continue;
    const error_summary e = summary_of(left);
    out.leave_out.push_back({stack, e.rows, e.mean, e.worst, e.bias});
  }
  // A framework's own errors, and with few of them those of all frameworks.
  for (const auto& [stack, known] : by_stack) {
    std::vector<unseen_step>& own = unseen[stack];
    for (const training_row* r : known)
      if (own.empty()) own.push_back({"", kind_of_step(r->hardware, *r->net, r->workload), 0});
    files.set(stack, "/training/residuals", residuals_value(residuals_by_kind(own, pool)));
    if (report)
      report(fmt::format("{}: {} rows, {:.1f} % of them in bands from others", stack, known.size(),
                         100 * coverage_of(own, pool)));
  }
  enter_fitted(out, summary_of(errors));
  out.files = files.texts();
  return out;
}

}  // namespace nvlsim
