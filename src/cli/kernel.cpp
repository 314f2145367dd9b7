// nvlsim kernel
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/support.hpp"
#include "nvlsim/compute.hpp"
#include "nvlsim/output.hpp"
#include "nvlsim/units_text.hpp"
#include "scenario/inputs.hpp"
#include "study/kernel_knobs.hpp"
#include "study/kernel_rows.hpp"

namespace nvlsim::cli {
namespace {

/// A kernel as asked for: where its parameters stand, what it costs, in which format it computes.
struct priced_kernel {
  std::string family;
  precision operands = precision::bf16;
  kernel_cost (*price)(const platform&, const kernel_profile&, const kernel_arguments&, precision);
  const char* formula;
};

constexpr const char* gemm_formula =
    "launch + cast + min over tiles of smax(waves x (k + fill_depth) x max(step_time, tile / tensor_rate), bytes "
    "/ (HBM x hbm_share))";
constexpr const char* attention_formula =
    "launch + smax(all pairs + tail_share x longest block, longest block) x smax(flops / tensor_rate, 1 / exponentials) + io_passes x bytes / "
    "HBM";
constexpr const char* decode_formula =
    "launch + split_time x log2(parts) + part_time x (parts - 1) + smax(rounds x (item_time + heads x head_time), bytes "
    "/ (HBM x hbm_share))";
constexpr const char* mla_formula =
    "launch + split_time x log2(parts) + part_time x (parts - 1) + rounds x item_time + smax(rounds x (keys - 128) x "
    "flops / tensor_rate, bytes / (HBM x hbm_share))";
constexpr const char* moe_formula =
    "launch + expert_time x experts + 2 grouped GEMMs by smax(tiles, weights and tokens / (HBM x hbm_share)) + "
    "passes over tokens";
constexpr const char* stream_formula = "launch + bytes / (HBM stream x hbm_share)";
constexpr const char* copy_formula = "launch + bytes / rate of the path, a GPU's share of its VM; over HBM read and written";

kernel_cost gemm(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision p) {
  return gemm_cost(at.gpu, k.gemm.at(p), p, {.m = a.m, .n = a.n, .k = a.k, .groups = a.groups, .sparse = a.sparse});
}
kernel_cost attention(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision p) {
  const double queries = a.queries > 0 ? std::min(a.queries, a.length) : a.length;
  return attention_forward_cost(at.gpu, k,
                                {.batch = a.batch,
                                 .heads = a.heads,
                                 .kv_heads = a.kv_heads > 0 ? a.kv_heads : a.heads,
                                 .qk_dim = a.head_dim,
                                 .v_dim = a.head_dim,
                                 .queries = queries,
                                 .pairs = queries * (a.length - queries / 2),
                                 .fp8 = p == precision::fp8});
}
kernel_cost decode(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision p) {
  return decode_attention_cost(at.gpu, k,
                               {.batch = a.batch,
                                .context = a.length,
                                .heads = a.heads,
                                .kv_heads = a.kv_heads > 0 ? a.kv_heads : a.heads,
                                .head_dim = a.head_dim,
                                .kv_element_bytes = bytes_per_element(p)});
}
kernel_cost mla(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision p) {
  return mla_decode_cost(
      at.gpu, k.mla_decode.at(p),
      {.batch = a.batch, .context = a.length, .heads = a.heads, .kv_element_bytes = bytes_per_element(p)});
}
kernel_cost moe(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision) {
  const expert_routing r{.tokens = a.tokens, .topk = a.topk, .experts = a.experts, .ranks = a.ranks};
  return moe_cost(at.gpu, k.moe.at(a.family),
                  {.tokens = a.tokens,
                   .local_experts = std::max(1.0, a.experts / a.ranks),
                   .hidden = a.hidden,
                   .inter = a.inter,
                   .gated = !a.ungated,
                   .load = a.skew > 0 ? skewed_load(r, a.skew) : balanced_load(r)});
}
kernel_cost stream(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision) {
  return stream_cost(at.gpu, k.stream, bytes::from_base(a.bytes));
}

kernel_cost elementwise(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision) {
  const auto list = elementwise_kernels();
  const auto it = std::find_if(list.begin(), list.end(), [&](const elementwise_kernel& e) { return e.name == a.elementwise; });
  return stream_cost(at.gpu, k.stream, bytes::from_base(it->bytes * a.elements));
}
kernel_cost copy(const platform& at, const kernel_profile& k, const kernel_arguments& a, precision) {
  const auto it = std::find(copy_path_names.begin(), copy_path_names.end(), a.path);
  return copy_cost(at, k.stream, static_cast<copy_path>(it - copy_path_names.begin()), bytes::from_base(a.bytes));
}

priced_kernel kernel_of(const kernel_arguments& a, diagnostics& problems) {
  const auto format = precision_by_name(a.format_of_data);
  std::vector<std::string> names;
  for (const precision p : all_precisions) names.emplace_back(name(p));
  if (!format)
    problems.add("--precision", "", fmt::format("\"{}\" is no number format", a.format_of_data),
                 nearest(a.format_of_data, names));
  const precision p = format.value_or(precision::bf16);
  if (a.kernel == "gemm") return {fmt::format("gemm/{}", name(p)), p, gemm, gemm_formula};
  if (a.kernel == "attention")
    return {p == precision::fp8 ? "attention/fp8" : "attention/bf16", p, attention, attention_formula};
  if (a.kernel == "decode")
    return {bytes_per_element(p) < 2 ? "decode/fp8" : "decode/bf16", precision::bf16, decode, decode_formula};
  if (a.kernel == "mla") return {fmt::format("mla_decode/{}", name(p)), p, mla, mla_formula};
  if (a.kernel == "moe") return {fmt::format("moe/{}", a.family), precision::bf16, moe, moe_formula};
  if (a.kernel == "elementwise") return {"stream", precision::bf16, elementwise, stream_formula};
  if (a.kernel == "copy") return {"stream", precision::bf16, copy, copy_formula};
  return {"stream", precision::bf16, stream, stream_formula};
}

value as_value(const priced_kernel& q, const platform& p, const kernel_profile& k, const kernel_cost& c,
               const std::string& note) {
  const double t = c.time.base(), rate = t > 0 ? c.work.base() / t : 0;
  value out{value::object{}};
  out.set("family", q.family);
  out.set("platform", p.name);
  out.set("gpu", p.gpu.name);
  out.set("parameters_of", k.gpu);
  out.set("time_s", t);
  out.set("work_flop", c.work.base());
  out.set("moved_bytes", c.moved.base());
  out.set("rate_flops", rate);
  const auto peak = p.gpu.dense_peak(q.operands);
  out.set("share_of_dense_peak", peak && rate > 0 ? value{rate / peak->base()} : value{});
  out.set("hbm_Bps", t > 0 ? value{c.moved.base() / t} : value{});
  out.set("bound", name(c.limit));
  const watts power = kernel_power(p.gpu, q.operands, c);
  out.set("power_w", power.base());
  out.set("energy_j", power.base() * t);
  out.set("formula", q.formula);
  out.set("notes", note);
  value numbers{value::object{}};
  for (const kernel_knob& knob : knobs_of(q.family))
    numbers.set(knob.member,
                knob.unit.empty() ? value{knob.get(k)} : value{fmt::format("{:.5g} {}", knob.get(k), knob.unit)});
  out.set("parameters", std::move(numbers));
  return out;
}

std::string as_text(const priced_kernel& q, const platform& p, const kernel_profile& k, const kernel_cost& c,
                    const std::string& note) {
  const double t = c.time.base();
  const auto line = [](const char* what, const std::string& v) { return fmt::format("{:<22} {}\n", what, v); };
  std::string out = line("kernel", fmt::format("{} on {} (parameters of {})", q.family, p.gpu.name, k.gpu));
  out += line("time", format_quantity(c.time));
  if (c.work.base() > 0 && t > 0) {
    const auto peak = p.gpu.dense_peak(q.operands);
    const double rate = c.work.base() / t;
    out += line("rate",
                fmt::format("{:.4g} TFLOPS{}", rate / 1e12,
                            peak ? fmt::format(", {:.1f} % of the dense peak", 100 * rate / peak->base()) : ""));
  }
  if (t > 0)
    out += line("HBM", fmt::format("{:.4g} TB/s, {:.1f} % of the data sheet", c.moved.base() / t / 1e12,
                                   100 * c.moved.base() / t / p.gpu.hbm_bandwidth.base()));
  out += line("bound by", std::string(name(c.limit)));
  const watts power = kernel_power(p.gpu, q.operands, c);
  out += line("power", fmt::format("{:.0f} W, {:.4g} J", power.base(), power.base() * t));
  if (!note.empty()) out += line("note", note);
  out += line("formula", q.formula);
  for (const kernel_knob& knob : knobs_of(q.family))
    out += line(fmt::format("  {}", knob.member).c_str(), fmt::format("{:.5g} {}", knob.get(k), knob.unit));
  return out;
}

}  // namespace

exit_code execute(const kernel_arguments& a) {
  const data_folders data = folders_under(data_root());
  diagnostics problems;
  std::vector<override_at> for_platform, for_stack;
  for (const override_option& o : parse_sets(a.sets)) {
    auto& list = o.pointer.starts_with("/kernels/") ? for_stack : for_platform;
    list.push_back({o.pointer, config::parse_scalar(o.text), {"--set", "--set", true}, {}});
  }
  detail(fmt::format("platform {}, stack {}, of {}", a.platform, a.stack, data_root().string()));
  const auto hardware = load_platform(a.platform, data, for_platform, {"--platform", "", {}, {}}, problems);
  const auto software = load_stack(a.stack, data, for_stack, {"--stack", "", {}, {}}, problems);
  priced_kernel q = kernel_of(a, problems);
  problems.throw_if_any();
  const platform& p = hardware.content;
  const kernel_profile k = kernels_for(software.content, p.gpu);
  if (!has_family(k, q.family)) {
    std::vector<std::string> known;
    for (const auto& [n, unused] : k.moe) known.push_back(n);
    throw input_error({{fmt::format("stack {}", a.stack), "/kernels",
                        fmt::format("no parameters \"{}\" for {}", q.family, p.gpu.name),
                        a.kernel == "moe" ? nearest(a.family, known) : std::string()}});
  }
  if (a.kernel == "moe") q.operands = k.moe.at(a.family).activations;
  q.family = parameter_group(k, q.family);
  if (k.ungrouped_decode && a.kernel == "decode" && a.heads > k.ungrouped_decode->beyond * std::max(1.0, a.kv_heads))
    q.family = "ungrouped_decode";
  const kernel_cost c = q.price(p, k, a, q.operands);
  std::string note = kernels_note(software.content, p.gpu);
  if (a.kernel == "gemm" && !measured_gemm(software.content, p.gpu, q.operands))
    note += fmt::format("{}no {} kernel was measured on {}: a measured format's share of the data-sheet peak",
                        note.empty() ? "" : "; ", name(q.operands), p.gpu.name);
  print(a.format == "json" ? to_json(as_value(q, p, k, c, note)) : as_text(q, p, k, c, note));
  return exit_code::ok;
}

}  // namespace nvlsim::cli
