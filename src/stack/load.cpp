#include "nvlsim/stack/load.hpp"

#include "stack/read_parts.hpp"

namespace nvlsim {

namespace {

step_residuals read_residuals(config::reader& r) {
  static const std::vector<std::string> domains = {"server", "rack"};
  static const std::vector<std::string> bits = {"16-bit", "8-bit", "4-bit"};
  step_residuals s;
  s.rack = r.one_of("domain", domains) == 1;
  s.weight_bits = 16 >> r.one_of("operands", bits);
  s.experts = r.boolean("experts");
  s.rows = static_cast<int>(r.integer("rows", {1, 1'000'000}));
  s.low = r.number("low", {-10, 10});
  s.high = r.number("high", {s.low, 10});
  r.done();
  return s;
}

}  // namespace

training_profile read_training(config::reader& r) {
  using namespace config;
  training_profile t;
  t.tp_exposed = r.number("tp_exposed", fraction);
  t.cp_exposed = r.number("cp_exposed", fraction);
  t.dp_interference = r.number("dp_interference", fraction);
  t.collective_launch = r.quantity<seconds>("collective_launch");
  t.pipeline_launch = r.quantity<seconds>("pipeline_launch");
  t.step_host = r.quantity<seconds>("step_host");
  t.wgrad_deferral_limit = r.integer("wgrad_deferral_limit", {0, 1'000'000});
  t.time_factor = r.number("time_factor", positive);
  t.jitter_per_doubling = r.number("jitter_per_doubling", fraction);
  t.optimizer_bytes = r.number("optimizer_bytes", non_negative);
  t.gradient_bytes = r.number("gradient_bytes", positive);
  t.gradient_memory_bytes = r.number("gradient_memory_bytes", positive);
  t.quantise_bytes_forward = r.number("quantise_bytes_forward", non_negative);
  t.quantise_bytes_backward = r.number("quantise_bytes_backward", non_negative);
  t.scan_words_per_sm = r.number_or("scan_words_per_sm", 0.0, non_negative);
  t.reserve = r.quantity<bytes>("reserve");
  t.workspace_bytes_per_layer_param = r.number("workspace_bytes_per_layer_param", non_negative);
  t.workspace_bytes_per_head_param = r.number("workspace_bytes_per_head_param", non_negative);
  t.error_90 = r.number("error_90", fraction);
  if (r.has("residuals"))
    for (config::reader& e : r.elements("residuals")) t.residuals.push_back(read_residuals(e));
  if (auto m = r.find_child("moe")) {
    t.moe_time_factor = m->number("time_factor", positive);
    t.moe_expert_time = m->number_or("expert_time", 1.0, positive);
    t.moe_block_scaled_time = m->number_or("block_scaled_time", 1.0, positive);
    t.moe_quantise_passes = m->number_or("quantise_passes", 1.0, positive);
    t.ep_exposed = m->number("ep_exposed", {0, 4});
    t.ep_exposed_overlapped = m->number("ep_exposed_overlapped", {0, 4});
    t.ep_nvlink_share = m->number("ep_nvlink_share", {1e-3, 1});
    t.ep_nic_share = m->number("ep_nic_share", {1e-3, 1});
    t.ep_combine_ratio = m->number("ep_combine_ratio", positive);
    t.ep_launch = m->quantity<seconds>("ep_launch");
    t.moe_host = m->quantity<seconds>("host");
    t.moe_host_per_expert = m->quantity<seconds>("host_per_expert");
    t.moe_overlap_host_factor = m->number_or("overlap_host_factor", 1.0, positive);
    t.moe_sync_per_expert = m->quantity<seconds>("sync_per_expert");
    t.graphed_host_share = m->number("graphed_host_share", fraction);
    t.unfused_activation_passes = m->number("unfused_activation_passes", non_negative);
    t.fused_activation_share = m->number("fused_activation_share", fraction);
    t.moe_error_90 = m->number("error_90", fraction);
    m->done();
  }
  r.done();
  return t;
}

namespace {

/// `"kernel_spreads"`: {"kind", "source", "families": [{"family", "gpu", "architecture", "rows", "low", "median",
/// "high"}]}.
std::vector<kernel_spread> read_spreads(config::reader& r) {
  std::vector<kernel_spread> out;
  for (config::reader& e : r.elements("families")) {
    kernel_spread s;
    s.family = e.string("family");
    s.gpu = e.string("gpu");
    s.architecture = e.string("architecture");
    s.rows = e.integer("rows", {1, 1'000'000'000});
    s.low = e.number("low", config::positive);
    s.median = e.number("median", config::positive);
    s.high = e.number("high", config::positive);
    if (e.has("held_out")) s.held_out = e.boolean("held_out");
    if (s.low > s.median || s.median > s.high) e.fail("median", "must lie between low and high");
    e.done();
    out.push_back(std::move(s));
  }
  r.done();
  return out;
}

}  // namespace

stack read_stack(config::document& doc, std::string name, diagnostics& problems) {
  config::reader r(doc, problems);
  stack s;
  s.name = std::move(name);
  if (const std::string schema = r.string("schema"); schema != "nvlsim.stack/1" && !schema.empty())
    r.fail("schema", "expected \"nvlsim.stack/1\", found \"" + schema + "\"");
  r.ignore("sources");
  s.description = r.string("description");
  r.require_sources();
  s.kernels = read_kernels(r);
  if (auto k = r.find_child("kernel_spreads")) s.kernel_spreads = read_spreads(*k);
  if (auto c = r.find_child("collectives")) s.collectives = read_collectives(*c);
  if (auto t = r.find_child("training")) s.training = read_training(*t);
  if (auto i = r.find_child("inference")) s.inference = read_inference(*i);
  r.done();
  return s;
}

}  // namespace nvlsim
