#include "workload/inference_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/units_text.hpp"
#include "workload/iteration_time.hpp"

namespace nvlsim {
namespace {

constexpr double bf16_bytes = 2, fp32_bytes = 4;

memory_item layer_weights(const model& m, const inference_workload& w, const std::vector<layer_slice>& slices) {
  double gemm_weights = 0;
  for (const layer_slice& l : slices) gemm_weights += l.layers * l.gemm_weights(static_cast<double>(m.hidden));
  const auto norms = static_cast<double>(parameters_by_part(m).norms);
  const double element = bytes_per_element(w.weights);
  return {"weights", bytes::from_base(element * gemm_weights + bf16_bytes * norms),
          fmt::format("{} B ({}) x {:.4g} G projection weights on TP rank {} + {:.0f} B x {:.4g} M norm weights",
                      element, name(w.weights), gemm_weights / 1e9, w.tp > 1 ? fmt::format("1/{}", w.tp) : "1/1",
                      bf16_bytes, norms / 1e6)};
}

memory_item vocabulary_weights(const model& m, const inference_workload& w) {
  const parameter_parts parts = parameters_by_part(m);
  const double count = static_cast<double>(parts.embedding + parts.output) / w.tp;
  return {"vocabulary_weights", bytes::from_base(bf16_bytes * count),
          fmt::format("2 B (bf16) x {:.4g} G weights of embedding{} / TP {}", count * w.tp / 1e9,
                      parts.output > 0 ? " and LM head" : ", shared with the LM head,", w.tp)};
}

// Tensors alive together: the residual stream and its normalised copy, with either Q, K, V and the attention output
// or the MLP's inner vectors. [docs/models-and-assumptions.md#inference-memory]
memory_item workspace(const model& m, const inference_workload& w, const std::vector<layer_slice>& slices) {
  double inner = 0;
  for (const layer_slice& l : slices)
    inner = std::max({inner, l.qkv_width() + l.heads * l.head_dim, l.up_width() + l.ffn});
  const double width = 2 * static_cast<double>(m.hidden) + inner;
  return {"workspace", bytes::from_base(bf16_bytes * width * static_cast<double>(w.max_num_tokens)),
          fmt::format("2 B x {} tokens x (2 x {} hidden + {:.0f} of the widest layer part)", w.max_num_tokens,
                      m.hidden, inner)};
}

memory_item logits(const model& m, const inference_workload& w) {
  const std::int64_t rows = std::min(w.max_batch_size, w.max_num_tokens);
  return {"logits", bytes::from_base(fp32_bytes * static_cast<double>(rows) * static_cast<double>(m.vocab)),
          fmt::format("4 B x {} sequences x {} words", rows, m.vocab)};
}

bytes kv_per_token(const inference_workload& w, const std::vector<layer_slice>& slices) {
  double values = 0;
  for (const layer_slice& l : slices) values += l.layers * 2 * l.kv_heads * l.head_dim;
  return bytes::from_base(values * bytes_per_element(w.kv_cache));
}

}  // namespace

serving_memory plan_serving_memory(const platform& p, const stack& s, const model& m,
                                   const inference_workload& w) {
  const inference_profile& engine = *s.inference;
  const std::vector<layer_slice> slices = slice_layers(m, w.tp);
  serving_memory out;
  out.report = {"each GPU",
                {layer_weights(m, w, slices),
                 vocabulary_weights(m, w),
                 workspace(m, w, slices),
                 logits(m, w),
                 {"reserve", engine.reserve, "CUDA context, collective library and engine"}},
                {},
                p.gpu.hbm_usable};
  for (const memory_item& i : out.report.items) out.report.peak += i.size;

  // The engine takes its share of what weights and reserve leave; the workspace must fit beside it.
  const bytes after_weights =
      p.gpu.hbm_usable - engine.reserve - out.report.items[0].size - out.report.items[1].size;
  const bytes cache = std::min(after_weights * engine.kv_fraction, p.gpu.hbm_usable - out.report.peak);
  out.kv_per_token = kv_per_token(w, slices);
  const double blocks = std::floor(cache / out.kv_per_token / engine.kv_block_tokens);
  if (blocks < 1) return out;
  out.kv_capacity_tokens = static_cast<std::int64_t>(blocks) * engine.kv_block_tokens;
  const bytes pool = out.kv_per_token * static_cast<double>(out.kv_capacity_tokens);
  out.report.items.push_back(
      {"kv_cache", pool,
       fmt::format("{} tokens x {:.0f} B ({}); {:.0f} % of the {} that weights and reserve leave",
                   out.kv_capacity_tokens, out.kv_per_token.base(), name(w.kv_cache), 100 * (pool / after_weights),
                   format_quantity(after_weights))});
  out.report.peak += pool;
  return out;
}

}  // namespace nvlsim
