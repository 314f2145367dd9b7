#include "nvlsim/output/input_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

using page_rows = std::vector<std::vector<std::string>>;

constexpr std::array<std::int64_t, 2> shown_sequences = {4096, 8192};
constexpr std::array<std::int64_t, 3> shown_tokens = {1024, 8192, 131072};
constexpr std::array shown_precisions = {precision::fp32,  precision::bf16,  precision::fp8,
                                         precision::mxfp8, precision::nvfp4, precision::mxfp4};

/// A group of equal layers: a consecutive run, or all layers of a kind.
struct layer_group {
  std::int64_t count = 0;
  layer_spec layer;
};

std::vector<layer_group> runs_of(const std::vector<layer_spec>& layers) {
  std::vector<layer_group> runs;
  for (const layer_spec& l : layers) {
    if (runs.empty() || runs.back().layer != l) runs.push_back({0, l});
    ++runs.back().count;
  }
  return runs;
}

std::vector<layer_group> kinds_of(const std::vector<layer_spec>& layers) {
  std::vector<layer_group> kinds;
  for (const layer_group& run : runs_of(layers)) {
    const auto same =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.layer == run.layer; });
    if (same == kinds.end()) kinds.push_back(run);
    else same->count += run.count;
  }
  return kinds;
}

/// Parameter counts by part. They add up to the total.
std::vector<std::pair<std::string_view, std::int64_t>> parts_of(const model& m) {
  const parameter_parts p = parameters_by_part(m);
  return {{"embedding", p.embedding}, {"tables", p.tables}, {"attention", p.attention}, {"mlp", p.mlp},
          {"experts", p.experts},     {"router", p.router}, {"norms", p.norms},         {"output", p.output}};
}

/// Formats 8030261248 as "8,030,261,248".
std::string grouped(std::int64_t n) {
  const std::string digits = std::to_string(n);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

page_rows shape_rows(const model& m) {
  page_rows out = {{"layers", std::to_string(m.layers.size())},
                   {"hidden", std::to_string(m.hidden)},
                   {"vocabulary", std::to_string(m.vocab)},
                   {"positions", m.max_positions > 0 ? std::to_string(m.max_positions) : "not stated"},
                   {"output weights", m.tied_embeddings ? "shared with the embedding" : "separate"}};
  if (m.mtp_layers > 0) out.push_back({"prediction modules", std::to_string(m.mtp_layers)});
  return out;
}

std::string_view name_of(attention_kind a) {
  switch (a) {
    case attention_kind::grouped_query:
      return "grouped";
    case attention_kind::mla:
      return "latent";
    case attention_kind::compressed:
      return "compressed";
    case attention_kind::linear:
      return "linear";
    case attention_kind::mamba:
      return "mamba";
    case attention_kind::none:
      break;
  }
  return "none";
}

bool scans(const layer_spec& l) {
  return l.attention == attention_kind::linear || l.attention == attention_kind::mamba;
}

/// Describes the keys a query attends to.
std::string keys_of(const layer_spec& l) {
  if (l.attention == attention_kind::none) return "-";
  if (scans(l)) return fmt::format("state {}", l.scan.state);
  const std::string chosen = l.sparse_keys > 0 ? fmt::format("top {}", l.sparse_keys) : "";
  if (l.attention == attention_kind::compressed && l.compressed.ratio > 0)
    return fmt::format("1/{}{}{}", l.compressed.ratio, chosen.empty() ? "" : ", ", chosen);
  if (l.window > 0) return fmt::format("window {}", l.window);
  return chosen.empty() ? "all" : chosen;
}

std::string mlp_of(const layer_spec& l) {
  if (l.routed()) return "experts";
  if (l.ffn_hidden == 0) return "-";
  return fmt::format("{}{}", l.ffn_hidden, l.gated_mlp ? " gated" : "");
}

page_rows layer_rows(const model& m) {
  page_rows out = {{"layers", "attention", "heads", "KV", "size", "keys", "MLP"}};
  for (const auto& [count, l] : kinds_of(m.layers)) {
    const auto number = [](std::int64_t n) { return n > 0 ? std::to_string(n) : std::string("-"); };
    out.push_back({std::to_string(count),
                   fmt::format("{}{}{}", name_of(l.attention), l.qk_norm != qk_norm_kind::none ? ", norm" : "",
                               gate_width(l) > 0 ? ", gate" : ""),
                   number(scans(l) ? l.scan.heads : l.heads), number(l.kv_heads),
                   number(scans(l) ? l.scan.head_dim : l.head_dim), keys_of(l), mlp_of(l)});
  }
  return out;
}

page_rows expert_rows(const model& m) {
  page_rows out = {{"layers", "experts", "per token", "width", "shared width", "latent"}};
  std::vector<layer_spec> routed;
  for (const layer_spec& l : m.layers) {
    if (!l.routed()) continue;
    routed.emplace_back().moe = l.moe;
  }
  for (const auto& [count, l] : kinds_of(routed))
    out.push_back({std::to_string(count), std::to_string(l.moe.experts), std::to_string(l.moe.top_k),
                   std::to_string(l.moe.expert_ffn),
                   l.moe.shared_ffn > 0 ? std::to_string(l.moe.shared_ffn) : "none",
                   l.moe.latent > 0 ? std::to_string(l.moe.latent) : "no"});
  return out;
}

page_rows parameter_rows(const model& m) {
  const double total = static_cast<double>(parameters(m));
  page_rows out;
  const auto add = [&](std::string_view part, std::int64_t count) {
    out.push_back({std::string(part), grouped(count),
                   fmt::format("{:.2f} %", total > 0 ? 100 * static_cast<double>(count) / total : 0.0)});
  };
  const bool routed = parameters_by_part(m).experts > 0;
  for (const auto& [part, count] : parts_of(m))
    if ((routed || (part != "experts" && part != "router")) && (count > 0 || part != "tables")) add(part, count);
  add("total", parameters(m));
  if (routed) add("active per token", active_parameters(m));
  if (m.mtp_layers > 0) add("prediction, additional", mtp_parameters(m));
  for (const tower_spec& t : m.towers) {
    if (t.parameters > 0) add(fmt::format("{} tower, additional", t.name), t.parameters);
    else out.push_back({fmt::format("{} tower, additional", t.name), "left out", "sizes not stated"});
  }
  return out;
}

page_rows flop_rows(const model& m) {
  const auto shown = [&](std::int64_t sequence, bool causal) {
    return format_quantity(flops::from_base(training_flops_per_token(m, sequence, causal)));
  };
  page_rows out = {{"sequence", "causal", "full attention"}};
  for (const std::int64_t s : shown_sequences) out.push_back({std::to_string(s), shown(s, true), shown(s, false)});
  return out;
}

std::string_view shown(const std::optional<precision>& p) {
  return p ? name(*p) : std::string_view("not supported by the simulator");
}

/// Storage formats of the published weights.
page_rows checkpoint_rows(const checkpoint_spec& c) {
  page_rows out = {{"stated in", c.source},
                   {"algorithm", output::one_line(c.algorithm, 40)},
                   {"weights", std::string(shown(c.weights))}};
  for (const auto& [what, p] :
       {std::pair{"attention", c.attention_weights}, {"experts", c.expert_weights}, {"KV cache", c.kv_cache}})
    if (p) out.push_back({what, std::string(shown(p))});
  return out;
}

value checkpoint_json(const checkpoint_spec& c) {
  if (c.source.empty()) return {};
  const auto or_null = [](const std::optional<precision>& p) { return p ? value{name(*p)} : value{}; };
  return value::object{{"source", c.source},
                       {"algorithm", c.algorithm},
                       {"weights", or_null(c.weights)},
                       {"attention_weights", or_null(c.attention_weights)},
                       {"expert_weights", or_null(c.expert_weights)},
                       {"kv_cache", or_null(c.kv_cache)}};
}

page_rows byte_rows(const model& m) {
  page_rows out = {{"precision", "all weights", "KV cache per token"}};
  for (const precision p : shown_precisions)
    out.push_back({std::string(name(p)), format_quantity(bytes::from_base(weight_bytes(m, p))),
                   format_quantity(bytes::from_base(kv_bytes_per_token(m, p)))});
  return out;
}

bool grows_evenly(const model& m) {
  return state_bytes_per_sequence(m) == 0 &&
         kv_bytes_per_sequence(m, precision::bf16, shown_tokens.back()) ==
             kv_bytes_per_token(m, precision::bf16) * static_cast<double>(shown_tokens.back());
}

page_rows sequence_rows(const model& m) {
  const auto cache = [&](precision p, std::int64_t tokens) {
    return format_quantity(bytes::from_base(kv_bytes_per_sequence(m, p, tokens)));
  };
  page_rows out = {{"tokens", "KV cache, bf16", "KV cache, fp8", "states"}};
  for (const std::int64_t tokens : shown_tokens)
    out.push_back({std::to_string(tokens), cache(precision::bf16, tokens), cache(precision::fp8, tokens),
                   format_quantity(bytes::from_base(state_bytes_per_sequence(m)))});
  return out;
}

/// A layer's parts, without absent ones.
value layer_json(const layer_group& g) {
  const layer_spec& l = g.layer;
  value out = value::object{{"count", g.count},
                            {"attention", name_of(l.attention)},
                            {"num_attention_heads", l.heads},
                            {"num_key_value_heads", l.kv_heads},
                            {"head_dim", l.head_dim},
                            {"qk_norm", l.qk_norm != qk_norm_kind::none},
                            {"attention_gate", l.attention_gate || l.head_gate},
                            {"sliding_window", l.window},
                            {"index_topk", l.sparse_keys},
                            {"index_n_heads", l.index_heads},
                            {"index_head_dim", l.index_dim}};
  if (l.v_head_dim > 0) out.set("v_head_dim", l.v_head_dim);
  if (l.kv != kv_source::own) out.set("keys_and_values", l.kv == kv_source::shared ? "shared" : "keys are values");
  if (l.layer_input > 0) out.set("layer_input_size", l.layer_input);
  if (l.attention == attention_kind::mla)
    out.set("latent", value::object{{"q_lora_rank", l.mla.q_lora_rank},
                                    {"kv_lora_rank", l.mla.kv_lora_rank},
                                    {"qk_nope_head_dim", l.mla.qk_nope_dim},
                                    {"qk_rope_head_dim", l.mla.qk_rope_dim},
                                    {"v_head_dim", l.mla.v_head_dim}});
  if (l.attention == attention_kind::compressed)
    out.set("compressed", value::object{{"q_lora_rank", l.compressed.q_lora_rank},
                                        {"o_lora_rank", l.compressed.o_lora_rank},
                                        {"o_groups", l.compressed.o_groups},
                                        {"ratio", l.compressed.ratio}});
  if (scans(l))
    out.set("scan", value::object{{"heads", l.scan.heads},
                                  {"head_dim", l.scan.head_dim},
                                  {"state_size", l.scan.state},
                                  {"groups", l.scan.groups},
                                  {"key_heads", l.scan.key_heads},
                                  {"conv_kernel", l.scan.conv_kernel}});
  out.set("intermediate_size", l.ffn_hidden);
  out.set("gated_mlp", l.gated_mlp);
  if (l.routed())
    out.set("experts", value::object{{"count", l.moe.experts},
                                     {"num_experts_per_tok", l.moe.top_k},
                                     {"intermediate_size", l.moe.expert_ffn},
                                     {"shared_intermediate_size", l.moe.shared_ffn},
                                     {"latent_size", l.moe.latent}});
  return out;
}

value layers_json(const std::vector<layer_spec>& layers) {
  value::array out;
  for (const layer_group& run : runs_of(layers)) out.push_back(layer_json(run));
  return out;
}

}  // namespace

std::string model_page(const model& m) {
  std::string out = output::one_line(fmt::format("{} ({})", m.name, m.model_type), output::table_columns) + "\n";
  const auto section = [&](std::string_view title, const page_rows& r) {
    out += fmt::format("\n{}\n", title) + output::grid(r, 2);
  };
  section("Shape", shape_rows(m));
  section("Layers by kind", layer_rows(m));
  if (const page_rows experts = expert_rows(m); experts.size() > 1) section("Experts", experts);
  section("Parameters", parameter_rows(m));
  section("Training FLOPs per token, forward and backward", flop_rows(m));
  section("Bytes, sum over all GPUs", byte_rows(m));
  if (!m.checkpoint.source.empty()) section("Checkpoint", checkpoint_rows(m.checkpoint));
  if (!grows_evenly(m)) section("Bytes per sequence", sequence_rows(m));
  return out;
}

value model_json(const model& m) {
  value out = value::object{{"schema", "nvlsim.model_page/1"},
                            {"name", m.name},
                            {"model_type", m.model_type},
                            {"hidden_size", m.hidden},
                            {"vocab_size", m.vocab},
                            {"max_position_embeddings", m.max_positions > 0 ? value{m.max_positions} : value{}},
                            {"tie_word_embeddings", m.tied_embeddings},
                            {"layers", layers_json(m.layers)},
                            {"mtp_layers", m.mtp_layers},
                            {"mtp_block", layers_json(m.mtp_block)}};
  value::object counts, weights, kv;
  for (const auto& [part, count] : parts_of(m)) counts.emplace_back(part, count);
  counts.emplace_back("total", parameters(m));
  counts.emplace_back("active", active_parameters(m));
  counts.emplace_back("mtp", mtp_parameters(m));
  for (const tower_spec& t : m.towers)
    counts.emplace_back(t.name + "_tower", t.parameters > 0 ? value{t.parameters} : value{});
  for (const precision p : shown_precisions) {
    weights.emplace_back(name(p), weight_bytes(m, p));
    kv.emplace_back(name(p), kv_bytes_per_token(m, p));
  }
  value::array training;
  for (const std::int64_t s : shown_sequences)
    training.push_back(value::object{{"sequence", s},
                                     {"causal", training_flops_per_token(m, s, true)},
                                     {"full_attention", training_flops_per_token(m, s, false)}});
  out.set("parameters", std::move(counts));
  out.set("training_flops_per_token", std::move(training));
  out.set("weight_bytes", std::move(weights));
  out.set("kv_bytes_per_token", std::move(kv));
  value::array sequences;
  for (const std::int64_t tokens : shown_tokens) {
    value row = value::object{{"tokens", tokens}};
    for (const precision p : shown_precisions) row.set(name(p), kv_bytes_per_sequence(m, p, tokens));
    sequences.push_back(std::move(row));
  }
  out.set("kv_bytes_per_sequence", std::move(sequences));
  out.set("state_bytes_per_sequence", state_bytes_per_sequence(m));
  out.set("checkpoint", checkpoint_json(m.checkpoint));
  return out;
}

}  // namespace nvlsim
