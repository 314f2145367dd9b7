#include "nvlsim/stack/load.hpp"

#include "nvlsim/config/fields.hpp"
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
  s.rows = r.integer("rows", {1, 1'000'000}).as<int>();
  s.low = r.number("low", {-10, 10});
  s.high = r.number("high", {s.low, 10});
  r.done();
  return s;
}

}  // namespace

namespace {

using config::absent;
using config::fraction;
using config::non_negative;
using config::positive;

template <class F, class T>
void list_training(F f, T& t) {
  f("tp_exposed", t.tp_exposed, fraction);
  f("cp_exposed", t.cp_exposed, fraction);
  f("dp_interference", t.dp_interference, fraction);
  f("score_passes", t.score_passes, non_negative, absent::kept);
  f("collective_launch", t.collective_launch);
  f("pipeline_launch", t.pipeline_launch);
  f("step_host", t.step_host);
  f("host_per_operator", t.host_per_operator);
  f("wgrad_deferral_limit", t.wgrad_deferral_limit, config::range<std::int64_t>{0, 1'000'000});
  f("time_factor", t.time_factor, positive);
  f("jitter_per_doubling", t.jitter_per_doubling, fraction);
  f("optimizer_bytes", t.optimizer_bytes, non_negative);
  f("gradient_bytes", t.gradient_bytes, positive);
  f("gradient_memory_bytes", t.gradient_memory_bytes, positive);
  f("quantise_bytes_forward", t.quantise_bytes_forward, non_negative);
  f("quantise_bytes_backward", t.quantise_bytes_backward, non_negative);
  f("scan_words_per_sm", t.scan_words_per_sm, non_negative, absent::told);
  f("reserve", t.reserve);
  f("communicator_buffers", t.communicator_buffers, non_negative, absent::kept);
  f("fragmentation", t.fragmentation, fraction, absent::told);
  f("workspace_bytes_per_layer_param", t.workspace_bytes_per_layer_param, non_negative);
  f("workspace_bytes_per_head_param", t.workspace_bytes_per_head_param, non_negative);
}

template <class F, class T>
void list_experts(F f, T& t) {
  constexpr config::range<double> exposed{0, 4}, port{1e-3, 1};
  f("time_factor", t.moe_time_factor, positive);
  f("ep_exposed", t.ep_exposed, exposed);
  f("ep_exposed_overlapped", t.ep_exposed_overlapped, exposed);
  f("ep_nvlink_share", t.ep_nvlink_share, port);
  f("ep_nic_share", t.ep_nic_share, port);
  f("ep_combine_ratio", t.ep_combine_ratio, positive);
  f("ep_launch", t.ep_launch);
  f("ep_buffers", t.ep_buffers, non_negative, absent::kept);
  f("expert_output_bytes", t.expert_output_bytes, config::range<double>{0, 4}, absent::told);
  f("forced_in_turn", t.forced_in_turn, absent::kept);
  f("host_per_expert", t.moe_host_per_expert);
  f("host_per_cast_expert", t.moe_host_per_cast_expert, non_negative, absent::kept);
  f("host_of_shared_experts", t.moe_host_of_shared_experts, non_negative, absent::kept);
  f("unfused_router_launches", t.unfused_router_launches, non_negative, absent::kept);
  f("host_per_node", t.moe_host_per_node, non_negative, absent::kept);
  f("unfused_activation_passes", t.unfused_activation_passes, non_negative);
  f("fused_activation_share", t.fused_activation_share, fraction);
}

}  // namespace

training_profile read_training(config::reader& r) {
  training_profile t;
  list_training(config::field_reader(r), t);
  t.error_90 = r.number("error_90", fraction);
  if (r.has("residuals"))
    for (config::reader& e : r.elements("residuals")) t.residuals.push_back(read_residuals(e));
  if (auto m = r.find_child("moe")) {
    list_experts(config::field_reader(*m), t);
    t.moe_error_90 = m->number("error_90", fraction);
    m->done();
  }
  r.done();
  return t;
}

value write_training(const training_profile& t) {
  value out{value::object{{"error_90", t.error_90}}}, moe{value::object{{"error_90", t.moe_error_90}}};
  list_training(config::field_writer(out), t);
  list_experts(config::field_writer(moe), t);
  out.set("moe", std::move(moe));
  return out;
}

namespace {

/// `"kernel_spreads"`: {"kind", "source", "families": [{"family", "gpu", "architecture", "rows", "low", "median",
/// "high"}]}.
std::vector<kernel_spread> read_kernel_spreads(config::reader& r) {
  std::vector<kernel_spread> out;
  for (config::reader& e : r.elements("families")) {
    kernel_spread s;
    s.family = e.string("family");
    s.gpu = e.string("gpu");
    s.architecture = e.string("architecture");
    s.rows = e.integer("rows", {1, 1'000'000'000});
    s.low = e.number("low", error_ratio);
    s.median = e.number("median", error_ratio);
    s.high = e.number("high", error_ratio);
    if (e.has("held_out")) s.held_out = e.boolean("held_out");
    if (s.low > s.median || s.median > s.high) e.fail("median", "must lie between low and high");
    e.done();
    out.push_back(std::move(s));
  }
  r.done();
  return out;
}

}  // namespace

namespace {

void read_section(config::reader& r, std::string_view section, stack& into) {
  if (section == "kernels") {
    into.kernels = read_kernels(r);
  } else if (auto s = r.find_child(section); !s) {
    return;
  } else if (section == "kernel_spreads") {
    into.kernel_spreads = read_kernel_spreads(*s);
  } else if (section == "collectives") {
    into.collectives = read_collectives(*s);
  } else if (section == "training") {
    into.training = read_training(*s);
  } else {
    into.inference = read_inference(*s);
  }
}

}  // namespace

stack read_stack(config::document& doc, std::string name, diagnostics& problems, const std::string& at) {
  config::reader r(doc, problems);
  stack s;
  s.name = std::move(name);
  if (const std::string schema = r.string("schema"); schema != "nvlsim.stack/1" && !schema.empty())
    r.fail("schema", "expected \"nvlsim.stack/1\", found \"" + schema + "\"");
  r.ignore("sources");
  s.description = r.string("description");
  r.require_sources(at);
  for (const std::string_view section : stack_sections) read_section(r, section, s);
  r.done();
  return s;
}

void read_stack_section(config::document& doc, std::string_view section, stack& into, diagnostics& problems,
                        const std::string& at) {
  config::reader r(doc, problems);
  r.require_sources(at);
  read_section(r, section, into);
}

value write_stack(const stack& s) {
  value out{
      value::object{{"kernels", write_kernels(s.kernels)}, {"collectives", write_collectives(s.collectives)}}};
  if (s.training) out.set("training", write_training(*s.training));
  if (s.inference) out.set("inference", write_inference(*s.inference));
  return out;
}

}  // namespace nvlsim
