#include "nvlsim/serving/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

constexpr double bf16_bytes = 2, fp32_bytes = 4;

/// Elements and bytes of the weight matrices of all layers on one rank.
struct layer_weights {
  double count = 0, size = 0;

  void add(const inference_workload& w, weight_role r, double elements) {
    count += elements;
    size += elements * bytes_per_element(weights_of(w, r));
  }
};

memory_item weights_item(const model& m, const inference_workload& w, const std::vector<layer_slice>& slices) {
  layer_weights all;
  const auto hidden = static_cast<double>(m.hidden);
  for (const layer_slice& l : slices) {
    for (const auto* part : {&l.before_attention, &l.after_attention})
      for (const rank_gemm& g : *part) all.add(w, g.role, l.layers * g.n * g.k);
    all.add(w, weight_role::expert, l.layers * l.expert_weights(hidden));
  }
  if (w.drafts.draft_tokens > 0)  // projection of two hidden vectors in each prediction module
    all.add(w, weight_role::sixteen_bit, static_cast<double>(m.mtp_layers) * 2 * hidden * hidden);
  const auto norms = static_cast<double>(parameters_by_part(m).norms);
  return {
      "weights", bytes::from_base((all.size + bf16_bytes * norms) * fullest_stage(m, w.pp)),
      fmt::format("{:.3g} B ({}) x {:.4g} G projection weights on TP rank {} + {:.0f} B x {:.4g} M norm weights{}",
                  all.size / all.count, name(w.weights), all.count / 1e9,
                  w.tp > 1 ? fmt::format("1/{}", w.tp) : "1/1", bf16_bytes, norms / 1e6,
                  w.pp > 1 ? fmt::format(", {:.4g} % of the layers on the fullest of {} stages",
                                         100 * fullest_stage(m, w.pp), w.pp)
                           : "")};
}

memory_item vocabulary_weights(const model& m, const inference_workload& w) {
  const parameter_parts parts = parameters_by_part(m);
  const double count = static_cast<double>(parts.embedding + parts.output) / w.tp;
  // Tables of n-grams are published in 8 bits where the weights are narrower. [assumed for other checkpoints]
  const double element = std::clamp(bytes_per_element(w.weights), 1.0, bf16_bytes);
  const double tables = static_cast<double>(parts.tables) / w.tp;
  return {"vocabulary_weights", bytes::from_base(bf16_bytes * count + element * tables),
          fmt::format("2 B (bf16) x {:.4g} G embedding{} weights / TP {}{}", count * w.tp / 1e9,
                      parts.output > 0 ? " and LM head" : " (shared with the LM head)", w.tp,
                      tables > 0 ? fmt::format(" + {:g} B x {:.4g} G table weights / TP {}", element,
                                               tables * w.tp / 1e9, w.tp)
                                 : "")};
}

// Live at once: the residual stream and its normalised copy, with either Q, K, V and the attention output or the
// MLP's inner vectors. [docs/models-and-assumptions.md#inference-memory]
memory_item workspace(const model& m, const engine_settings& set, const std::vector<layer_slice>& slices) {
  double inner = 0;
  for (const layer_slice& l : slices)
    inner = std::max({inner, l.qkv_width() + l.heads * l.head_dim, l.up_width() + l.ffn});
  const double width = 2 * static_cast<double>(m.hidden) + inner;
  return {"workspace", bytes::from_base(bf16_bytes * width * static_cast<double>(set.max_num_tokens)),
          fmt::format("2 B x {} tokens x (2 x {} hidden + {:.0f} in the widest part of a layer)",
                      set.max_num_tokens, m.hidden, inner)};
}

memory_item logits(const model& m, const engine_settings& set) {
  const std::int64_t rows = std::min(set.max_batch_size, set.max_num_tokens);
  return {"logits", bytes::from_base(fp32_bytes * static_cast<double>(rows) * static_cast<double>(m.vocab)),
          fmt::format("4 B x {} sequences x {} vocabulary entries", rows, m.vocab)};
}

/// Layers that keep every token allocate cache token by token. Scan and sliding-window layers allocate the most
/// that a sequence needs when it is admitted.
void divide_cache(serving_memory& out, const model& m, const inference_workload& w,
                  const std::vector<layer_slice>& slices) {
  const double element = bytes_per_element(w.kv_cache);
  double every = 0, states = 0;
  std::map<std::int64_t, double> windowed;
  for (const layer_slice& l : slices) {
    (l.windowed() ? windowed[l.spec.window] : every) += l.layers * l.kv_values() * element;
    states += l.layers * l.state_bytes;
  }
  if (every == 0)  // only windowed layers: count tokens as if windows were never full
    for (const auto& [window, share] : std::exchange(windowed, {})) every += share;
  out.kv_per_token = bytes::from_base(every * fullest_stage(m, w.pp));
  if (every == 0) return;
  out.sequence.states = states / every;
  for (const auto& [window, share] : windowed) out.sequence.windowed[window] = share / every;
}

/// Names `kv_fraction` if a larger value would leave room for a block.
std::string no_cache_left(const memory_report& taken, double kv_fraction, kv_memory_rule rule, bytes block) {
  const std::string held =
      fmt::format("{} of {} usable are in use", format_quantity(taken.peak), format_quantity(taken.usable));
  if (taken.usable - taken.peak < block) return "no memory is left for a KV cache: " + held;
  const char* const of = rule == kv_memory_rule::of_rest ? "the memory left after weights and reserve"
                                                         : "all memory, including weights and reserve";
  return fmt::format("kv_fraction {:g}, a share of {}, leaves no room for a KV cache block, although only {}",
                     kv_fraction, of, held);
}

}  // namespace

std::int64_t sequence_cache::beside(std::int64_t tokens) const {
  double out = states;
  for (const auto& [window, share] : windowed) out += share * static_cast<double>(std::min(tokens, window));
  return static_cast<std::int64_t>(std::ceil(out));
}

serving_memory plan_serving_memory(const platform& p, const stack& s, const model& m,
                                   const inference_workload& w) {
  const inference_profile& engine = *s.inference;
  const engine_settings set = settings_of(engine, w);
  std::vector<layer_slice> slices = slice_layers(m, ranks_of(w));
  if (w.drafts.draft_tokens > 0)
    for (layer_slice& l : slice_layers(m.mtp_block, m.hidden, ranks_of(w))) {
      l.layers *= static_cast<int>(m.mtp_layers);
      slices.push_back(std::move(l));
    }
  serving_memory out;
  const bool counted = engine.kv_rule == kv_memory_rule::of_rest;
  out.report.where = "each GPU";
  out.report.items = {weights_item(m, w, slices), vocabulary_weights(m, w)};
  out.report.usable = p.gpu.hbm_usable;
  if (counted) {
    out.report.items.push_back(workspace(m, set, slices));
    out.report.items.push_back(logits(m, set));
  }
  out.report.items.push_back({"reserve", engine.reserve, "CUDA context, collective library and engine"});
  for (const memory_item& i : out.report.items) out.report.peak += i.size;

  const bytes weights = out.report.items[0].size + out.report.items[1].size;
  const bytes after_weights = p.gpu.hbm_usable - engine.reserve - weights;
  // The cache is a share of the memory left after weights and reserve, and the workspace must fit as well. Or
  // cache, weights and reserve together are a share of all memory, and the rest is workspace.
  const bytes cache = counted ? std::min(after_weights * set.kv_fraction, p.gpu.hbm_usable - out.report.peak)
                              : p.gpu.hbm_usable * set.kv_fraction - weights - engine.reserve;
  divide_cache(out, m, w, slices);
  if (!(out.kv_per_token > bytes{})) return out;
  const bytes block = out.kv_per_token * static_cast<double>(engine.kv_block_tokens);
  const double blocks = std::floor(cache / block);
  if (!(blocks >= 1)) {
    out.no_cache = no_cache_left(out.report, set.kv_fraction, engine.kv_rule, block);
    return out;
  }
  out.kv_capacity_tokens = static_cast<std::int64_t>(blocks) * engine.kv_block_tokens;
  const bytes pool = out.kv_per_token * static_cast<double>(out.kv_capacity_tokens);
  out.report.items.push_back(
      {"kv_cache", pool,
       fmt::format("{} tokens x {:.0f} B ({}); {:.0f} % of the {} left after weights and reserve",
                   out.kv_capacity_tokens, out.kv_per_token.base(), name(w.kv_cache), 100 * (pool / after_weights),
                   format_quantity(after_weights))});
  out.report.peak += pool;
  // Ranks of a replica pool their caches; micro-batches of a pipeline share them.
  out.kv_capacity_tokens = out.kv_capacity_tokens * w.attention_dp / w.pp;
  return out;
}

}  // namespace nvlsim
