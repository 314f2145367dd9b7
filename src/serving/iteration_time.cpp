#include "nvlsim/serving/iteration_time.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/layers/expert_popularity.hpp"
#include "nvlsim/layers/expert_reach.hpp"
#include "nvlsim/model/matrices.hpp"
#include "nvlsim/plan/part_facts.hpp"
#include "nvlsim/serving/cache_format.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/serving/routes.hpp"

namespace nvlsim {
namespace {

constexpr double activation_bytes = 2;  // BF16 between kernels

// Clocks and an engine's choice of kernels change the rate of tensor cores, but not memory or launches.
template <class Factor>
attention_params at_rate(const attention_params& in_tables, Factor factor) {
  attention_params p = in_tables;
  p.tensor_rate.derive([&] { return in_tables.tensor_rate * factor(); });
  p.exponential_share.derive([&] { return in_tables.exponential_share * factor(); });
  p.item_time.derive([&] { return in_tables.item_time / factor(); });
  return p;
}

/// A GPU that may be slower than others: its kernels take longer at idle power, the host's work and transfers do
/// not.
struct gpu_pace {
  double speed = 1;
  watts idle;

  static bool is_kernel(part_kind k) {
    return k == part_kind::gemm || k == part_kind::attention || k == part_kind::memory_bound;
  }
  seconds time_of(part_kind kind, seconds usual) const {
    return speed < 1 && is_kernel(kind) ? usual / speed : usual;
  }
  time_and_energy of(part_kind kind, const time_and_energy& usual) const {
    time_and_energy out = usual;
    out.time = time_of(kind, usual.time);
    if (out.time > usual.time) {
      out.energy += idle * (out.time - usual.time);
      out.facts.alone *= 1 / speed;
      out.facts.latency *= 1 / speed;
    }
    return out;
  }
};

/// Collects parts and their energy.
struct template_builder {
  static constexpr bool times_alone = false;
  gpu_pace pace;
  bool explained = false;
  operation_template out = {};
  joules energy = {};

  void operator()(part_kind kind, const char* name, const time_and_energy& usual, int repeat) {
    const time_and_energy c = pace.of(kind, usual);
    if (c.time <= seconds{}) return;
    out.parts.push_back({kind, name, c.time, repeat});
    if (explained) out.parts.back().facts = std::make_shared<part_facts>(c.facts);
    out.duration += c.time * repeat;
    energy += c.energy * repeat;
  }
  seconds so_far() const { return out.duration; }
};

struct time_adder {
  static constexpr bool times_alone = true;
  gpu_pace pace;
  seconds total = {};
  void add(double time) { total += seconds::from_base(time); }
  void operator()(part_kind kind, const char*, const time_and_energy& c, int repeat) {
    total += pace.time_of(kind, c.time) * repeat;
  }
  seconds so_far() const { return total; }
};

const char* kind_name(const iteration& it) {
  if (it.prompt_tokens == 0) return "decode";
  return it.decodes == 0 ? "prefill" : "mixed";
}

int domains_of(const platform& p, int ranks) { return (ranks + p.gpus_per_rack() - 1) / p.gpus_per_rack(); }

/// Mean replies per sequence and step: one with the first token, and one per interval after it. Outputs of a trace
/// are unknown here and assumed long.
double replies_a_step(const inference_workload& w, const engine_settings& set) {
  const double each = w.drafts.tokens_per_step, later = 1 / static_cast<double>(set.stream_interval);
  const double first = w.output.mean > 0 ? (1 - later) / w.output.mean : 0;
  return std::min(1.0, each * (later + first));
}

double whole(double x) { return std::nearbyint(x); }

/// The format of decode kernels for a cache: 8 or 16 bits.
precision kernel_format(precision cache) {
  return bytes_per_element(cache) < 2 ? precision::fp8 : precision::bf16;
}

}  // namespace

iteration_content content_of(const iteration& it) {
  return {static_cast<double>(it.decodes),       static_cast<double>(it.context),
          static_cast<double>(it.prompt_tokens), it.prompt_pairs,
          static_cast<double>(it.prompts),       static_cast<double>(it.finished_prompts)};
}

iteration_costs::iteration_costs(const platform& p, const stack& s, const model& m, const inference_workload& w)
    : platform_(p), stack_(s), model_(m), workload_(w), costs_(costs_for(s, p.gpu, m)),
      kernels_(kernels_for(s, p.gpu)), slices_(slice_layers(m, ranks_of(w))), layers_(slices_.size()) {
  if (w.drafts.by_module())
    for (layer_slice& l : slice_layers(m.mtp_block, m.hidden, ranks_of(w))) slices_.push_back(std::move(l));
  const constant<double> sustained = factor_of(s.inference->sustained_factor, p.gpu.name);
  for (const weight_role r :
       {weight_role::dense, weight_role::attention, weight_role::expert, weight_role::sixteen_bit})
    routes_[r] = route_gemm(p.gpu, kernels_, costs_, {r, weights_of(w, r)}, sustained).value();
  const bool narrow = bytes_per_element(w.kv_cache) < 2;  // kernels follow the format of the cache
  const bool products = narrow && p.gpu.peak(precision::fp8);
  attention_ = at_rate(products && kernels_.attention_fp8 ? *kernels_.attention_fp8 : kernels_.attention,
                       [&] { return sustained * costs_.attention_factor; });
  const auto decode_rate = [&] { return costs_.decode_factor.read(); };
  const auto in_engine = [&](const decode_params& in_tables) {
    decode_params d = in_tables;
    d.hbm_share.derive([&] { return std::min(1.0, in_tables.hbm_share * decode_rate()); });
    d.item_time.derive([&] { return in_tables.item_time / decode_rate(); });
    d.launch.derive([&] { return in_tables.launch * costs_.launch_factor; });
    return d;
  };
  decode_.decode = in_engine(narrow && kernels_.decode_fp8 ? *kernels_.decode_fp8 : kernels_.decode);
  for (const auto& [format, single] : kernels_.single_decode)
    decode_.single_decode.emplace(format, in_engine(single));
  decode_.ungrouped_decode = kernels_.ungrouped_decode;
  for (const auto& [format, in_tables] : kernels_.mla_decode) {
    mla_decode_params d = in_tables;
    d.hbm_share.derive([&, in_tables = in_tables] { return std::min(1.0, in_tables.hbm_share * decode_rate()); });
    const auto peak = p.gpu.dense_peak(format);  // fits of little arithmetic may exceed it
    d.tensor_rate.derive([&, in_tables = in_tables] {
      const flop_rate fast = in_tables.tensor_rate * decode_rate();
      return peak ? std::min<flop_rate>(fast, *peak) : fast;
    });
    d.launch.derive([&, in_tables = in_tables] { return in_tables.launch * costs_.launch_factor; });
    decode_.mla_decode.emplace(format, d);
  }
  for (const auto& [format, in_tables] : kernels_.mla_context)
    decode_.mla_context.emplace(format, at_rate(in_tables, [&] { return sustained * costs_.attention_factor; }));
  stream_ = kernels_.stream;
  stream_.launch = {};  // the engine's layer_time includes launches of small kernels
  sequence_host_ = costs_.sequence_host;
  request_host_ = costs_.request_host;
  const engine_settings set = settings_of(*s.inference, w);
  max_in_graph_ = static_cast<double>(set.cuda_graph_max_batch_size);
  context_ranks_ = static_cast<double>(set.decode_context_parallel);
  offloaded_ = offloaded_weights(set);
  run_under(w);
  if (w.drafts.draft_tokens > 0 && w.drafts.draft)
    draft_ = std::make_unique<iteration_costs>(p, s, *w.drafts.draft, draft_workload(w));
  if (behind_server(w)) {  // tokens are streamed
    sequence_host_ += s.inference->front_end.sequence_host * replies_a_step(w, set);
    request_host_ += s.inference->front_end.request_host;
  }
}

void iteration_costs::slow_to(double speed) {
  speed_ = speed;
  times_by_tokens_.clear();
  times_by_both_.clear();
}

bool iteration_costs::run_under(const inference_workload& w) {
  // With arrivals over time the pipeline is assumed full.
  const bool in_time = w.load == load_kind::open_loop || w.load == load_kind::trace;
  const std::int64_t at_once = in_time                            ? std::int64_t{w.replicas} * w.pp
                               : w.load == load_kind::closed_loop ? w.concurrency
                                                                  : w.requests;
  const auto busy =
      static_cast<double>(std::clamp<std::int64_t>((at_once + w.replicas - 1) / w.replicas, 1, w.pp));
  const bool other = busy != busy_stages_;
  busy_stages_ = busy;
  max_prompt_tokens_ = static_cast<double>(settings_of(*stack_.inference, w).max_num_tokens);
  prompt_tokens_use_ = {};
  const bool other_draft = draft_ && draft_->run_under(draft_workload(w));
  return other || other_draft;
}

limit_use iteration_costs::prompt_tokens_use() const {
  limit_use out = prompt_tokens_use_;
  if (draft_) out.add(draft_->prompt_tokens_use());
  return out;
}

time_and_energy iteration_costs::timed(precision operands, const kernel_cost& c) const {
  if (times_alone_) return {c.time, {}};
  return {c.time, kernel_power(platform_.gpu, operands, c) * c.time, facts_of(platform_.gpu, operands, c)};
}

template <class... Shape>
time_and_energy iteration_costs::shaped(precision operands, const kernel_cost& c, const Shape&... shape) const {
  if (times_alone_) return {c.time, {}};
  return {c.time, kernel_power(platform_.gpu, operands, c) * c.time, facts_of(platform_.gpu, c, shape...)};
}

/// The GPU waits.
time_and_energy iteration_costs::waited(resource r, seconds t) const {
  if (times_alone_) return {t, {}};
  return {t, platform_.gpu.idle_power * t, facts_of_wait(r, t)};
}

/// `moved`: HBM traffic.
time_and_energy iteration_costs::transferred(const priced_transfer& t, bytes moved) const {
  time_and_energy out = timed(precision::bf16, {.time = t.time, .flop = {}, .moved = moved});
  if (!times_alone_) out.facts = facts_of(platform_, t);
  return out;
}

time_and_energy iteration_costs::gemm(const gemm_route& r, const gemm_shape& shape) const {
  gemm_shape s = shape;
  s.weight_element_bytes = r.weight_element_bytes;
  const kernel_cost c = gemm_cost(platform_.gpu, r.params, r.operands, s);
  time_and_energy out = timed(r.operands, c);
  if (!times_alone_) out.facts = facts_of(platform_.gpu, r.operands, c, s);
  return out;
}

// Norms, rotary embedding, activation, residual and cache write. Three quarters of the vectors have the width of
// the hidden state, one quarter that of the MLP. [docs/models-and-assumptions.md#inference-iteration]
time_and_energy iteration_costs::elementwise(const layer_slice& l, double rows) const {
  const auto hidden = static_cast<double>(model_.hidden), streams = static_cast<double>(model_.residual_streams);
  const double share = l.blocks() / 2.0;  // costs are per layer with a mixer and an MLP
  // With several residual streams a block reads all and writes its input, then reads all and its output and writes
  // all.
  const double mixed = streams > 1 ? l.blocks() * (4 * streams - 1) * hidden : 0;
  const double width = 0.75 * hidden + 0.25 * l.inner_width();
  // Query and key norms read and write their operands.
  const double normed = l.spec.qk_norm != qk_norm_kind::none ? 2 * (l.heads + l.kv_heads) * l.head_dim : 0;
  const auto moved =
      bytes::from_base((costs_.elementwise_vectors * width * share + mixed + normed) * rows * activation_bytes);
  kernel_cost c = stream_cost(platform_.gpu, stream_, moved);
  seconds small = costs_.layer_time * share;
  if (l.spec.qk_norm != qk_norm_kind::none) small += costs_.qk_norm_time;
  if (l.scans()) small += costs_.scan_layer_time;
  if (l.spec.sparse_keys > 0) small += costs_.indexer_layer_time;
  c.time += small;
  c.launch += small;
  return timed(precision::bf16, c);
}

/// All-reduce of activations of width `width`.
time_and_energy iteration_costs::all_reduce(double rows, double width) const {
  if (workload_.tp == 1) return {};
  const auto size = bytes::from_base(rows * width * activation_bytes);
  const collective_profile& profile = stack_.collectives;
  const int domains = domains_of(platform_, workload_.tp);
  const communicator group{.ranks = workload_.tp, .domains = domains};
  const collective_options in_place{.algorithm = {}, .in_place = true};
  const collective_cost library =
      collective_time(profile, platform_, {collective::all_reduce, size, group, in_place});
  priced_transfer t{library.time,
                    collective_time(profile, platform_, {collective::all_reduce, {}, group, in_place}).time,
                    wire_traffic(collective::all_reduce, size, group, library.algorithm),
                    size,
                    group,
                    name(collective::all_reduce),
                    library.algorithm};
  t.traffic = along(t.traffic, path_of(platform_, collective::all_reduce, group));
  if (domains > 1) return transferred(t, size * 2);
  if (const auto start = custom_all_reduce_time(profile, platform_, {}, workload_.tp)) {
    const auto full = custom_all_reduce_time(profile, platform_, size, workload_.tp);
    const seconds fused =
        start->time * costs_.reduce_latency_factor + (full->time - start->time) / costs_.reduce_rate_factor;
    if (fused < t.time)
      t = {fused,
           start->time * costs_.reduce_latency_factor,
           wire_traffic(collective::all_reduce, size, group, full->algorithm),
           size,
           group,
           name(collective::all_reduce),
           full->algorithm};
  }
  return transferred(t, size * 2);
}

time_and_energy iteration_costs::stage_send(double rows, bool leaves_domain) const {
  const auto size = bytes::from_base(rows * static_cast<double>(model_.hidden) * activation_bytes / workload_.tp);
  const communicator pair{
      .ranks = 2, .domains = leaves_domain ? 2 : 1, .stride = workload_.tp * workload_.attention_dp};
  return transferred(price_transfer(stack_.collectives, platform_, collective::send_recv, size, pair), size * 2);
}

/// Number of sends between stages that leave an NVLink domain.
int iteration_costs::sends_out() const {
  const int fit =
      std::max(1, platform_.gpus_per_rack() / (workload_.tp * workload_.attention_dp));  // stages per domain
  return (workload_.pp + fit - 1) / fit - 1;
}

/// Time that a full pipeline waits for its slowest stage: the one with most layers, or the last with the LM head.
seconds iteration_costs::stage_wait(seconds layers, seconds head) const {
  const double full = fullest_stage(model_, workload_.pp), all = static_cast<double>(model_.layers.size());
  const seconds slowest = std::max(layers * full, layers * (std::floor(all / workload_.pp) / all) + head);
  return std::max(slowest * busy_stages_ - (layers + head), seconds{});
}

// A token is sent to each rank with one of its experts, and its result comes back.
// [docs/models-and-assumptions.md#inference-experts]
time_and_energy iteration_costs::exchange(const layer_slice& l, double tokens) const {
  if (workload_.attention_dp == 1) return {};
  const double hidden = l.expert_hidden(static_cast<double>(model_.hidden));
  // Tokens go out in the format of the experts' operands and come back in 16 bits.
  const double there =
      std::min(1.0, bytes_per_element(routes_.at(weight_role::expert).operands) / activation_bytes);
  if (const int domains = domains_of(platform_, workload_.attention_dp); domains > 1) {
    // Between domains a token is sent once to each domain with one of its experts.
    const double sent = domains * reach_of(l.spec.moe, expert_choice::random, 1.0 / domains);
    const auto size = bytes::from_base(tokens * sent * hidden * activation_bytes);
    priced_transfer t = price_transfer(stack_.collectives, platform_, collective::all_to_all, size,
                                       {.ranks = workload_.attention_dp, .domains = domains});
    t.time = costs_.exchange_time + t.time * (1 + there);
    t.latency = costs_.exchange_time + t.latency * (1 + there);
    t.traffic = scaled(t.traffic, 1 + there);
    return transferred(t, {});
  }
  // Worst case: all experts of a token are on different ranks. The busiest rank, which all wait for, receives more
  // than the mean of random routing.
  const expert_traffic t{tokens, static_cast<double>(l.spec.moe.top_k), hidden, workload_.attention_dp, 1, true};
  seconds time = costs_.exchange_time;
  const auto dispatch = expert_exchange_time(stack_.collectives, platform_, dispatch_kernel, t);
  const auto idle = expert_exchange_time(stack_.collectives, platform_, dispatch_kernel,
                                         {0, t.topk, t.hidden, t.ranks, 1, true});
  if (dispatch) time += (*dispatch - *idle) * (1 + there);
  const bytes sent =
      bytes::from_base((1 + there) * tokens * t.reach() * t.hidden * activation_bytes);  // dispatch and combine
  return transferred(
      {time, costs_.exchange_time, {{sent, sent}, {}}, sent, {.ranks = workload_.ep}, "expert_exchange", {}}, {});
}

namespace {

/// How the tokens of a layer spread over its experts.
expert_spread spread_of(const layer_slice& l, const engine_costs& costs) {
  return {.experts = static_cast<double>(l.spec.moe.experts),
          .top_k = static_cast<double>(l.spec.moe.top_k),
          .ranks = static_cast<double>(l.expert_ranks),
          .skew = l.spec.moe.balanced_by_bias ? costs.biased_expert_skew : costs.expert_skew};
}

}  // namespace

/// Experts with tokens on the busiest rank.
double iteration_costs::experts_hit(const layer_slice& l, double expert_tokens) const {
  const expert_spread s = spread_of(l, costs_);
  return std::max(1.0, l.expert_ranks > 1
                           ? max_touched(s, expert_tokens)
                           : l.local_experts * touched_share(s.top_k / s.experts, s.skew, expert_tokens));
}

// Kernels read weights that stay in CPU memory from there: of each layer the same share, and of its experts those
// to which tokens go. [docs/models-and-assumptions.md#inference-memory]
seconds iteration_costs::reads_of_offloaded(double expert_tokens) const {
  if (!(offloaded_ > bytes{})) return {};
  const auto hidden = static_cast<double>(model_.hidden);
  double all = 0, read = 0;
  for (std::size_t i = 0; i < layers_; ++i) {
    const layer_slice& l = slices_[i];
    double dense = 0;
    for (const auto* part : {&l.before_attention, &l.after_attention})
      for (const rank_gemm& g : *part) dense += g.n * g.k * bytes_per_element(weights_of(workload_, g.role));
    const double experts =
        l.expert_weights(hidden) * bytes_per_element(weights_of(workload_, weight_role::expert));
    const double reached = experts > 0 ? std::min(1.0, experts_hit(l, expert_tokens) / l.local_experts) : 0;
    all += l.layers * (dense + experts);
    read += l.layers * (dense + reached * experts);
  }
  return offloaded_ * (read / all) / (platform_.gpu.c2c * stack_.inference->host_copy_share.read());
}

void iteration_costs::add_experts(const layer_slice& l, double tokens, double expert_tokens,
                                  std::vector<named_cost>& out) const {
  // All ranks wait for the one with most tokens, which also uses most of its experts.
  const expert_spread spread = spread_of(l, costs_);
  const double k = spread.top_k;
  const double hit = experts_hit(l, expert_tokens);
  const double rows = std::max(expert_tokens * k / l.expert_ranks * busiest_share(spread, expert_tokens), 1.0);
  const double hidden = l.expert_hidden(static_cast<double>(model_.hidden));
  gemm_route r = routes_.at(weight_role::expert);
  const gemm_params with_casts = r.params;
  r.params.cast_passes = 0;
  const gemm_shape up{.m = rows / hit, .n = l.expert_up_width(), .k = hidden, .groups = hit};
  const gemm_shape down{.m = rows / hit, .n = hidden, .k = l.expert_ffn, .groups = hit};
  out.push_back({part_kind::gemm, gemm_name(matrix::expert_up), gemm(r, up), 1});
  out.push_back({part_kind::gemm, gemm_name(matrix::expert_down), gemm(r, down), 1});
  // Tokens are cast once, by the rank that has them, and activations where they are computed. The permutation
  // reads and writes each copy in the format of the operands, the combination reads each in 16 bits.
  const double element = bytes_per_element(r.operands);
  kernel_cost routing =
      stream_cost(platform_.gpu, stream_, bytes::from_base(rows * hidden * (2 * element + activation_bytes)));
  const auto cast = bytes::from_base(with_casts.cast_passes * tokens * hidden * (activation_bytes + element));
  const bandwidth cast_rate = platform_.gpu.hbm_bandwidth * with_casts.hbm_share;
  if (cast > bytes{}) routing.time += std::max(cast / cast_rate, with_casts.cast_row_time * tokens);
  routing.moved += cast;
  routing.time += costs_.expert_layer_time;
  routing.launch += costs_.expert_layer_time;
  out.push_back({part_kind::memory_bound, "routing", timed(precision::bf16, routing), 1});
  out.push_back({part_kind::ep, "ep.exchange", exchange(l, tokens), 1});
}

// Two kernels for each projection: down to the rank, and up again onto the output. They read the adapters of the
// batch. [docs/models-and-assumptions.md#inference-adapters]
time_and_energy iteration_costs::adapters(const std::vector<rank_gemm>& gemms, double tokens) const {
  const auto rank = static_cast<double>(workload_.adapters.rank);
  const double used = std::min(static_cast<double>(workload_.adapters.count), tokens);
  kernel_cost all;
  for (const rank_gemm& g : gemms) {
    if (!adapted(g)) continue;
    const double elements = used * rank * (g.n + g.k) + tokens * (g.k + 2 * rank + 2 * g.n);
    const kernel_cost c = stream_cost(platform_.gpu, stream_, bytes::from_base(elements * activation_bytes));
    const seconds launches = routes_.at(weight_role::sixteen_bit).params.launch * 2;
    all.time += c.time + launches;
    all.launch += launches;
    all.moved += c.moved;
  }
  return timed(precision::bf16, all);
}

iteration_costs::token_costs iteration_costs::layer_costs(const layer_slice& l, double tokens,
                                                          double expert_tokens) const {
  token_costs c;
  const auto add = [&](const std::vector<rank_gemm>& gemms, std::vector<named_cost>& out) {
    for (const rank_gemm& g : gemms)
      out.push_back({part_kind::gemm, g.name, gemm(routes_.at(g.role), {.m = tokens, .n = g.n, .k = g.k}), 1});
  };
  add(l.before_attention, c.before);
  add(l.after_attention, c.after);
  if (workload_.adapters.rank > 0) {
    c.before.push_back({part_kind::memory_bound, "adapter", adapters(l.before_attention, tokens), 1});
    c.after.push_back({part_kind::memory_bound, "adapter", adapters(l.after_attention, tokens), 1});
  }
  if (l.spec.routed()) add_experts(l, tokens, expert_tokens, c.after);
  c.after.push_back({part_kind::memory_bound, "elementwise", elementwise(l, tokens), 1});
  c.after.push_back(
      {part_kind::tp, "tp.all_reduce", all_reduce(tokens, static_cast<double>(model_.hidden)), l.blocks()});
  if (l.spec.qk_norm == qk_norm_kind::joint) {
    constexpr double sums =
        4;  // sums of squares of queries and keys: two FP32 values are as wide as four BF16 values
    c.after.push_back({part_kind::tp, "tp.norm_all_reduce", all_reduce(tokens, sums), 1});
  }
  return c;
}

const std::vector<iteration_costs::token_costs>& iteration_costs::of_tokens(std::int64_t tokens,
                                                                            std::int64_t expert_tokens) {
  std::vector<token_costs>& known = by_tokens_[tokens * (std::int64_t{1} << 31) + expert_tokens];
  if (!known.empty()) return known;
  const bool times_alone = std::exchange(times_alone_, false);  // others may ask for the rest
  for (const layer_slice& l : slices_)
    known.push_back(layer_costs(l, static_cast<double>(tokens), static_cast<double>(expert_tokens)));
  times_alone_ = times_alone;
  return known;
}

time_and_energy iteration_costs::lm_head(std::int64_t rows) {
  if (rows == 0) return {};
  const auto [at, is_new] = by_rows_.try_emplace(rows);
  if (is_new) {
    const bool times_alone = std::exchange(times_alone_, false);
    at->second = gemm(routes_.at(weight_role::sixteen_bit), {.m = static_cast<double>(rows),
                                                             .n = static_cast<double>(model_.vocab) / workload_.tp,
                                                             .k = static_cast<double>(model_.hidden)});
    times_alone_ = times_alone;
  }
  return at->second;
}

/// Keys per query of compressed attention after `context` tokens: window keys and pooled keys.
double iteration_costs::compressed_keys(const layer_spec& l, double context) {
  const double pooled = l.compressed.ratio > 0 ? context / static_cast<double>(l.compressed.ratio) : 0;
  return std::min(static_cast<double>(l.window), context) +
         (l.sparse_keys > 0 ? std::min(static_cast<double>(l.sparse_keys), pooled) : pooled);
}

/// Scans of prompts run at the roofline; no serving measurement isolates them.
constexpr double scan_words_per_sm = 0;

/// Adds the indexer's scoring of `scored` keys for each of `tokens` queries.
void iteration_costs::add_scores(kernel_cost& c, const layer_spec& l, double tokens, double scored) const {
  const kernel_cost i =
      indexer_forward_cost(platform_.gpu, attention_,
                           {tokens, static_cast<double>(l.index_heads), static_cast<double>(l.index_dim), scored,
                            std::min(scored, static_cast<double>(l.sparse_keys)), false});
  c.activity = (c.activity * c.time.base() + i.activity * i.time.base()) / (c.time + i.time).base();
  c.time += i.time;
  c.flop += i.flop;
  c.moved += i.moved;
  add_selection(c, l, tokens);
}

/// Scan of a prompt, or its compressed attention with key selection.
time_and_energy iteration_costs::prefill_mixer(const layer_slice& l, const iteration_content& it) const {
  if (l.scans()) {
    const scan_spec& s = l.spec.scan;
    const bool delta = l.spec.attention == attention_kind::linear;
    const double tp = workload_.tp, groups = static_cast<double>(delta ? s.key_heads : s.groups) / tp;
    const kernel_cost c = scan_forward_cost(
        platform_.gpu, routes_.at(weight_role::sixteen_bit).params.tensor_rate, scan_words_per_sm, stream_,
        {it.prompt_tokens, l.heads, static_cast<double>(s.head_dim), static_cast<double>(s.state), groups,
         static_cast<double>(s.chunk), delta});
    return timed(precision::bf16, c);
  }
  const double context = it.prompt_pairs / it.prompt_tokens, dim = l.head_dim;
  kernel_cost c = sparse_attention_forward_cost(
      platform_.gpu, attention_, {it.prompt_tokens, l.heads, compressed_keys(l.spec, context), dim, dim, false});
  if (l.spec.index_heads > 0)
    add_scores(c, l.spec, it.prompt_tokens, context / static_cast<double>(l.spec.compressed.ratio));
  return timed(precision::bf16, c);
}

/// What a kernel of sparse attention works on: whole blocks of query heads, at a share of the dense 16-bit peak.
struct gather_kernel {
  double block = 64;
  double share = 0.64;  // 640 TFLOPS on H800, 1,450 on B200 (FlashMLA's README)
};

// Engines pad heads to 128 on Blackwell and 64 on Hopper. Padding few heads is dear, so with an 8-bit cache in
// FlashMLA's format Hopper then takes the kernel of decodes for prompts, too (vLLM: fewer than 32 heads on a
// rank).
gather_kernel gather_kernel_of(const gpu_spec& gpu, double heads, bool scaled) {
  constexpr double few_heads = 32;
  constexpr double of_decodes = 0.41;  // 410 TFLOPS on H800 with an 8-bit cache (FlashMLA's README)
  if (gpu.architecture == "blackwell") return {128};
  return scaled && heads < few_heads ? gather_kernel{64, of_decodes} : gather_kernel{};
}

// FlashInfer's kernel on Blackwell takes 16 heads of a query at a time, and gathers its keys for each such block
// at this rate: 8,192 queries of 2,048 keys of 1,152 B in 2.673 ms, twice as long for 32 heads (measured on B200,
// vllm-project/vllm#33451). vLLM takes it for 16 heads and fewer, where it is faster. It does not read a cache of
// FlashMLA's format.
struct small_block_kernel {
  double block = 16;
  bandwidth keys = bandwidth::from_base(7.23e12);
};

// The kernel gathers keys one by one. Before it queries are multiplied onto the latent space, joined with their
// rotary part and copied into whole blocks of heads; after it outputs are multiplied out of that space.
// [docs/models-and-assumptions.md#inference-iteration]
void iteration_costs::slow_to_gather(kernel_cost& c, const attention_shape& s) const {
  const double element = bytes_per_element(workload_.kv_cache);
  const bool scaled = stack_.inference->latents == latent_format::scaled && element < 2;
  const gather_kernel k = gather_kernel_of(platform_.gpu, s.heads, scaled);
  const double tokens = s.batch * s.queries, keys = s.batch * s.pairs;
  const auto work = [&](double heads) { return flops::from_base(2 * keys * heads * (s.qk_dim + s.v_dim)); };
  const double heads = std::ceil(s.heads / k.block) * k.block;
  double copies = heads > s.heads ? 2 : 1;  // of joined queries, each read and written
  seconds time = c.time;
  c.flop = work(heads);
  if (const auto& peak = platform_.gpu.peaks[static_cast<std::size_t>(precision::bf16)])
    time = std::max(time, c.flop / (peak->dense * k.share));
  const bool others_format = scaled && stack_.inference->sparse_prompts == sparse_kernel::padded;
  if (platform_.gpu.architecture == "blackwell" && !others_format) {
    const small_block_kernel small;
    const double blocks = std::ceil(s.heads / small.block);
    const auto gathered = bytes::from_base(keys * s.qk_dim * element * blocks);
    if (const seconds t = std::max(c.time, gathered / small.keys); t < time) {
      time = t;
      c.flop = work(blocks * small.block);
      copies = 1;
    }
  }
  c.time = time;
  const auto passes =
      bytes::from_base(tokens * s.heads * (2 * s.v_dim + 2 * copies * s.qk_dim) * activation_bytes);
  c.time += stream_cost(platform_.gpu, stream_, passes).time;
  c.moved += passes;
}

// Queries of the indexer get their rotary part and scales, and become 8-bit values. The chosen keys are written as
// positions, made places in the cache, and read by the attention kernel.
void iteration_costs::add_selection(kernel_cost& c, const layer_spec& l, double tokens) const {
  constexpr double query_passes = 2 + 2 + 2 + 1;  // rotation reads and writes, the cast reads 16 bits and writes 8
  constexpr double place_bytes = 4 + 4 + 4;       // read as positions, written and read as places; 32 bits
  const auto moved = bytes::from_base(tokens * (query_passes * static_cast<double>(l.index_heads * l.index_dim) +
                                                place_bytes * static_cast<double>(l.sparse_keys)));
  c.time += stream_cost(platform_.gpu, stream_, moved).time;
  c.moved += moved;
}

/// `absorbed`: kernels of sparse attention work on the latent vectors of the selected keys, as decodes do.
attention_shape iteration_costs::prompts_of(const layer_slice& l, const iteration_content& it,
                                            bool absorbed) const {
  const bool latent = l.spec.attention == attention_kind::mla;
  const mla_spec& a = l.spec.mla;
  const double queries = it.prompt_tokens / it.prompts, latents = static_cast<double>(a.kv_lora_rank);
  double pairs = it.prompt_pairs / it.prompts;
  if (l.spec.window > 0) pairs = std::min(pairs, queries * static_cast<double>(l.spec.window));
  if (l.spec.sparse_keys > 0 && !latent)
    pairs = std::min(pairs, queries * static_cast<double>(l.spec.sparse_keys));
  // They take as many keys for every query; those that are missing are masked.
  if (absorbed) pairs = queries * static_cast<double>(l.spec.sparse_keys);
  // An 8-bit cache selects the FP8 kernel where there is one. Elsewhere it is widened to 16 bits as it is read.
  const bool fp8 = bytes_per_element(workload_.kv_cache) <= 1 && platform_.gpu.peak(precision::fp8);
  return {.batch = it.prompts,
          .heads = l.heads,
          .kv_heads = absorbed ? 1
                      : latent ? l.heads
                               : l.kv_heads,
          .qk_dim = absorbed ? latents + static_cast<double>(a.qk_rope_dim)
                    : latent ? static_cast<double>(a.qk_nope_dim + a.qk_rope_dim)
                             : l.head_dim,
          .v_dim = absorbed ? latents
                   : latent ? static_cast<double>(a.v_head_dim)
                            : l.value_dim(),
          .queries = queries,
          .pairs = pairs,
          .fp8 = fp8 && !latent};
}

kernel_cost iteration_costs::all_keys(const layer_slice& l, const attention_shape& s) const {
  // Prompts are computed in 16 bits, whatever the format of the cache.
  const auto of_latents = decode_.mla_context.find(precision::bf16);
  const bool measured = l.spec.attention == attention_kind::mla && of_latents != decode_.mla_context.end();
  return attention_forward_cost(platform_.gpu, measured ? of_latents->second : attention_, s);
}

kernel_cost iteration_costs::chosen_keys(const attention_shape& s) const {
  kernel_cost c = attention_forward_cost(platform_.gpu, attention_, s);
  slow_to_gather(c, s);
  return c;
}

time_and_energy iteration_costs::prefill_attention(const layer_slice& l, const iteration_content& it) const {
  if (it.prompts <= 0 || l.spec.attention == attention_kind::none) return {};
  if (l.scans() || l.spec.attention == attention_kind::compressed) return prefill_mixer(l, it);
  const bool absorbed = l.spec.attention == attention_kind::mla && l.spec.sparse_keys > 0;
  const attention_shape s = prompts_of(l, it, absorbed);
  kernel_cost c = absorbed ? chosen_keys(s) : all_keys(l, s);
  if (l.spec.index_heads > 0) add_scores(c, l.spec, it.prompt_tokens, it.prompt_pairs / it.prompt_tokens);
  return shaped(s.fp8 ? precision::fp8 : precision::bf16, c, s);
}

// All heads read one vector per key, of `elements` in `size` bytes, which holds key and value.
decode_shape iteration_costs::one_vector(const layer_slice& l, double keys, double elements, double size) const {
  return {.batch = 0,
          .context = keys,
          .heads = l.heads,
          .kv_heads = 1,
          .head_dim = elements / 2,
          .kv_element_bytes = size / elements};
}

/// `products`: multiply-adds per key and head.
kernel_cost iteration_costs::one_vector_decode(const decode_shape& s, double products) const {
  kernel_cost c = decode_attention_cost(platform_.gpu, decode_.decode, s);
  c.flop = flops::from_base(2 * s.batch * (1 + workload_.drafts.draft_tokens) * s.context * s.heads * products);
  if (const seconds by_heads = decode_.decode.launch + c.flop / attention_.tensor_rate; by_heads > c.time) {
    c.time = by_heads;
    c.limit = kernel_resource::compute;
  }
  return c;
}

/// Scoring reads all index keys of the contexts, `each` bytes for a token.
void iteration_costs::add_scores_read(kernel_cost& c, double tokens, double each) const {
  const auto read = bytes::from_base(tokens * each);
  c.time += stream_cost(platform_.gpu, stream_, read).time;
  c.moved += read;
}

time_and_energy iteration_costs::latent_decode(const layer_slice& l, double batch, double context) const {
  const mla_spec& a = l.spec.mla;
  const double keys =
      l.spec.sparse_keys > 0 ? std::min(context, static_cast<double>(l.spec.sparse_keys)) : context;
  const cached_token token = cached_bytes(l, workload_.kv_cache, stack_.inference->latents);
  const auto elements = static_cast<double>(a.kv_lora_rank + a.qk_rope_dim);
  decode_shape s = one_vector(l, keys, elements, token.keys);
  s.batch = batch;
  const auto measured = decode_.mla_decode.find(kernel_format(workload_.kv_cache));
  const bool dense = l.spec.sparse_keys == 0 && measured != decode_.mla_decode.end();
  if (dense) {
    const kernel_cost c = mla_decode_cost(platform_.gpu, measured->second,
                                          {.batch = batch,
                                           .context = keys,
                                           .heads = l.heads * (1 + workload_.drafts.draft_tokens),
                                           .latent_dim = elements,
                                           .value_dim = static_cast<double>(a.kv_lora_rank),
                                           .kv_element_bytes = bytes_per_element(workload_.kv_cache)});
    return shaped(measured->first, c, s, measured->first);
  }
  kernel_cost c = one_vector_decode(s, static_cast<double>(2 * a.kv_lora_rank + a.qk_rope_dim));
  if (l.spec.index_heads > 0) add_scores_read(c, batch * context, token.index);
  return shaped(precision::bf16, c, s);
}

time_and_energy iteration_costs::compressed_decode(const layer_slice& l, double batch, double context) const {
  const cached_token token = cached_bytes(l, workload_.kv_cache, stack_.inference->latents);
  decode_shape s = one_vector(l, compressed_keys(l.spec, context), l.head_dim, token.window);
  s.batch = batch;
  kernel_cost c = one_vector_decode(s, 2 * l.head_dim);
  if (l.spec.index_heads > 0) add_scores_read(c, batch * context, token.index);
  return shaped(precision::bf16, c, s);
}

time_and_energy iteration_costs::decode_attention(const layer_slice& alone, const iteration_content& all) const {
  if (all.decodes <= 0) return {};
  // Ranks that share out the tokens each work on all heads of their group.
  layer_slice l = alone;
  iteration_content it = all;
  if (context_ranks_ > 1) {
    l.heads *= context_ranks_;
    it.context /= context_ranks_;
  }
  if (l.spec.attention == attention_kind::compressed)
    return compressed_decode(l, it.decodes, it.context / it.decodes);
  if (l.scans() || l.spec.attention == attention_kind::none) return {};
  const double whole = it.context / it.decodes;
  double context = whole;
  if (l.spec.window > 0) context = std::min(context, static_cast<double>(l.spec.window));
  if (l.spec.attention == attention_kind::mla) return latent_decode(l, it.decodes, context);
  if (l.spec.sparse_keys > 0) context = std::min(context, static_cast<double>(l.spec.sparse_keys));
  const decode_shape s{.batch = it.decodes,
                       .context = context,
                       .heads = l.heads,
                       .kv_heads = l.kv_heads,
                       .head_dim = (l.head_dim + l.value_dim()) / 2,
                       .kv_element_bytes = bytes_per_element(workload_.kv_cache)};
  kernel_cost c = decode_attention_cost(platform_.gpu, decode_, s);
  if (l.spec.index_heads > 0)
    add_scores_read(c, it.decodes * whole, cached_bytes(l, workload_.kv_cache, stack_.inference->latents).index);
  return shaped(precision::bf16, c, s);
}

/// Reads and writes the state of each decoding sequence.
time_and_energy iteration_costs::recurrence(const layer_slice& l, const iteration_content& it) const {
  if (it.decodes <= 0 || l.state_bytes <= 0) return {};
  return timed(precision::bf16,
               stream_cost(platform_.gpu, stream_, bytes::from_base(2 * l.state_bytes * it.decodes)));
}

/// Coefficient of variation of lengths, apart from their limits.
double variation_of(const token_lengths& l) {
  switch (l.shape) {
    case length_shape::uniform:
      return l.spread / std::sqrt(3);
    case length_shape::lognormal:
      return l.variation;
    case length_shape::exponential:
      break;
  }
  return 1;
}

/// Prompt tokens of the rank with most of them, if prompts of `each` tokens go whole to ranks. It has at most its
/// budget, unless a mean rank has more.
double iteration_costs::busiest_prompts(double tokens, double each) {
  if (!(each > 0)) return 0;
  const double dp = workload_.attention_dp, prompts = tokens / each;
  const double mean = std::max(tokens / dp, each);
  const double of_rank = std::max(prompts / dp, 1.0), ranks = std::min(prompts, dp);
  const double most = mean * (1 + largest_of(ranks) * variation_of(workload_.input) / std::sqrt(of_rank));
  const double wanted = std::min(tokens, most);
  if (wanted > mean)
    prompt_tokens_use_.lets(static_cast<std::int64_t>(std::ceil(wanted)),
                            static_cast<std::int64_t>(max_prompt_tokens_));
  return std::min(wanted, std::max(mean, max_prompt_tokens_));
}

// Under attention data parallelism one rank processes a whole prompt; experts process tokens of all ranks.
iteration_costs::rank_content iteration_costs::of_rank(const iteration_content& it) {
  const double dp = workload_.attention_dp;
  rank_content r{it, 0, 0};
  if (dp > 1) {
    const double prompt = it.prompts > 0 ? it.prompt_tokens / it.prompts : 0;
    const double busiest = busiest_prompts(it.prompt_tokens, prompt);
    const double share = it.prompt_tokens > 0 ? busiest / it.prompt_tokens : 0;
    r.it = {it.decodes / dp,
            it.context / dp,
            busiest,
            it.prompt_pairs * share,
            it.prompts * share,
            std::max(it.finished_prompts / dp, std::min(it.finished_prompts, 1.0))};
  }
  const double checked = 1 + workload_.drafts.draft_tokens;
  r.tokens = std::max(1.0, whole(r.it.decodes * checked + r.it.prompt_tokens));
  r.expert_tokens = dp > 1 ? std::max(1.0, whole(it.decodes * checked + it.prompt_tokens)) : r.tokens;
  return r;
}

template <class Sink>
void iteration_costs::add_sends(double tokens, Sink&& sink) const {
  if (workload_.pp == 1) return;
  const int out = sends_out();
  sink(part_kind::pp, "pp.send", stage_send(tokens, false), workload_.pp - 1 - out);
  if (out > 0) sink(part_kind::pp, "pp.send", stage_send(tokens, true), out);
}

/// Times of the parts of an iteration that follow from its tokens, in their order: of each layer before attention
/// and after it, and of the sends between stages. A negative number ends each of these.
const std::vector<double>& iteration_costs::times_of_tokens(std::int64_t tokens, std::int64_t expert_tokens) {
  const auto at = static_cast<std::size_t>(tokens);
  const bool alike = tokens == expert_tokens;
  if (alike && times_by_tokens_.size() <= at) times_by_tokens_.resize(at + 1);
  std::vector<double>& out = alike ? times_by_tokens_[at] : times_by_both_[{tokens, expert_tokens}];
  if (!out.empty()) return out;
  const gpu_pace pace{speed_, platform_.gpu.idle_power};
  const auto add = [&](part_kind kind, const char*, const time_and_energy& c, int repeat) {
    out.push_back((pace.time_of(kind, c.time) * repeat).base());
  };
  for (std::size_t i = 0; i < layers_; ++i) {
    const token_costs costs =
        layer_costs(slices_[i], static_cast<double>(tokens), static_cast<double>(expert_tokens));
    for (const auto* part : {&costs.before, &costs.after}) {
      for (const named_cost& c : *part) add(c.kind, c.name, c.cost, c.repeat * slices_[i].layers);
      out.push_back(-1);
    }
  }
  add_sends(static_cast<double>(tokens), add);
  out.push_back(-1);
  return out;
}

// [docs/models-and-assumptions.md#inference-iteration]
template <class Sink>
void iteration_costs::walk(const iteration_content& it, Sink& sink) {
  const auto host = [&](const char* name, seconds t) {
    sink(part_kind::host, name, waited(resource::host, t), 1);
  };
  // Ranks with sequences of their own also schedule them.
  const rank_content r = of_rank(it);
  host("step", costs_.step_host + costs_.rank_host * std::log2(workload_.tp * workload_.attention_dp));
  host("sequences", sequence_host_ * r.it.decodes);
  host("requests", request_host_ * r.it.finished_prompts);

  const double checked = 1 + workload_.drafts.draft_tokens;
  const seconds before_kernels = sink.so_far();
  const auto tokens = static_cast<std::int64_t>(r.tokens),
             expert_tokens = static_cast<std::int64_t>(r.expert_tokens);
  const std::vector<token_costs>* costs = Sink::times_alone ? nullptr : &of_tokens(tokens, expert_tokens);
  const double* next = Sink::times_alone ? times_of_tokens(tokens, expert_tokens).data() : nullptr;
  const auto pass = [&](std::size_t i, std::vector<named_cost> token_costs::*part) {
    if constexpr (Sink::times_alone) {
      for (; *next >= 0; ++next) sink.add(*next);
      ++next;
    } else {
      for (const named_cost& c : (*costs)[i].*part) sink(c.kind, c.name, c.cost, c.repeat * slices_[i].layers);
    }
  };
  for (std::size_t i = 0; i < layers_; ++i) {
    const layer_slice& l = slices_[i];
    pass(i, &token_costs::before);
    sink(part_kind::attention, "attention.prefill", prefill_attention(l, r.it), l.layers);
    sink(part_kind::attention, "attention.decode", decode_attention(l, r.it), l.layers);
    if (context_ranks_ > 1 && r.it.decodes > 0 && l.kv_values() > 0)
      sink(part_kind::tp, "dcp.exchange", all_reduce(r.it.decodes * checked, exchanged_width(l)), l.layers);
    sink(part_kind::attention, "scan", recurrence(l, r.it), l.layers);
    pass(i, &token_costs::after);
  }
  const seconds layers_time = sink.so_far() - before_kernels;
  if constexpr (Sink::times_alone) {
    for (; *next >= 0; ++next) sink.add(*next);
  } else {
    add_sends(r.tokens, sink);
  }
  const seconds before_head = sink.so_far();
  sink(part_kind::gemm, "lm_head", lm_head(std::llround(r.it.decodes * checked + r.it.finished_prompts)), 1);
  if (workload_.drafts.by_module()) add_drafts(it, r.it, sink);
  add_draft_model(it, sink);
  add_vision_tower(r.it, sink);
  if (busy_stages_ > 1)
    if (const seconds t = stage_wait(layers_time, sink.so_far() - before_head); t > seconds{})
      sink(part_kind::pp, "pp.wait", waited(resource::latency, t), 1);

  if (const seconds t = reads_of_offloaded(r.expert_tokens); t > seconds{})
    sink(part_kind::memory_bound, "offloaded_weights", waited(resource::c2c, t * speed_), 1);
  add_launches(r.it, before_kernels, sink);
}

// Without a CUDA graph the host launches layer by layer, and the GPU waits if a kernel ends before the next is
// launched. Without any graphs nothing is compiled, and each kernel is launched by itself.
template <class Sink>
void iteration_costs::add_launches(const iteration_content& it, seconds before, Sink&& sink) {
  const bool eager = max_in_graph_ == 0 && costs_.eager_layer_host > seconds{};
  if (!eager && it.prompt_tokens <= 0 && it.decodes <= max_in_graph_) return;
  const double gpu = (sink.so_far() - before).base();
  double layers = 0;  // counted as a mixer and an MLP each
  for (std::size_t i = 0; i < layers_; ++i) layers += slices_[i].layers * slices_[i].blocks() / 2.0;
  const double launch = (eager ? costs_.eager_layer_host : costs_.prefill_layer_host).base() * layers;
  const seconds wait = seconds::from_base(std::hypot(gpu, launch) - gpu);
  sink(part_kind::host, it.prompt_tokens > 0 ? "prompt_launches" : "decode_launches", waited(resource::host, wait),
       1);
}

// The encoder works on the patches of the images of a prompt, once.
template <class Sink>
void iteration_costs::add_vision_tower(const iteration_content& it, Sink&& sink) {
  if (!workload_.images || !workload_.images->tower || it.finished_prompts <= 0) return;
  const vision_tower& v = *workload_.images->tower;
  const double hidden = static_cast<double>(v.hidden), layers = static_cast<double>(v.layers), tp = workload_.tp;
  const double patches = static_cast<double>(workload_.images->tokens_each) * v.patches_per_token;
  const double images = workload_.images->count.mean * it.finished_prompts;
  const double width = v.parameters / layers / hidden / tp;  // of all matrices of a layer, on a rank
  const auto repeat = static_cast<int>(v.layers);
  sink(part_kind::gemm, "vision_tower",
       gemm(routes_.at(weight_role::sixteen_bit), {.m = patches * images, .n = width, .k = hidden}), repeat);
  constexpr double head = 64;  // usual size
  const attention_shape s{.batch = images,
                          .heads = std::max(1.0, hidden / head / tp),
                          .kv_heads = std::max(1.0, hidden / head / tp),
                          .qk_dim = head,
                          .v_dim = head,
                          .queries = patches,
                          .pairs = patches * patches};
  const kernel_cost c = attention_forward_cost(platform_.gpu, attention_, s);
  sink(part_kind::attention, "vision_tower", shaped(precision::bf16, c, s), repeat);
}

/// Copies the parts of a draft's iteration, without host work.
struct draft_parts {
  static constexpr bool times_alone = false;
  std::function<void(part_kind, const time_and_energy&, int)> pass;
  seconds total = {};
  void operator()(part_kind kind, const char*, const time_and_energy& c, int repeat) {
    total += c.time * repeat;
    if (kind != part_kind::host) pass(kind, c, repeat);
  }
  seconds so_far() const { return total; }
};

// A draft model, or the layer of EAGLE-3, sees every prompt, and then guesses token by token or all at once.
// [docs/models-and-assumptions.md#speculative-decoding]
template <class Sink>
void iteration_costs::add_draft_model(const iteration_content& all, Sink&& sink) {
  if (!draft_) return;
  draft_parts parts{[&](part_kind kind, const time_and_energy& c, int repeat) { sink(kind, "draft", c, repeat); }};
  const int n = workload_.drafts.draft_tokens;
  draft_->walk(all, parts);
  if (workload_.drafts.source == draft_source::eagle3) {
    // Hidden states of three layers become one.
    constexpr double inputs = 3;
    const auto hidden = static_cast<double>(model_.hidden);
    const double rows = std::max(1.0, all.decodes + all.prompt_tokens) / workload_.attention_dp;
    sink(part_kind::gemm, "draft",
         gemm(routes_.at(weight_role::sixteen_bit), {.m = rows, .n = hidden, .k = inputs * hidden}), 1);
  }
  const iteration_content later{.decodes = all.decodes + all.finished_prompts, .context = all.context};
  if (later.decodes <= 0 || workload_.drafts.parallel) return;
  for (int i = 1; i < n; ++i) draft_->walk(later, parts);
}

/// Elements of a row that ranks which share out the tokens of a sequence exchange: queries of all their heads
/// before the kernel, outputs after it. As much as an all-reduce of the mean of both.
double iteration_costs::exchanged_width(const layer_slice& l) const {
  const mla_spec& a = l.spec.mla;
  const double each = l.spec.attention == attention_kind::mla
                          ? static_cast<double>(a.kv_lora_rank) + static_cast<double>(a.qk_rope_dim) / 2
                          : l.head_dim;
  return l.heads * context_ranks_ * each;
}

// A draft token is one pass of the prediction module: a projection of two hidden vectors, its layers and the LM
// head. Prompts pass it once, too. [docs/models-and-assumptions.md#speculative-decoding]
template <class Sink>
void iteration_costs::add_drafts(const iteration_content& all, const iteration_content& mine, Sink&& sink) {
  // The first pass also takes the tokens of prompts; later ones a token of each sequence.
  const auto whole_rows = [](double x) { return std::max<std::int64_t>(1, std::llround(x)); };
  const int later = workload_.drafts.draft_tokens - 1;
  const auto pass = [&](double tokens, double everywhere, int times) {
    if (times <= 0) return;
    const std::int64_t rows = whole_rows(tokens);
    const auto& costs = of_tokens(rows, workload_.attention_dp > 1 ? whole_rows(everywhere) : rows);
    const auto hidden = static_cast<double>(model_.hidden);
    const gemm_shape join{.m = static_cast<double>(rows), .n = hidden, .k = 2 * hidden};
    sink(part_kind::gemm, "draft", gemm(routes_.at(weight_role::sixteen_bit), join), times);
    for (std::size_t i = layers_; i < slices_.size(); ++i) {
      const layer_slice& l = slices_[i];
      for (const auto* part : {&costs[i].before, &costs[i].after})
        for (const named_cost& c : *part) sink(c.kind, "draft", c.cost, c.repeat * l.layers * times);
      sink(part_kind::attention, "draft", decode_attention(l, mine), l.layers * times);
    }
    sink(part_kind::gemm, "draft", lm_head(whole_rows(mine.decodes + mine.finished_prompts)), times);
  };
  pass(mine.decodes + mine.prompt_tokens, all.decodes + all.prompt_tokens, 1);
  for (std::size_t i = layers_; i < slices_.size(); ++i)
    sink(part_kind::attention, "draft", prefill_attention(slices_[i], mine), slices_[i].layers);
  pass(mine.decodes + mine.finished_prompts, all.decodes + all.finished_prompts, later);
}

operation_template iteration_costs::price(const iteration& it, bool explained) {
  template_builder b{{speed_, platform_.gpu.idle_power}, explained};
  b.out.name = kind_name(it);
  b.out.parts.reserve(16);
  walk(content_of(it), b);
  b.out.power = b.energy / b.out.duration;
  return std::move(b.out);
}

seconds iteration_costs::time(const iteration_content& it) {
  time_adder sum{{speed_, platform_.gpu.idle_power}};
  times_alone_ = true;
  walk(it, sum);
  times_alone_ = false;
  return sum.total;
}

}  // namespace nvlsim
