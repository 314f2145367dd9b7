#include "output/model_page.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "nvlsim/units_text.hpp"
#include "output/text.hpp"

namespace nvlsim {
namespace {

using rows = std::vector<std::vector<std::string>>;

constexpr std::array<std::int64_t, 2> shown_sequences = {4096, 8192};
constexpr std::array shown_precisions = {precision::fp32,  precision::bf16,  precision::fp8,
                                         precision::mxfp8, precision::nvfp4, precision::mxfp4};

/// Runs of equal layers.
struct layer_run {
  std::int64_t count = 0;
  layer_spec layer;
};

std::vector<layer_run> runs_of(const std::vector<layer_spec>& layers) {
  std::vector<layer_run> runs;
  for (const layer_spec& l : layers) {
    if (runs.empty() || runs.back().layer != l) runs.push_back({0, l});
    ++runs.back().count;
  }
  return runs;
}

std::vector<std::pair<std::string_view, std::int64_t>> parts_of(const model& m) {
  const parameter_parts p = parameters_by_part(m);
  return {{"embedding", p.embedding}, {"attention", p.attention}, {"mlp", p.mlp},
          {"norms", p.norms},         {"output", p.output},       {"total", parameters(m)}};
}

/// 8030261248 as "8,030,261,248".
std::string grouped(std::int64_t n) {
  const std::string digits = std::to_string(n);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

rows shape_rows(const model& m) {
  return {{"layers", std::to_string(m.layers.size())},
          {"hidden", std::to_string(m.hidden)},
          {"vocabulary", std::to_string(m.vocab)},
          {"positions", m.max_positions > 0 ? std::to_string(m.max_positions) : "not stated"},
          {"output weights", m.tied_embeddings ? "the embedding's" : "its own"}};
}

rows layer_rows(const model& m) {
  rows out = {{"layers", "heads", "KV heads", "head size", "QK norm", "MLP", "gated"}};
  for (const auto& [count, l] : runs_of(m.layers))
    out.push_back({std::to_string(count), std::to_string(l.heads), std::to_string(l.kv_heads),
                   std::to_string(l.head_dim), l.qk_norm ? "yes" : "no", std::to_string(l.ffn_hidden),
                   l.gated_mlp ? "yes" : "no"});
  return out;
}

rows parameter_rows(const model& m) {
  const double total = static_cast<double>(parameters(m));
  rows out;
  for (const auto& [part, count] : parts_of(m))
    out.push_back({std::string(part), grouped(count),
                   fmt::format("{:.2f} %", total > 0 ? 100 * static_cast<double>(count) / total : 0.0)});
  return out;
}

rows flop_rows(const model& m) {
  const auto shown = [&](std::int64_t sequence, bool causal) {
    return format_quantity(flops::from_base(training_flops_per_token(m, sequence, causal)));
  };
  rows out = {{"sequence", "causal", "full attention"}};
  for (const std::int64_t s : shown_sequences) out.push_back({std::to_string(s), shown(s, true), shown(s, false)});
  return out;
}

rows byte_rows(const model& m) {
  rows out = {{"precision", "all weights", "KV cache per token"}};
  for (const precision p : shown_precisions)
    out.push_back({std::string(name(p)), format_quantity(bytes::from_base(weight_bytes(m, p))),
                   format_quantity(bytes::from_base(kv_bytes_per_token(m, p)))});
  return out;
}

value layers_json(const model& m) {
  value::array out;
  for (const auto& [count, l] : runs_of(m.layers))
    out.push_back(value::object{{"count", count},
                                {"num_attention_heads", l.heads},
                                {"num_key_value_heads", l.kv_heads},
                                {"head_dim", l.head_dim},
                                {"qk_norm", l.qk_norm},
                                {"intermediate_size", l.ffn_hidden},
                                {"gated_mlp", l.gated_mlp}});
  return out;
}

}  // namespace

std::string model_page(const model& m) {
  std::string out = output::one_line(fmt::format("{} ({})", m.name, m.model_type), output::table_columns) + "\n";
  const auto section = [&](std::string_view title, const rows& r) {
    out += fmt::format("\n{}\n", title) + output::grid(r, 2);
  };
  section("Shape", shape_rows(m));
  section("Layers in order", layer_rows(m));
  section("Parameters", parameter_rows(m));
  section("Training FLOPs per token, forward and backward", flop_rows(m));
  section("Bytes over all GPUs together", byte_rows(m));
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
                            {"layers", layers_json(m)}};
  value::object counts, weights, kv;
  for (const auto& [part, count] : parts_of(m)) counts.emplace_back(part, count);
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
  return out;
}

}  // namespace nvlsim
