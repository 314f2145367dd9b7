#include "nvlsim/serving/routes.hpp"

#include <algorithm>
#include <array>

namespace nvlsim {
namespace {

/// 4-bit weight formats. Their arithmetic runs on FP4 tensor cores if there are any, else in 16 bits.
constexpr std::array four_bit = {precision::nvfp4, precision::mxfp4, precision::int4};
constexpr double four_bit_group_bytes = 0.53;  // 4 bits, and a scale per group of 32 to 128

bool is_four_bit(precision p) {
  for (const precision q : four_bit)
    if (p == q) return true;
  return false;
}

}  // namespace

precision priced_as(const model& m, precision weights) {
  return weights == precision::fp8_block && !has_routed_experts(m) ? precision::fp8 : weights;
}

engine_costs costs_for(const stack& s, const gpu_spec& gpu, const model& m) {
  engine_costs out = s.inference->costs(gpu.name, gpu.architecture);
  constexpr auto block = precision::fp8_block;
  if (priced_as(m, block) == block) return out;
  out.gemm_factor.erase(block);
  if (const auto f = out.gemm_factor.find(priced_as(m, block)); f != out.gemm_factor.end())
    out.gemm_factor.emplace(block, f->second);
  return out;
}

// [docs/models-and-assumptions.md#inference-formats]
std::optional<gemm_route> route_gemm(const gpu_spec& gpu, const kernel_profile& k, const engine_costs& c,
                                     stored_weights w, const constant<double>& sustained) {
  gemm_route out;
  const precision weights = w.format;
  out.operands = weights;
  const bool own = k.gemm.contains(weights) && gpu.dense_peak(weights);
  if (!own) {
    if (!is_four_bit(weights)) return std::nullopt;
    const bool fp4 =
        weights == precision::mxfp4 && k.gemm.contains(precision::nvfp4) && gpu.dense_peak(precision::nvfp4);
    out.operands = fp4 ? precision::nvfp4 : precision::bf16;
    if (!fp4) out.weight_element_bytes = four_bit_group_bytes;
  }
  const auto params = k.gemm.find(out.operands);
  if (params == k.gemm.end()) return std::nullopt;
  out.params = params->second;
  const bool expert = w.role == weight_role::expert;
  // An engine's kernels may exceed the rates of the kernel tables, but not the data sheet. Tensor cores multiply
  // narrow operands no slower than those of 16 bits, whatever rows say of formats that few models have.
  const gemm_params& in_tables = params->second;
  const auto& factors = expert ? c.expert_factor : c.gemm_factor;
  const auto wide = k.gemm.find(precision::bf16);
  const bool narrow = bytes_per_element(out.operands) < 2 && wide != k.gemm.end();
  // `wider`: how the 16-bit value of a constant compares with this format's, larger if it is the better one.
  const auto speed = [&](double wider) {
    const auto peak = gpu.dense_peak(out.operands);
    const double fastest = peak ? *peak / in_tables.tensor_rate : 1;
    const double floor = narrow ? wider * factor_of(factors, precision::bf16) : 0;
    return std::min(fastest, sustained * std::max(floor, factor_of(factors, weights).read()));
  };
  const double wider_rate = narrow ? wide->second.tensor_rate / in_tables.tensor_rate : 0;
  const double wider_step = narrow ? in_tables.step_time / wide->second.step_time : 0;
  const constant<double>& stream = expert ? c.expert_stream_factor : c.stream_factor;
  out.params.tensor_rate.derive([&] { return in_tables.tensor_rate * speed(wider_rate); });
  out.params.step_time.derive([&] { return in_tables.step_time / speed(wider_step); });
  out.params.hbm_share.derive([&] { return std::min(1.0, in_tables.hbm_share * stream); });
  out.params.launch.derive([&] { return in_tables.launch * c.launch_factor; });
  return out;
}

}  // namespace nvlsim
