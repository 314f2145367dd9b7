// The training fit: pooled rates by architecture and precision, framework terms, one time factor a release.
// [docs/accuracy.md#training]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "config/document.hpp"
#include "nvlsim/fit.hpp"
#include "nvlsim/output.hpp"
#include "stack/load.hpp"
#include "study/least_squares.hpp"
#include "study/training_rows.hpp"

namespace nvlsim {
namespace {

constexpr const char* reference = "megatron-bridge-26.06";
constexpr const char* kernel_tables = "tensorrt-llm-1.3-kernels";  ///< whose attention rates the fit scales

struct gpu_member {
  const char* gpu;
  const char* architecture;
  double cap_ratio;      ///< power cap over that of the architecture's reference GPU
  bool ultra;            ///< Blackwell Ultra silicon
  const char* attention; ///< whose attention kernels these are: the tables' differ by library more than by silicon
};
constexpr std::array<gpu_member, 7> members = {{{"gb200", "blackwell", 1.0, false, "gb200"},
                                                {"gb300", "blackwell", 1400.0 / 1200, true, "gb300"},
                                                {"b200", "blackwell", 1000.0 / 1200, false, "gb200"},
                                                {"b300", "blackwell", 1100.0 / 1200, true, "gb300"},
                                                {"h100", "hopper", 1.0, false, "h100"},
                                                {"h200", "hopper", 1.0, false, "h100"},
                                                {"a100", "ampere", 1.0, false, "a100"}}};
constexpr double unfused_attention = 0.6;  ///< start of Ampere's scale: its rows predate fused attention kernels

struct rate_parameter {
  const char* architecture;
  const char* precision;
  double start_tflops;
};
constexpr std::array<rate_parameter, 7> rates = {{{"ampere", "bf16", 264},
                                                  {"hopper", "bf16", 860},
                                                  {"hopper", "fp8", 1700},
                                                  {"blackwell", "bf16", 1500},
                                                  {"blackwell", "fp8", 3000},
                                                  {"blackwell", "mxfp8", 2900},
                                                  {"blackwell", "nvfp4", 5650}}};
constexpr std::array<const char*, 9> releases = {"megatron-lm-papers",    "nemo-25.04",           "mlperf-training-v4.1",
                                                 "mlperf-training-v5.0",  "mlperf-training-v5.1", "mlperf-training-v6.0",
                                                 "megatron-bridge-25.11", "megatron-bridge-26.02", "megatron-bridge-26.04"};
constexpr std::array<const char*, 5> moe_releases = {"nemo-25.04", "mlperf-training-v6.0", "megatron-bridge-25.11",
                                                    "megatron-bridge-26.02", "megatron-bridge-26.04"};
constexpr std::array<const char*, 3> architectures = {"ampere", "hopper", "blackwell"};

/// Everything free, in one list; `value_of` looks a value up by name.
std::vector<free_parameter> parameter_list() {
  std::vector<free_parameter> out;
  const auto scale = [&](std::string name, double start, double width, double factor = 2.5) {
    out.push_back({std::move(name), start, start / factor, start * factor, width, true});
  };
  const auto share = [&](std::string name, double start, double width, double high = 1.0) {
    out.push_back({std::move(name), start, 0.0, high, width, false});
  };
  for (const rate_parameter& r : rates) scale(fmt::format("gemm {} {}", r.architecture, r.precision), r.start_tflops, 0.15);
  out.push_back({"power exponent", 0.3, 0.0, 1.0, 0.1, false});
  scale("ultra", 1.2, 0.1);
  for (const char* p : {"bf16", "fp8", "mxfp8", "nvfp4"}) scale(fmt::format("ultra {}", p), 1.0, 0.05);
  for (const char* a : architectures) {
    const bool early = std::string_view(a) == "ampere";
    scale(fmt::format("attention {}", a), early ? unfused_attention : 1.0, early ? 0.5 : 0.2);
  }
  scale("attention fp8", 1.35, 0.15);
  scale("attention backward", 0.6, 0.15);
  share("output bytes", 6, 2, 16);
  scale("stream share", 0.95, 0.15);
  share("tp exposed", 0.5, 0.2);
  share("cp exposed", 0.5, 0.2);
  share("dp interference", 0.3, 0.2);
  scale("pipeline launch us", 15, 0.5, 10);
  scale("step host ms", 12, 0.5, 10);
  share("jitter", 0.004, 0.003, 0.03);
  for (const char* r : releases) scale(fmt::format("release {}", r), 1.0, 0.08);
  for (const char* r : moe_releases) scale(fmt::format("moe release {}", r), 1.1, 0.15);
  scale("moe time", 1.0, 0.15);
  share("ep exposed", 1.0, 0.3, 2.5);
  share("ep exposed overlapped", 0.4, 0.2, 1.5);
  scale("moe host us", 1000, 0.7, 10);
  scale("moe host per expert us", 150, 0.7, 10);
  scale("moe sync per expert us", 50, 0.7, 10);
  share("graphed host share", 0.6, 0.2);
  share("scan efficiency", 0.36, 0.1);
  share("unfused passes", 15, 8, 40);
  share("fused share", 0.5, 0.2);
  return out;
}

class values {
 public:
  values(const std::vector<free_parameter>& list, const std::vector<double>& at) {
    for (std::size_t i = 0; i < list.size(); ++i) by_name_.emplace(list[i].name, at[i]);
  }
  double operator[](const std::string& name) const { return by_name_.at(name); }

 private:
  std::map<std::string, double> by_name_;
};

/// What a point of the fit writes into a stack file.
struct setting {
  std::string stack, pointer, text;
};

void gpu_settings(const values& v, const stack& kernels, std::vector<setting>& out) {
  for (const gpu_member& g : members) {
    const attention_params& base = kernels.kernels.at(g.attention).attention;
    const double power = std::pow(g.cap_ratio, v["power exponent"]);
    for (const rate_parameter& r : rates) {
      if (std::string_view(r.architecture) != g.architecture) continue;
      const double silicon = g.ultra ? v["ultra"] * v[fmt::format("ultra {}", r.precision)] : 1.0;
      const double rate = v[fmt::format("gemm {} {}", r.architecture, r.precision)] * power * silicon;
      out.push_back({reference, fmt::format("/kernels/{}/gemm/{}/tensor_rate", g.gpu, r.precision), fmt::format("{:.6g} TFLOPS", rate)});
    }
    const double clock = std::pow(g.cap_ratio * (g.ultra ? 1200.0 / 1400 : 1.0), v["power exponent"]);
    const double attention = v[fmt::format("attention {}", g.architecture)] * clock;
    const auto set = [&](const char* member, std::string text) {
      out.push_back({reference, fmt::format("/kernels/{}/attention/{}", g.gpu, member), std::move(text)});
    };
    set("tensor_rate", fmt::format("{:.6g} TFLOPS", base.tensor_rate.base() / 1e12 * attention));
    set("exponential_share", fmt::format("{:.6g}", base.exponential_share * attention));
    if (std::string_view(g.architecture) != "ampere") set("fp8_speedup", fmt::format("{:.6g}", v["attention fp8"]));
  }
}

std::vector<setting> settings_of(const values& v, const stack& kernels) {
  std::vector<setting> out;
  gpu_settings(v, kernels, out);
  for (const char* a : architectures) {
    for (const rate_parameter& r : rates)
      if (std::string_view(r.architecture) == a)
        out.push_back({reference, fmt::format("/kernels/{}/gemm/{}/output_bytes", a, r.precision), fmt::format("{:.6g}", v["output bytes"])});
    out.push_back({reference, fmt::format("/kernels/{}/attention/backward_efficiency", a), fmt::format("{:.6g}", v["attention backward"])});
    out.push_back({reference, fmt::format("/kernels/{}/stream/hbm_share", a), fmt::format("{:.6g}", v["stream share"])});
  }
  const auto training = [&](const char* member, std::string text) { out.push_back({reference, fmt::format("/training/{}", member), std::move(text)}); };
  training("tp_exposed", fmt::format("{:.6g}", v["tp exposed"]));
  training("cp_exposed", fmt::format("{:.6g}", v["cp exposed"]));
  training("dp_interference", fmt::format("{:.6g}", v["dp interference"]));
  training("pipeline_launch", fmt::format("{:.6g} us", v["pipeline launch us"]));
  training("step_host", fmt::format("{:.6g} ms", v["step host ms"]));
  training("jitter_per_doubling", fmt::format("{:.6g}", v["jitter"]));
  training("scan_efficiency", fmt::format("{:.6g}", v["scan efficiency"]));
  training("moe/time_factor", fmt::format("{:.6g}", v["moe time"]));
  training("moe/ep_exposed", fmt::format("{:.6g}", v["ep exposed"]));
  training("moe/ep_exposed_overlapped", fmt::format("{:.6g}", v["ep exposed overlapped"]));
  training("moe/host", fmt::format("{:.6g} us", v["moe host us"]));
  training("moe/host_per_expert", fmt::format("{:.6g} us", v["moe host per expert us"]));
  training("moe/sync_per_expert", fmt::format("{:.6g} us", v["moe sync per expert us"]));
  training("moe/graphed_host_share", fmt::format("{:.6g}", v["graphed host share"]));
  training("moe/unfused_activation_passes", fmt::format("{:.6g}", v["unfused passes"]));
  training("moe/fused_activation_share", fmt::format("{:.6g}", v["fused share"]));
  for (const char* r : moe_releases)
    out.push_back({r, "/training/moe/time_factor", fmt::format("{:.6g}", v["moe time"] * v[fmt::format("moe release {}", r)])});
  for (const char* r : releases) out.push_back({r, "/training/time_factor", fmt::format("{:.6g}", v[fmt::format("release {}", r)])});
  return out;
}

/// The stacks a point stands for. Settings of the reference reach the stacks built on it.
class stack_set {
 public:
  explicit stack_set(const data_folders& data) {
    diagnostics problems;
    load(data, kernel_tables, problems);
    for (const char* name : releases) load(data, name, problems);
    load(data, reference, problems);
    problems.throw_if_any();
  }
  const std::map<std::string, stack>& at(const std::vector<setting>& settings) {
    diagnostics problems;
    for (const auto& [name, source] : documents_) {
      if (name == kernel_tables) continue;
      config::document doc = source;
      for (const setting& s : settings)
        if (s.stack == reference || s.stack == name)
          config::override_value(doc, s.pointer, config::parse_scalar(s.text), {"fit", "fit", true}, problems);
      for (const setting& s : settings)  // a release's own settings win
        if (s.stack == name) config::override_value(doc, s.pointer, config::parse_scalar(s.text), {"fit", "fit", true}, problems);
      stacks_[name] = read_stack(doc, name, problems);
    }
    problems.throw_if_any();
    return stacks_;
  }
  const stack& original(const std::string& name) { return originals_.at(name); }

 private:
  void load(const data_folders& data, const char* name, diagnostics& problems) {
    config::document doc = config::load_named(data.stacks, "stack", name, {"fit", "", {}, {}}, problems);
    if (!problems.empty()) return;
    documents_.emplace(name, doc);
    originals_.emplace(name, read_stack(doc, name, problems));
  }
  std::map<std::string, config::document> documents_;
  std::map<std::string, stack> stacks_, originals_;
};

struct fit_row {
  training_row row;
  double weight = 1;
};

bool usable(const training_row& r) {
  return r.record.status == record_status::ok && !r.defaulted_layout && r.record.suspect.empty();
}

/// A configuration seen in k releases counts as sqrt(k) rows.
void weigh(std::vector<fit_row>& rows) {
  std::map<std::string, int> seen;
  const auto key = [](const training_row& r) {
    return fmt::format("{} {} {} {} {}", r.record.model, r.record.system, r.work.par.gpus(), r.record.kind, name(r.work.gemm_precision));
  };
  for (const fit_row& r : rows) ++seen[key(r.row)];
  for (fit_row& r : rows) r.weight = std::pow(seen[key(r.row)], -0.25);
}

double log_error(const training_row& r, const std::map<std::string, stack>& stacks) {
  training_row at = r;
  at.software = &stacks.at(r.software->name);
  return std::log(metric_of_step(at, step_time(at)) / *r.record.published);
}

/// Written back into the file itself, not into what it inherits.
std::vector<std::pair<std::string, std::string>> stack_files(const data_folders& data, const std::vector<setting>& settings) {
  std::map<std::string, config::document> files;
  diagnostics problems;
  for (const setting& s : settings) {
    const auto [it, fresh] = files.try_emplace(s.stack);
    if (fresh) it->second = config::load(data.stacks / (s.stack + ".json"), {"", s.stack}, problems);
    const value& root = it->second.root;
    const value* old = root.at_pointer(s.pointer);
    const value* group = root.at_pointer(s.pointer.substr(0, s.pointer.rfind('/')));
    if (s.stack == reference && s.pointer.starts_with("/training")) group = root.find("training");  // one source for all of it
    const config::origin by{"fit", "fit"};
    if (old && old->members()) {  // {"value": ..., "source": ...}: only the value changes
      config::override_value(it->second, s.pointer + "/value", config::parse_scalar(s.text), by, problems);
    } else if (group && group->find("source")) {
      config::override_value(it->second, s.pointer, config::parse_scalar(s.text), by, problems);
    } else {  // the group it is merged into has another source
      config::override_value(it->second, s.pointer,
                             value{value::object{{"value", config::parse_scalar(s.text)}, {"kind", "derived"}, {"source", "fit-training"}}},
                             by, problems);
    }
  }
  problems.throw_if_any();
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, doc] : files) out.emplace_back(name + ".json", to_json(doc.root));
  return out;
}

struct trained {
  std::vector<double> at;
  std::vector<setting> settings;
};

trained train(const std::vector<const fit_row*>& rows, stack_set& stacks, const std::vector<free_parameter>& list,
              const fit_progress& report) {
  const auto residuals = [&](const std::vector<double>& at) {
    const auto& here = stacks.at(settings_of({list, at}, stacks.original(kernel_tables)));
    std::vector<double> out;
    for (const fit_row* r : rows) out.push_back(log_error(r->row, here) * r->weight);
    return out;
  };
  trained t;
  t.at = fit_parameters(list, residuals, {}, [&](int i, double cost) {
    if (report) report(fmt::format("iteration {}: cost {:.4f}", i, cost));
  });
  t.settings = settings_of({list, t.at}, stacks.original(kernel_tables));
  return t;
}

std::string group_of(const training_row& r, const std::string& by) {
  return by == "model" ? r.record.model : by == "system" ? r.record.system : r.software->name;
}

}  // namespace

fit_report fit_training(const std::vector<std::filesystem::path>& tables, const data_folders& data,
                        const std::string& leave_out, const fit_progress& report) {
  input_cache inputs(data);
  std::vector<fit_row> rows;
  for (const auto& table : tables) {
    const csv_table t = read_csv(table);
    for (const csv_row& row : t.rows)
      if (training_row r = read_training_row(row, t.stem, inputs); usable(r)) rows.push_back({std::move(r), 1});
  }
  if (rows.empty()) throw input_error({{tables.front().string(), "", "no row has a complete configuration to fit", {}}});
  weigh(rows);
  stack_set stacks(data);
  const std::vector<free_parameter> list = parameter_list();
  std::vector<const fit_row*> all;
  for (const fit_row& r : rows) all.push_back(&r);
  const trained best = train(all, stacks, list, report);

  fit_report out;
  out.rows = rows.size();
  for (std::size_t i = 0; i < list.size(); ++i) out.parameters.push_back({list[i].name, list[i].start, best.at[i]});
  std::vector<double> magnitudes;
  const auto& fitted = stacks.at(best.settings);
  for (const fit_row& r : rows) {
    const double e = std::exp(log_error(r.row, fitted)) - 1;
    magnitudes.push_back(std::abs(e));
    out.mean_error += std::abs(e) / static_cast<double>(rows.size());
    out.bias += e / static_cast<double>(rows.size());
  }
  std::sort(magnitudes.begin(), magnitudes.end());
  out.median_error = magnitudes[magnitudes.size() / 2];
  out.p90_error = magnitudes[static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(magnitudes.size()))) - 1];
  out.files = stack_files(data, best.settings);
  if (leave_out.empty()) return out;

  std::map<std::string, std::vector<const fit_row*>> groups;
  for (const fit_row& r : rows) groups[group_of(r.row, leave_out)].push_back(&r);
  for (const auto& [group, held] : groups) {
    std::vector<const fit_row*> kept;
    for (const fit_row& r : rows)
      if (group_of(r.row, leave_out) != group) kept.push_back(&r);
    if (kept.empty()) continue;
    const trained without = train(kept, stacks, list, {});
    const auto& here = stacks.at(without.settings);
    fit_report::left_out l{group, held.size(), 0, 0, 0};
    for (const fit_row* r : held) {
      const double e = std::exp(log_error(r->row, here)) - 1;
      l.mean_error += std::abs(e) / static_cast<double>(held.size());
      l.bias += e / static_cast<double>(held.size());
      l.worst_error = std::max(l.worst_error, std::abs(e));
    }
    out.leave_out.push_back(l);
    if (report) report(fmt::format("without {} {}: mean {:.1f} %, worst {:.1f} %", leave_out, group, 100 * l.mean_error, 100 * l.worst_error));
  }
  return out;
}

}  // namespace nvlsim
