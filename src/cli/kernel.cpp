// nvlsim kernel
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/kernel_options.hpp"
#include "cli/support.hpp"
#include "nvlsim/calibration/kernel_knobs.hpp"
#include "nvlsim/compute/compute.hpp"
#include "nvlsim/measurements/kernel_rows.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim::cli {
namespace {

/// The inputs of a kernel's cost.
struct kernel_question {
  const platform& at;
  const stack& software;
  const kernel_profile& kernels;
  const kernel_arguments& asked;
  precision format;
};

constexpr const char* gemm_formula =
    "launch + max(cast, cast_row_time x rows) + min over tiles of smax(waves x (k + fill_depth) x max(step_time, "
    "tile / tensor_rate), bytes "
    "/ (HBM x hbm_share)) + output_bytes x outputs / HBM stream";
constexpr const char* attention_formula =
    "launch + smax(all pairs + tail_share x longest block, longest block) x smax(flops / tensor_rate, 1 / "
    "exponentials) + io_passes x bytes / "
    "HBM";
constexpr const char* sparse_formula =
    "launch + smax(pairs x smax(flops / tensor_rate, 1 / exponentials), bytes / HBM stream)";
constexpr const char* indexer_formula = "launch + smax(flops / tensor_rate, bytes / HBM stream)";
constexpr const char* decode_formula =
    "launch + split_time x log2(parts) + part_time x (parts - 1) + smax(rounds x (item_time + heads x head_time + "
    "keys / part_rate), bytes "
    "/ (HBM x hbm_share))";
constexpr const char* mla_formula =
    "launch + split_time x log2(parts) + part_time x (parts - 1) + rounds x item_time + smax(rounds x (keys - "
    "128) x "
    "flops / tensor_rate, bytes / (HBM x hbm_share))";
constexpr const char* moe_formula =
    "launch + expert_time x experts + 2 grouped GEMMs by exposed_share of a tile + smax(the other tiles, weights "
    "and tokens / (HBM x "
    "hbm_share)) + passes over tokens";
constexpr const char* scan_formula =
    "kernels x (launch + max(flops / BF16 tensor_rate + exponentials, bytes / (HBM stream x hbm_share), 16-bit "
    "words "
    "and exponentials / (SMs x scan_words_per_sm)))";
constexpr const char* stream_formula = "launch + bytes / (HBM stream x hbm_share)";
constexpr const char* copy_formula =
    "launch + bytes / rate of the path, a GPU's share of its VM; over HBM read and written";

kernel_cost gemm(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  gemm_shape s{.m = a.m, .n = a.n, .k = a.k, .groups = a.groups, .sparse = a.sparse};
  if (a.weights.empty()) return gemm_cost(q.at.gpu, q.kernels.gemm.at(q.format), q.format, s);
  const precision weights = *precision_by_name(a.weights);
  s.weight_element_bytes = bytes_per_element(weights);
  return gemm_cost(q.at.gpu, q.kernels.weight_only.at(weights), precision::bf16, s);
}

/// Number of (query, key) pairs of the last `queries` of `length` tokens.
double pairs_of(const kernel_arguments& a, double queries) {
  if (a.full) return queries * a.length;
  const double first = a.length - queries;
  if (!(a.window > 0) || a.window >= a.length) return queries * (a.length - queries / 2);
  const double growing =
      std::clamp(a.window - first, 0.0, queries);  // queries that see fewer keys than the window
  return growing * (first + growing / 2) + (queries - growing) * a.window;
}
double queries_of(const kernel_arguments& a) { return a.queries > 0 ? std::min(a.queries, a.length) : a.length; }

kernel_cost attention(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  const attention_shape s{.batch = a.batch,
                          .heads = a.heads,
                          .kv_heads = a.kv_heads > 0 ? a.kv_heads : a.heads,
                          .qk_dim = a.head_dim,
                          .v_dim = a.head_dim,
                          .queries = queries_of(a),
                          .pairs = pairs_of(a, queries_of(a)),
                          .fp8 = q.format == precision::fp8};
  if (!a.backward) return attention_forward_cost(q.at.gpu, q.kernels, s);
  return attention_backward_cost(
      q.at.gpu, s.fp8 && q.kernels.attention_fp8 ? *q.kernels.attention_fp8 : q.kernels.attention, s);
}
kernel_cost sparse_attention(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  const sparse_attention_shape s{.tokens = a.tokens,
                                 .heads = a.heads,
                                 .keys = a.keys,
                                 .qk_dim = a.qk_dim,
                                 .v_dim = a.v_dim,
                                 .fp8 = q.format == precision::fp8};
  return (a.backward ? sparse_attention_backward_cost : sparse_attention_forward_cost)(q.at.gpu,
                                                                                       q.kernels.attention, s);
}
constexpr double default_chosen_keys = 2048;  // DeepSeek-V3.2
kernel_cost indexer(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  const indexer_shape s{.tokens = a.tokens,
                        .heads = a.heads,
                        .dim = a.head_dim,
                        .scored = a.scored,
                        .chosen = a.chosen > 0 ? a.chosen : std::min(default_chosen_keys, a.scored),
                        .fp8 = q.format == precision::fp8};
  return (a.backward ? indexer_backward_cost : indexer_forward_cost)(q.at.gpu, q.kernels.attention, s);
}
kernel_cost decode(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  return decode_attention_cost(q.at.gpu, q.kernels,
                               {.batch = a.batch,
                                .context = a.length,
                                .heads = a.heads,
                                .kv_heads = a.kv_heads > 0 ? a.kv_heads : a.heads,
                                .head_dim = a.head_dim,
                                .kv_element_bytes = bytes_per_element(q.format)});
}
kernel_cost mla(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  return mla_decode_cost(
      q.at.gpu, q.kernels.mla_decode.at(q.format),
      {.batch = a.batch, .context = a.length, .heads = a.heads, .kv_element_bytes = bytes_per_element(q.format)});
}
// DeepSeek: key size 128 + 64, value size 128, latent size 512.
constexpr double mla_key = 192, mla_head = 128, mla_latent = 512;
kernel_cost mla_context(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  return attention_forward_cost(q.at.gpu, q.kernels.mla_context.at(q.format),
                                {.batch = a.batch,
                                 .heads = a.heads,
                                 .kv_heads = a.heads,
                                 .qk_dim = mla_key,
                                 .v_dim = mla_head,
                                 .queries = queries_of(a),
                                 .pairs = pairs_of(a, queries_of(a)),
                                 .fp8 = q.format == precision::fp8});
}
kernel_cost absorb(const kernel_question& q) {
  const bool keys = q.asked.part == "keys";
  return gemm_cost(q.at.gpu, (keys ? q.kernels.absorb_keys : q.kernels.absorb_values).at(q.format), q.format,
                   {.m = q.asked.tokens,
                    .n = keys ? mla_latent : mla_head,
                    .k = keys ? mla_head : mla_latent,
                    .groups = q.asked.heads});
}
kernel_cost moe(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  const expert_routing r{.tokens = a.tokens, .topk = a.topk, .experts = a.experts, .ranks = a.ranks};
  return moe_cost(q.at.gpu, q.kernels.moe.at(a.family),
                  {.tokens = a.tokens,
                   .local_experts = std::max(1.0, a.experts / a.ranks),
                   .hidden = a.hidden,
                   .inter = a.inter,
                   .gated = !a.ungated,
                   .load = a.skew > 0 ? skewed_load(r, a.skew) : balanced_load(r)});
}
constexpr double default_scan_chunk = 128;
double scan_words_per_sm(const stack& s) { return s.training ? s.training->scan_words_per_sm.read() : 0; }
kernel_cost scan(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  const scan_shape s{.tokens = a.tokens,
                     .heads = a.heads,
                     .head_dim = a.head_dim,
                     .state = a.state,
                     .groups = a.state_groups,
                     .chunk = a.chunk > 0 ? a.chunk : std::min(default_scan_chunk, a.tokens),
                     .delta = a.delta};
  return (a.backward ? scan_backward_cost : scan_forward_cost)(q.at.gpu,
                                                               q.kernels.gemm.at(precision::bf16).tensor_rate,
                                                               scan_words_per_sm(q.software), q.kernels.stream, s);
}
kernel_cost stream(const kernel_question& q) {
  return stream_cost(q.at.gpu, q.kernels.stream, bytes::from_base(q.asked.bytes));
}
kernel_cost elementwise(const kernel_question& q) {
  const auto list = elementwise_kernels();
  const auto it = std::find_if(list.begin(), list.end(),
                               [&](const elementwise_kernel& e) { return e.name == q.asked.elementwise; });
  const stream_params& p = it->name == "amax" && q.kernels.amax ? *q.kernels.amax : q.kernels.stream;
  return stream_cost(q.at.gpu, p, bytes::from_base(it->bytes * q.asked.elements));
}
kernel_cost copy(const kernel_question& q) {
  const auto it = std::find(copy_path_names.begin(), copy_path_names.end(), q.asked.path);
  return copy_cost(q.at, q.kernels.stream, static_cast<copy_path>(it - copy_path_names.begin()),
                   bytes::from_base(q.asked.bytes));
}

std::string by_format(const char* group, precision p) { return fmt::format("{}/{}", group, name(p)); }
std::string attention_family(const kernel_arguments&, precision p) {
  return p == precision::fp8 ? "attention/fp8" : "attention/bf16";
}
std::string main_attention(const kernel_arguments&, precision) { return "attention"; }
std::string stream_family(const kernel_arguments& a, precision) {
  return a.kernel == "elementwise" && a.elementwise == "amax" ? "amax" : "stream";
}

/// A kernel class: its parameter group, its cost, and whether it computes in the requested precision.
struct priced_class {
  std::string_view word;
  std::string (*family)(const kernel_arguments&, precision);
  kernel_cost (*price)(const kernel_question&);
  const char* formula;
  bool in_format = false;
};
const std::array<priced_class, 13> priced_classes = {{
    {"gemm",
     [](const kernel_arguments& a, precision p) {
       return a.weights.empty() ? by_format("gemm", p) : "weight_only/" + a.weights;
     },
     gemm, gemm_formula, true},
    {"attention", attention_family, attention, attention_formula, true},
    {"sparse-attention", main_attention, sparse_attention, sparse_formula, true},
    {"indexer", main_attention, indexer, indexer_formula, true},
    {"decode",
     [](const kernel_arguments& a, precision p) {
       return fmt::format("{}decode/{}", a.kv_heads <= 0 || a.heads <= a.kv_heads ? "single_" : "",
                          bytes_per_element(p) < 2 ? "fp8" : "bf16");
     },
     decode, decode_formula},
    {"mla", [](const kernel_arguments&, precision p) { return by_format("mla_decode", p); }, mla, mla_formula,
     true},
    {"mla-context", [](const kernel_arguments&, precision p) { return by_format("mla_context", p); }, mla_context,
     attention_formula, true},
    {"absorb",
     [](const kernel_arguments& a, precision p) {
       return by_format(a.part == "keys" ? "absorb_keys" : "absorb_values", p);
     },
     absorb, gemm_formula, true},
    {"moe", [](const kernel_arguments& a, precision) { return "moe/" + a.family; }, moe, moe_formula},
    {"scan", stream_family, scan, scan_formula},
    {"stream", stream_family, stream, stream_formula},
    {"elementwise", stream_family, elementwise, stream_formula},
    {"copy", stream_family, copy, copy_formula},
}};

/// The requested kernel.
struct priced_kernel {
  std::string family;  ///< family of measured rows
  std::string group;   ///< parameter group
  precision operands = precision::bf16;
  kernel_cost cost;
  const char* formula;
  const kernel_spread* spread;
  std::vector<std::pair<std::string, std::string>> parameters;
};

precision format_of(const kernel_arguments& a, diagnostics& problems) {
  if (const auto format = precision_by_name(a.format_of_data)) return *format;
  std::vector<std::string> names;
  for (const precision p : all_precisions) names.emplace_back(name(p));
  problems.add("--precision", "",
               fmt::format("\"{}\" is not one of {}", a.format_of_data, fmt::join(names, ", ")));
  return precision::bf16;
}

const priced_class& class_of(const kernel_arguments& a) {
  return *std::find_if(priced_classes.begin(), priced_classes.end(),
                       [&](const priced_class& x) { return x.word == a.kernel; });
}

/// Reports what the stack and the GPU lack for the kernel.
void check_parameters(const kernel_question& q, diagnostics& problems) {
  const kernel_arguments& a = q.asked;
  if (const std::string family = class_of(a).family(a, q.format); !has_family(q.kernels, family)) {
    std::vector<std::string> known;
    for (const auto& [n, unused] : q.kernels.moe) known.push_back(n);
    problems.add(fmt::format("stack {}", q.software.name), "/kernels",
                 fmt::format("no parameters \"{}\" for {}", family, q.at.gpu.name),
                 a.kernel == "moe" ? nearest(a.family, known) : std::string());
  }
  if (a.sparse) {
    const precision operands = a.weights.empty() ? q.format : precision::bf16;
    if (const peak_rate* peak = q.at.gpu.peak(operands); !peak || !peak->sparse)
      problems.add("--sparse", "", fmt::format("{} has no 2:4-sparse peak for {}", q.at.gpu.name, name(operands)));
  }
  if (a.kernel == "copy" && a.bytes > 0 && !(copy(q).time.base() > 0))
    problems.add("--path", "", fmt::format("platform {} has no rate for {}", q.at.name, a.path));
}

priced_kernel price(const kernel_question& q) {
  const kernel_arguments& a = q.asked;
  const auto c = &class_of(a);
  priced_kernel out{.family = c->family(a, q.format),
                    .group = {},
                    .cost = {},
                    .formula = c->formula,
                    .spread = nullptr,
                    .parameters = {}};
  if (c->in_format && a.weights.empty()) out.operands = q.format;
  if (a.kernel == "moe") out.operands = q.kernels.moe.at(a.family).activations;
  out.group = parameter_group(q.kernels, out.family);
  if (q.kernels.ungrouped_decode && a.kernel == "decode" &&
      a.heads > q.kernels.ungrouped_decode->beyond * (a.kv_heads > 0 ? a.kv_heads : a.heads))
    out.family = out.group = "ungrouped_decode";
  out.cost = c->price(q);
  // Only measured kernels have a spread; copies, scans and gradients were not measured.
  const bool measured = a.kernel != "copy" && a.kernel != "scan" && a.kernel != "stream" &&
                        a.kernel != "indexer" && a.kernel != "sparse-attention" && !a.backward;
  if (measured) out.spread = spread_of(q.software, q.at.gpu, out.family);
  for (const kernel_knob& knob : knobs_of(out.group))
    out.parameters.emplace_back(knob.member, knob.unit.empty()
                                                 ? fmt::format("{:.5g}", knob.get(q.kernels))
                                                 : fmt::format("{:.5g} {}", knob.get(q.kernels), knob.unit));
  if (a.kernel == "scan")
    out.parameters.emplace_back("scan_words_per_sm", fmt::format("{:.5g}", scan_words_per_sm(q.software)));
  return out;
}

std::string note_of(const kernel_question& q, const priced_kernel& k) {
  std::string note = kernels_note(q.software, q.at.gpu);
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (q.asked.kernel == "gemm" && q.asked.weights.empty() && !measured_gemm(q.software, q.at.gpu, k.operands))
    add(fmt::format("no {} kernel was measured on {}: assumes the fraction of peak of a measured precision",
                    name(k.operands), q.at.gpu.name));
  if (q.asked.kernel == "scan" && !q.software.training)
    add(fmt::format("stack {} has no scan parameters: uses the roofline", q.software.name));
  return note;
}

kernel_answer answer_of(const kernel_question& q, const priced_kernel& k) {
  const gpu_spec& gpu = q.at.gpu;
  const kernel_cost& c = k.cost;
  kernel_answer out;
  out.group = k.group, out.platform = q.at.name, out.gpu = gpu.name, out.parameters_of = q.kernels.gpu;
  out.formula = k.formula, out.note = note_of(q, k);
  out.time = c.time, out.flop = c.flop, out.moved = c.moved;
  out.dense_peak = gpu.dense_peak(k.operands), out.hbm_bandwidth = gpu.hbm_bandwidth;
  out.resource = name(c.limit);
  out.power = kernel_power(gpu, k.operands, c);
  if (k.spread) out.spread = *k.spread;
  out.parameters = k.parameters;
  return out;
}

}  // namespace

exit_code execute(const kernel_arguments& a) {
  const data_folders data = folders_under(data_root());
  diagnostics problems;
  const auto [for_platform, for_stack] = platform_and_stack_sets(a.sets);
  detail(fmt::format("platform {}, stack {}, from {}", a.platform, a.stack, data_root().string()));
  const auto hardware = load_platform(a.platform, data, for_platform, {"--platform", "", {}, {}}, problems);
  const auto software = load_stack({a.stack.empty() ? std::string(default_stack(a.kernel)) : a.stack,
                                    for_stack,
                                    {"--stack", "", {}, {}},
                                    false,
                                    "/stack",
                                    true},
                                   data, problems);
  const bool loaded = problems.empty();
  const precision format = format_of(a, problems);
  check_shape(a, problems);
  if (!loaded) problems.throw_if_any();
  const platform& p = hardware.content;
  const kernel_profile k = kernels_for(software.content, p.gpu);
  const kernel_question q{p, software.content, k, a, format};
  check_parameters(q, problems);
  problems.throw_if_any();
  const priced_kernel priced = price(q);
  const kernel_answer answer = answer_of(q, priced);
  print(a.format == "json" ? to_json(kernel_json(answer)) : kernel_text(answer));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
