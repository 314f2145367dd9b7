// The fit of post-training loops: what a framework adds to its engines and its trainer.
// [docs/post-training.md#validation]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "calibration/least_squares.hpp"
#include "calibration/left_out.hpp"
#include "calibration/stack_files.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/measurements/posttraining_rows.hpp"
#include "nvlsim/units/in_parallel.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

/// A published step, and why the fit does not see it: "" where it does.
struct loop_row {
  csv_row cells;
  post_training_row inputs;
  std::string unseen;
  std::string model;
};
using loop_rows = std::vector<const loop_row*>;

/// A cost of the loop that is fitted, and how a file writes it.
struct loop_knob {
  const char* member;
  free_parameter parameter;
  void (*set)(loop_profile& costs, double x);
  const char* unit;  ///< "" of plain numbers
};

/// Iterations and passes cost what those of the engine and the trainer do: factors on them, which rows of one GPU
/// cannot tell from the host, predict other racks and releases worse.
const std::vector<loop_knob>& nemo_knobs() {
  static const std::vector<loop_knob> list = {
      {"sample_host",
       {"sample host", 4, 0.1, 40, 1, true},
       [](loop_profile& c, double x) { c.sample_host = seconds::from_base(1e-3 * x); },
       " ms"},
      {"step_host",
       {"step host", 4, 0.1, 40, 1, true},
       [](loop_profile& c, double x) { c.step_host = seconds::from_base(x); },
       " s"},
      {"host_copy_rate",
       {"host copy rate", 4, 0.5, 60, 1, true},
       [](loop_profile& c, double x) { c.host_copy_rate = bandwidth::from_base(1e9 * x); },
       " GB/s"},
      {"broadcast_rate",
       {"broadcast rate", 60, 5, 400, 0.7, true},
       [](loop_profile& c, double x) { c.broadcast_rate = bandwidth::from_base(1e9 * x); },
       " GB/s"},
      {"per_tensor_shared",
       {"per tensor, shared", 0.4, 0.005, 5, 1, true},
       [](loop_profile& c, double x) { c.per_tensor_shared = seconds::from_base(1e-3 * x); },
       " ms"}};
  return list;
}

const std::vector<loop_knob>& verl_knobs() {
  static const std::vector<loop_knob> list = {
      {"rollout_factor",
       {"rollout factor", 1.2, 0.5, 4, 0.3, true},
       [](loop_profile& c, double x) { c.rollout_factor = x; },
       ""},
      {"logprobs_factor",
       {"log-probabilities factor", 1, 0.5, 4, 0.5, true},
       [](loop_profile& c, double x) { c.logprobs_factor = x; },
       ""},
      {"sample_host",
       {"sample host", 4, 0.1, 40, 1, true},
       [](loop_profile& c, double x) { c.sample_host = seconds::from_base(1e-3 * x); },
       " ms"}};
  return list;
}

struct loop_framework {
  const char *name, *systems;  ///< the name of its file; what its systems begin with
  const std::vector<loop_knob>& (*knobs)();
};
constexpr std::array<loop_framework, 2> loop_frameworks = {
    {{"nemo-rl", "NeMo RL v", nemo_knobs}, {"verl", "verl", verl_knobs}}};

/// Rows that show what the fit has not seen: another rack, an earlier release, twice the GPUs, another synchrony.
std::string unseen_kind(const csv_row& row) {
  const auto holds = [&](const char* column, const char* word) {
    return row[column].find(word) != std::string::npos;
  };
  if (holds("hardware", "GB200") || holds("hardware", "GB300")) return "GB200 and GB300";
  if (holds("system", "v0.4")) return "NeMo RL v0.4";
  if (holds("system", "verl") && row.integer("gpus").value_or(0) > 32) return "verl, more than 32 GPUs";
  if (holds("sync_mode", "one-step off")) return "verl, one step off";
  return {};
}

/// Values of the knobs, then mean responses of runs that state none.
struct knob_values {
  std::vector<double> costs;
  std::map<std::string, double> lengths;
};

struct loop_problem {
  const loop_framework& kind;
  std::vector<std::string> unknown;  ///< runs whose mean response is inferred

  std::vector<free_parameter> parameters() const {
    std::vector<free_parameter> out;
    for (const loop_knob& k : kind.knobs()) out.push_back(k.parameter);
    for (const std::string& run : unknown) out.push_back({"mean response, " + run, 700, 200, 4000, 2, true});
    return out;
  }
  knob_values values(const std::vector<double>& at) const {
    const std::size_t n = kind.knobs().size();
    knob_values out{{at.begin(), at.begin() + static_cast<std::ptrdiff_t>(n)}, {}};
    for (std::size_t i = 0; i < unknown.size(); ++i) out.lengths[unknown[i]] = at[n + i];
    return out;
  }
};

std::vector<compared_phase> phases_at(const loop_row& r, const loop_framework& kind, const knob_values& v) {
  post_training_row at = r.inputs;
  for (std::size_t i = 0; i < v.costs.size(); ++i) kind.knobs()[i].set(at.loop.costs, v.costs[i]);
  if (const auto mean = v.lengths.find(r.inputs.unknown_lengths); mean != v.lengths.end()) {
    response_lengths& l = at.loop.loop.response;
    l.mean = std::min(mean->second, 0.99 * static_cast<double>(l.max));
    at.rollout.output.mean = l.mean;
  }
  const post_training_run run = run_loop(at.parts(), at.loop);
  if (!run.reasons.empty()) throw input_error({{r.cells["id"], "", run.reasons.front(), {}}});
  return compare_phases(r.cells, run);
}

/// Of every step log(simulated / published); unless those alone are asked for, of its phases their difference in
/// parts of the step, because a wait may be 0.
std::vector<double> log_errors(const loop_rows& rows, const loop_framework& kind, const knob_values& v,
                               bool steps) {
  std::vector<std::vector<double>> parts(rows.size());
  in_parallel(rows.size(), [&](std::size_t i) {
    const std::vector<compared_phase> all = phases_at(*rows[i], kind, v);
    for (const compared_phase& p : all) {
      if (p.metric == "step_s") parts[i].push_back(std::log(p.simulated / p.published));
      else if (!steps) parts[i].push_back((p.simulated - p.published) / all.front().published);
    }
  });
  std::vector<double> out;
  for (const std::vector<double>& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

/// Loops move in small jumps, so slopes are taken over more than those.
constexpr double slope_step = 0.04;

std::vector<double> fitted_loop(const loop_rows& rows, const loop_problem& problem,
                                const std::function<void(int, double)>& watch = {}) {
  const auto errors = [&](const std::vector<double>& at) {
    return log_errors(rows, problem.kind, problem.values(at), false);
  };
  const auto slopes = [&](const std::vector<double>& at) {
    const std::vector<double> here = errors(at);
    std::vector<std::vector<double>> out(here.size(), std::vector<double>(at.size()));
    for (std::size_t k = 0; k < at.size(); ++k) {
      std::vector<double> moved = at;
      moved[k] *= std::exp(slope_step);
      const std::vector<double> there = errors(moved);
      for (std::size_t i = 0; i < here.size(); ++i) out[i][k] = (there[i] - here[i]) / slope_step;
    }
    return out;
  };
  return fit_parameters(problem.parameters(), errors, {.robust_scale = 0.1, .iterations = 12, .tolerance = 3e-3},
                        watch, slopes);
}

std::vector<double> shares_of(std::vector<double> logs) {
  for (double& e : logs) e = std::expm1(e);
  return logs;
}

/// Puts a number, or a quantity, where the file has the old one.
void set_cost(value& costs, const loop_knob& k, double x) {
  const std::string text = fmt::format("{:.3g}", x);
  const value number = *k.unit ? value{text + k.unit} : value{std::stod(text)};
  value* old = costs.find(k.member);
  if (old && old->members()) old->set("value", number);
  else costs.set(k.member, number);
}

class framework_fit {
 public:
  framework_fit(const loop_framework& kind, loop_rows rows, fit_report& out) : problem_{kind, {}}, out_(out) {
    std::set<std::string> unknown;
    for (const loop_row* r : rows) (r->unseen.empty() ? seen_ : unseen_).push_back(r);
    for (const loop_row* r : seen_)
      if (!r->inputs.unknown_lengths.empty()) unknown.insert(r->inputs.unknown_lengths);
    problem_.unknown.assign(unknown.begin(), unknown.end());
  }

  /// Errors of steps join `errors`.
  void run(const data_folders& data, bool by_model, std::vector<double>& errors, const fit_progress& report) {
    if (seen_.size() < problem_.parameters().size() / 2) return;
    const std::vector<double> best = fitted_loop(seen_, problem_, [&](int iteration, double cost) {
      if (report) report(fmt::format("{}: iteration {}, cost {:.4g}", problem_.kind.name, iteration, cost));
    });
    const auto list = problem_.parameters();
    for (std::size_t i = 0; i < list.size(); ++i)
      out_.parameters.push_back({fmt::format("{} {}", problem_.kind.name, list[i].name), list[i].start, best[i]});
    if (report)
      for (std::size_t i = 0; i < list.size(); ++i) report(fmt::format("{} {:.4g}", list[i].name, best[i]));
    const auto known = shares_of(log_errors(seen_, problem_.kind, problem_.values(best), true));
    errors.insert(errors.end(), known.begin(), known.end());
    for (const auto& [group, left, kept] : split_by_group(unseen_, [](const loop_row& r) { return r.unseen; }))
      enter(group, left, best);
    if (unseen_.size() == count_of(unseen_.empty() ? "" : unseen_.front()->unseen) && !unseen_.empty())
      enter(unseen_.front()->unseen, unseen_, best);
    if (by_model)
      for (const auto& [group, left, kept] : split_by_group(seen_, [](const loop_row& r) { return r.model; }))
        enter(group, left, fitted_loop(kept, problem_));
    write(data, best);
  }

 private:
  std::size_t count_of(const std::string& group) const {
    return static_cast<std::size_t>(
        std::count_if(unseen_.begin(), unseen_.end(), [&](const loop_row* r) { return r->unseen == group; }));
  }

  void enter(const std::string& group, const loop_rows& left, const std::vector<double>& at) {
    const auto missed = log_errors(left, problem_.kind, problem_.values(at), true);
    out_.leave_out.push_back(left_out_of(group, summary_of(shares_of(missed))));
    for (const double e : missed) misses_.push_back(std::expm1(std::abs(e)));
  }

  void write(const data_folders& data, const std::vector<double>& best) {
    diagnostics problems;
    const std::string file = std::string(problem_.kind.name) + ".json";
    config::document doc = config::load(data.platforms / "loops" / file, {file, file}, problems);
    problems.throw_if_any();
    value* costs = doc.root.find("costs");
    if (!costs) throw input_error({{file, "/costs", "is missing", {}}});
    const auto& knobs = problem_.kind.knobs();
    for (std::size_t i = 0; i < knobs.size(); ++i) set_cost(*costs, knobs[i], best[i]);
    if (!misses_.empty())
      costs->set("error_90", value{std::stod(fmt::format("{:.2g}", share_below(misses_, 0.9)))});
    out_.files.emplace_back(file, stack_file_text(doc.root));
  }

  loop_problem problem_;
  loop_rows seen_, unseen_;
  std::vector<double> misses_;
  fit_report& out_;
};

}  // namespace

fit_report fit_loops(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                     const std::string& leave_out, const fit_progress& report) {
  input_cache inputs(data);
  std::vector<loop_row> rows;
  for (const auto& table : tables)
    for (const csv_row& row : read_csv(table).rows)
      if (post_training_exclusion(row).empty() && !row.blank("step_s"))  // not a transfer alone
        rows.push_back({row, read_post_training_row(row, inputs), unseen_kind(row), row["model"]});
  fit_report out;
  std::vector<double> errors;
  for (const loop_framework& kind : loop_frameworks) {
    loop_rows mine;
    for (const loop_row& r : rows)
      if (r.cells["system"].starts_with(kind.systems)) mine.push_back(&r);
    if (report && !mine.empty()) report(fmt::format("{}: {} rows", kind.name, mine.size()));
    if (!mine.empty()) framework_fit(kind, mine, out).run(data, leave_out == "model", errors, report);
  }
  if (errors.empty())
    throw input_error({{tables.front().string(), "", "no row has a step of NeMo RL or verl", {}}});
  enter_fitted(out, summary_of(errors));
  return out;
}

}  // namespace nvlsim
