#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {

std::string_view name(kernel_resource b) {
  constexpr std::array<std::string_view, 3> names = {"compute", "memory", "launch"};
  return names[static_cast<std::size_t>(b)];
}

namespace {

const kernel_profile* entry_for(const stack& s, const gpu_spec& gpu) {
  for (const std::string& wanted : {gpu.name, gpu.architecture, std::string("default")})
    if (const auto it = s.kernels.find(wanted); it != s.kernels.end()) return &it->second;
  return nullptr;
}

/// Multiplies each tensor rate by `factor` of its format, and drops formats without a factor.
template <class Factor>
void scale_rates(kernel_profile& k, Factor factor) {
  const auto scale = [&](constant<flop_rate>& rate, precision p) {
    rate.derive([&, now = rate] { return now * factor(p); });
  };
  for (auto* table : {&k.gemm, &k.absorb_keys, &k.absorb_values})
    for (auto& [format, p] : *table) scale(p.tensor_rate, format);
  for (auto& [format, p] : k.weight_only) scale(p.tensor_rate, precision::bf16);
  scale(k.attention.tensor_rate, precision::bf16);
  if (k.attention_fp8) scale(k.attention_fp8->tensor_rate, precision::bf16);
  for (auto& [format, p] : k.mla_context) scale(p.tensor_rate, format);
  for (auto& [format, p] : k.mla_decode) scale(p.tensor_rate, format);
  for (auto& [family, p] : k.moe) scale(p.tensor_rate, p.activations);
  const auto zero = [](const auto& entry) { return !(entry.second.tensor_rate.peek().base() > 0); };
  std::erase_if(k.gemm, zero);
  std::erase_if(k.weight_only, zero);
  std::erase_if(k.absorb_keys, zero);
  std::erase_if(k.absorb_values, zero);
  std::erase_if(k.mla_context, zero);
  std::erase_if(k.mla_decode, zero);
  std::erase_if(k.moe, zero);
}

/// Peak of the GPU over the peak of the GPU that the entry was measured on; zero if either lacks the format.
double share_of_peak(const kernel_profile& k, const gpu_spec& gpu, precision p) {
  const auto origin = k.peaks_of_origin.find(peak_format(p));
  const auto peak = gpu.dense_peak(p);
  return origin != k.peaks_of_origin.end() && peak ? *peak / origin->second : 0;
}

struct likeness {
  precision wanted;
  std::array<precision, 3> measured;  // in order of preference
};
// Formats that were not measured on most GPUs: they reach the share of peak of a similar format.
constexpr std::array<likeness, 4> unmeasured_formats = {
    {{precision::int8, {precision::mxfp8, precision::fp8, precision::bf16}},
     {precision::tf32, {precision::bf16, precision::fp16, precision::bf16}},
     {precision::fp32, {precision::bf16, precision::fp16, precision::bf16}},
     {precision::fp64, {precision::bf16, precision::fp16, precision::bf16}}}};

void add_unmeasured_formats(kernel_profile& k, const gpu_spec& gpu) {
  for (const likeness& l : unmeasured_formats) {
    const auto peak = gpu.dense_peak(l.wanted);
    if (!peak || k.gemm.contains(l.wanted)) continue;
    for (const precision like : l.measured) {
      const auto from = k.gemm.find(like);
      const auto origin = gpu.dense_peak(like);
      if (from == k.gemm.end() || !origin) continue;
      gemm_params p = from->second;
      p.tensor_rate.derive([&, now = p.tensor_rate] { return now * (*peak / *origin); });
      p.cast_passes = 0;
      k.gemm.emplace(l.wanted, p);
      break;
    }
  }
}

/// Largest share of the data-sheet peak that GEMMs of a format reach on any measured GPU; nothing if none was
/// measured.
std::optional<double> largest_share(const stack& s, precision p) {
  std::optional<double> out;
  for (const auto& [name, k] : s.kernels) {
    if (!k.measured_on) continue;
    const auto rate = k.gemm.find(p);
    const auto peak = k.measured_on->peaks.find(peak_format(p));
    if (rate == k.gemm.end() || peak == k.measured_on->peaks.end()) continue;
    out = std::max(out.value_or(0), rate->second.tensor_rate / peak->second);
  }
  return out;
}

/// Rates of a GPU that the entry does not name: scaled by peak in another architecture, by power in the same one.
void scale_to(kernel_profile& k, const stack& s, const gpu_spec& gpu) {
  if (!k.peaks_of_origin.empty()) {
    const kernel_profile origin = k;
    scale_rates(k, [&](precision p) { return share_of_peak(origin, gpu, p); });
    const auto attention = [&](const attention_params& a) {
      const double share =
          share_of_peak(origin, gpu, gpu.peak(precision::bf16) ? precision::bf16 : precision::fp16);
      return a.tensor_rate * (share > 0 ? share : 1);
    };
    k.attention.tensor_rate.derive([&] { return attention(origin.attention); });
    if (origin.attention_fp8)
      k.attention_fp8->tensor_rate.derive([&] { return attention(*origin.attention_fp8); });
  } else if (k.dynamic_power_of_origin) {
    const auto rates = k.gemm;
    scale_rates(k, [&](precision p) {
      const double factor = std::pow((gpu.tdp - gpu.idle_power) / *k.dynamic_power_of_origin, k.power_exponent) *
                            (gpu.ultra ? k.ultra_factor.read() : 1);
      const auto rate = rates.find(p);
      const auto peak = gpu.dense_peak(p);
      const auto share = largest_share(s, p);
      return rate != rates.end() && peak && share ? std::min(factor, *share * (*peak / rate->second.tensor_rate))
                                                  : factor;
    });
  }
}

/// Whether the rates were measured on this GPU, not on another one whose rates its entry reuses.
bool named(const kernel_profile& k, const gpu_spec& gpu) { return k.gpu == gpu.name && k.peaks_of_origin.empty(); }

/// Peak of the platform over the peak of the measured GPU; 1 if either lacks the format.
double peak_ratio(const measured_gpu& m, const gpu_spec& gpu, precision p) {
  const auto was = m.peaks.find(peak_format(p));
  const auto now = gpu.dense_peak(p);
  return was != m.peaks.end() && now ? *now / was->second : 1;
}
double power_ratio(const measured_gpu& m, const gpu_spec& gpu) {
  return (gpu.tdp - gpu.idle_power) / m.dynamic_power;
}

/// Rates of a measured GPU whose peaks or power cap were changed in the platform. More power does not raise a
/// format above its dense peak.
void follow_platform(kernel_profile& k, const gpu_spec& gpu) {
  const measured_gpu m = *k.measured_on;
  const auto rates = k.gemm;
  scale_rates(k, [&](precision p) {
    const double power = std::pow((gpu.cap() - gpu.idle_power) / m.dynamic_power, k.power_exponent);
    const double peak = peak_ratio(m, gpu, p);
    const auto rate = rates.find(p);
    const auto max = gpu.dense_peak(p);
    if (power <= 1 || rate == rates.end() || !max) return peak * power;
    return std::min(peak * power, std::max(peak, *max / rate->second.tensor_rate));
  });
}

/// The note for results about what `follow_platform` did.
std::string deviation_note(const kernel_profile& k, const gpu_spec& gpu) {
  if (!k.measured_on) return {};
  const measured_gpu& m = *k.measured_on;
  std::vector<std::string> parts, peaks;
  for (const auto& [format, was] : m.peaks)
    if (const double ratio = peak_ratio(m, gpu, format); ratio != 1)
      peaks.push_back(fmt::format("{} x{:.4g}", name(format), ratio));
  if (!peaks.empty())
    parts.push_back(fmt::format("dense peaks against those of the measured {}: {}; tensor rates in proportion",
                                gpu.name, fmt::join(peaks, ", ")));
  if (power_ratio(m, gpu) != 1)
    parts.push_back(fmt::format(
        "tdp less idle power {:.0f} W instead of {:.0f} W: tensor rates by ({:.3g})^{:.2g}, "
        "none beyond its dense peak",
        (gpu.tdp - gpu.idle_power).base(), m.dynamic_power.base(), power_ratio(m, gpu), k.power_exponent));
  if (gpu.sm_count != m.sm_count)
    parts.push_back(
        fmt::format("{} SMs instead of {}: tensor rates are those of the whole GPU and do not follow, "
                    "nor do exponentials; set /gpu/peaks and /gpu/exponentials too",
                    gpu.sm_count, m.sm_count));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

// [docs/kernels.md#unmeasured-gpus]
kernel_profile kernels_for(const stack& s, const gpu_spec& gpu) {
  if (const kernel_profile* entry = entry_for(s, gpu)) {
    kernel_profile k = *entry;
    const bool follows = named(k, gpu) && k.measured_on;
    if (follows) follow_platform(k, gpu);
    else if (!named(k, gpu)) scale_to(k, s, gpu);
    add_unmeasured_formats(k, gpu);
    if (gpu.power_cap && !follows) {
      scale_rates(k, [&](precision) {
        const double power = (gpu.cap() - gpu.idle_power) / (gpu.tdp - gpu.idle_power);
        return std::pow(power, k.power_exponent);
      });
    }
    return k;
  }
  std::vector<std::string> known;
  for (const auto& [name, profile] : s.kernels) known.push_back(name);
  std::string what =
      fmt::format("no kernel parameters for GPU \"{}\" of architecture \"{}\"; ", gpu.name, gpu.architecture);
  what += known.empty() ? "the stack has none" : fmt::format("the stack has {}", fmt::join(known, ", "));
  throw input_error({{fmt::format("stack {}", s.name), "/kernels", std::move(what), nearest(gpu.name, known)}});
}

const kernel_spread* spread_of(const stack& s, const gpu_spec& gpu, std::string_view family) {
  const kernel_spread* best = nullptr;
  int best_rank = 0;
  const std::string_view kernel_class = family.substr(0, family.find('/'));
  for (const kernel_spread& k : s.kernel_spreads) {
    const std::string_view its_family = k.family;
    const int rank =
        its_family == family ? (k.gpu == gpu.name                    ? 4
                                : k.architecture == gpu.architecture ? 3
                                                                     : 2)
        : its_family.substr(0, its_family.find('/')) == kernel_class && k.architecture == gpu.architecture ? 1
                                                                                                           : 0;
    // The widest spread: a pooled value must not promise more than any of its members.
    const auto width = [](const kernel_spread& x) { return x.high / x.low; };
    if (rank == 0 || rank < best_rank || (rank == best_rank && width(k) <= width(*best))) continue;
    best = &k;
    best_rank = rank;
  }
  return best;
}

bool measured_gemm(const stack& s, const gpu_spec& gpu, precision p) {
  const kernel_profile* entry = entry_for(s, gpu);
  return entry && entry->gemm.contains(p);
}

bool measured_on(const stack& s, const gpu_spec& gpu) {
  const kernel_profile* entry = entry_for(s, gpu);
  return entry && named(*entry, gpu);
}

std::string kernels_note(const stack& s, const gpu_spec& gpu) {
  const kernel_profile* entry = entry_for(s, gpu);
  std::string out;
  if (entry && !named(*entry, gpu) && entry->peaks_of_origin.empty() && entry->dynamic_power_of_origin)
    // [docs/kernels.md#unmeasured-gpus]
    out = fmt::format(
        "no kernel was measured on {}: kernels of its architecture, with rates scaled by ({:.0f} W / {:.0f} "
        "W)^{:.2g} of "
        "dynamic power{}, up to the largest measured share of a dense peak",
        gpu.name, (gpu.tdp - gpu.idle_power).base(), entry->dynamic_power_of_origin->base(), entry->power_exponent,
        gpu.ultra && entry->ultra_factor != 1
            ? fmt::format(" and {:.4g} for the later make of its silicon", entry->ultra_factor)
            : std::string());
  if (entry && !named(*entry, gpu) && !entry->peaks_of_origin.empty())
    out = fmt::format(
        "no kernel was measured on {}: rates are the shares of the data-sheet peak that entry \"{}\" of "
        "stack {} holds; they follow peaks and no tdp, which power alone does (power_cap slows them)",
        gpu.name, entry->gpu, s.name);
  if (entry && named(*entry, gpu)) out = deviation_note(*entry, gpu);
  if (gpu.power_cap)
    out += fmt::format(
        "{}power cap {:.0f} W instead of {:.0f} W: tensor rates by ((cap - idle) / (tdp - idle))^{:.2g}",
        out.empty() ? "" : "; ", gpu.cap().base(), gpu.tdp.base(), entry ? entry->power_exponent.peek() : 0);
  return out;
}

}  // namespace nvlsim
