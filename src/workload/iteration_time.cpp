#include "workload/iteration_time.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nvlsim/collectives.hpp"

namespace nvlsim {
namespace {

constexpr double activation_bytes = 2;  // BF16 between kernels

/// Where a factor has not been identified it is one.
template <class Map, class Key>
double factor(const Map& m, const Key& k) {
  const auto it = m.find(k);
  return it == m.end() ? 1.0 : it->second;
}

// A clock and the kernels an engine picks change what tensor cores do in a second, and not memory or launches.
gemm_params at_rate(gemm_params p, double f) {
  p.tensor_rate *= f;
  p.step_time = p.step_time / f;
  return p;
}

attention_params at_rate(attention_params p, double f) {
  p.tensor_rate *= f;
  p.exponential_share *= f;
  p.item_time = p.item_time / f;
  return p;
}

/// Collects parts with their energy.
struct template_builder {
  work_template out;
  seconds time;
  joules energy;

  void add(work_kind kind, const char* name, time_and_energy c, int repeat = 1) {
    if (c.time <= seconds{}) return;
    out.parts.push_back({kind, name, c.time, repeat});
    time += c.time * repeat;
    energy += c.energy * repeat;
  }
};

const char* kind_name(const iteration& it) {
  if (it.prompt_tokens == 0) return "decode";
  return it.decodes == 0 ? "prefill" : "mixed";
}

}  // namespace

std::vector<layer_slice> slice_layers(const model& m, int tp) {
  std::vector<std::pair<layer_spec, int>> counts;
  for (const layer_spec& l : m.layers) {
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == l; });
    if (same != counts.end()) same->second += 1;
    else counts.emplace_back(l, 1);
  }
  std::vector<layer_slice> out;
  out.reserve(counts.size());
  for (const auto& [l, n] : counts) {
    out.push_back({.layers = n,
                   .heads = static_cast<double>(l.heads) / tp,
                   .kv_heads = std::max(static_cast<double>(l.kv_heads) / tp, 1.0),
                   .head_dim = static_cast<double>(l.head_dim),
                   .ffn = static_cast<double>(l.ffn_hidden) / tp,
                   .gated = l.gated_mlp});
  }
  return out;
}

iteration_costs::iteration_costs(const platform& p, const stack& s, const model& m, const inference_workload& w)
    : platform_(p), stack_(s), model_(m), work_(w), engine_(*s.inference), slices_(slice_layers(m, w.tp)) {
  const kernel_profile& k = kernels_for(s, p.gpu);
  const double sustained = factor(engine_.sustained_factor, p.gpu.name);
  for (const precision operands : {w.weights, precision::bf16})
    gemms_[operands] = at_rate(k.gemm.at(operands), sustained * factor(engine_.gemm_factor, operands));
  attention_ = at_rate(k.attention, sustained);
  decode_ = k.decode;
  stream_ = k.stream;
  stream_.launch = {};  // launches of small kernels are in the engine's layer_time
}

time_and_energy iteration_costs::timed(precision operands, const kernel_cost& c) const {
  return {c.time, kernel_power(platform_.gpu, operands, c) * c.time};
}

time_and_energy iteration_costs::gemm(precision operands, double m, double n, double k) const {
  return timed(operands, gemm_cost(platform_.gpu, gemms_.at(operands), operands, {.m = m, .n = n, .k = k}));
}

// Norms, rotary embedding, activation, residual and cache write: three quarters of the vectors are as wide as the
// hidden state, a quarter as wide as the MLP. [docs/models-and-assumptions.md#inference-iteration]
time_and_energy iteration_costs::elementwise(const layer_slice& l, double rows) const {
  const double width = 0.75 * static_cast<double>(model_.hidden) + 0.25 * l.ffn;
  const auto moved = bytes::from_base(engine_.elementwise_vectors * width * rows * activation_bytes);
  kernel_cost c = stream_cost(platform_.gpu, stream_, moved);
  c.time += engine_.layer_time;
  return timed(precision::bf16, c);
}

time_and_energy iteration_costs::all_reduce(double rows) const {
  if (work_.tp == 1) return {};
  const auto size = bytes::from_base(rows * static_cast<double>(model_.hidden) * activation_bytes);
  const collective_profile& profile = stack_.collectives;
  seconds time = collective_time(profile, platform_, collective::all_reduce, size, {.ranks = work_.tp},
                                 {.algorithm = {}, .in_place = true})
                     .time;
  if (const auto custom = custom_all_reduce_time(profile, platform_, size, work_.tp))
    time = std::min(time, custom->time);
  return timed(precision::bf16, {.time = time, .work = {}, .moved = size * 2});
}

const std::vector<iteration_costs::token_costs>& iteration_costs::of_tokens(std::int64_t count) {
  std::vector<token_costs>& known = by_tokens_[count];
  if (!known.empty()) return known;
  const auto m = static_cast<double>(count), hidden = static_cast<double>(model_.hidden);
  const precision w = work_.weights;
  for (const layer_slice& l : slices_) {
    known.push_back({.qkv = gemm(w, m, l.qkv_width(), hidden),
                     .out = gemm(w, m, hidden, l.heads * l.head_dim),
                     .up = gemm(w, m, l.up_width(), hidden),
                     .down = gemm(w, m, hidden, l.ffn),
                     .elementwise = elementwise(l, m),
                     .all_reduce = all_reduce(m)});
  }
  return known;
}

time_and_energy iteration_costs::lm_head(std::int64_t rows) {
  if (rows == 0) return {};
  const auto [at, is_new] = by_rows_.try_emplace(rows);
  if (is_new) {
    at->second = gemm(precision::bf16, static_cast<double>(rows), static_cast<double>(model_.vocab) / work_.tp,
                      static_cast<double>(model_.hidden));
  }
  return at->second;
}

time_and_energy iteration_costs::prefill_attention(const layer_slice& l, const iteration& it) const {
  if (it.prompts == 0) return {};
  const auto prompts = static_cast<double>(it.prompts);
  const bool fp8 =
      bytes_per_element(work_.kv_cache) <= 1;  // an 8-bit cache makes the kernel FP8 whatever the queries
  const attention_shape s{.batch = prompts,
                          .heads = l.heads,
                          .kv_heads = l.kv_heads,
                          .qk_dim = l.head_dim,
                          .v_dim = l.head_dim,
                          .queries = static_cast<double>(it.prompt_tokens) / prompts,
                          .pairs = it.prompt_pairs / prompts,
                          .fp8 = fp8};
  return timed(fp8 ? precision::fp8 : precision::bf16, attention_forward_cost(platform_.gpu, attention_, s));
}

time_and_energy iteration_costs::decode_attention(const layer_slice& l, const iteration& it) const {
  if (it.decodes == 0) return {};
  const auto batch = static_cast<double>(it.decodes);
  const decode_shape s{.batch = batch,
                       .context = static_cast<double>(it.context) / batch,
                       .heads = l.heads,
                       .kv_heads = l.kv_heads,
                       .head_dim = l.head_dim,
                       .kv_element_bytes = bytes_per_element(work_.kv_cache)};
  return timed(precision::bf16, decode_attention_cost(platform_.gpu, decode_, s));
}

// [docs/models-and-assumptions.md#inference-iteration]
work_template iteration_costs::price(const iteration& it) {
  template_builder b;
  b.out.name = kind_name(it);
  b.out.parts.reserve(14);
  const auto host = [&](const char* name, seconds t) {
    b.add(work_kind::host, name, {t, platform_.gpu.idle_power * t});
  };
  host("step", engine_.step_host);
  host("sequences", engine_.sequence_host * static_cast<double>(it.decodes));
  host("requests", engine_.request_host * static_cast<double>(it.finished_prompts));

  const seconds before_kernels = b.time;
  const std::vector<token_costs>& costs = of_tokens(it.decodes + it.prompt_tokens);
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const layer_slice& l = slices_[i];
    const token_costs& c = costs[i];
    b.add(work_kind::gemm, "qkv", c.qkv, l.layers);
    b.add(work_kind::attention, "prefill attn", prefill_attention(l, it), l.layers);
    b.add(work_kind::attention, "decode attn", decode_attention(l, it), l.layers);
    b.add(work_kind::gemm, "attn out", c.out, l.layers);
    b.add(work_kind::gemm, "mlp up", c.up, l.layers);
    b.add(work_kind::gemm, "mlp down", c.down, l.layers);
    b.add(work_kind::memory_bound, "elementwise", c.elementwise, l.layers);
    b.add(work_kind::tp, "all-reduce", c.all_reduce, 2 * l.layers);
  }
  b.add(work_kind::gemm, "lm head", lm_head(it.decodes + it.finished_prompts));

  if (it.prompt_tokens > 0) {
    // Without a CUDA graph the host launches layer by layer; what it takes longer than the kernels is seen.
    const double gpu = (b.time - before_kernels).base();
    const double launch = engine_.prefill_layer_host.base() * static_cast<double>(model_.layers.size());
    const double both = gpu * std::pow(1 + std::pow(launch / gpu, 4), 0.25);
    host("prompt launch", seconds::from_base(both - gpu));
  }
  b.out.duration = b.time;
  b.out.power = b.energy / b.time;
  return std::move(b.out);
}

}  // namespace nvlsim
