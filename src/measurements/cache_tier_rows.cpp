// Reads rows of cache-tiers.csv: KV caches beyond HBM, with and without.
#include "measurements/cache_tier_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "measurements/cell_text.hpp"
#include "measurements/inference_catalogue.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {
namespace {

/// Why a row cannot be simulated as it is; empty if it can.
std::string no_tiers_because(const csv_row& row) {
  if (row["suspect"].starts_with("exclude:")) return row["suspect"];
  if (row.blank("ttft_with_ms") || row.blank("ttft_without_ms"))
    return row.blank("hit_rate_without") ? "the hit rate is an input, and no TTFT was measured"
                                         : "no TTFT was measured";
  if (row["system"].empty()) return "the GPU is not stated";
  if (row.blank("input_tokens")) return "lengths and load are not stated";
  if (!holds(row["load"], "1 request") || !holds(row["workload"], "whole prompt"))
    return "the part of the prompts that is shared is not stated";
  if (!holds(row["tier"], "CPU")) return "the tier is not stated";
  return {};
}

/// A prompt, another that pushes it out of HBM, and the first again.
std::shared_ptr<request_trace> prompt_again(std::int64_t tokens) {
  constexpr std::int64_t block = 500;
  constexpr double apart_s = 1000;
  constexpr std::uint64_t other = std::uint64_t{1} << 32;
  auto out = std::make_shared<request_trace>();
  out->timed = true;
  out->list.prefix_tokens = block;
  for (int i = 0; i < 3; ++i) {
    served_request r;
    r.arrival_s = apart_s * i;
    r.input = tokens;
    r.output = 1;
    r.first_prefix = out->list.prefixes.size();
    r.prefixes = static_cast<std::uint32_t>(tokens / block);
    for (std::uint32_t b = 0; b < r.prefixes; ++b) out->list.prefixes.push_back(b + (i == 1 ? other : 0));
    out->list.requests.push_back(r);
  }
  return out;
}

void compare_cache_tier(const csv_row& row, input_cache& inputs, validation_record& r) {
  const std::string name(platform_of_system(row["system"]));
  if (name.empty()) throw cell_error(fmt::format("system: \"{}\" is unknown", row["system"]));
  const platform& hardware = inputs.platform_named(name);
  const model& m = inputs.model_named(row["model"]);
  const stack& s = inputs.stack_named(serving_stack_of(row["engine"], row["version"]));
  const weight_formats f = formats_of(row["weight_precision"], row["model"], has_routed_experts(m),
                                      m.layers.front().attention == attention_kind::mla);
  inference_workload w;
  w.weights = f.dense;
  w.attention_weights = f.attention;
  w.expert_weights = f.expert;
  w.kv_cache = row["kv_precision"].starts_with("fp8") ? precision::fp8 : precision::bf16;
  if (const auto named = parse_layout(row["layout"])) w.tp = named->tp, w.ep = named->ep;
  w.engine.prefix_cache = true;
  w.tiers = {cache_tier{}};
  find_usual_settings(hardware, s, m, w);
  const std::int64_t tokens = *row.integer("input_tokens");
  w.load = load_kind::trace;
  w.replay = prompt_again(tokens);
  w.requests = 3;
  constexpr std::int64_t beside = 2000;  // tokens of room beside the prompt: HBM holds one prompt
  const serving_run run = serve(hardware, s, m, w, {.kv_capacity_tokens = tokens + beside, .traced = false});
  if (!run.reasons.empty()) {
    r.status = record_status::infeasible;
    r.reason = run.reasons.front();
    return;
  }
  const auto ttft = [&](std::size_t i) {
    return run.outcome.requests[i].first_token_s - run.outcome.requests[i].arrival_s;
  };
  r.simulated = ttft(2) / ttft(0);
  r.notes = fmt::format("TTFT {:.4g} ms with the tier, {:.4g} ms without", 1e3 * ttft(2), 1e3 * ttft(0));
}

}  // namespace

std::vector<validation_record> validate_cache_tiers(const csv_table& t, const data_folders& data,
                                                    const progress& report) {
  input_cache inputs(data);
  return validate_rows(t, report, [&](const csv_row& row, validation_record& r) {
    r.kind = "cache tiers";
    r.metric = "ttft_ratio";
    r.release = row["engine"] + (row.blank("version") ? "" : " " + row["version"]);
    const auto with = row.number("ttft_with_ms"), without = row.number("ttft_without_ms");
    if (with && without && *without > 0) r.published = *with / *without;
    if (const std::string why = no_tiers_because(row); !why.empty()) {
      r.status = record_status::excluded;
      r.reason = why;
    } else {
      compare_cache_tier(row, inputs, r);
    }
  });
}

}  // namespace nvlsim
