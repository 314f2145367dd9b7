// The kernel fit: one family of kernels and architecture at a time, rates by GPU. [docs/kernels.md#fit]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "config/document.hpp"
#include "nvlsim/fit.hpp"
#include "nvlsim/output.hpp"
#include "study/kernel_knobs.hpp"
#include "study/kernel_rows.hpp"
#include "study/least_squares.hpp"

namespace nvlsim {
namespace {

constexpr const char* stack_name = "tensorrt-llm-1.3-kernels";

/// GPUs that share parameters. The first one has no entry of its own: the architecture's is its.
struct pool {
  const char* entry;
  std::vector<std::string> gpus;
};
const std::vector<pool> pools = {
    {"blackwell", {"gb200", "gb300", "b200", "b300"}}, {"hopper", {"h100", "h200"}}, {"ampere", {"a100"}}};
/// Decode attention of the HGX boards has another driver of its floors.
const std::vector<pool> decode_pools = {{"blackwell", {"gb200", "gb300"}},
                                        {"b200", {"b200", "b300"}},
                                        {"hopper", {"h100", "h200"}},
                                        {"ampere", {"a100"}}};

struct fit_row {
  std::string gpu;
  const gpu_spec* hardware;
  double published;
  const kernel_row* row;
};

struct table_rows {
  std::vector<kernel_row> rows;
  std::map<std::string, std::vector<fit_row>> by_family;
};

/// The profiles that a fit changes, by GPU.
using profiles = std::map<std::string, kernel_profile>;

double log_error(const fit_row& r, const profiles& at) {
  return std::log(r.row->price(*r.hardware, at.at(r.gpu)).time.base() * 1e3 / r.published);
}

/// A value of the fit: which knob, and for which GPUs it holds.
struct slot {
  std::size_t knob;
  std::string entry;  // of the stack file
  std::vector<std::string> gpus;
};

struct problem_of_pool {
  std::string family;
  std::vector<kernel_knob> knobs;
  std::vector<slot> slots;
  std::vector<free_parameter> parameters;
};

problem_of_pool pose(const std::string& family, const pool& p, const std::vector<std::string>& present,
                     const profiles& at) {
  problem_of_pool out{family, knobs_of(family), {}, {}};
  const auto add = [&](std::size_t knob, const std::string& entry, const std::vector<std::string>& gpus) {
    const kernel_knob& k = out.knobs[knob];
    const double start = std::clamp(k.get(at.at(gpus.front())), k.low * 1.001, k.high * 0.999);
    out.slots.push_back({knob, entry, gpus});
    // A rate is held near where it starts: the rows of one GPU may hardly depend on it.
    out.parameters.push_back(
        {fmt::format("{} {} {}", entry, family, k.member), start, k.low, k.high, k.per_gpu ? 0.5 : 1.0, true});
  };
  for (std::size_t i = 0; i < out.knobs.size(); ++i) {
    if (!out.knobs[i].per_gpu) {
      add(i, p.entry, p.gpus);
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

std::vector<double> solve(const problem_of_pool& q, const std::vector<const fit_row*>& rows, profiles& at) {
  const auto residuals = [&](const std::vector<double>& v) {
    apply(q, v, at);
    std::vector<double> out;
    out.reserve(rows.size());
    for (const fit_row* r : rows) out.push_back(log_error(*r, at));
    return out;
  };
  const std::vector<double> best = fit_parameters(q.parameters, residuals, {.iterations = 40});
  apply(q, best, at);
  return best;
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// What a GPU that was never measured would be given: the others' shared values, and their rates by its power.
/// [docs/models-and-assumptions.md#power]
void transfer(const problem_of_pool& q, const std::string& to,
              const std::map<std::string, const gpu_spec*>& hardware, const std::vector<std::string>& from,
              profiles& at) {
  const gpu_spec& target = *hardware.at(to);
  for (std::size_t i = 0; i < q.knobs.size(); ++i) {
    const kernel_knob& k = q.knobs[i];
    double sum = 0;
    for (const std::string& g : from) {
      const gpu_spec& s = *hardware.at(g);
      const bool rate = k.member == "tensor_rate";
      const double power = (target.tdp - target.idle_power) / (s.tdp - s.idle_power);
      sum += std::log(k.get(at.at(g)) * (rate ? std::pow(power, at.at(g).power_exponent) : 1));
    }
    k.set(at.at(to), std::exp(sum / static_cast<double>(from.size())));
  }
}

class kernel_fit {
 public:
  kernel_fit(const std::vector<std::filesystem::path>& tables, const data_folders& data, const std::string& only)
      : inputs_(data) {
    const stack& s = inputs_.stack_named(stack_name);
    for (const auto& file : tables) {
      const csv_table t = read_csv(file);
      for (const csv_row& row : t.rows) {
        if (row["table"].ends_with("_power")) continue;  // another release, and sustained
        kernel_row r = read_kernel_row(row, "", t.stem, inputs_, loads_);
        if (r.price && r.record.status == record_status::ok && r.family.starts_with(only))
          rows_.push_back(std::move(r));
      }
    }
    for (const kernel_row& r : rows_) {
      const gpu_spec& g = inputs_.platform_named(std::string(platform_of_kernel_system(r.record.system))).gpu;
      const kernel_profile& k = kernels_for(s, g);
      if (!has_family(k, r.family)) continue;
      hardware_.emplace(r.record.system, &g);
      start_.emplace(r.record.system, k);
      by_family_[r.family].push_back({r.record.system, &g, *r.record.published, &r});
    }
    if (by_family_.empty())
      throw input_error({{tables.front().string(), "", "no row of a kernel that can be fitted", {}}});
  }

  fit_report run(const std::string& leave_out, const fit_progress& report) {
    profiles at = start_;
    for (const auto& [family, rows] : by_family_) {
      if (family == "gemm/fp16") continue;  // taken over from BF16
      for (const pool& p : family == "decode" ? decode_pools : pools) fit_pool(family, p, rows, at, report);
    }
    summarise(at);
    if (!leave_out.empty()) leave_each_out(at, report);
    return std::move(out_);
  }

  const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }

 private:
  std::vector<const fit_row*> of(const std::vector<fit_row>& rows, const std::vector<std::string>& gpus) const {
    std::vector<const fit_row*> out;
    for (const fit_row& r : rows)
      if (std::find(gpus.begin(), gpus.end(), r.gpu) != gpus.end()) out.push_back(&r);
    return out;
  }
  static std::vector<std::string> present(const std::vector<const fit_row*>& rows, const pool& p) {
    std::vector<std::string> out;
    for (const std::string& g : p.gpus)
      if (std::any_of(rows.begin(), rows.end(), [&](const fit_row* r) { return r->gpu == g; })) out.push_back(g);
    return out;
  }

  void fit_pool(const std::string& family, const pool& p, const std::vector<fit_row>& all, profiles& at,
                const fit_progress& report) {
    const auto rows = of(all, p.gpus);
    if (rows.empty()) return;
    const problem_of_pool q = pose(family, p, present(rows, p), at);
    const std::vector<double> best = solve(q, rows, at);
    std::vector<double> errors;
    for (const fit_row* r : rows) errors.push_back(std::abs(std::exp(log_error(*r, at)) - 1));
    for (std::size_t i = 0; i < q.slots.size(); ++i) {
      out_.parameters.push_back({q.parameters[i].name, q.parameters[i].start, best[i]});
      set(q.slots[i].entry, family, q.knobs[q.slots[i].knob], best[i]);
    }
    for (const std::string& g : p.gpus) {  // of the architecture, but not measured in this family
      const auto measured = present(rows, p);
      if (std::find(measured.begin(), measured.end(), g) != measured.end() || !at.contains(g)) continue;
      transfer(q, g, hardware_, measured, at);
      for (const kernel_knob& k : q.knobs)
        if (k.per_gpu) set(g == p.gpus.front() ? p.entry : g, family, k, k.get(at.at(g)));
    }
    if (report)
      report(fmt::format("{} {}: {} rows, median {:.1f} %", p.entry, family, rows.size(), 100 * median(errors)));
  }

  void set(const std::string& entry, const std::string& family, const kernel_knob& k, double v) {
    settings_.emplace_back(fmt::format("/kernels/{}/{}/{}", entry, family, k.member),
                           k.unit.empty() ? fmt::format("{:.4g}", v) : fmt::format("{:.4g} {}", v, k.unit));
  }

  void summarise(const profiles& at) {
    std::vector<double> magnitudes;
    for (const auto& [family, rows] : by_family_)
      for (const fit_row& r : rows) {
        const double e = std::exp(log_error(r, at)) - 1;
        magnitudes.push_back(std::abs(e));
        out_.bias += e;
        out_.mean_error += std::abs(e);
      }
    std::sort(magnitudes.begin(), magnitudes.end());
    const auto n = static_cast<double>(magnitudes.size());
    out_.rows = magnitudes.size();
    out_.bias /= n;
    out_.mean_error /= n;
    out_.median_error = magnitudes[magnitudes.size() / 2];
    out_.p90_error = magnitudes[static_cast<std::size_t>(std::ceil(0.9 * n)) - 1];
  }

  /// Each GPU of a pool from the others, family by family.
  void leave_each_out(const profiles& fitted, const fit_progress& report) {
    for (const auto& [family, all] : by_family_) {
      for (const pool& p : family == "decode" ? decode_pools : pools) {
        const auto rows = of(all, p.gpus);
        const std::vector<std::string> gpus = present(rows, p);
        for (const std::string& g : gpus)
          if (gpus.size() > 1) leave_out(family, p, all, g, fitted, report);
      }
    }
  }

  void leave_out(const std::string& family, pool p, const std::vector<fit_row>& all, const std::string& gpu,
                 profiles at, const fit_progress& report) {
    std::erase(p.gpus, gpu);
    const auto kept = of(all, p.gpus);
    const problem_of_pool q = pose(family, p, present(kept, p), at);
    solve(q, kept, at);
    transfer(q, gpu, hardware_, present(kept, p), at);
    fit_report::left_out l{fmt::format("{} {}", gpu, family), 0, 0, 0, 0};
    std::vector<double> magnitudes;
    for (const fit_row* r : of(all, {gpu})) {
      const double e = std::exp(log_error(*r, at)) - 1;
      magnitudes.push_back(std::abs(e));
      l.bias += e;
      l.mean_error += std::abs(e);
      l.worst_error = std::max(l.worst_error, std::abs(e));
    }
    l.rows = magnitudes.size();
    l.bias /= static_cast<double>(l.rows);
    l.mean_error /= static_cast<double>(l.rows);
    l.median_error = median(magnitudes);
    if (report) report(fmt::format("without {}: median {:.1f} %", l.group, 100 * l.median_error));
    out_.leave_out.push_back(std::move(l));
  }

  input_cache inputs_;
  load_cache loads_;
  std::vector<kernel_row> rows_;
  std::map<std::string, const gpu_spec*> hardware_;
  profiles start_;
  std::map<std::string, std::vector<fit_row>> by_family_;
  std::vector<std::pair<std::string, std::string>> settings_;
  fit_report out_;
};

/// Whether the number at `pointer` has a source: its own or that of an object around it.
bool sourced(const value& root, std::string pointer) {
  for (; pointer.size() > 1; pointer.erase(pointer.rfind('/')))
    if (const value* v = root.at_pointer(pointer); v && v->members() && v->find("source")) return true;
  return false;
}

/// The stack file with the new values, and what it says is as another format with it.
std::string stack_text(const data_folders& data,
                       const std::vector<std::pair<std::string, std::string>>& settings) {
  diagnostics problems;
  config::document doc =
      config::load(data.stacks / fmt::format("{}.json", stack_name), {"", stack_name}, problems);
  const auto set = [&](const std::string& pointer, const std::string& text) {
    const value* old = doc.root.at_pointer(pointer);
    const config::origin by{"fit", "fit"};
    if (!sourced(doc.root, pointer)) {
      value object{
          value::object{{"value", config::parse_scalar(text)}, {"kind", "derived"}, {"source", "fit-kernels"}}};
      config::override_value(doc, pointer, std::move(object), by, problems);
    } else {
      const std::string target = old && old->members() ? pointer + "/value" : pointer;
      config::override_value(doc, target, config::parse_scalar(text), by, problems);
    }
  };
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> copies = {
      {{"/gemm/bf16/", "/gemm/fp16/"}, {"/gemm/fp8_block/", "/gemm/mxfp8/"}}};
  for (const auto& [pointer, text] : settings) {
    set(pointer, text);
    for (const auto& [from, to] : copies) {
      const auto at = pointer.find(from);
      if (at == std::string::npos ||
          (to == "/gemm/mxfp8/" && (pointer.ends_with("launch") || pointer.ends_with("cast_passes"))))
        continue;
      std::string copy = pointer;
      copy.replace(at, from.size(), to);
      if (doc.root.at_pointer(copy)) set(copy, text);
    }
  }
  problems.throw_if_any();
  return to_json(doc.root);
}

}  // namespace

fit_report fit_kernels(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                       const std::string& only, const std::string& leave_out, const fit_progress& report) {
  kernel_fit fit(tables, data, only);
  fit_report out = fit.run(leave_out, report);
  out.files.emplace_back(fmt::format("{}.json", stack_name), stack_text(data, fit.settings()));
  return out;
}

}  // namespace nvlsim
