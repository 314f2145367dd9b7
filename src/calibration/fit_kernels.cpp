// Fits kernels, one family and architecture at a time, with rates per GPU. [docs/kernels.md#fit]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "calibration/least_squares.hpp"
#include "calibration/left_out.hpp"
#include "calibration/stack_files.hpp"
#include "nvlsim/calibration/fit.hpp"
#include "nvlsim/calibration/kernel_knobs.hpp"
#include "nvlsim/measurements/kernel_rows.hpp"

namespace nvlsim {
namespace {

constexpr const char* main_stack = "tensorrt-llm-1.3-kernels";

/// GPUs that share parameters. The first one uses the architecture's entry.
struct pool {
  const char* entry;
  std::vector<std::string> gpus;
  double prior = 1;  ///< prior width of log(shared value / start)
};
const std::vector<pool> usual_pools = {
    {"blackwell", {"gb200", "gb300", "b200", "b300"}}, {"hopper", {"h100", "h200"}}, {"ampere", {"a100"}}};
/// Pools for decode attention, where HGX boards have other latency floors.
const std::vector<pool> decode_pools = {{"blackwell", {"gb200", "gb300"}},
                                        {"b200", {"b200", "b300"}},
                                        {"hopper", {"h100", "h200"}},
                                        {"ampere", {"a100"}}};

const std::vector<pool>& pools_of(const std::string& family) {
  return family.starts_with("decode") ? decode_pools : usual_pools;
}

struct kernel_fit_row {
  std::string gpu;
  const gpu_spec* hardware;
  double published;
  const kernel_row* row;
  int fold = 0;  ///< fold 0 to 2
};

/// The fitted profiles by GPU.
using profiles = std::map<std::string, kernel_profile>;

double log_error(const kernel_fit_row& r, const profiles& at) {
  return std::log(r.row->price(*r.hardware, at.at(r.gpu)).time.base() * 1e3 / r.published);
}

/// A fitted value: its knob and the GPUs it applies to.
struct slot {
  std::size_t knob;
  std::string entry;  // entry in the stack file
  std::vector<std::string> gpus;
};

/// Families whose kernels differ between GPUs in more than their rates. They are fitted pooled first, then per GPU
/// with priors at the pooled values.
bool tuned_by_gpu(const std::string& family) {
  constexpr std::array<std::string_view, 6> groups = {"moe/", "mla_", "absorb_", "amax", "gemm/", "attention"};
  return std::any_of(groups.begin(), groups.end(), [&](std::string_view g) { return family.starts_with(g); });
}
/// Prior width of log(GPU's own value / pooled value). GEMMs and attention differ little within an architecture.
double own_prior_of(const std::string& family) {
  return family.starts_with("gemm/") || family.starts_with("attention") ? 0.12 : 0.3;
}
constexpr double release_prior = 0.3;  // width of log(value / main stack's value)
constexpr double rate_prior = 0.5;     // the rows of a GPU may depend little on its rate

struct problem_of_pool {
  std::string family;
  std::vector<kernel_knob> knobs;
  std::vector<slot> slots;
  std::vector<free_parameter> parameters;
};

/// Sets up a pool's problem. With `own`, every value belongs to one GPU and starts at the pooled value. Parts the
/// kernels lack (0) are left out.
problem_of_pool pose(const std::string& family, const pool& p, const std::vector<std::string>& present,
                     const profiles& at, bool own = false) {
  problem_of_pool out{family, knobs_of(family), {}, {}};
  const auto add = [&](std::size_t knob, const std::string& entry, const std::vector<std::string>& gpus) {
    const kernel_knob& k = out.knobs[knob];
    const double start = std::clamp(k.get(at.at(gpus.front())), k.low * 1.001, k.high * 0.999);
    out.slots.push_back({knob, entry, gpus});
    const double prior = k.per_gpu ? rate_prior : own ? own_prior_of(family) : p.prior;
    out.parameters.push_back(
        {fmt::format("{} {} {}", entry, family, k.member), start, k.low, k.high, prior, true});
  };
  std::vector<std::string> known;
  for (const std::string& g : p.gpus)
    if (at.contains(g) && has_family(at.at(g), family)) known.push_back(g);
  for (std::size_t i = 0; i < out.knobs.size(); ++i) {
    if (!(out.knobs[i].get(at.at(known.front())) > 0)) continue;
    if (!own && !out.knobs[i].per_gpu) {
      add(i, p.entry, known);
    } else {
      for (const std::string& g : present) add(i, g == p.gpus.front() ? p.entry : g, {g});
    }
  }
  return out;
}

void apply(const problem_of_pool& q, const std::vector<double>& v, profiles& at) {
  for (std::size_t i = 0; i < q.slots.size(); ++i)
    for (const std::string& g : q.slots[i].gpus)
      if (const auto it = at.find(g); it != at.end()) q.knobs[q.slots[i].knob].set(it->second, v[i]);
}

std::vector<double> solve(const problem_of_pool& q, const std::vector<const kernel_fit_row*>& rows, profiles& at) {
  const auto residuals = [&](const std::vector<double>& v) {
    apply(q, v, at);
    std::vector<double> out;
    out.reserve(rows.size());
    for (const kernel_fit_row* r : rows) out.push_back(log_error(*r, at));
    return out;
  };
  const std::vector<double> best = fit_parameters(q.parameters, residuals, {.iterations = 40});
  apply(q, best, at);
  return best;
}

/// Sets the values of an unmeasured GPU: the others' shared values, and their rates scaled by power.
/// [docs/models-and-assumptions.md#power]
void transfer(const problem_of_pool& q, const std::string& to,
              const std::map<std::string, const gpu_spec*>& hardware, const std::vector<std::string>& from,
              profiles& at) {
  const gpu_spec& target = *hardware.at(to);
  for (std::size_t i = 0; i < q.knobs.size(); ++i) {
    const kernel_knob& k = q.knobs[i];
    if (!(k.get(at.at(from.front())) > 0)) continue;
    double sum = 0;
    for (const std::string& g : from) {
      const gpu_spec& s = *hardware.at(g);
      const bool rate = k.member == "tensor_rate";
      const double power = (target.tdp - target.idle_power) / (s.tdp - s.idle_power);
      const double factor = at.at(g).ultra_factor, ultra = (target.ultra ? factor : 1) / (s.ultra ? factor : 1);
      sum += std::log(k.get(at.at(g)) * (rate ? std::pow(power, at.at(g).power_exponent) * ultra : 1));
    }
    k.set(at.at(to), std::exp(sum / static_cast<double>(from.size())));
  }
}

using row_list = std::vector<const kernel_fit_row*>;

row_list of(const std::vector<kernel_fit_row>& rows, const std::vector<std::string>& gpus) {
  row_list out;
  for (const kernel_fit_row& r : rows)
    if (std::find(gpus.begin(), gpus.end(), r.gpu) != gpus.end()) out.push_back(&r);
  return out;
}

std::vector<std::string> present(const row_list& rows, const pool& p) {
  std::vector<std::string> out;
  for (const std::string& g : p.gpus)
    if (std::any_of(rows.begin(), rows.end(), [&](const kernel_fit_row* r) { return r->gpu == g; }))
      out.push_back(g);
  return out;
}

struct solved {
  problem_of_pool q;
  std::vector<double> best;
};

/// Fits the profiles of the pool's GPUs to their rows.
solved fit_pool(const std::string& family, const pool& p, const row_list& rows, profiles& at) {
  const auto measured = present(rows, p);
  solved out{pose(family, p, measured, at), {}};
  out.best = solve(out.q, rows, at);
  if (!tuned_by_gpu(family)) return out;
  out.q = pose(family, p, measured, at, true);
  out.best = solve(out.q, rows, at);
  return out;
}

error_summary errors_of(const row_list& rows, const profiles& at) {
  std::vector<double> errors;
  for (const kernel_fit_row* r : rows) errors.push_back(std::exp(log_error(*r, at)) - 1);
  return summary_of(errors);
}

/// Ratios of measured to computed time by family and GPU, as stored in the stack file. [docs/kernels.md#spread]
class spread_table {
 public:
  void add(const kernel_fit_row& r, double error) {
    auto& [hardware, ratios] = groups_[{r.row->family, r.gpu}];
    hardware = r.hardware;
    ratios.push_back(1 / (1 + error));
  }
  value as_value(bool held_out) {
    value::array families;
    for (auto& [key, group] : groups_) {
      const auto* hardware = group.first;
      auto& ratios = group.second;
      if (ratios.size() < min_rows) continue;
      std::sort(ratios.begin(), ratios.end());
      const auto at = [&](double share) {
        return value{
            std::round(1e4 *
                       ratios[static_cast<std::size_t>(share * static_cast<double>(ratios.size() - 1) + 0.5)]) /
            1e4};
      };
      families.emplace_back(value::object{{"family", key.first},
                                          {"gpu", hardware->name},
                                          {"architecture", hardware->architecture},
                                          {"rows", static_cast<std::int64_t>(ratios.size())},
                                          {"low", at(0.05)},
                                          {"median", at(0.5)},
                                          {"high", at(0.95)},
                                          {"held_out", held_out}});
    }
    return value{value::object{{"kind", "derived"}, {"source", "fit-kernels"}, {"families", std::move(families)}}};
  }

 private:
  static constexpr std::size_t min_rows = 20;  // leaves one row in each tail
  std::map<std::pair<std::string, std::string>, std::pair<const gpu_spec*, std::vector<double>>> groups_;
};

/// The kernel fit of one stack.
class kernel_fit {
 public:
  kernel_fit(input_cache& inputs, std::string stack_name, const std::vector<kernel_row>& rows)
      : stack_name_(std::move(stack_name)) {
    const stack& s = inputs.stack_named(stack_name_);
    int count = 0;
    for (const kernel_row& r : rows) {
      if (r.stack != stack_name_) continue;
      const gpu_spec& g = inputs.platform_named(std::string(platform_of_kernel_system(r.record.system))).gpu;
      const kernel_profile k = kernels_for(s, g);
      if (!has_family(k, r.family)) continue;
      hardware_.emplace(r.record.system, &g);
      start_.emplace(r.record.system, k);
      by_family_[parameter_group(k, r.family)].push_back(
          {r.record.system, &g, *r.record.published, &r, count++ % 3});
    }
  }

  bool empty() const { return by_family_.empty(); }
  const std::string& stack_name() const { return stack_name_; }
  const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }
  /// Spreads over the rows left out of the last fit; over all rows if nothing was left out yet.
  const value& spreads() const { return spreads_; }

  /// Fits all families. Adds the parameters to the report and the errors to `errors`.
  void run(fit_report& out, std::vector<double>& errors, const fit_progress& report) {
    profiles at = start_;
    each_pool([&](const std::string& family, const pool& p, const std::vector<kernel_fit_row>& all) {
      const row_list rows = of(all, p.gpus);
      const solved s = fit_pool(family, p, rows, at);
      record({family, p, s, present(rows, p)}, at, out);
      if (report)
        report(fmt::format("{} {}: {} rows, median {:.1f} %", p.entry, family, rows.size(),
                           100 * errors_of(rows, at).median));
    });
    spread_table spreads;
    for (const auto& [family, rows] : by_family_)
      for (const kernel_fit_row& r : rows) {
        const double e = std::exp(log_error(r, at)) - 1;
        errors.push_back(e);
        spreads.add(r, e);
      }
    spreads_ = spreads.as_value(false);
    fitted_ = std::move(at);
  }

  /// Predicts each GPU of a pool from the others, family by family.
  void leave_gpus_out(fit_report& out, const fit_progress& report) const {
    each_pool([&](const std::string& family, const pool& p, const std::vector<kernel_fit_row>& all) {
      const std::vector<std::string> gpus = present(of(all, p.gpus), p);
      if (gpus.size() < 2) return;
      for (const std::string& g : gpus) {
        pool others = p;
        std::erase(others.gpus, g);
        predict({fmt::format("{} {}", g, family), family, g}, others, all, out, report);
        // Also predicts from the architecture's entry alone, as for a GPU without its own entry.
        if (g == p.gpus.front() || others.gpus.size() < 2 || present(of(all, {p.gpus.front()}), p).empty())
          continue;
        others.gpus = {p.gpus.front()};
        predict({fmt::format("{} {}, from {} alone", g, family, p.gpus.front()), family, g}, others, all, out,
                report);
      }
    });
  }

  /// Predicts each third of the rows from the other two. Adds to `all_errors`.
  void leave_thirds_out(fit_report& out, std::vector<double>& all_errors, const fit_progress& report) {
    std::map<std::string, std::vector<double>> groups;
    spread_table spreads;
    for (int fold = 0; fold < 3; ++fold) {
      profiles at = start_;
      each_pool([&](const std::string& family, const pool& p, const std::vector<kernel_fit_row>& all) {
        row_list kept, left;
        for (const kernel_fit_row* r : of(all, p.gpus)) (r->fold == fold ? left : kept).push_back(r);
        if (kept.empty()) return;
        fit_pool(family, p, kept, at);
        for (const kernel_fit_row* r : left) {
          const double e = std::exp(log_error(*r, at)) - 1;
          spreads.add(*r, e);
          groups[fmt::format("{} {}{}", r->gpu, family, stack_name_ == main_stack ? "" : "@" + stack_name_)]
              .push_back(e);
          all_errors.push_back(e);
        }
      });
      if (report) report(fmt::format("{}: third {} left out", stack_name_, fold + 1));
    }
    for (const auto& [group, errors] : groups) out.leave_out.push_back(left_out_of(group, summary_of(errors)));
    spreads_ = spreads.as_value(true);
  }

 private:
  template <class Visit>
  void each_pool(Visit&& visit) const {
    for (const auto& [family, rows] : by_family_) {
      if (stack_name_ != main_stack) {  // fitted as a deviation from the main stack, per GPU
        for (const auto& [gpu, hardware] : hardware_)
          if (const pool p{gpu.c_str(), {gpu}, release_prior}; !of(rows, p.gpus).empty()) visit(family, p, rows);
        continue;
      }
      for (const pool& p : pools_of(family))
        if (!of(rows, p.gpus).empty()) visit(family, p, rows);
    }
  }

  /// A GPU left out of the fit of a family, and the name of that case in the report.
  struct unseen_gpu {
    std::string group, family, gpu;
  };
  /// Predicts the rows of one GPU with parameters fitted to the others.
  void predict(const unseen_gpu& u, const pool& others, const std::vector<kernel_fit_row>& all, fit_report& out,
               const fit_progress& report) const {
    const auto& [group, family, gpu] = u;
    const row_list kept = of(all, others.gpus);
    profiles at = fitted_;
    const solved s = fit_pool(family, others, kept, at);
    transfer(s.q, gpu, hardware_, present(kept, others), at);
    out.leave_out.push_back(left_out_of(group, errors_of(of(all, {gpu}), at)));
    if (report) report(fmt::format("without {}: median {:.1f} %", group, 100 * out.leave_out.back().median_error));
  }

  struct fitted_pool {
    const std::string& family;
    const pool& p;
    const solved& s;
    const std::vector<std::string>& measured;
  };
  void record(const fitted_pool& fitted, profiles& at, fit_report& out) {
    const auto& [family, p, s, measured] = fitted;
    for (std::size_t i = 0; i < s.q.slots.size(); ++i) {
      out.parameters.push_back({s.q.parameters[i].name, s.q.parameters[i].start, s.best[i]});
      set(s.q.slots[i].entry, family, s.q.knobs[s.q.slots[i].knob], s.best[i]);
    }
    for (const std::string& g : p.gpus) {  // other GPUs of the architecture, not measured in this family
      if (std::find(measured.begin(), measured.end(), g) != measured.end() || !at.contains(g)) continue;
      if (!has_family(at.at(g), family)) continue;
      transfer(s.q, g, hardware_, measured, at);
      for (const kernel_knob& k : s.q.knobs)
        if ((k.per_gpu || tuned_by_gpu(family)) && k.get(at.at(g)) > 0)
          set(g == p.gpus.front() ? p.entry : g, family, k, k.get(at.at(g)));
    }
  }

  void set(const std::string& entry, const std::string& family, const kernel_knob& k, double v) {
    settings_.emplace_back(fmt::format("/kernels/{}/{}/{}", entry, family, k.member),
                           k.unit.empty() ? fmt::format("{:.4g}", v) : fmt::format("{:.4g} {}", v, k.unit));
  }

  std::string stack_name_;
  std::map<std::string, const gpu_spec*> hardware_;
  profiles start_, fitted_;
  std::map<std::string, std::vector<kernel_fit_row>> by_family_;
  std::vector<std::pair<std::string, std::string>> settings_;
  value spreads_;
};

std::vector<kernel_row> readable_rows(const std::vector<std::filesystem::path>& tables, input_cache& inputs,
                                      const std::string& only) {
  std::vector<kernel_row> out;
  load_cache loads;
  for (const auto& file : tables) {
    const csv_table t = read_csv(file);
    for (const csv_row& row : t.rows) {
      kernel_row r = read_kernel_row(row, "", t.stem, inputs, loads);
      if (r.price && r.record.status == record_status::ok && r.family.starts_with(only))
        out.push_back(std::move(r));
    }
  }
  return out;
}

/// Writes the new values, and what the file has as another format with them.
void write_kernels(stack_files& out, const std::string& stack_name,
                   const std::vector<std::pair<std::string, std::string>>& settings, const value& spreads) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> copies = {
      {{"/gemm/bf16/", "/gemm/fp16/"}, {"/gemm/fp8_block/", "/gemm/mxfp8/"}}};
  for (const auto& [pointer, text] : settings) {
    out.set_number_from(stack_name, pointer, text, "fit-kernels");
    for (const auto& [from, to] : copies) {
      const auto at = pointer.find(from);
      if (at == std::string::npos ||
          (to == "/gemm/mxfp8/" && (pointer.ends_with("launch") || pointer.ends_with("cast_passes"))))
        continue;
      std::string copy = pointer;
      copy.replace(at, from.size(), to);
      if (out.find(stack_name, copy)) out.set_number_from(stack_name, copy, text, "fit-kernels");
    }
  }
  out.set(stack_name, "/kernel_spreads", spreads);
}

}  // namespace

fit_report fit_kernels(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                       const std::string& only, const std::string& leave_out, const fit_progress& report) {
  input_cache inputs(data);
  const std::vector<kernel_row> rows = readable_rows(tables, inputs, only);
  std::set<std::string> stacks;
  for (const kernel_row& r : rows) stacks.insert(r.stack);
  fit_report out;
  std::vector<double> errors, left;
  stack_files files(data.stacks);
  for (const std::string& name : stacks) {
    kernel_fit fit(inputs, name, rows);
    if (fit.empty()) continue;
    fit.run(out, errors, report);
    if (leave_out == "system") fit.leave_gpus_out(out, report);
    if (leave_out == "third") fit.leave_thirds_out(out, left, report);
    write_kernels(files, name, fit.settings(), fit.spreads());
  }
  out.files = files.texts();
  if (out.files.empty())
    throw input_error({{tables.front().string(), "", "no kernel row that can be fitted", {}}});
  if (leave_out == "third") out.leave_out.push_back(left_out_of("all rows", summary_of(left)));
  enter_fitted(out, summary_of(errors));
  return out;
}

}  // namespace nvlsim
