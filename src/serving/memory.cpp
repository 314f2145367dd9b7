#include "nvlsim/serving/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "nvlsim/serving/cache_format.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

constexpr double bf16_bytes = 2;

/// The layers of one rank, those of the prediction module that drafts among them.
std::vector<layer_slice> cached_slices(const model& m, const inference_workload& w) {
  std::vector<layer_slice> out = slice_layers(m, ranks_of(w));
  if (!w.drafts.by_module()) return out;
  for (layer_slice& l : slice_layers(m.mtp_block, m.hidden, ranks_of(w))) {
    l.layers *= static_cast<int>(m.mtp_layers);
    out.push_back(std::move(l));
  }
  return out;
}

/// Bytes per weight, including the scales of INT4: 16 bits for 32 elements, as in Kimi-K2.
double stored_bytes(precision p) {
  constexpr double scale = 2.0 / 32;
  return bytes_per_element(p) + (p == precision::int4 ? scale : 0);
}

/// Elements and bytes of the weight matrices of all layers on one rank.
struct layer_weights {
  double count = 0, size = 0;

  void add(const inference_workload& w, weight_role r, double elements) {
    count += elements;
    size += elements * stored_bytes(weights_of(w, r));
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
  if (w.drafts.by_module())  // projection of two hidden vectors in each prediction module
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

/// Models with tables of n-grams. Engines keep these in CPU memory: which rows a token reads is known long before
/// the layer that adds them.
constexpr std::array<std::string_view, 3> models_of_host_tables = {"deepseek_v41", "deepseek_v41_text",
                                                                   "qwen4_exp_text"};

memory_item vocabulary_weights(const model& m, const inference_workload& w) {
  const parameter_parts parts = parameters_by_part(m);
  const double count = static_cast<double>(parts.embedding + parts.output) / w.tp;
  // Tables of n-grams are published in 8 bits where the weights are narrower. [assumed for other checkpoints]
  const double element = std::clamp(bytes_per_element(w.weights), 1.0, bf16_bytes);
  const bool on_host = std::find(models_of_host_tables.begin(), models_of_host_tables.end(), m.model_type) !=
                       models_of_host_tables.end();
  const double tables = on_host ? 0 : static_cast<double>(parts.tables) / w.tp;
  return {"vocabulary_weights", bytes::from_base(bf16_bytes * count + element * tables),
          fmt::format("2 B (bf16) x {:.4g} G embedding{} weights / TP {}{}", count * w.tp / 1e9,
                      parts.output > 0 ? " and LM head" : " (shared with the LM head)", w.tp,
                      tables > 0 ? fmt::format(" + {:g} B x {:.4g} G table weights / TP {}", element,
                                               tables * w.tp / 1e9, w.tp)
                                 : "")};
}

/// Elements that a layer's experts hold at once for a batch of `tokens`: rows of input or up projection, of inner
/// vectors, and the sum for each token. Rows of an expert fill whole tiles.
double expert_elements(const layer_slice& l, double hidden, double tokens) {
  if (!l.spec.routed()) return 0;
  constexpr double tile_rows = 128;
  const double rows = tokens * static_cast<double>(l.spec.moe.top_k) + tile_rows * l.local_experts;
  return rows * (std::max(l.expert_up_width(), l.expert_hidden(hidden)) + l.expert_ffn) + tokens * hidden;
}

/// Peak of the pass with which an engine measures its memory: the largest batch of prompt tokens, then sampling
/// for the most sequences. [docs/models-and-assumptions.md#inference-memory]
memory_item workspace(const model& m, const inference_profile& engine, const engine_settings& set,
                      const std::vector<layer_slice>& slices) {
  const auto hidden = static_cast<double>(m.hidden), tokens = static_cast<double>(set.max_num_tokens);
  // Live at once: the residual stream and its normalised copy, with Q, K, V and the attention output, the MLP's
  // inner vectors, or those of the experts.
  double widest = 0, experts = 0;
  for (const layer_slice& l : slices) {
    widest = std::max({widest, l.qkv_width() + l.heads * l.head_dim, l.up_width() + l.ffn});
    experts = std::max(experts, expert_elements(l, hidden, tokens));
  }
  const double layer = bf16_bytes * (2 * hidden * tokens + std::max(widest * tokens, experts));
  const std::int64_t rows = std::min(set.max_batch_size, set.max_num_tokens);
  const double sampling = engine.sampling_bytes * static_cast<double>(rows) * static_cast<double>(m.vocab);
  if (sampling > layer)
    return {"workspace", bytes::from_base(sampling),
            fmt::format("sampling: {:g} B x {} sequences x {} vocabulary entries", engine.sampling_bytes.read(),
                        rows, m.vocab)};
  return {"workspace", bytes::from_base(layer),
          experts > widest * tokens
              ? fmt::format("2 B x (2 x {} hidden x {} tokens + {:.4g} M elements of their experts)", m.hidden,
                            set.max_num_tokens, experts / 1e6)
              : fmt::format("2 B x {} tokens x (2 x {} hidden + {:.0f} in the widest part of a layer)",
                            set.max_num_tokens, m.hidden, widest)};
}

/// Batch sizes for which engines capture CUDA graphs up to `largest`: 1, 2 and 4, every eighth up to 256, then
/// every sixteenth up to 512.
std::int64_t captured_sizes(std::int64_t largest) {
  constexpr std::int64_t fine = 256, most = 512;
  const std::int64_t end = std::min(largest, most);
  if (end < 8) return std::min<std::int64_t>(end, 3);
  return 3 + std::min(end, fine) / 8 + std::max<std::int64_t>(0, end - fine) / 16;
}

memory_item graphs(const model& m, const inference_profile& engine, const engine_settings& set) {
  const std::int64_t sizes = captured_sizes(std::min(set.cuda_graph_max_batch_size, set.max_batch_size));
  return {"cuda_graphs", engine.graph_reserve * static_cast<double>(sizes * std::ssize(m.layers)),
          fmt::format("{} x {} batch sizes x {} layers", format_quantity(engine.graph_reserve.read()), sizes,
                      m.layers.size())};
}

/// Cache bytes of a rank's layers: per token (where all are kept), per window, and per state.
struct divided_cache {
  double every = 0, states = 0;
  std::map<std::int64_t, double> windowed, beside;  ///< `beside`: in addition to pooled keys
  double scans = 0;                                 ///< layers with states
  double kept = 0;                                  ///< layers that keep every token
};

divided_cache divide(const inference_profile& engine, const inference_workload& w,
                     const std::vector<layer_slice>& slices) {
  divided_cache out;
  for (const layer_slice& l : slices) {
    const cached_token token = cached_bytes(l, w.kv_cache, engine.latents);
    if (l.windowed()) {
      out.windowed[l.spec.window] += l.layers * token.all();
    } else {
      out.every += l.layers * token.all();
      if (token.all() > 0) out.kept += l.layers;
    }
    if (token.window > 0 && l.spec.window > 0) out.beside[l.spec.window] += l.layers * token.window;
    out.states += l.layers * l.state_bytes;
    if (l.state_bytes > 0) out.scans += l.layers;
  }
  if (w.drafts.draft_tokens > 0 && w.drafts.draft)
    for (const layer_slice& l : slice_layers(*w.drafts.draft, ranks_of(draft_workload(w))))
      out.every += l.layers * cached_bytes(l, w.kv_cache, engine.latents).all();
  if (out.every == 0)  // only windowed layers: count tokens as if windows were never full
    for (const auto& [window, share] : std::exchange(out.windowed, {})) out.every += share;
  return out;
}

/// Layers that keep every token allocate cache token by token. Scan and sliding-window layers allocate the most
/// that a sequence needs when it is admitted, from the same pool or one of their own.
void share_cache(serving_memory& out, const inference_profile& engine, const divided_cache& d, double stage) {
  double every = d.every;
  const bool own_windows = engine.window_pool_share > 0;
  if (own_windows)
    for (const auto& [window, share] : d.windowed) every += engine.window_pool_share * share;
  out.kv_per_token = bytes::from_base(every * stage);
  if (every == 0) return;
  if (engine.paged_states && d.states > 0) {
    // The page of a layer grows until it holds a state, in steps of a block.
    const double block = out.kv_block_tokens, state = d.states / d.scans, token = d.every / d.kept;
    out.kv_block_tokens = static_cast<int>(block * std::max(1.0, std::ceil(state / (token * block))));
    out.sequence.states = d.scans / d.kept * out.kv_block_tokens;
  } else if (!(engine.state_pool_share > 0)) {
    out.sequence.states = d.states / every;
  }
  if (!own_windows)
    for (const auto& [window, share] : d.windowed) out.sequence.windowed[window] = share / every;
  for (const auto& [window, share] : d.beside) out.sequence.windowed[window] += share / every;
}

const char* shared_memory(kv_memory_rule rule) {
  switch (rule) {
    case kv_memory_rule::of_rest:
      return "the memory left after weights, reserves and workspace";
    case kv_memory_rule::of_all:
      return "all memory, including weights, reserves and workspace";
    case kv_memory_rule::of_free:
      break;
  }
  return "the memory that is free before weights are loaded, including them";
}

/// Names `kv_fraction` if a larger value would leave room for a block.
std::string no_cache_left(const memory_report& taken, double kv_fraction, kv_memory_rule rule, bytes block) {
  const std::string held =
      fmt::format("{} of {} usable are in use", format_quantity(taken.peak), format_quantity(taken.usable));
  if (taken.usable - taken.peak < block) return "no memory is left for a KV cache: " + held;
  return fmt::format("kv_fraction {:g}, a share of {}, leaves no room for a KV cache block, although only {}",
                     kv_fraction, shared_memory(rule), held);
}

/// What a model needs beside its own weights: a draft model, adapters, the encoder of images.
void list_additions(const inference_workload& w, const std::vector<layer_slice>& slices, memory_report& report) {
  if (w.drafts.draft_tokens > 0 && w.drafts.draft) {
    const model& d = *w.drafts.draft;
    const inference_workload of = draft_workload(w);
    bytes all = vocabulary_weights(d, of).size;
    all += weights_item(d, of, slice_layers(d, ranks_of(of))).size;
    report.items.push_back({"draft_weights", all, "weights of " + d.name + " in bf16"});
  }
  if (w.adapters.rank > 0) {
    double each = 0;
    for (const layer_slice& l : slices)
      for (const auto* part : {&l.before_attention, &l.after_attention})
        for (const rank_gemm& g : *part)
          if (adapted(g)) each += l.layers * (g.n + g.k) * static_cast<double>(w.adapters.rank);
    report.items.push_back({"adapters",
                            bytes::from_base(bf16_bytes * each * static_cast<double>(w.adapters.count)),
                            fmt::format("{} adapters of rank {}, 2 B x {:.4g} M elements each", w.adapters.count,
                                        w.adapters.rank, each / 1e6)});
  }
  if (w.images && w.images->tower)
    report.items.push_back(
        {"vision_tower", bytes::from_base(bf16_bytes * w.images->tower->parameters / w.tp),
         fmt::format("2 B x {:.4g} G parameters / TP {}", w.images->tower->parameters / 1e9, w.tp)});
}

/// Memory of one rank before there is a cache.
struct occupied {
  bytes weights, reserves, workspace, graphs;
};

/// What an engine gives its cache. Never more than there is. [docs/models-and-assumptions.md#inference-memory]
bytes cache_room(kv_memory_rule rule, double fraction, bytes usable, const occupied& o) {
  const bytes left = usable - o.weights - o.reserves - o.workspace - o.graphs;
  switch (rule) {
    case kv_memory_rule::of_rest:
      return left * fraction;
    case kv_memory_rule::of_all:
      return std::min(left, usable * fraction - o.weights - o.reserves - o.workspace);
    case kv_memory_rule::of_free:
      break;
  }
  return std::min(left, (usable - o.reserves) * fraction - o.weights);
}

occupied list_occupied(const platform& p, const inference_profile& engine, const model& m,
                       const inference_workload& w, memory_report& report) {
  const engine_settings set = settings_of(engine, w);
  std::vector<layer_slice> slices = cached_slices(m, w);
  report.where = "each GPU";
  report.items = {weights_item(m, w, slices), vocabulary_weights(m, w)};
  if (const bytes away = offloaded_weights(set); away > bytes{}) {
    memory_item& weights = report.items.front();
    weights.size = std::max(bytes{}, weights.size - away);
    weights.reason += fmt::format(" - {} in CPU memory", format_quantity(away));
  }
  report.usable = p.gpu.hbm_usable;
  list_additions(w, slices, report);
  occupied out{{}, engine.reserve, {}, {}};
  for (const memory_item& i : report.items) out.weights += i.size;
  report.items.push_back(workspace(m, engine, set, slices));
  out.workspace = report.items.back().size;
  if (engine.graph_reserve > bytes{}) {
    report.items.push_back(graphs(m, engine, set));
    out.graphs = report.items.back().size;
  }
  report.items.push_back({"reserve", engine.reserve, "CUDA context, kernels and libraries"});
  if (w.gpus_per_replica() > 1 && engine.group_reserve > bytes{}) {
    report.items.push_back({"group_reserve", engine.group_reserve, "buffers of collective libraries"});
    out.reserves += engine.group_reserve;
  }
  for (const memory_item& i : report.items) report.peak += i.size;
  return out;
}

}  // namespace

std::int64_t sequence_cache::beside(std::int64_t tokens) const {
  double out = states;
  for (const auto& [window, share] : windowed) out += share * static_cast<double>(std::min(tokens, window));
  return static_cast<std::int64_t>(std::ceil(out));
}

bytes offloaded_weights(const engine_settings& s) {
  constexpr double gibibyte = 1024.0 * 1024 * 1024;
  return bytes::from_base(gibibyte * s.cpu_offload_gb);
}

std::vector<std::string> offload_problems(const platform& p, const inference_profile& engine,
                                          const inference_workload& w, const memory_report& planned) {
  const engine_settings set = settings_of(engine, w);
  const bytes away = offloaded_weights(set);
  std::vector<std::string> out;
  if (!(away > bytes{})) return out;
  const auto refuse = [&](const std::string& why) {
    out.push_back(fmt::format("cpu_offload_gb {:g}: {}", set.cpu_offload_gb.read(), why));
  };
  if (!(p.gpu.c2c > bandwidth{})) refuse(p.name + " has no bandwidth between GPU and CPU (gpu/c2c)");
  if (away > cpu_room(p))
    refuse(fmt::format("half of the CPU memory of {} is {} per GPU", p.name, format_quantity(cpu_room(p))));
  if (!(planned.items.front().size > bytes{})) refuse("a GPU has no more weights in its layers than that");
  return out;
}

serving_memory plan_serving_memory(const platform& p, const stack& s, const model& m,
                                   const inference_workload& w) {
  const inference_profile& engine = *s.inference;
  serving_memory out;
  const occupied taken = list_occupied(p, engine, m, w, out.report);
  const divided_cache parts = divide(engine, w, cached_slices(m, w));
  const double stage = fullest_stage(m, w.pp);
  const engine_settings set = settings_of(engine, w);
  const double fraction = set.kv_fraction;
  out.kv_block_tokens = static_cast<int>(set.kv_block_tokens);
  share_cache(out, engine, parts, stage);
  if (!(out.kv_per_token > bytes{})) return out;
  bytes cache = cache_room(engine.kv_rule, fraction, p.gpu.hbm_usable, taken);
  bytes state_pool;
  if (engine.state_pool_share > 0 && parts.states > 0) {
    const bytes states = state_pool = cache * (engine.state_pool_share / (1 + engine.state_pool_share));
    // With prefixes cached, SGLang keeps five states for a sequence: its own, that of the prefix it began from,
    // room for the next prefix, and two that take turns while schedules overlap. Drafts add one for each token
    // that is verified. (S and D of its "Mamba ratio calculator")
    constexpr double with_prefixes = 5;
    const double of_sequence =
        (set.prefix_cache ? with_prefixes : 1) + (w.drafts.draft_tokens > 0 ? w.drafts.draft_tokens + 1 : 0);
    const double held = states / bytes::from_base(parts.states * stage);
    out.max_sequences = std::max<std::int64_t>(1, static_cast<std::int64_t>(held / of_sequence));
    cache -= states;
  }
  const bytes block = out.kv_per_token * static_cast<double>(out.kv_block_tokens);
  const double blocks = std::floor(cache / block);
  if (!(blocks >= 1)) {
    out.no_cache = no_cache_left(out.report, fraction, engine.kv_rule, block);
    return out;
  }
  out.kv_capacity_tokens = static_cast<std::int64_t>(blocks) * out.kv_block_tokens;
  const bytes pool = out.kv_per_token * static_cast<double>(out.kv_capacity_tokens);
  out.report.items.push_back(
      {"kv_cache", pool,
       fmt::format("{} tokens x {:.0f} B ({}); kv_fraction {:g} of {}", out.kv_capacity_tokens,
                   out.kv_per_token.base(), name(w.kv_cache), fraction, shared_memory(engine.kv_rule)),
       out.kv_capacity_tokens});
  out.report.peak += pool;
  if (out.max_sequences > 0) {
    out.report.items.push_back({"states", state_pool, fmt::format("of {} sequences", out.max_sequences)});
    out.report.peak += state_pool;
  }
  // Ranks of a replica pool their caches, and those that share out sequences; micro-batches of a pipeline share
  // them.
  out.kv_capacity_tokens = out.kv_capacity_tokens * w.attention_dp * set.decode_context_parallel.read() / w.pp;
  return out;
}

}  // namespace nvlsim
