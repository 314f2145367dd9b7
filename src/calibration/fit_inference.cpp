// The serving fit: costs pooled by GPU architecture, engine deviations from the pool with a tight prior, one
// factor per release, and front-end costs. [docs/models-and-assumptions.md#inference-fit]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "calibration/least_squares.hpp"
#include "calibration/left_out.hpp"
#include "calibration/serving_knobs.hpp"
#include "calibration/serving_parameters.hpp"
#include "calibration/serving_residuals.hpp"
#include "calibration/stack_files.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/measurements/inference_rows.hpp"
#include "nvlsim/measurements/row_runs.hpp"
#include "nvlsim/run/serving_bands.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/summary.hpp"
#include "nvlsim/stack/inference_fields.hpp"
#include "nvlsim/units/in_parallel.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

constexpr const char* pool_stack = "serving";
constexpr std::array<const char*, 5> served_architectures = {"ampere", "hopper", "blackwell", "cdna3", "cdna4"};
constexpr double tpot_weight = 1, ttft_weight = 0.5, throughput_weight = 1;
constexpr double doubtful_weight = 0.3;      // weight of rows with a doubtful source
constexpr double pooled_ttft_weight = 0.25;  // TTFT includes queues at saturated prefill workers

// Widths of priors, in log. [docs/models-and-assumptions.md#inference-fit]
constexpr double release_width = 0.2;
constexpr double expert_release_width = 0.45;  // fused MoE kernels vary between releases
constexpr double odd_engine_width = 4;  // multiplies the widths for vLLM of 2023: few rows of very old software
constexpr std::array<std::pair<const char*, double>, 5> server_widths = {{{"sequence_host", 0.5},
                                                                          {"request_host", 0.75},
                                                                          {"first_token_delay", 1.5},
                                                                          {"first_token_iterations", 0.5},
                                                                          {"prompt_token_delay", 0.5}}};

struct serving_fit_row {
  inference_row row;
  std::shared_ptr<const run_summary> run;  ///< its iterations at the start of the search
  std::vector<double> weights;             ///< one per target
  std::vector<std::size_t> relevant;       ///< parameters the row depends on
  std::vector<double> known_at, known;     ///< log errors (`known`) and the parameter values that gave them
};

double weight_of(const serving_fit_row& r, served_metric what) {
  const std::string& suspect = r.row.record.suspect;
  const double trust = doubtful(suspect) ? doubtful_weight : 1;
  // How many drafts were accepted is a guess, which matters little for first tokens.
  if (r.row.workload.drafts.draft_tokens > 0 && what != served_metric::ttft) return 0;
  if (what == served_metric::tpot) return trust * tpot_weight;
  if (what != served_metric::ttft) return trust * throughput_weight;
  if (suspect.find("TTFT") != std::string::npos) return 0;
  return trust * (r.row.workload.pooled() || r.row.request_rate ? pooled_ttft_weight : ttft_weight);
}

class serving_fit {
 public:
  serving_fit(const data_folders& data) : inputs_(data), data_(data) {}

  void read(const std::filesystem::path& table) {
    const csv_table t = read_csv(table);
    for (const csv_row& cells : t.rows) {
      serving_fit_row r{read_inference_row(cells, t.stem, inputs_), {}, {}, {}, {}, {}};
      if (r.row.record.status != record_status::ok || r.row.workload.mlperf || !can_freeze(r.row)) continue;
      if (r.row.record.notes.find("pools assumed") != std::string::npos) continue;  // guessed layouts
      if (!fits(r.row, *r.row.software)) continue;  // nor does validation simulate them
      for (const metric_target& m : r.row.targets) r.weights.push_back(weight_of(r, m.what));
      rows_.push_back(std::move(r));
    }
  }

  void choose_parameters() {
    std::set<std::tuple<std::string, std::string>> cells;
    std::set<std::string> routed;
    for (const serving_fit_row& r : rows_) {
      stacks_.try_emplace(r.row.software->name, *r.row.software);
      cells.insert({r.row.hardware.gpu.architecture, engine_of(r.row.software->name)});
      if (has_routed_experts(*r.row.net)) routed.insert(r.row.software->name);
    }
    const inference_profile& start = *inputs_.stack_named(pool_stack).inference;
    for (const char* a : served_architectures) add_costs(start, a, "", knob::type::pooled);
    for (const auto& [a, e] : cells) add_costs(start, a, e, knob::type::engine);
    for (const auto& [name, s] : stacks_) {
      if (name != engine_of(name)) add({knob::type::release, "", "", "", name, {}}, 1, release_width);
      if (routed.contains(name))
        add({knob::type::expert_release, "expert_layer_time", "", "", name, {}}, 1, expert_release_width);
      add_server(name);
    }
    for (serving_fit_row& r : rows_)
      for (std::size_t i = 0; i < knobs_.size(); ++i)
        if (acts_on(knobs_[i], r.row)) r.relevant.push_back(i);
    begin_where_the_files_are();
  }

  /// Starts the search at the values of the stack files. Priors stay centred at their own start.
  void begin_where_the_files_are() {
    const inference_profile& all = *inputs_.stack_named(pool_stack).inference;
    for (std::size_t i = 0; i < knobs_.size(); ++i) {
      const knob& k = knobs_[i];
      const auto at = [&](const inference_profile& p) {
        const auto it = p.gpus.find(k.architecture);
        return get_cost(it == p.gpus.end() ? static_cast<const engine_costs&>(p) : it->second, k.field, k.format);
      };
      std::optional<double>& from = parameters_[i].search_from;
      switch (k.what) {
        case knob::type::pooled:
          from = at(all);
          break;
        case knob::type::engine:
          from = at(*inputs_.stack_named(k.engine).inference) / at(all);
          break;
        case knob::type::release:
          from = inputs_.stack_named(k.stack).inference->release_factor;
          break;
        case knob::type::expert_release:
          from = inputs_.stack_named(k.stack).inference->expert_release_factor;
          break;
        case knob::type::server:
          from = get_server(inputs_.stack_named(k.stack).inference->front_end, k.field);
          break;
      }
    }
  }

  /// Freezes the iterations of all rows as they are at the start of the search.
  void freeze() {
    std::vector<double> at;
    for (const free_parameter& p : parameters_)
      at.push_back(std::clamp(p.search_from.value_or(p.start), p.low, p.high));
    apply(at);
    in_parallel(rows_.size(), [&](std::size_t i) {
      serving_fit_row& r = rows_[i];
      r.run = std::make_shared<run_summary>(nvlsim::freeze(r.row, stacks_.at(r.row.software->name)));
    });
  }

  /// Derivatives of the residuals by the logarithms of the parameters. A row depends on the costs of its engine on
  /// its GPU. Each cost is varied once; a parameter's derivative is the sum over the costs it moves.
  std::vector<std::vector<double>> derivatives(const std::vector<serving_fit_row*>& rows,
                                               const std::vector<double>& at) {
    apply(at);
    std::vector<std::vector<std::vector<double>>> of_rows(rows.size());
    in_parallel(rows.size(), [&](std::size_t at_row) {
      serving_fit_row& r = *rows[at_row];
      const std::vector<double> base = log_errors(r, at);
      std::vector<std::vector<double>> of_row(base.size(), std::vector<double>(knobs_.size()));
      std::map<std::string, std::vector<double>> moved;
      stack software = stacks_.at(r.row.software->name);
      for (const std::size_t i : r.relevant)
        for (const std::string& field : fields_of(knobs_[i], r.row)) {
          auto [found, is_new] = moved.try_emplace(field);
          if (is_new) found->second = slopes(r, software, {knobs_[i], field}, base);
          for (std::size_t t = 0; t < base.size(); ++t) of_row[t][i] += found->second[t] * r.weights[t];
        }
      of_rows[at_row] = std::move(of_row);
    });
    std::vector<std::vector<double>> out;
    for (auto& of_row : of_rows) std::move(of_row.begin(), of_row.end(), std::back_inserter(out));
    return out;
  }

  std::vector<double> residuals(const std::vector<serving_fit_row*>& rows, const std::vector<double>& at) {
    apply(at);
    in_parallel(rows.size(), [&](std::size_t i) { log_errors(*rows[i], at); });
    std::vector<double> out;
    for (const serving_fit_row* r : rows)
      for (std::size_t i = 0; i < r->known.size(); ++i) out.push_back(r->known[i] * r->weights[i]);
    return out;
  }

  /// Log errors of a row's targets. Does not simulate again if none of the row's parameters changed.
  const std::vector<double>& log_errors(serving_fit_row& r, const std::vector<double>& at) {
    std::vector<double> here;
    for (const std::size_t i : r.relevant) here.push_back(at[i]);
    if (r.known_at != here || r.known.empty()) {
      r.known = simulated_errors(r, stacks_.at(r.row.software->name));
      r.known_at = std::move(here);
    }
    return r.known;
  }

  static std::vector<double> simulated_errors(const serving_fit_row& r, const stack& s) {
    std::vector<double> out = simulate_frozen(r.row, s, *r.run);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::log(out[i] / r.row.targets[i].published);
    return out;
  }

  /// Applies parameter values to the stacks.
  void apply(const std::vector<double>& at) {
    for (auto& [name, s] : stacks_) {
      inference_profile& p = *s.inference;
      for (std::size_t i = 0; i < knobs_.size(); ++i) {
        const knob& k = knobs_[i];
        if (k.what == knob::type::pooled) set_cost(p.gpus[k.architecture], k.field, k.format, at[i]);
      }
      for (std::size_t i = 0; i < knobs_.size(); ++i) apply_own(name, p, knobs_[i], at[i]);
    }
  }

  std::vector<std::pair<std::string, std::string>> files(
      const std::vector<double>& at, const std::map<std::string, std::map<served_metric, double>>& bands,
      const std::vector<served_error>& fitted, const std::vector<served_error>& left_out) {
    stack_files out(data_.stacks);
    std::set<std::string> written;
    const auto write = [&](const std::string& stack_name, const std::string& pointer, const std::string& text) {
      out.set_number(stack_name, "/inference/" + pointer, text);
      written.insert(stack_name);
    };
    std::map<std::string, double> pooled;
    for (std::size_t i = 0; i < knobs_.size(); ++i) {
      const knob& k = knobs_[i];
      const std::string at_gpu = fmt::format("gpus/{}/{}{}", k.architecture, k.field,
                                             k.format ? fmt::format("/{}", name(*k.format)) : "");
      const auto text = [&](double x) {
        const bool time = std::any_of(engine_time_fields.begin(), engine_time_fields.end(),
                                      [&](const auto& f) { return f.name == k.field; });
        return time ? fmt::format("{:.4g} us", x * 1e6) : fmt::format("{:.4g}", x);
      };
      switch (k.what) {
        case knob::type::pooled:
          pooled[at_gpu] = at[i];
          write(pool_stack, at_gpu, text(at[i]));
          break;
        case knob::type::engine:
          write(k.engine, at_gpu, text(at[i] * pooled.at(at_gpu)));
          break;
        case knob::type::release:
          write(k.stack, "release_factor", fmt::format("{:.4g}", at[i]));
          break;
        case knob::type::expert_release:
          write(k.stack, "expert_release_factor", fmt::format("{:.4g}", at[i]));
          break;
        case knob::type::server:
          write(k.stack, "front_end/" + k.field,
                k.field == "first_token_iterations" ? fmt::format("{:.4g}", at[i])
                                                    : fmt::format("{:.4g} us", at[i] * 1e6));
          break;
      }
    }
    static constexpr std::array<std::pair<served_metric, const char*>, 3> members = {
        {{served_metric::tpot, "tpot"}, {served_metric::ttft, "ttft"}, {served_metric::throughput, "throughput"}}};
    for (const auto& [engine, widths] : bands)
      for (const auto& [what, member] : members)
        if (widths.contains(what))
          write(engine, fmt::format("band/{}", member), fmt::format("{:.3g}", widths.at(what)));
    for (const auto& [engine, widths] : bands) {
      if (!written.contains(engine)) continue;
      const value calibration = calibration_of(fitted, engine);
      for (const auto& [kind, v] : *calibration.members()) out.set(engine, "/inference/calibration/" + kind, v);
      if (!left_out.empty())
        out.set(engine, "/inference/calibration/elsewhere", widths_elsewhere(left_out, engine));
    }
    for (const auto& [name, s] : stacks_)
      if (const value widths = release_widths(fitted, name); name != engine_of(name) && !widths.members()->empty())
        out.set(name, "/inference/calibration/release", widths);
    return out.texts();
  }

  std::vector<serving_fit_row>& rows() { return rows_; }
  const std::vector<free_parameter>& parameters() const { return parameters_; }

  /// Parameters that no row depends on start at their priors: the values in the stack files may come from rows
  /// left out here.
  std::vector<free_parameter> parameters_of(const std::vector<serving_fit_row*>& rows) const {
    std::vector<bool> met(knobs_.size());
    for (const serving_fit_row* r : rows)
      for (const std::size_t i : r->relevant) met[i] = true;
    std::vector<free_parameter> out = parameters_;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!met[i]) out[i].search_from.reset();
    return out;
  }

 private:
  static constexpr double step = 2e-3;  // in log

  /// A cost, and the field of it that is moved.
  struct moved_cost {
    const knob& of;
    const std::string& field;
  };
  /// Derivatives of a row's log errors by the logarithm of a cost. `s` is the row's stack, which is as before
  /// afterwards.
  static std::vector<double> slopes(const serving_fit_row& r, stack& s, const moved_cost& cost,
                                    const std::vector<double>& base) {
    const auto& [k, field] = cost;
    inference_profile& p = *s.inference;
    const double f = std::exp(step);
    const inference_profile was = p;
    if (k.what == knob::type::server) {
      set_server(p.front_end, k.field, get_server(p.front_end, k.field) * f);
    } else {
      engine_costs& c = p.gpus[r.row.hardware.gpu.architecture];
      const std::string plain = k.what == knob::type::release ? field : k.field;
      const auto format = k.what == knob::type::release ? std::nullopt : k.format;
      set_cost(c, plain, format, get_cost(c, plain, format) * f);
    }
    std::vector<double> out = simulated_errors(r, s);
    p = was;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (out[i] - base[i]) / step;
    return out;
  }

  void add(knob k, double start, double width) {
    constexpr double farthest = 12;
    parameters_.push_back({name_of(k), start, start / farthest, start * farthest, width, true});
    knobs_.push_back(std::move(k));
  }

  /// Adds cost parameters. They start at the pool file's values outside `gpus`. The fit does not write those, so a
  /// refit starts at the same point.
  void add_costs(const engine_costs& c, const std::string& a, const std::string& engine, knob::type what) {
    const bool is_pool = what == knob::type::pooled;
    for (const cost_knob& k : cost_knobs) {
      const double width = is_pool ? k.pooled : engine == "vllm-2023" ? odd_engine_width * k.engine : k.engine;
      if (width > 0)
        add({what, std::string(k.field), a, engine, "", {}, k.routed_only}, is_pool ? get_cost(c, k.field) : 1,
            width);
    }
    for (const table_knob& k : table_knobs)
      add({what, std::string(k.field), a, engine, "", k.format, k.field == "expert_factor"},
          is_pool ? get_cost(c, k.field, k.format) : 1, is_pool ? k.pooled : k.engine);
  }

  /// Adds front-end parameters. All releases start at the pool file's values.
  void add_server(const std::string& name) {
    const front_end_costs& f = inputs_.stack_named(pool_stack).inference->front_end;
    for (const auto& [field, width] : server_widths)
      add({knob::type::server, field, "", "", name, {}}, get_server(f, field), width);
  }

  input_cache inputs_;
  data_folders data_;
  std::vector<serving_fit_row> rows_;
  std::vector<free_parameter> parameters_;
  std::vector<knob> knobs_;
  std::map<std::string, stack> stacks_;
};

served_metric family(served_metric m) {
  return m == served_metric::throughput_per_gpu ? served_metric::throughput : m;
}

/// One of five parts: whole configurations (model, GPU, engine, weights, layout; all releases and loads), or whole
/// cells (model, GPU, engine).
std::string part_of(const serving_fit_row& r, bool by_cell) {
  constexpr std::uint64_t parts = 5;
  const inference_workload& w = r.row.workload;
  std::string of =
      fmt::format("{}/{}/{}", r.row.net->name, r.row.hardware.gpu.name, engine_of(r.row.software->name));
  if (!by_cell)
    of += fmt::format("/{}/{}/{}/{}/{}", name(error_format(*r.row.net, w)), w.tp, w.pp, w.ep, w.attention_dp);
  return fmt::format("{}s, part {}", by_cell ? "cell" : "configuration", 1 + hash_of(of) % parts);
}

std::string group_of(const serving_fit_row& r, const std::string& leave_out) {
  if (leave_out == "model") return r.row.record.model;
  if (leave_out == "system") return r.row.record.system;
  if (leave_out == "configuration" || leave_out == "cell") return part_of(r, leave_out == "cell");
  return leave_out == "third" ? third_of(r.row.record.id) : r.row.software->name;
}

const char* metric_name(served_metric m) {
  return m == served_metric::tpot ? "TPOT" : m == served_metric::ttft ? "TTFT" : "throughput";
}

/// The kind of a row, for summaries.
std::string kind_of(const serving_fit_row& r) {
  const char* load = r.row.workload.pooled()                     ? "disaggregated"
                     : r.row.workload.load == load_kind::offline ? "offline"
                                                                 : "under load";
  return fmt::format("{}, {}", load, r.row.record.kind);
}

served_error error_of(const serving_fit_row& r, std::size_t target, double log_error) {
  const served_metric what = family(r.row.targets[target].what);
  return {engine_of(r.row.software->name),
          r.row.software->name,
          std::string(error_kind(*r.row.net, r.row.workload)),
          r.row.hardware.gpu.name,
          r.row.hardware.gpu.architecture,
          r.row.net->name,
          what == served_metric::tpot   ? "tpot"
          : what == served_metric::ttft ? "ttft"
                                        : "throughput",
          error_format(*r.row.net, r.row.workload),
          log_error};
}

/// A fit, and how it is fitted to some of its rows.
struct refit {
  serving_fit& fit;
  const std::vector<serving_fit_row*>& all;
  std::function<std::vector<double>(const std::vector<serving_fit_row*>&)> train;
};

/// Fits without each group of rows in turn. Returns the errors on the rows left out.
std::vector<served_error> leave_out_in_turn(const refit& again, const std::string& leave_out, fit_report& out,
                                            const fit_progress& report) {
  serving_fit& fit = again.fit;
  std::map<std::string, std::map<std::string, std::vector<double>>> by_kind;
  std::vector<served_error> left_out;
  const auto groups = split_by_group(again.all, [&](const serving_fit_row& r) { return group_of(r, leave_out); });
  for (const auto& [group, held, kept] : groups) {
    const std::vector<double> without = again.train(kept);
    fit.apply(without);
    std::map<served_metric, std::vector<double>> magnitudes;
    fit_report::left_out l{.group = group, .rows = held.size()};
    double count = 0;
    for (serving_fit_row* r : held) {
      const std::vector<double>& errors = fit.log_errors(*r, without);
      for (std::size_t i = 0; i < errors.size(); ++i) {
        const double e = std::expm1(errors[i]);
        left_out.push_back(error_of(*r, i, errors[i]));
        magnitudes[family(r->row.targets[i].what)].push_back(std::abs(e));
        by_kind[kind_of(*r)][metric_name(r->row.targets[i].what)].push_back(std::abs(e));
        l.mean_error += std::abs(e);
        l.bias += e;
        l.worst_error = std::max(l.worst_error, std::abs(e));
        ++count;
      }
    }
    l.mean_error /= count;
    l.bias /= count;
    std::string text = fmt::format("without {}:", group);
    for (const auto& [what, errors] : magnitudes) {
      l.by_metric[metric_name(what)] = {errors.size(), median_of(errors), share_below(errors, 0.9)};
      text += fmt::format(" {} {:.1f} %", metric_name(what), 100 * median_of(errors));
    }
    out.leave_out.push_back(std::move(l));
    if (report) report(text);
  }
  for (const auto& [kind, errors_of] : by_kind)
    for (const auto& [metric, errors] : errors_of)
      out.held_out[kind][metric] = {errors.size(), median_of(errors), share_below(errors, 0.9)};
  return left_out;
}

}  // namespace

fit_report fit_inference(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                         const std::string& leave_out, const fit_progress& report) {
  serving_fit fit(data);
  for (const auto& table : tables) fit.read(table);
  if (fit.rows().empty())
    throw input_error({{tables.front().string(), "", "no row with a complete configuration to fit", {}}});
  fit.choose_parameters();
  std::vector<serving_fit_row*> all;
  for (serving_fit_row& r : fit.rows()) all.push_back(&r);
  const auto train = [&](const std::vector<serving_fit_row*>& rows, int iterations, double tolerance,
                         const fit_progress& to) {
    fit_options o;
    o.robust_scale = 0.1;
    o.iterations = iterations;
    o.tolerance = tolerance;
    return fit_parameters(
        fit.parameters_of(rows), [&](const std::vector<double>& at) { return fit.residuals(rows, at); }, o,
        [&](int i, double cost) {
          if (to) to(fmt::format("iteration {}: cost {:.1f}", i, cost));
        },
        [&](const std::vector<double>& at) { return fit.derivatives(rows, at); });
  };
  fit.freeze();
  if (report) report(fmt::format("{} rows, {} parameters", all.size(), fit.parameters().size()));
  const std::vector<double> best = train(all, 20, 3e-5, report);

  fit_report out;
  out.rows = all.size();
  for (std::size_t i = 0; i < best.size(); ++i)
    out.parameters.push_back({fit.parameters()[i].name, fit.parameters()[i].start, best[i]});
  fit.apply(best);
  std::vector<double> magnitudes;
  std::map<std::string, std::map<served_metric, std::vector<double>>> by_engine;
  std::vector<served_error> fitted;
  for (serving_fit_row* r : all) {
    const std::vector<double>& errors = fit.log_errors(*r, best);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      by_engine[engine_of(r->row.software->name)][family(r->row.targets[i].what)].push_back(std::abs(errors[i]));
      fitted.push_back(error_of(*r, i, errors[i]));
      magnitudes.push_back(std::abs(std::expm1(errors[i])));
      out.bias += std::expm1(errors[i]);
    }
  }
  const auto n = static_cast<double>(magnitudes.size());
  out.bias /= n;
  for (const double m : magnitudes) out.mean_error += m / n;
  out.median_error = median_of(magnitudes);
  out.p90_error = share_below(magnitudes, 0.9);
  std::map<std::string, std::map<served_metric, double>> bands;
  for (const auto& [engine, kinds] : by_engine)
    for (const auto& [what, errors] : kinds)
      bands[engine][what] = unseen_widening * share_below(errors, band_share);
  std::vector<served_error> left_out;
  if (!leave_out.empty())
    left_out = leave_out_in_turn({fit, all, [&](const auto& rows) { return train(rows, 4, 0, {}); }}, leave_out,
                                 out, report);
  const bool elsewhere = leave_out == "system" || leave_out == "cell";
  if (elsewhere) out.coverage = coverage_elsewhere(left_out);
  if (!elsewhere) left_out.clear();
  out.files = fit.files(best, bands, fitted, left_out);
  return out;
}

}  // namespace nvlsim
