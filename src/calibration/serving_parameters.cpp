#include "calibration/serving_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "calibration/serving_knobs.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/serving/routes.hpp"
#include "nvlsim/stack/inference_fields.hpp"

namespace nvlsim {
namespace {

bool uses(const inference_row& r, const knob& k) {
  if (!k.format) return true;
  if (k.routed_only) return weights_of(r.workload, weight_role::expert) == *k.format;
  for (const weight_role role : {weight_role::dense, weight_role::attention, weight_role::sixteen_bit})
    if (priced_as(*r.net, weights_of(r.workload, role)) == *k.format) return true;
  return false;
}

/// Whether a row's layers and layout incur the cost.
bool met(const inference_row& r, std::string_view field) {
  const inference_workload& w = r.workload;
  const auto any = [&](auto&& has) { return std::any_of(r.net->layers.begin(), r.net->layers.end(), has); };
  const int max_dp = std::max(w.attention_dp, w.prefill_pool ? w.prefill_pool->attention_dp : 1);
  const int max_tp = std::max(w.tp, w.prefill_pool ? w.prefill_pool->tp : 1);
  if (field == "expert_layer_time") return has_routed_experts(*r.net);
  if (field == "scan_layer_time")
    return any([](const layer_spec& l) {
      return l.attention == attention_kind::linear || l.attention == attention_kind::mamba;
    });
  if (field == "qk_norm_time") return any([](const layer_spec& l) { return l.qk_norm != qk_norm_kind::none; });
  if (field == "expert_skew" || field == "biased_expert_skew") {
    const bool by_bias = field == "biased_expert_skew";
    return any([by_bias](const layer_spec& l) { return l.routed() && l.moe.balanced_by_bias == by_bias; });
  }
  if (field == "rank_host") return std::max(max_dp, max_tp) > 1;
  if (field == "indexer_layer_time") return any([](const layer_spec& l) { return l.sparse_keys > 0; });
  if (field == "exchange_time") return max_dp > 1;
  if (field.starts_with("reduce_")) return max_tp > 1;
  return true;
}

}  // namespace

std::string name_of(const knob& k) {
  switch (k.what) {
    case knob::type::release:
      return "release " + k.stack;
    case knob::type::expert_release:
      return "experts of release " + k.stack;
    case knob::type::server:
      return fmt::format("server {} {}", k.stack, k.field);
    case knob::type::pooled:
    case knob::type::engine:
      break;
  }
  return fmt::format("{}{} {}{}", k.engine.empty() ? "" : k.engine + " ", k.architecture, k.field,
                     k.format ? fmt::format(" {}", name(*k.format)) : "");
}

bool acts_on(const knob& k, const inference_row& r) {
  const std::string& name = r.software->name;
  switch (k.what) {
    case knob::type::release:
      return k.stack == name;
    case knob::type::expert_release:
      return k.stack == name && has_routed_experts(*r.net);
    case knob::type::server:
      return k.stack == name && behind_server(r.workload);
    case knob::type::engine:
      if (k.engine != engine_of(name)) return false;
      [[fallthrough]];
    case knob::type::pooled:
      break;
  }
  const bool routed = has_routed_experts(*r.net);
  return k.architecture == r.hardware.gpu.architecture && (routed || !k.routed_only) && uses(r, k) &&
         met(r, k.field);
}

std::vector<std::string> fields_of(const knob& k, const inference_row& r) {
  if (k.what == knob::type::server) return {fmt::format("server {}", k.field)};
  if (k.what != knob::type::release) return {k.format ? fmt::format("{} {}", k.field, name(*k.format)) : k.field};
  std::vector<std::string> out = {"launch_factor"};
  for (const engine_time_field& f : engine_time_fields)
    if (f.release && met(r, f.name)) out.emplace_back(f.name);
  return out;
}

void apply_own(const std::string& name, inference_profile& p, const knob& k, double x) {
  switch (k.what) {
    case knob::type::pooled:
      return;
    case knob::type::engine:
      if (k.engine == engine_of(name)) {
        engine_costs& c = p.gpus[k.architecture];
        set_cost(c, k.field, k.format, get_cost(c, k.field, k.format) * x);
      }
      return;
    case knob::type::release:
      if (k.stack == name) p.release_factor = x;
      return;
    case knob::type::expert_release:
      if (k.stack == name) p.expert_release_factor = x;
      return;
    case knob::type::server:
      break;
  }
  if (k.stack == name) set_server(p.front_end, k.field, x);
}

double get_server(const front_end_costs& f, const std::string& field) {
  if (field == "sequence_host") return f.sequence_host.base();
  if (field == "request_host") return f.request_host.base();
  if (field == "prompt_token_delay") return f.prompt_token_delay.base();
  return field == "first_token_delay" ? f.first_token_delay.base() : f.first_token_iterations.read();
}
void set_server(front_end_costs& f, const std::string& field, double x) {
  if (field == "sequence_host") f.sequence_host = seconds::from_base(x);
  else if (field == "request_host") f.request_host = seconds::from_base(x);
  else if (field == "prompt_token_delay") f.prompt_token_delay = seconds::from_base(x);
  else if (field == "first_token_delay") f.first_token_delay = seconds::from_base(x);
  else f.first_token_iterations = x;
}

}  // namespace nvlsim
