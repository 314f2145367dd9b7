#include "stack/load.hpp"

#include "stack/read_parts.hpp"

namespace nvlsim {

training_profile read_training(config::reader& r) {
  using namespace config;
  training_profile t;
  t.tp_exposed = r.number("tp_exposed", fraction);
  t.cp_exposed = r.number("cp_exposed", fraction);
  t.dp_interference = r.number("dp_interference", fraction);
  t.collective_launch = r.quantity<seconds>("collective_launch");
  t.pipeline_launch = r.quantity<seconds>("pipeline_launch");
  t.step_host = r.quantity<seconds>("step_host");
  t.time_factor = r.number("time_factor", positive);
  t.jitter_per_doubling = r.number("jitter_per_doubling", fraction);
  t.optimizer_bytes = r.number("optimizer_bytes", non_negative);
  t.gradient_bytes = r.number("gradient_bytes", positive);
  t.quantise_bytes_forward = r.number("quantise_bytes_forward", non_negative);
  t.quantise_bytes_backward = r.number("quantise_bytes_backward", non_negative);
  t.reserve = r.quantity<bytes>("reserve");
  t.workspace_bytes_per_layer_param = r.number("workspace_bytes_per_layer_param", non_negative);
  t.error_90 = r.number("error_90", fraction);
  if (auto m = r.find_child("moe")) {
    t.moe_time_factor = m->number("time_factor", positive);
    t.ep_exposed = m->number("ep_exposed", {0, 4});
    t.ep_exposed_overlapped = m->number("ep_exposed_overlapped", {0, 4});
    t.ep_nvlink_share = m->number("ep_nvlink_share", {1e-3, 1});
    t.ep_nic_share = m->number("ep_nic_share", {1e-3, 1});
    t.ep_combine_ratio = m->number("ep_combine_ratio", positive);
    t.ep_launch = m->quantity<seconds>("ep_launch");
    t.moe_host = m->quantity<seconds>("host");
    t.moe_host_per_expert = m->quantity<seconds>("host_per_expert");
    t.moe_sync_per_expert = m->quantity<seconds>("sync_per_expert");
    t.graphed_host_share = m->number("graphed_host_share", fraction);
    t.unfused_activation_passes = m->number("unfused_activation_passes", non_negative);
    t.moe_error_90 = m->number("error_90", fraction);
    m->done();
  }
  r.done();
  return t;
}

namespace {

/// An object of factors by name; a group's "kind" and "source" are no names.
std::map<std::string, double> read_factors(config::reader& r, const char* key) {
  std::map<std::string, double> out;
  config::reader table = r.child(key);
  for (const std::string& n : table.names())
    if (n != "kind" && n != "source") out[n] = table.number(n, config::positive);
  table.done();
  return out;
}

std::map<precision, double> read_gemm_factors(config::reader& r) {
  std::map<precision, double> out;
  for (const auto& [n, factor] : read_factors(r, "gemm_factor")) {
    if (const auto p = precision_by_name(n)) out[*p] = factor;
    else r.fail("gemm_factor", "no number format is called \"" + n + "\"");
  }
  return out;
}

}  // namespace

inference_profile read_inference(config::reader& r) {
  using namespace config;
  inference_profile i;
  i.step_host = r.quantity<seconds>("step_host");
  i.sequence_host = r.quantity<seconds>("sequence_host");
  i.request_host = r.quantity<seconds>("request_host");
  i.layer_time = r.quantity<seconds>("layer_time");
  i.prefill_layer_host = r.quantity<seconds>("prefill_layer_host");
  i.gemm_factor = read_gemm_factors(r);
  i.sustained_factor = read_factors(r, "sustained_factor");
  i.elementwise_vectors = r.number("elementwise_vectors", non_negative);
  i.reserve = r.quantity<bytes>("reserve");
  i.kv_fraction = r.number("kv_fraction", fraction);
  i.kv_block_tokens = static_cast<int>(r.integer("kv_block_tokens", {1, 1024}));
  r.done();
  return i;
}

stack read_stack(config::document& doc, std::string name, diagnostics& problems) {
  config::reader r(doc, problems);
  stack s;
  s.name = std::move(name);
  if (const std::string schema = r.string("schema"); schema != "nvlsim.stack/1" && !schema.empty())
    r.fail("schema", "expected \"nvlsim.stack/1\", found \"" + schema + "\"");
  r.ignore("base");
  r.ignore("sources");
  s.description = r.string("description");
  r.require_sources();
  s.kernels = read_kernels(r);
  if (auto c = r.find_child("collectives")) s.collectives = read_collectives(*c);
  if (auto t = r.find_child("training")) s.training = read_training(*t);
  if (auto i = r.find_child("inference")) s.inference = read_inference(*i);
  r.done();
  return s;
}

}  // namespace nvlsim
