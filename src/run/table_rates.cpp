#include <variant>

#include "nvlsim/compute/compute.hpp"
#include "nvlsim/run/explain_scenario.hpp"

namespace nvlsim {
namespace {

/// Work per second of a kernel as the table has it; empty where it has none.
struct table_rate {
  const gpu_spec& gpu;
  const kernel_profile& table;
  const time_use& use;
  bool attention_again = false;

  std::optional<double> of(const kernel_cost& k) const {
    return k.time > seconds{} ? std::optional(use.work_flop / k.time.base()) : std::nullopt;
  }
  std::optional<double> operator()(const gemm_extent& x) const {
    // No table has measured MXFP8, which tensor cores compute as FP8 in blocks, and FP16, which is as fast as
    // BF16.
    const precision operands = use.facts->operands;
    const auto it = table.gemm.find(operands == precision::mxfp8  ? precision::fp8_block
                                    : operands == precision::fp16 ? precision::bf16
                                                                  : operands);
    if (it == table.gemm.end()) return {};
    return of(gemm_cost(gpu, it->second, it->first, {.m = x.m, .n = x.n, .k = x.k, .groups = x.groups}));
  }
  std::optional<double> operator()(const attention_extent& x) const {
    constexpr double forward_products = 4, backward_products = 10;  // FLOPs a pair and value of a head
    const bool backward = use.phase.starts_with("backward");        // also that of inputs alone
    if (backward && attention_again) return {};
    const double pairs = x.queries * x.keys, all = x.sequences * x.heads * pairs;
    const double width = use.work_flop / ((backward ? backward_products : forward_products) * all);
    const attention_shape s{.batch = x.sequences,
                            .heads = x.heads,
                            .kv_heads = x.heads,
                            .qk_dim = width,
                            .v_dim = width,
                            .queries = x.queries,
                            .pairs = pairs,
                            .fp8 = bytes_per_element(use.facts->operands) < 2};
    return of(backward ? attention_backward_cost(gpu, table.attention, s) : attention_forward_cost(gpu, table, s));
  }
  template <class Other>
  std::optional<double> operator()(const Other&) const {
    return {};
  }
};

}  // namespace

void add_table_rates(explanation& e, const gpu_spec& gpu, const kernel_profile& table, bool attention_again) {
  for (time_use& u : e.kernels)
    if (u.facts && u.limit == resource::tensor_cores && u.work_flop > 0)
      u.table_rate = std::visit(table_rate{gpu, table, u, attention_again}, u.facts->extent);
}

}  // namespace nvlsim
