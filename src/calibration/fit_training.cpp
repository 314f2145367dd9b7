// The training fit: parameter search and errors.
// [docs/accuracy.md#training]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include "calibration/least_squares.hpp"
#include "calibration/left_out.hpp"
#include "calibration/stack_files.hpp"
#include "calibration/step_residuals.hpp"
#include "calibration/training_knobs.hpp"
#include "nvlsim/analysis/error_summary.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/measurements/training_rows.hpp"
#include "nvlsim/stack/compose.hpp"
#include "nvlsim/stack/load.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

/// 1.48 times the median error on left-out steps. This value and the prior widths of GEMM rates, Blackwell Ultra
/// formats and routed layers were chosen by the errors on left-out steps. [docs/accuracy.md#parameters-of-the-fit]
constexpr double residual_scale = 0.05;

using stacks_by_name = std::map<std::string, stack>;

/// The stacks for a set of parameter values. Settings of the reference stack also apply to the stacks built on it.
/// They share kernels and collectives, and a step uses only some families of kernels: a search reads no more.
class stack_set {
 public:
  explicit stack_set(const data_folders& data) {
    diagnostics problems;
    config::document tables = load(data, training_kernel_tables, problems);
    kernels_ = read_stack(tables, training_kernel_tables, problems);
    config::document reference = load(data, training_reference, problems);
    collectives_ = read_stack(reference, training_reference, problems).collectives;
    for (const char* name : fitted_releases) {
      documents_.emplace_back(name, load(data, name, problems));
      remove(documents_.back().second, {"kernels", "kernel_spreads", "collectives"});
    }
    remove(reference, {"kernel_spreads", "collectives"});
    keep_kernels_of_steps(reference);
    reference_ = std::move(reference);
    problems.throw_if_any();
  }
  stacks_by_name at(const std::vector<stack_setting>& settings) const {
    diagnostics problems;
    config::document doc = reference_;
    for (const stack_setting& s : settings)
      if (s.stack == training_reference) set(doc, s, problems);
    stack reference = read_stack(doc, training_reference, problems);
    reference.collectives = collectives_;
    stacks_by_name out;
    for (const auto& [name, source] : documents_) {
      doc = source;
      for (const stack_setting& s : settings)
        if (s.stack == training_reference && !s.pointer.starts_with("/kernels")) set(doc, s, problems);
      for (const stack_setting& s : settings)  // a release's own settings win
        if (s.stack == name) set(doc, s, problems);
      stack& release = out.emplace(name, read_stack(doc, name, problems)).first->second;
      release.kernels = reference.kernels;
      release.collectives = collectives_;
    }
    out.emplace(training_reference, std::move(reference));
    problems.throw_if_any();
    return out;
  }
  const stack& kernels() const { return kernels_; }

 private:
  static void set(config::document& doc, const stack_setting& s, diagnostics& problems) {
    config::override_value(doc, s.pointer, config::parse_scalar(s.text), {"fit", "fit", true}, problems);
  }
  static void remove(config::document& doc, std::initializer_list<std::string_view> sections) {
    std::erase_if(*doc.root.members(), [&](const value::member& m) {
      return std::find(sections.begin(), sections.end(), m.first) != sections.end();
    });
  }
  static void keep_kernels_of_steps(config::document& doc) {
    static constexpr std::array<std::string_view, 7> used = {"gemm",   "attention",   "attention_fp8",  "decode",
                                                             "stream", "measured_on", "peaks_of_origin"};
    for (auto& [name, entry] : *doc.root.find("kernels")->members())
      if (entry.members())
        std::erase_if(*entry.members(), [](const value::member& m) {
          return m.second.members() && !m.second.find("value") &&
                 std::find(used.begin(), used.end(), m.first) == used.end();
        });
  }
  static config::document load(const data_folders& data, const char* name, diagnostics& problems) {
    return compose_stack(data.stacks, name, {"fit", "", {}, {}}, problems);
  }
  config::document reference_;
  std::vector<std::pair<std::string, config::document>> documents_;
  collective_profile collectives_;
  stack kernels_;
};

struct step_fit_row {
  training_row row;
  double weight = 1;
};

/// Weights the rows: a configuration seen in k releases counts as sqrt(k) rows.
void weigh(std::vector<step_fit_row>& rows) {
  std::map<std::string, int> seen;
  const auto key = [](const training_row& r) {
    return fmt::format("{} {} {} {} {}", r.record.model, r.record.system, r.workload.par.gpus(), r.record.kind,
                       name(r.workload.gemm_precision));
  };
  for (const step_fit_row& r : rows) ++seen[key(r.row)];
  for (step_fit_row& r : rows) r.weight = std::pow(seen[key(r.row)], -0.25);
}

/// Extrapolates long steps from two short ones, within 0.1 % of the full step. Once the pipeline is full and the
/// overlap at both ends is over, every PP more micro-batches add the same time.
seconds sampled_step_time(const training_row& r) {
  const std::int64_t pp = r.workload.par.pp, m = r.workload.micro_batches();
  const std::int64_t few = 3 * pp + 8 / pp * pp + m % pp, more = few + pp;
  if (m <= more + pp) return step_time(r);
  training_row part = r;
  const auto at = [&](std::int64_t micro_batches) {
    part.workload.global_batch_size = micro_batches * r.workload.micro_batch_size * r.workload.par.dp;
    return step_time(part);
  };
  const seconds shorter = at(few);
  return shorter + (at(more) - shorter) * (static_cast<double>(m - few) / static_cast<double>(pp));
}

double log_error(const training_row& r, const stacks_by_name& stacks, seconds (*time)(const training_row&)) {
  training_row at = r;
  at.software = &stacks.at(r.software->name);
  return std::log(metric_of_step(r, time(at)) / *r.record.published);
}

/// Settings of the reference go into the libraries that all training stacks share.
std::vector<std::pair<std::string, std::string>> files_with(const data_folders& data,
                                                            const std::vector<stack_setting>& settings,
                                                            value residuals) {
  stack_files out(data.stacks);
  for (const stack_setting& s : settings) {
    const bool shared = s.stack == training_reference;
    const std::string name = !shared                             ? s.stack
                             : s.pointer.starts_with("/kernels") ? training_kernels
                                                                 : training_library;
    out.set_number_from(name, s.pointer, s.text, "fit-training");
  }
  out.set(training_library, "/training/residuals", std::move(residuals));
  return out.texts();
}

struct trained {
  std::vector<double> at;
  double cost = 0;
  std::vector<stack_setting> settings;
};

class training_problem {
 public:
  training_problem(std::vector<const step_fit_row*> rows, const stack_set& stacks,
                   const std::vector<training_parameter>& list)
      : rows_(std::move(rows)), stacks_(stacks), list_(list) {}

  std::vector<double> residuals(const std::vector<double>& at) const {
    const stacks_by_name here = stacks_.at(training_settings({list_, at}, stacks_.kernels()));
    std::vector<double> out;
    for (const step_fit_row* r : rows_) out.push_back(log_error(r->row, here, sampled_step_time) * r->weight);
    return out;
  }
  std::vector<std::vector<double>> derivatives(const std::vector<double>& at) const {
    const std::vector<double> middle = residuals(at);
    std::vector<std::vector<double>> out(rows_.size(), std::vector<double>(list_.size(), 0.0));
    for (std::size_t k = 0; k < list_.size(); ++k) {
      const free_parameter& p = list_[k].fitted;
      double h = 2e-3 * (p.logarithmic ? 1.0 : std::max(std::abs(p.start), (p.high - p.low) * 0.05));
      const auto moved = [&] { return p.logarithmic ? at[k] * std::exp(h) : at[k] + h; };
      if (moved() >= p.high) h = -h;
      std::vector<double> there = at;
      there[k] = moved();
      const stacks_by_name stacks = stacks_.at(training_settings({list_, there}, stacks_.kernels()));
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const step_fit_row& r = *rows_[i];
        if (list_[k].reaches(r.row))
          out[i][k] = (log_error(r.row, stacks, sampled_step_time) * r.weight - middle[i]) / h;
      }
    }
    return out;
  }
  trained solve(const std::vector<double>& from, const std::function<void(int, double)>& report) const {
    std::vector<free_parameter> list;
    for (std::size_t k = 0; k < list_.size(); ++k) {
      list.push_back(list_[k].fitted);
      list.back().search_from = from[k];
    }
    trained t;
    t.at = fit_parameters(
        list, [&](const std::vector<double>& at) { return residuals(at); }, {.robust_scale = residual_scale},
        [&](int i, double cost) {
          t.cost = cost;
          if (report) report(i, cost);
        },
        [&](const std::vector<double>& at) { return derivatives(at); });
    t.settings = training_settings({list_, t.at}, stacks_.kernels());
    return t;
  }

 private:
  std::vector<const step_fit_row*> rows_;
  const stack_set& stacks_;
  const std::vector<training_parameter>& list_;
};

/// Start points of the search: the centre of the priors, then points sampled from the priors with a fixed seed.
std::vector<std::vector<double>> starting_points(const std::vector<training_parameter>& list, int count) {
  std::vector<std::vector<double>> out;
  std::mt19937_64 random(20260801);
  for (int i = 0; i < count; ++i) {
    std::vector<double> at;
    for (const auto& [p, reaches] : list) {
      // Uniform with the prior's variance. Standard-library distributions differ by platform.
      const double z =
          std::sqrt(12.0) * (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * (i == 0 ? 0 : p.prior_width);
      at.push_back(std::clamp(p.logarithmic ? p.start * std::exp(z) : p.start + z, p.low, p.high));
    }
    out.push_back(std::move(at));
  }
  return out;
}

/// Searches from every point and keeps the best; on ties, the first.
trained best_of(const training_problem& problem, const std::vector<std::vector<double>>& from,
                const fit_progress& report) {
  std::vector<trained> found(from.size());
  in_parallel(from.size(), [&](std::size_t i) {
    found[i] = problem.solve(from[i], [&](int iteration, double cost) {
      if (report)
        report(fmt::format("start {} of {}, iteration {}: cost {:.4f}", i + 1, from.size(), iteration, cost));
    });
  });
  return *std::min_element(found.begin(), found.end(),
                           [](const trained& a, const trained& b) { return a.cost < b.cost; });
}

/// What was run, whatever the release: model, task, GPUs, formats, layout and batch.
std::string configuration_of(const training_row& r) {
  const training_workload& w = r.workload;
  const parallelism& p = w.par;
  return fmt::format("{} {} {} {} {} tp{} pp{} cp{} vp{} ep{} dp{} s{} gbs{} mbs{}", r.record.model, r.record.kind,
                     r.record.system, p.gpus(), name(w.gemm_precision), p.tp, p.pp, p.cp, p.vp, p.ep, p.dp,
                     w.seq_length, w.global_batch_size, w.micro_batch_size);
}

std::string group_of(const training_row& r, const std::string& by) {
  if (by == "gpus") return std::to_string(r.workload.par.gpus());
  if (by == "third") return third_of(r.record.id);
  if (by == "configuration") return twelfth_of(configuration_of(r));
  if (by == "cell") return twelfth_of(cell_of(r));
  return by == "model" ? r.record.model : by == "system" ? r.record.system : r.software->name;
}

using groups_of_rows = std::vector<split_rows<const step_fit_row>>;
/// log(simulated / published) by group, in row order.
using errors_by_group = std::vector<std::vector<double>>;

/// Errors on each group from a fit to all other rows that starts at `from`.
errors_by_group left_out_errors(const groups_of_rows& groups, const stack_set& stacks,
                                const std::vector<training_parameter>& list, const std::vector<double>& from,
                                const fit_progress& report) {
  errors_by_group out(groups.size());
  in_parallel(groups.size(), [&](std::size_t i) {
    const auto& [name, left, kept] = groups[i];
    const stacks_by_name without = stacks.at(training_problem(kept, stacks, list).solve(from, {}).settings);
    for (const step_fit_row* r : left) out[i].push_back(log_error(r->row, without, step_time));
    if (report) report(fmt::format("refitted without {}", name));
  });
  return out;
}

void add_unseen(std::vector<unseen_step>& out, const groups_of_rows& groups, const errors_by_group& errors) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t i = 0; i < groups[g].left.size(); ++i) {
      const training_row& r = groups[g].left[i]->row;
      const double miss = r.record.metric == "step_time_s" ? -errors[g][i] : errors[g][i];
      out.push_back({groups[g].group, kind_of_step(r.hardware, *r.net, r.workload), miss, cell_of(r)});
    }
}

/// Dense models, mixtures of experts, or hybrids, which have scans.
const char* family_of(const model& m) {
  const auto scans = [](const layer_spec& l) { return l.scan.heads > 0; };
  if (std::any_of(m.layers.begin(), m.layers.end(), scans)) return "hybrids";
  return has_routed_experts(m) ? "experts" : "dense";
}

/// Whether a stack is of the releases whose errors the targets name: Megatron-Bridge from 26.04, MLPerf from v5.1.
bool of_reference_release(const stack& s) {
  constexpr std::array<std::string_view, 4> names = {training_reference, "megatron-bridge-26.04",
                                                     "mlperf-training-v5.1", "mlperf-training-v6.0"};
  return std::find(names.begin(), names.end(), s.name) != names.end();
}

fit_report::left_out left_out_entry(std::string group, const std::vector<double>& relative) {
  const error_summary e = summary_of(relative);
  return {std::move(group), e.rows, e.mean, e.worst, e.bias};
}

/// Adds the errors of each group that was left out, then of each family of models: over all releases, and over the
/// reference releases. Says the worst rows.
void add_left_out(fit_report& out, const groups_of_rows& groups, const errors_by_group& logs,
                  const fit_progress& say) {
  std::map<std::string, std::vector<double>> families;
  std::vector<std::pair<double, const training_row*>> rows;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<double> relative;
    for (std::size_t i = 0; i < logs[g].size(); ++i) {
      const training_row& r = groups[g].left[i]->row;
      relative.push_back(std::exp(logs[g][i]) - 1);
      const std::string family = family_of(*r.net);
      families[family].push_back(relative.back());
      if (of_reference_release(*r.software)) families[family + ", reference"].push_back(relative.back());
      rows.emplace_back(relative.back(), &r);
    }
    out.leave_out.push_back(left_out_entry(groups[g].group, relative));
  }
  for (const auto& [family, relative] : families)
    out.leave_out.push_back(left_out_entry("each in turn: " + family, relative));
  constexpr std::size_t worst = 15;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  for (std::size_t i = 0; i < std::min(worst, rows.size()); ++i) {
    const training_row& r = *rows[i].second;
    say(fmt::format("left out: {:+.1f} %, {} ({}), {}", 100 * rows[i].first, r.record.id, r.software->name,
                    configuration_of(r)));
  }
}

}  // namespace

fit_report fit_training(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                        const std::string& leave_out, const fit_progress& report) {
  input_cache inputs(data);
  std::vector<step_fit_row> rows;
  for (const auto& table : tables) {
    const csv_table t = read_csv(table);
    for (const csv_row& row : t.rows)
      if (training_row r = read_training_row(row, t.stem, inputs); usable(r) && of_fitted_release(r))
        rows.push_back({std::move(r), 1});
  }
  if (rows.empty())
    throw input_error({{tables.front().string(), "", "no row with a complete configuration to fit", {}}});
  weigh(rows);
  const stack_set stacks(data);
  const std::vector<training_parameter> list = training_parameters();
  std::vector<const step_fit_row*> all;
  for (const step_fit_row& r : rows) all.push_back(&r);
  constexpr int starts = 3;  // eight starts end within 0.1 % of the same cost
  std::mutex speaking;
  const fit_progress say = [&](const std::string& line) {
    const std::lock_guard lock(speaking);
    if (report) report(line);
  };
  const trained best = best_of({all, stacks, list}, starting_points(list, starts), say);
  const auto grouped = [&](const std::string& by) {
    return split_by_group(all, [&](const step_fit_row& r) { return group_of(r.row, by); });
  };
  // Bands come from configurations, and from cells, that a fit has not seen.
  std::map<std::string, std::pair<groups_of_rows, errors_by_group>> missed;
  const auto leave = [&](const std::string& by) -> const auto& {
    auto& [groups, errors] = missed[by];
    if (groups.empty()) {
      groups = grouped(by);
      errors = left_out_errors(groups, stacks, list, best.at, say);
    }
    return missed[by];
  };
  std::vector<unseen_step> unseen, by_configuration;  // both have each step once for each way to leave it out
  for (const char* by : {"configuration", "cell"}) {
    const auto& [groups, errors] = leave(by);
    add_unseen(unseen, groups, errors);
    if (by_configuration.empty()) by_configuration = unseen;
  }

  fit_report out;
  for (std::size_t i = 0; i < list.size(); ++i)
    out.parameters.push_back({list[i].fitted.name, list[i].fitted.start, best.at[i]});
  std::vector<double> errors;
  const stacks_by_name fitted = stacks.at(best.settings);
  for (const step_fit_row& r : rows) errors.push_back(std::exp(log_error(r.row, fitted, step_time)) - 1);
  enter_fitted(out, summary_of(errors));
  out.files = files_with(data, best.settings, residuals_value(residuals_by_kind(unseen, unseen)));
  if (!unseen.empty())
    say(fmt::format(
        "{:.1f} % of the steps of configurations and cells left out are inside the bands from the others",
        100 * coverage_of(unseen, unseen)));
  for (const cell_coverage& c : coverage_by_cell(by_configuration, unseen)) {
    const expected_rows allowed = expected_in_band(c.rows);
    say(fmt::format("{}: {} of {} steps of configurations left out in band, {} to {} allowed{}", c.cell, c.inside,
                    c.rows, allowed.low, allowed.high, allowed.hold(c.inside) ? "" : ": outside"));
  }
  if (leave_out.empty()) return out;
  const auto& [groups, errors_left] = leave(leave_out);
  add_left_out(out, groups, errors_left, say);
  return out;
}

}  // namespace nvlsim
