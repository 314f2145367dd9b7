// Reads rows of kv-capacity.csv: KV caches as engines print them when they start.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "measurements/cell_text.hpp"
#include "measurements/inference_catalogue.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {
namespace {

/// Names in the table of models that ship by another name and have the same shape.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> same_shapes = {{
    {"deepseek-v3.2-exp", "deepseek-v3.2"},
    {"kimi-k2-thinking", "kimi-k2"},
    {"kimi-k2-instruct", "kimi-k2"},
    {"deepseek-v3.1-terminus", "deepseek-v3.1"},
}};

const model& model_of(const std::string& name, input_cache& inputs) {
  for (const auto& [from, to] : same_shapes)
    if (name == from) return inputs.model_named(std::string(to));
  return inputs.model_named(name);
}

/// The whole number that follows `word`.
std::optional<std::int64_t> count_after(std::string_view text, std::string_view word) {
  const auto n = number_after(text, word);
  return n ? std::optional<std::int64_t>(std::llround(*n)) : std::nullopt;
}

/// Why a row cannot be simulated as it is; empty if it can.
std::string no_capacity_because(const csv_row& row) {
  if (row["suspect"].starts_with("exclude:")) return row["suspect"];
  if (row["system"].empty()) return "the GPU is not stated";
  if (row["model"].find('(') != std::string::npos) return "the model is not certain: " + row["model"];
  if (row["kv_tokens_scope"].find("maximum model length") != std::string::npos)
    return "the figure is the longest request, not the size of the cache";
  if (row["notes"].starts_with("before the change"))
    return "an earlier state of the engine, which its change put right";
  if (row["kv_tokens"].empty() && row["kv_GiB"].empty()) return "nothing to compare";
  if (row["engine"] == "TRT-LLM" && row.blank("memory_fraction"))
    return "the share of free memory that the recipe gives the cache is not stated";
  return {};
}

/// What a checkpoint of the model has where the row does not say.
std::string usual_weights(const std::string& stated, const std::string& name) {
  if (!stated.empty()) return stated.substr(0, stated.find(' '));
  if (name.starts_with("gpt-oss")) return "mxfp4";
  return name.starts_with("deepseek") ? "fp8" : "bf16";
}

void set_formats(const csv_row& row, const std::string& cell, const model& m, inference_workload& w) {
  const std::string& name = row["model"];
  const bool latent = m.layers.front().attention == attention_kind::mla;
  const weight_formats f = formats_of(cell, name, has_routed_experts(m), latent);
  w.weights = f.dense;
  w.attention_weights = f.attention;
  w.expert_weights = f.expert;
  const bool compressed = m.layers.front().attention == attention_kind::compressed;
  if (compressed && row["weight_precision"].empty()) w.expert_weights = precision::mxfp4;
  // Engines store 16 bits unless told, but for sparse and compressed attention, and NVIDIA's 4-bit checkpoints.
  const bool sparse = latent && m.layers.front().sparse_keys > 0;
  const bool eight = row["kv_dtype"].starts_with("fp8") || (row["kv_dtype"].empty() && (compressed || sparse)) ||
                     (row["kv_dtype"].empty() && row["engine"] == "TRT-LLM" && cell == "fp4");
  w.kv_cache = eight ? precision::fp8 : precision::bf16;
}

void set_layout(const csv_row& row, inference_workload& w, bool routed) {
  const auto whole = [&](const char* column) {
    const std::int64_t n = row.integer(column).value_or(1);
    if (n < 1 || n > 1'000'000) throw cell_error(fmt::format("{} is {}", column, n));
    return static_cast<int>(n);
  };
  const int tp = row.blank("tp") ? whole("gpus") : whole("tp");
  const int dp = whole("dp");
  w.tp = dp > 1 ? 1 : tp;
  w.attention_dp = dp;
  w.ep = routed ? std::clamp(whole("ep"), 1, std::max(tp, dp)) : 1;
  w.pp = std::max(1, whole("gpus") / std::max(tp, dp));
}

void set_engine(const csv_row& row, inference_workload& w) {
  w.engine.kv_fraction = row.number("memory_fraction");
  w.engine.max_num_tokens = row.integer("max_num_batched_tokens");
  w.engine.max_batch_size = count_after(row["notes"], "max_num_seqs");
  w.engine.decode_context_parallel = count_after(row["notes"], "decode context parallel");
  if (row["notes"].find("eager") != std::string::npos) w.engine.cuda_graph_max_batch_size = 0;
}

/// Tokens that vLLM reckons for a request of the longest length: a window holds an iteration's budget besides.
double longest_request(const schedule_limits& l, std::int64_t longest) {
  double out = static_cast<double>((longest + l.kv_block_tokens - 1) / l.kv_block_tokens * l.kv_block_tokens);
  out += l.sequence.states;
  for (const auto& [window, share] : l.sequence.windowed)
    out += share * static_cast<double>(std::min(longest, window - 1 + l.settings.max_num_tokens / l.ranks));
  return out;
}

/// Hybrid caches are printed as the requests of the longest length that they hold, times that length.
bool counts_requests(const csv_row& row) {
  const std::string& scope = row["kv_tokens_scope"];
  return scope.find("concurrency") != std::string::npos || scope.find("hybrid") != std::string::npos ||
         row["notes"].find("maximum concurrency x") != std::string::npos;
}

/// Tokens as the row counts them.
double tokens_of(const csv_row& row, const serving_memory& found, const inference_profile& engine,
                 const inference_workload& w, const model& m) {
  auto tokens = static_cast<double>(found.kv_capacity_tokens);
  const std::string& scope = row["kv_tokens_scope"];
  if (scope.starts_with("per")) return tokens / w.attention_dp;
  if (const std::int64_t longest = row.integer("max_model_len").value_or(m.max_positions);
      counts_requests(row) && longest > 0)
    tokens *= static_cast<double>(longest) / longest_request(limits_of(engine, w, found), longest);
  return tokens;
}

double weights_GiB(const memory_report& r) {
  bytes all;
  for (const memory_item& i : r.items)
    if (i.name == "weights" || i.name == "vocabulary_weights") all += i.size;
  return all.base() / 0x1p30;
}

void compare_kv_capacity(const csv_row& row, input_cache& inputs, validation_record& r) {
  const std::string name(platform_of_system(row["system"] == "a100" ? "a100-80g" : row["system"]));
  if (name.empty()) throw cell_error(fmt::format("system: \"{}\" is unknown", row["system"]));
  const platform& hardware = inputs.platform_named(name);
  const model& m = model_of(row["model"], inputs);
  const stack& s = inputs.stack_named(row["version"].empty() ? generic_serving_stack(row["engine"])
                                                             : serving_stack_of(row["engine"], row["version"]));
  inference_workload w;
  set_layout(row, w, has_routed_experts(m));
  set_engine(row, w);
  find_usual_settings(hardware, s, m, w);
  set_formats(row, usual_weights(row["weight_precision"], row["model"]), m, w);
  serving_memory found = plan_serving_memory(hardware, s, m, w);
  if (const auto weights = row.number("weights_GiB"); weights && *weights > 0 && row.blank("weight_precision")) {
    // The size of the weights tells their format.
    const auto off = [&](const serving_memory& x) { return std::abs(std::log(weights_GiB(x.report) / *weights)); };
    for (const char* cell : {"bf16", "fp8", "fp4"}) {
      inference_workload other = w;
      set_formats(row, cell, m, other);
      serving_memory with = plan_serving_memory(hardware, s, m, other);
      if (off(with) < off(found)) w = other, found = std::move(with);
    }
  }
  const std::int64_t longest = row.integer("max_model_len").value_or(1);
  const auto fits = [&] { return found.no_cache.empty() && found.kv_capacity_tokens >= longest; };
  if (row.blank("weight_precision") && row.blank("weights_GiB")) {
    // What ran has weights that leave room for a request of the longest length.
    for (const char* cell : {"fp8", "fp4"}) {
      inference_workload other = w;
      set_formats(row, cell, m, other);
      serving_memory with = plan_serving_memory(hardware, s, m, other);
      if (!fits()) w = other, found = std::move(with);
    }
  }
  if (!found.no_cache.empty()) {
    r.status = record_status::infeasible;
    r.reason = found.no_cache;
    return;
  }
  const double pool = found.kv_per_token.base() * static_cast<double>(found.kv_capacity_tokens) * w.pp /
                      w.attention_dp;  // of one GPU
  r.simulated = r.metric == "kv_tokens" ? tokens_of(row, found, *s.inference, w, m) : pool / 0x1p30;
  r.notes = fmt::format("{:.0f} B a token and GPU", found.kv_per_token.base());
}

}  // namespace

std::vector<validation_record> validate_kv_capacity(const csv_table& t, const data_folders& data,
                                                    const progress& report) {
  input_cache inputs(data);
  return validate_rows(t, report, [&](const csv_row& row, validation_record& r) {
    r.kind = "KV capacity";
    // Where tokens depend on a longest length that is not stated, the size of the pool is compared.
    const bool by_size = counts_requests(row) && row.blank("max_model_len") && !row.blank("kv_GiB");
    r.metric = row.blank("kv_tokens") || by_size ? "kv_GiB" : "kv_tokens";
    r.release = row["engine"] + (row.blank("version") ? "" : " " + row["version"]);
    r.published = published_value(row, r.metric);
    if (const std::string why = no_capacity_because(row); !why.empty()) {
      r.status = record_status::excluded;
      r.reason = why;
    } else {
      compare_kv_capacity(row, inputs, r);
    }
  });
}

}  // namespace nvlsim
