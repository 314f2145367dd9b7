#include "calibration/training_knobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace nvlsim {
namespace {

struct gpu_member {
  const char* gpu;
  const char* architecture;
  double cap_ratio;       ///< power cap relative to the architecture's reference GPU
  bool ultra;             ///< Blackwell Ultra silicon
  const char* attention;  ///< GPU whose attention kernels are used: the tables differ more by library than by GPU
};
constexpr std::array<gpu_member, 7> members = {{{"gb200", "blackwell", 1.0, false, "gb200"},
                                                {"gb300", "blackwell", 1400.0 / 1200, true, "gb300"},
                                                {"b200", "blackwell", 1000.0 / 1200, false, "gb200"},
                                                {"b300", "blackwell", 1100.0 / 1200, true, "gb300"},
                                                {"h100", "hopper", 1.0, false, "h100"},
                                                {"h200", "hopper", 1.0, false, "h100"},
                                                {"a100", "ampere", 1.0, false, "a100"}}};
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
constexpr std::array<const char*, 6> moe_releases = {
    "nemo-25.04",           "nemo-25.05", "mlperf-training-v6.0", "megatron-bridge-25.11", "megatron-bridge-26.02",
    "megatron-bridge-26.04"};
constexpr std::array<const char*, 3> trained_architectures = {"ampere", "hopper", "blackwell"};

/// The fit's entry for the row's GPU; for other GPUs, an entry that no parameter affects.
const gpu_member& member_of(const training_row& r) {
  static constexpr gpu_member unknown = {"", "", 1.0, false, ""};
  const auto it = std::find_if(members.begin(), members.end(),
                               [&](const gpu_member& g) { return r.hardware.gpu.name == g.gpu; });
  return it == members.end() ? unknown : *it;
}
bool any(const training_row&) { return true; }
bool routed(const training_row& r) { return has_routed_experts(*r.net); }
template <class Has>
bool some_layer(const training_row& r, Has has) {
  return std::any_of(r.net->layers.begin(), r.net->layers.end(), has);
}
reach on_architecture(const char* a) {
  return [a](const training_row& r) { return std::string_view(member_of(r).architecture) == a; };
}
/// Whether a row has GEMMs in precision `p`. Router and LM head always run in BF16.
bool computes_in(const training_row& r, precision p) {
  return p == precision::bf16 || r.workload.gemm_precision == p;
}

/// The steps on Ampere are of Megatron-LM before it had fused attention: they say nothing of its rate.
bool fused_attention(std::string_view architecture) { return architecture != "ampere"; }

void gpu_settings(const fitted_values& v, const stack& kernels, std::vector<stack_setting>& out) {
  for (const gpu_member& g : members) {
    const attention_params& base = kernels.kernels.at(g.attention).attention;
    const double power = std::pow(g.cap_ratio, v["power exponent"]);
    for (const rate_parameter& r : rates) {
      if (std::string_view(r.architecture) != g.architecture) continue;
      const double silicon = g.ultra ? v["ultra"] * v[fmt::format("ultra {}", r.precision)] : 1.0;
      const double rate = v[fmt::format("gemm {} {}", r.architecture, r.precision)] * power * silicon;
      out.push_back({training_reference, fmt::format("/kernels/{}/gemm/{}/tensor_rate", g.gpu, r.precision),
                     fmt::format("{:.6g} TFLOPS", rate)});
      // Written per GPU: a GPU's own value in the kernel tables would override the architecture's below.
      out.push_back({training_reference, fmt::format("/kernels/{}/gemm/{}/output_bytes", g.gpu, r.precision),
                     fmt::format("{:.6g}", v["output bytes"])});
    }
    if (!fused_attention(g.architecture)) continue;
    const double clock = std::pow(g.cap_ratio * (g.ultra ? 1200.0 / 1400 : 1.0), v["power exponent"]);
    const double attention = v[fmt::format("attention {}", g.architecture)] * clock;
    const auto set = [&](const char* member, std::string text) {
      out.push_back({training_reference, fmt::format("/kernels/{}/attention/{}", g.gpu, member), std::move(text)});
    };
    set("tensor_rate", fmt::format("{:.6g} TFLOPS", base.tensor_rate.base() / 1e12 * attention));
    set("exponential_share", fmt::format("{:.6g}", base.exponential_share * attention));
    set("fp8_speedup", fmt::format("{:.6g}", v["attention fp8"]));
  }
}

}  // namespace

bool usable(const training_row& r) {
  return r.record.status == record_status::ok && !r.defaulted_layout && r.record.suspect.empty();
}

bool of_fitted_release(const training_row& r) {
  return r.software->name == training_reference ||
         std::find(fitted_releases.begin(), fitted_releases.end(), r.software->name) != fitted_releases.end();
}

std::vector<training_parameter> training_parameters() {
  std::vector<training_parameter> out;
  const auto scale = [&](std::string name, double start, double width, reach where = any, double factor = 2.5) {
    out.push_back({{std::move(name), start, start / factor, start * factor, width, true}, std::move(where)});
  };
  const auto share = [&](std::string name, double start, double width, reach where = any, double high = 1.0) {
    out.push_back({{std::move(name), start, 0.0, high, width, false}, std::move(where)});
  };
  for (const rate_parameter& g : rates)
    scale(fmt::format("gemm {} {}", g.architecture, g.precision), g.start_tflops, 0.075,
          [&g](const training_row& r) {
            return on_architecture(g.architecture)(r) && computes_in(r, *precision_by_name(g.precision));
          });
  const auto scaled_by_power = [](const training_row& r) { return member_of(r).cap_ratio != 1; };
  out.push_back({{"power exponent", 0.3, 0.0, 1.0, 0.1, false}, scaled_by_power});
  scale("ultra", 1.2, 0.1, [](const training_row& r) { return member_of(r).ultra; });
  for (const char* p : {"bf16", "fp8", "mxfp8", "nvfp4"})
    scale(fmt::format("ultra {}", p), 1.0, 0.1,
          [p](const training_row& r) { return member_of(r).ultra && computes_in(r, *precision_by_name(p)); });
  for (const char* a : trained_architectures)
    if (fused_attention(a)) scale(fmt::format("attention {}", a), 1.0, 0.2, on_architecture(a));
  scale("attention fp8", 1.35, 0.15, [](const training_row& r) { return r.workload.fp8_attention; });
  scale("attention backward", 0.6, 0.15);
  share("output bytes", 6, 2, any, 16);
  scale("stream share", 0.95, 0.15);
  share("tp exposed", 0.5, 0.2, [](const training_row& r) { return r.workload.par.tp > 1; });
  share("cp exposed", 0.5, 0.2, [](const training_row& r) { return r.workload.par.cp > 1; });
  share("dp interference", 0.3, 0.2);
  scale(
      "pipeline launch us", 15, 0.5, [](const training_row& r) { return r.workload.par.pp > 1; }, 10);
  scale("step host ms", 12, 0.5, any, 10);
  share("jitter", 0.004, 0.003, any, 0.03);
  for (const char* s : fitted_releases)
    scale(fmt::format("release {}", s), 1.0, 0.08, [s](const training_row& r) { return r.software->name == s; });
  for (const char* s : moe_releases)
    scale(fmt::format("moe release {}", s), 1.1, 0.15,
          [s](const training_row& r) { return r.software->name == s && routed(r); });
  const auto exchanges = [](bool overlapped) {
    return [overlapped](const training_row& r) {
      return routed(r) && r.workload.par.ep > 1 && r.workload.moe_overlap == overlapped;
    };
  };
  const auto launched = [](const training_row& r) { return r.workload.graphs != cuda_graphs::full_iteration; };
  scale("moe time", 1.0, 0.3, routed);
  share("ep exposed", 1.0, 0.3, exchanges(false), 2.5);
  share("ep exposed overlapped", 0.4, 0.2, exchanges(true), 1.5);
  // Qwen3-8B in windows of 2,048 tokens: 232 ms a micro-batch of 36 layers of 26 operators, whatever the GPUs.
  scale("host per operator us", 248, 0.05, launched, 10);
  scale(
      "moe host per expert us", 25, 0.7, [launched](const training_row& r) { return routed(r) && launched(r); },
      10);
  scale(
      "moe host per cast expert us", 50, 0.7,
      [launched](const training_row& r) {
        return routed(r) && launched(r) && bytes_per_element(r.workload.gemm_precision) < 2;
      },
      10);
  scale(
      "moe host of shared experts us", 1000, 0.7,
      [launched](const training_row& r) {
        return launched(r) && some_layer(r, [](const layer_spec& l) { return l.moe.shared_ffn > 0; });
      },
      10);
  scale(
      "moe host per node us", 400, 0.7,
      [exchanges](const training_row& r) {
        return exchanges(true)(r) && r.workload.graphs == cuda_graphs::none &&
               bytes_per_element(r.workload.gemm_precision) < 2;
      },
      10);
  scale("scan words", 3e9, 0.3,
        [](const training_row& r) { return some_layer(r, [](const layer_spec& l) { return l.scan.heads > 0; }); });
  const auto clamped = [](const training_row& r) {
    return some_layer(r, [](const layer_spec& l) { return l.biased_clamped_activation; });
  };
  // Counted in Megatron-Core: 8 passes for clamps and their concatenation, 14 for the weighted bias in FP32. Each
  // pass is a separate kernel, some per expert.
  share("unfused passes", 22, 5, clamped, 40);
  share("fused share", 0.5, 0.2,
        [clamped](const training_row& r) { return clamped(r) && r.workload.fused_expert_mlp; });
  return out;
}

std::vector<stack_setting> training_settings(const fitted_values& v, const stack& kernels) {
  std::vector<stack_setting> out;
  gpu_settings(v, kernels, out);
  for (const char* a : trained_architectures) {
    for (const rate_parameter& r : rates)
      if (std::string_view(r.architecture) == a)
        out.push_back({training_reference, fmt::format("/kernels/{}/gemm/{}/output_bytes", a, r.precision),
                       fmt::format("{:.6g}", v["output bytes"])});
    if (fused_attention(a))
      out.push_back({training_reference, fmt::format("/kernels/{}/attention/backward_efficiency", a),
                     fmt::format("{:.6g}", v["attention backward"])});
    out.push_back({training_reference, fmt::format("/kernels/{}/stream/hbm_share", a),
                   fmt::format("{:.6g}", v["stream share"])});
  }
  const auto training = [&](const char* member, std::string text) {
    out.push_back({training_reference, fmt::format("/training/{}", member), std::move(text)});
  };
  training("tp_exposed", fmt::format("{:.6g}", v["tp exposed"]));
  training("cp_exposed", fmt::format("{:.6g}", v["cp exposed"]));
  training("dp_interference", fmt::format("{:.6g}", v["dp interference"]));
  training("pipeline_launch", fmt::format("{:.6g} us", v["pipeline launch us"]));
  training("step_host", fmt::format("{:.6g} ms", v["step host ms"]));
  training("jitter_per_doubling", fmt::format("{:.6g}", v["jitter"]));
  training("scan_words_per_sm", fmt::format("{:.6g}", v["scan words"]));
  training("moe/time_factor", fmt::format("{:.6g}", v["moe time"]));
  training("moe/ep_exposed", fmt::format("{:.6g}", v["ep exposed"]));
  training("moe/ep_exposed_overlapped", fmt::format("{:.6g}", v["ep exposed overlapped"]));
  training("host_per_operator", fmt::format("{:.6g} us", v["host per operator us"]));
  training("moe/host_per_expert", fmt::format("{:.6g} us", v["moe host per expert us"]));
  training("moe/host_per_cast_expert", fmt::format("{:.6g} us", v["moe host per cast expert us"]));
  training("moe/host_of_shared_experts", fmt::format("{:.6g} us", v["moe host of shared experts us"]));
  training("moe/host_per_node", fmt::format("{:.6g} us", v["moe host per node us"]));
  training("moe/unfused_activation_passes", fmt::format("{:.6g}", v["unfused passes"]));
  training("moe/fused_activation_share", fmt::format("{:.6g}", v["fused share"]));
  for (const char* r : moe_releases) {
    const double release = v[fmt::format("moe release {}", r)];
    out.push_back({r, "/training/moe/time_factor", fmt::format("{:.6g}", v["moe time"] * release)});
  }
  for (const char* r : fitted_releases)
    out.push_back({r, "/training/time_factor", fmt::format("{:.6g}", v[fmt::format("release {}", r)])});
  return out;
}

}  // namespace nvlsim
