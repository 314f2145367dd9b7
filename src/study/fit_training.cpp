// The training fit: pooled rates by architecture and precision, framework terms, one time factor a release.
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

#include "config/document.hpp"
#include "nvlsim/fit.hpp"
#include "nvlsim/output.hpp"
#include "stack/load.hpp"
#include "study/fit_errors.hpp"
#include "study/in_parallel.hpp"
#include "study/least_squares.hpp"
#include "study/step_errors.hpp"
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
/// 1.48 times the median error of steps that a fit did not see. This and the priors' widths of GEMM rates, Ultra's
/// formats and routed layers were chosen by what left-out steps missed by. [docs/accuracy.md#parameters-of-the-fit]
constexpr double residual_scale = 0.05;
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
constexpr std::array<const char*, 10> releases = {"megatron-lm-papers",   "nemo-25.04",            "nemo-25.05",           "mlperf-training-v4.1",
                                                 "mlperf-training-v5.0",  "mlperf-training-v5.1", "mlperf-training-v6.0",
                                                 "megatron-bridge-25.11", "megatron-bridge-26.02", "megatron-bridge-26.04"};
constexpr std::array<const char*, 6> moe_releases = {"nemo-25.04", "nemo-25.05", "mlperf-training-v6.0", "megatron-bridge-25.11",
                                                    "megatron-bridge-26.02", "megatron-bridge-26.04"};
/// Releases before experts' operands were quantised by one kernel.
constexpr std::array<const char*, 2> quantising_releases = {"nemo-25.04", "nemo-25.05"};
constexpr std::array<const char*, 3> architectures = {"ampere", "hopper", "blackwell"};

/// Whether a row's time can depend on a parameter. Rows it cannot reach are not simulated again for its derivative.
using reach = std::function<bool(const training_row&)>;

struct training_parameter {
  free_parameter fitted;
  reach reaches;
};

/// Of a GPU that is not fitted, a member that no parameter reaches.
const gpu_member& member_of(const training_row& r) {
  static constexpr gpu_member unknown = {"", "", 1.0, false, ""};
  const auto it = std::find_if(members.begin(), members.end(), [&](const gpu_member& g) { return r.hardware.gpu.name == g.gpu; });
  return it == members.end() ? unknown : *it;
}
bool any(const training_row&) { return true; }
bool routed(const training_row& r) { return has_routed_experts(*r.net); }
reach on_architecture(const char* a) {
  return [a](const training_row& r) { return std::string_view(member_of(r).architecture) == a; };
}
/// GEMMs in a precision: router and LM head run in BF16 whatever the others do.
bool computes_in(const training_row& r, precision p) { return p == precision::bf16 || r.work.gemm_precision == p; }

/// Everything free, in one list; `values` looks one up by name.
std::vector<training_parameter> parameter_list() {
  std::vector<training_parameter> out;
  const auto scale = [&](std::string name, double start, double width, reach where = any, double factor = 2.5) {
    out.push_back({{std::move(name), start, start / factor, start * factor, width, true}, std::move(where)});
  };
  const auto share = [&](std::string name, double start, double width, reach where = any, double high = 1.0) {
    out.push_back({{std::move(name), start, 0.0, high, width, false}, std::move(where)});
  };
  for (const rate_parameter& g : rates)
    scale(fmt::format("gemm {} {}", g.architecture, g.precision), g.start_tflops, 0.075, [&g](const training_row& r) {
      return on_architecture(g.architecture)(r) && computes_in(r, *precision_by_name(g.precision));
    });
  const auto scaled_by_power = [](const training_row& r) { return member_of(r).cap_ratio != 1; };
  out.push_back({{"power exponent", 0.3, 0.0, 1.0, 0.1, false}, scaled_by_power});
  scale("ultra", 1.2, 0.1, [](const training_row& r) { return member_of(r).ultra; });
  for (const char* p : {"bf16", "fp8", "mxfp8", "nvfp4"})
    scale(fmt::format("ultra {}", p), 1.0, 0.1, [p](const training_row& r) { return member_of(r).ultra && computes_in(r, *precision_by_name(p)); });
  for (const char* a : architectures) {
    const bool early = std::string_view(a) == "ampere";
    scale(fmt::format("attention {}", a), early ? unfused_attention : 1.0, early ? 0.5 : 0.2, on_architecture(a));
  }
  scale("attention fp8", 1.35, 0.15, [](const training_row& r) { return r.work.fp8_attention; });
  scale("attention backward", 0.6, 0.15);
  share("output bytes", 6, 2, any, 16);
  scale("stream share", 0.95, 0.15);
  share("tp exposed", 0.5, 0.2, [](const training_row& r) { return r.work.par.tp > 1; });
  share("cp exposed", 0.5, 0.2, [](const training_row& r) { return r.work.par.cp > 1; });
  share("dp interference", 0.3, 0.2);
  scale("pipeline launch us", 15, 0.5, [](const training_row& r) { return r.work.par.pp > 1; }, 10);
  scale("step host ms", 12, 0.5, any, 10);
  share("jitter", 0.004, 0.003, any, 0.03);
  for (const char* s : releases) scale(fmt::format("release {}", s), 1.0, 0.08, [s](const training_row& r) { return r.software->name == s; });
  for (const char* s : moe_releases)
    scale(fmt::format("moe release {}", s), 1.1, 0.15, [s](const training_row& r) { return r.software->name == s && routed(r); });
  const auto exchanges = [](bool overlapped) {
    return [overlapped](const training_row& r) { return routed(r) && r.work.par.ep > 1 && r.work.moe_overlap == overlapped; };
  };
  const auto pieces = [](const training_row& r) {
    return routed(r) && r.work.moe_overlap && r.work.graphs != cuda_graphs::full_iteration;
  };
  const auto host_bound = [](const training_row& r) { return routed(r) && r.work.graphs != cuda_graphs::full_iteration; };
  scale("moe time", 1.0, 0.3, routed);
  scale("moe block scaled time", 1.0, 0.15, [](const training_row& r) {
    return routed(r) && block_scaled(r.work.gemm_precision);
  });
  scale("expert time", 1.0, 0.1, routed);
  scale("early expert quantise passes", 1.0, 0.5, [](const training_row& r) {
    return routed(r) && r.work.gemm_precision != precision::bf16 &&
           std::find(quantising_releases.begin(), quantising_releases.end(), r.software->name) != quantising_releases.end();
  }, 5);
  share("ep exposed", 1.0, 0.3, exchanges(false), 2.5);
  share("ep exposed overlapped", 0.4, 0.2, exchanges(true), 1.5);
  scale("moe host us", 1000, 0.7, host_bound, 10);
  scale("moe host per expert us", 600, 0.7, host_bound, 10);
  scale("overlap host factor", 1.3, 0.3, pieces);
  scale("moe sync per expert us", 50, 0.7, [](const training_row& r) { return routed(r) && r.work.dispatcher == moe_dispatcher::alltoall; }, 10);
  share("graphed host share", 0.6, 0.2, [](const training_row& r) { return routed(r) && r.work.graphs == cuda_graphs::partial; });
  scale("scan words", 3e9, 0.3, [](const training_row& r) {
    return std::any_of(r.net->layers.begin(), r.net->layers.end(), [](const layer_spec& l) { return l.scan.heads > 0; });
  });
  const auto clamped = [](const training_row& r) {
    return std::any_of(r.net->layers.begin(), r.net->layers.end(), [](const layer_spec& l) { return l.biased_clamped_activation; });
  };
  // Counted in Megatron-Core: clamps and their concatenation 8 passes, the weighted bias in FP32 14. Each in a kernel of
  // its own, some by expert.
  share("unfused passes", 22, 5, clamped, 40);
  share("fused share", 0.5, 0.2, [clamped](const training_row& r) { return clamped(r) && r.work.fused_expert_mlp; });
  return out;
}

class values {
 public:
  values(const std::vector<training_parameter>& list, const std::vector<double>& at) {
    for (std::size_t i = 0; i < list.size(); ++i) by_name_.emplace(list[i].fitted.name, at[i]);
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
      // Values of a GPU's own in the kernel tables would win over the architecture's below.
      out.push_back({reference, fmt::format("/kernels/{}/gemm/{}/output_bytes", g.gpu, r.precision), fmt::format("{:.6g}", v["output bytes"])});
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
  training("scan_words_per_sm", fmt::format("{:.6g}", v["scan words"]));
  training("moe/time_factor", fmt::format("{:.6g}", v["moe time"]));
  training("moe/block_scaled_time", fmt::format("{:.6g}", v["moe block scaled time"]));
  training("moe/expert_time", fmt::format("{:.6g}", v["expert time"]));
  training("moe/ep_exposed", fmt::format("{:.6g}", v["ep exposed"]));
  training("moe/ep_exposed_overlapped", fmt::format("{:.6g}", v["ep exposed overlapped"]));
  training("moe/host", fmt::format("{:.6g} us", v["moe host us"]));
  training("moe/host_per_expert", fmt::format("{:.6g} us", v["moe host per expert us"]));
  training("moe/overlap_host_factor", fmt::format("{:.6g}", v["overlap host factor"]));
  training("moe/sync_per_expert", fmt::format("{:.6g} us", v["moe sync per expert us"]));
  training("moe/graphed_host_share", fmt::format("{:.6g}", v["graphed host share"]));
  training("moe/unfused_activation_passes", fmt::format("{:.6g}", v["unfused passes"]));
  training("moe/fused_activation_share", fmt::format("{:.6g}", v["fused share"]));
  for (const char* r : quantising_releases)
    out.push_back({r, "/training/moe/quantise_passes", fmt::format("{:.6g}", v["early expert quantise passes"])});
  for (const char* r : moe_releases) {
    const double release = v[fmt::format("moe release {}", r)];
    out.push_back({r, "/training/moe/time_factor", fmt::format("{:.6g}", v["moe time"] * release)});
    out.push_back({r, "/training/moe/expert_time", fmt::format("{:.6g}", v["expert time"] * release)});
  }
  for (const char* r : releases) out.push_back({r, "/training/time_factor", fmt::format("{:.6g}", v[fmt::format("release {}", r)])});
  return out;
}

using stacks_by_name = std::map<std::string, stack>;

/// The stacks a point stands for. Settings of the reference reach the stacks built on it.
class stack_set {
 public:
  explicit stack_set(const data_folders& data) {
    diagnostics problems;
    kernels_ = read_stack(*load(data, kernel_tables, problems), kernel_tables, problems);
    for (const char* name : releases) documents_.emplace(name, load(data, name, problems));
    documents_.emplace(reference, load(data, reference, problems));
    problems.throw_if_any();
  }
  stacks_by_name at(const std::vector<setting>& settings) const {
    diagnostics problems;
    stacks_by_name out;
    for (const auto& [name, source] : documents_) {
      config::document doc = *source;
      for (const setting& s : settings)
        if (s.stack == reference) set(doc, s, problems);
      for (const setting& s : settings)  // a release's own settings win
        if (s.stack == name && name != reference) set(doc, s, problems);
      out.emplace(name, read_stack(doc, name, problems));
    }
    problems.throw_if_any();
    return out;
  }
  const stack& kernels() const { return kernels_; }

 private:
  static void set(config::document& doc, const setting& s, diagnostics& problems) {
    config::override_value(doc, s.pointer, config::parse_scalar(s.text), {"fit", "fit", true}, problems);
  }
  static std::shared_ptr<config::document> load(const data_folders& data, const char* name, diagnostics& problems) {
    return std::make_shared<config::document>(config::load_named(data.stacks, "stack", name, {"fit", "", {}, {}}, problems));
  }
  std::map<std::string, std::shared_ptr<config::document>> documents_;
  stack kernels_;
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

/// A step grows by the same time with every PP micro-batches once the pipeline is full and what the first and the last
/// overlap is over: long steps are extrapolated from two short ones. Within 0.1 % of the whole step.
seconds sampled_step_time(const training_row& r) {
  const std::int64_t pp = r.work.par.pp, m = r.work.micro_batches();
  const std::int64_t few = 3 * pp + 8 / pp * pp + m % pp, more = few + pp;
  if (m <= more + pp) return step_time(r);
  training_row part = r;
  const auto at = [&](std::int64_t micro_batches) {
    part.work.global_batch_size = micro_batches * r.work.micro_batch_size * r.work.par.dp;
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

/// Written back into the file itself, not into what it inherits.
std::vector<std::pair<std::string, std::string>> stack_files(const data_folders& data, const std::vector<setting>& settings,
                                                             value residuals) {
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
  config::override_value(files.at(reference), "/training/residuals", std::move(residuals), {"fit", "fit"}, problems);
  problems.throw_if_any();
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, doc] : files) out.emplace_back(name + ".json", to_json(doc.root));
  return out;
}

struct trained {
  std::vector<double> at;
  double cost = 0;
  std::vector<setting> settings;
};

class training_problem {
 public:
  training_problem(std::vector<const fit_row*> rows, const stack_set& stacks, const std::vector<training_parameter>& list)
      : rows_(std::move(rows)), stacks_(stacks), list_(list) {}

  std::vector<double> residuals(const std::vector<double>& at) const {
    const stacks_by_name here = stacks_.at(settings_of({list_, at}, stacks_.kernels()));
    std::vector<double> out;
    for (const fit_row* r : rows_) out.push_back(log_error(r->row, here, sampled_step_time) * r->weight);
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
      const stacks_by_name stacks = stacks_.at(settings_of({list_, there}, stacks_.kernels()));
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        const fit_row& r = *rows_[i];
        if (list_[k].reaches(r.row)) out[i][k] = (log_error(r.row, stacks, sampled_step_time) * r.weight - middle[i]) / h;
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
    t.settings = settings_of({list_, t.at}, stacks_.kernels());
    return t;
  }

 private:
  std::vector<const fit_row*> rows_;
  const stack_set& stacks_;
  const std::vector<training_parameter>& list_;
};

/// Where searches begin: at the priors' middle, then at points drawn from the priors, always the same ones.
std::vector<std::vector<double>> starting_points(const std::vector<training_parameter>& list, int count) {
  std::vector<std::vector<double>> out;
  std::mt19937_64 random(20260801);
  for (int i = 0; i < count; ++i) {
    std::vector<double> at;
    for (const auto& [p, reaches] : list) {
      // Uniform, of the prior's variance: distributions of the library differ by platform.
      const double z = std::sqrt(12.0) * (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * (i == 0 ? 0 : p.prior_width);
      at.push_back(std::clamp(p.logarithmic ? p.start * std::exp(z) : p.start + z, p.low, p.high));
    }
    out.push_back(std::move(at));
  }
  return out;
}

/// Searches from every point and keeps the best; the first of equals.
trained best_of(const training_problem& problem, const std::vector<std::vector<double>>& from, const fit_progress& report) {
  std::vector<trained> found(from.size());
  in_parallel(from.size(), [&](std::size_t i) {
    found[i] = problem.solve(from[i], [&](int iteration, double cost) {
      if (report) report(fmt::format("start {} of {}, iteration {}: cost {:.4f}", i + 1, from.size(), iteration, cost));
    });
  });
  return *std::min_element(found.begin(), found.end(), [](const trained& a, const trained& b) { return a.cost < b.cost; });
}

std::string group_of(const training_row& r, const std::string& by) {
  if (by == "gpus") return std::to_string(r.work.par.gpus());
  if (by == "third") return third_of(r.record.id);
  return by == "model" ? r.record.model : by == "system" ? r.record.system : r.software->name;
}

using groups_of_rows = std::vector<split_rows<const fit_row>>;
/// By group, in the order of their rows: logarithms of simulated over published.
using errors_by_group = std::vector<std::vector<double>>;

/// By a fit to all other rows that starts at `from`.
errors_by_group left_out_errors(const groups_of_rows& groups, const stack_set& stacks,
                                const std::vector<training_parameter>& list, const std::vector<double>& from,
                                const fit_progress& report) {
  errors_by_group out(groups.size());
  in_parallel(groups.size(), [&](std::size_t i) {
    const auto& [name, left, kept] = groups[i];
    const stacks_by_name without = stacks.at(training_problem(kept, stacks, list).solve(from, {}).settings);
    for (const fit_row* r : left) out[i].push_back(log_error(r->row, without, step_time));
    if (report) report(fmt::format("refitted without {}", name));
  });
  return out;
}

std::vector<unseen_step> unseen_steps(const groups_of_rows& systems, const errors_by_group& errors) {
  std::vector<unseen_step> out;
  for (std::size_t g = 0; g < systems.size(); ++g)
    for (std::size_t i = 0; i < systems[g].left.size(); ++i) {
      const training_row& r = systems[g].left[i]->row;
      const double miss = r.record.metric == "step_time_s" ? -errors[g][i] : errors[g][i];
      out.push_back({systems[g].group, kind_of_step(r.hardware, *r.net, r.work), miss});
    }
  return out;
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
  const stack_set stacks(data);
  const std::vector<training_parameter> list = parameter_list();
  std::vector<const fit_row*> all;
  for (const fit_row& r : rows) all.push_back(&r);
  constexpr int starts = 3;  // eight end within 0.1 % of each other's cost
  std::mutex speaking;
  const fit_progress say = [&](const std::string& line) {
    const std::lock_guard lock(speaking);
    if (report) report(line);
  };
  const trained best = best_of({all, stacks, list}, starting_points(list, starts), say);
  const auto grouped = [&](const std::string& by) {
    return split_by_group(all, [&](const fit_row& r) { return group_of(r.row, by); });
  };
  const groups_of_rows systems = grouped("system");
  const errors_by_group without_system = left_out_errors(systems, stacks, list, best.at, say);
  const std::vector<unseen_step> unseen = unseen_steps(systems, without_system);

  fit_report out;
  for (std::size_t i = 0; i < list.size(); ++i) out.parameters.push_back({list[i].fitted.name, list[i].fitted.start, best.at[i]});
  std::vector<double> errors;
  const stacks_by_name fitted = stacks.at(best.settings);
  for (const fit_row& r : rows) errors.push_back(std::exp(log_error(r.row, fitted, step_time)) - 1);
  enter_fitted(out, summary_of(errors));
  out.files = stack_files(data, best.settings, residuals_value(residuals_by_kind(unseen)));
  if (!unseen.empty()) say(fmt::format("{:.1f} % of the steps of left-out systems lie in bands from the others, widened as for a GPU nobody measured", 100 * coverage_of(unseen)));
  if (leave_out.empty()) return out;
  const groups_of_rows groups = grouped(leave_out);
  const errors_by_group missed = leave_out == "system" ? without_system : left_out_errors(groups, stacks, list, best.at, say);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<double> relative;
    for (const double log : missed[g]) relative.push_back(std::exp(log) - 1);
    const error_summary e = summary_of(relative);
    out.leave_out.push_back({groups[g].group, e.rows, e.mean, e.worst, e.bias});
  }
  return out;
}

}  // namespace nvlsim
