#include "scenario/training_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenario/enum_names.hpp"
#include "scenario/lengths_reader.hpp"

namespace nvlsim {
namespace {

const std::array<std::string, 8> gemm_precisions = {"fp32", "tf32",      "bf16",  "fp16",
                                                    "fp8",  "fp8_block", "mxfp8", "nvfp4"};
const std::array<std::string, 5> schedules = {"1f1b", "interleaved", "zb_h1", "zb_v", "dualpipe"};
const std::array<std::string, 4> shardings = {"replicated", "distributed_optimizer", "fsdp", "optim_grads"};
const std::array<std::string, 2> exchanges = {"p2p", "a2a"};
const std::array<std::string, 3> dispatchers = {"alltoall", "deduplicated", "hybridep"};
const std::array<std::string, 3> graph_scopes = {"none", "partial", "full_iteration"};
const std::array<std::string, 5> graphed_modules = {"attn", "mamba", "mlp", "moe_router", "moe_preprocess"};
const std::array<std::string, 3> tasks = {"pretrain", "sft", "lora"};
const std::array<std::string, 2> recompute_methods = {"uniform", "block"};
const std::array<std::string, 8> recompute_modules = {
    "core_attn", "layernorm", "mlp", "moe_act", "mla_up_proj", "moe", "shared_experts", "mhc"};
const std::array<std::string, 7> offload_modules = {"attn_norm", "qkv_linear", "core_attn", "attn_proj",
                                                    "mlp_norm",  "expert_fc1", "moe_act"};
const std::array<std::string, 4> lora_targets = {"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"};
const std::array<std::string, 2> optimizers = {"adam", "muon"};
const std::array<std::string, 4> state_formats = {"fp32", "bf16", "fp16", "fp8"};
constexpr std::array<double, 4> state_bytes = {4, 2, 2, 1};

/// Modules in the order of their names.
template <class Spec>
auto flags_of(Spec& s) requires std::is_same_v<std::remove_const_t<Spec>, recompute_spec> {
  return std::array{&s.core_attention, &s.layernorm,        &s.mlp, &s.activation, &s.mla_up_proj, &s.moe,
                    &s.shared_experts, &s.hyper_connections};
}
template <class Spec>
auto flags_of(Spec& s) requires std::is_same_v<std::remove_const_t<Spec>, offload_spec> {
  return std::array{&s.attn_norm, &s.qkv_linear, &s.core_attn, &s.attn_proj,
                    &s.mlp_norm,  &s.expert_fc1, &s.moe_act};
}
template <class Spec>
auto flags_of(Spec& s) requires std::is_same_v<std::remove_const_t<Spec>, lora_spec> {
  return std::array{&s.qkv, &s.proj, &s.fc1, &s.fc2};
}

/// Sets the flag of every name of a list.
template <std::size_t n>
void read_flags(config::reader& r, const char* key, const std::array<std::string, n>& names,
                const std::array<bool*, n>& flags) {
  const value::array& list = *r.raw(key)->items();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string* name = list[i].string();
    const auto it = name ? std::find(names.begin(), names.end(), *name) : names.end();
    if (it != names.end()) *flags[static_cast<std::size_t>(it - names.begin())] = true;
    else
      r.fail(key, fmt::format("element {}: expected one of {}", i, fmt::join(names, ", ")),
             name ? nearest(*name, names) : "");
  }
}

template <std::size_t n>
value written_flags(const std::array<std::string, n>& names, const std::array<const bool*, n>& flags) {
  value out{value::array{}};
  for (std::size_t i = 0; i < n; ++i)
    if (*flags[i]) out.items()->emplace_back(names[i]);
  return out;
}

/// Method of full recompute: units of layers, or a number of layers per chunk.
void read_recompute_method(config::reader& r, recompute_spec& out) {
  for (const char* k : {"recompute_method", "recompute_num_layers"})
    if (r.has(k) && !out.full) r.fail(k, "needs recompute \"full\"");
  if (r.has("recompute_method")) out.block = r.one_of("recompute_method", recompute_methods) == 1;
  const auto layers = r.find_integer("recompute_num_layers", {1, 1 << 20});
  if (out.block && !layers)
    r.fail("recompute_method",
           "block needs recompute_num_layers, the number of recomputed layers per model chunk");
  out.num_layers = layers.value_or(1);
}

/// "none", "full", "selective" (core attention, Megatron's default module) or a list of modules.
recompute_spec read_recompute(config::reader& r) {
  recompute_spec out;
  const value* v = r.raw("recompute");
  if (!v) {
    r.string_or("recompute", "none");
    return out;
  }
  static const std::array<std::string, 3> words = {"none", "full", "selective"};
  if (v->string()) {
    const std::size_t word = r.one_of("recompute", words);
    out.full = word == 1;
    out.core_attention = word == 2;
  } else if (v->items()) {
    read_flags(r, "recompute", recompute_modules, flags_of(out));
  } else {
    r.fail("recompute", fmt::format("expected none, full, selective or a list of {}, found {}",
                                    fmt::join(recompute_modules, ", "), v->type_name()));
  }
  return out;
}

/// A list of modules; empty if it is absent.
offload_spec read_offload(config::reader& r) {
  offload_spec out;
  const value* v = r.raw("offload_modules");
  if (!v || v->is_null()) return out;
  if (v->items()) read_flags(r, "offload_modules", offload_modules, flags_of(out));
  else
    r.fail("offload_modules",
           fmt::format("expected a list of {}, found {}", fmt::join(offload_modules, ", "), v->type_name()));
  return out;
}

lora_spec read_lora(config::reader& r, training_task task) {
  lora_spec out;
  for (const char* k : {"lora_rank", "lora_target_modules"})
    if (r.has(k) && task != training_task::lora) r.fail(k, "needs task \"lora\"");
  out.rank = r.find_integer("lora_rank", {1, 1 << 16}).value_or(0);
  const value* v = r.raw("lora_target_modules");
  if (!v || v->is_null()) return out;
  if (out.rank == 0) r.fail("lora_target_modules", "needs lora_rank");
  out = {out.rank, false, false, false, false};
  if (v->items()) read_flags(r, "lora_target_modules", lora_targets, flags_of(out));
  else
    r.fail("lora_target_modules",
           fmt::format("expected a list of {}, found {}", fmt::join(lora_targets, ", "), v->type_name()));
  return out;
}

/// Megatron-Core's names of what the optimizer keeps, and in which format.
optimizer_spec read_optimizer(config::reader& r) {
  optimizer_spec out;
  out.kind = static_cast<optimizer_kind>(r.one_of_or("optimizer", optimizers, 0));
  const auto moment = [&](const char* key) {
    return r.has(key) ? std::optional(state_bytes[r.one_of(key, state_formats)]) : std::nullopt;
  };
  out.master = state_bytes[r.one_of_or("main_params_dtype", state_formats, 0)];
  out.first_moment = moment("exp_avg_dtype");
  out.second_moment = moment("exp_avg_sq_dtype");
  if (r.has("grad_reduce_in_fp32")) out.fp32_gradients = r.boolean("grad_reduce_in_fp32");
  return out;
}

/// Megatron-Core's `cuda_graph_scope` of partial graphs. The router's graph holds what prepares the dispatch.
void read_graphs(config::reader& r, training_workload& w) {
  w.graphs = static_cast<cuda_graphs>(r.one_of_or("cuda_graphs", graph_scopes, 0));
  const value* v = r.raw("cuda_graph_scope");
  if (!v) return;
  if (w.graphs != cuda_graphs::partial) r.fail("cuda_graph_scope", "needs cuda_graphs \"partial\"");
  if (!v->items())
    return r.fail("cuda_graph_scope", fmt::format("expected a list of {}, found {}",
                                                  fmt::join(graphed_modules, ", "), v->type_name()));
  w.graphed = {false, false, false, false};
  bool preprocess = false;
  read_flags(r, "cuda_graph_scope", graphed_modules,
             {&w.graphed.attention, &w.graphed.scans, &w.graphed.mlp, &w.graphed.router, &preprocess});
  w.graphed.router |= preprocess;
}

/// Linear layers that stay in other formats than the workload's.
kept_formats read_kept(config::reader& r) {
  kept_formats k;
  constexpr config::range<std::int64_t> layers{0, 1 << 20};
  k.first_layers = r.integer_or("num_layers_at_start_in_bf16", 0, layers);
  k.last_layers = r.integer_or("num_layers_at_end_in_bf16", 0, layers);
  k.predictors = r.boolean_or("keep_mtp_spec_in_bf16", false);
  const auto format = [&](const char* name, std::optional<precision>& out) {
    if (r.has(name)) out = precision_by_name(gemm_precisions[r.one_of(name, gemm_precisions)]).value();
  };
  format("attention_precision", k.attention);
  format("mamba_output_precision", k.scan_output);
  format("latent_precision", k.latent);
  return k;
}

/// Sequences that share a window without attending to each other.
std::optional<token_lengths> read_packed(config::reader& r, std::int64_t window) {
  auto lengths = r.find_child("packed_sequences");
  if (!lengths) return {};
  const token_lengths l = read_lengths(*lengths);
  if (l.mean > static_cast<double>(window))
    r.fail(
        "packed_sequences",
        fmt::format("the mean sequence length of {:g} tokens exceeds the window, seq_length {}", l.mean, window));
  return l;
}

pipeline_split read_split(config::reader& r) {
  pipeline_split s;
  if (const auto text = r.find_string("pipeline_model_parallel_layout")) {
    std::string why;
    if (auto layout = parse_pipeline_layout(*text, why)) s.layout = std::move(*layout);
    else r.fail("pipeline_model_parallel_layout", why);
  }
  constexpr config::range<std::int64_t> layers{0, 1 << 20};  // 0: as many as the others
  s.first = r.find_integer({"num_layers_in_first_pipeline_stage", {"decoder_first_pipeline_num_layers"}}, layers)
                .value_or(0);
  s.last = r.find_integer({"num_layers_in_last_pipeline_stage", {"decoder_last_pipeline_num_layers"}}, layers)
               .value_or(0);
  if (r.has("account_for_embedding_in_pipeline_split"))
    s.embedding = r.boolean("account_for_embedding_in_pipeline_split");
  if (r.has("account_for_loss_in_pipeline_split")) s.loss = r.boolean("account_for_loss_in_pipeline_split");
  return s;
}

/// Images of a sample of so many tokens, theirs included.
std::optional<sample_images> read_images(config::reader& r, double sample) {
  auto given = r.find_child("images");
  if (!given) return {};
  sample_images out;
  out.count = given->number("count", config::range<double>{0, 1e6});
  out.tokens_each = given->integer("tokens", {1, std::int64_t{1} << 30});
  given->done();
  if (out.count * static_cast<double>(out.tokens_each) > sample)
    r.fail("images",
           fmt::format("{:g} images of {} tokens exceed the sample of {:g}", out.count, out.tokens_each, sample));
  return out;
}

}  // namespace

training_workload read_training_workload(config::reader& r) {
  training_workload w;
  r.ignore("kind");
  w.seq_length = r.integer({"seq_length", {"sequence_length"}}, {1, std::int64_t{1} << 30});
  w.global_batch_size = r.integer({"global_batch_size", {"gbs"}}, {1, std::int64_t{1} << 30});
  w.micro_batch_size = r.integer_or({"micro_batch_size", {"mbs"}}, 1, {1, 1 << 20});
  w.gemm_precision = precision_by_name(gemm_precisions[r.one_of("precision", gemm_precisions)]).value();
  w.fp8_attention = r.boolean_or({"fp8_attention", {"fp8_dot_product_attention"}}, false);
  w.dispatcher =
      static_cast<moe_dispatcher>(r.one_of_or({"moe_token_dispatcher_type", {"dispatcher"}}, dispatchers, 2));
  w.moe_overlap = r.boolean_or({"overlap_moe_expert_parallel_comm", {"moe_a2a_overlap"}}, false);
  w.fused_expert_mlp = r.boolean_or({"fused_expert_mlp", {"cutedsl_fused_grouped_mlp"}}, false);
  if (r.has("moe_router_fusion")) w.router_fusion = r.boolean("moe_router_fusion");
  w.token_drop = r.boolean_or("moe_token_drop", false);
  w.expert_capacity_factor = r.find_number("moe_expert_capacity_factor", {0.01, 1000});
  w.pad_to_capacity = r.has("moe_pad_expert_input_to_capacity") && r.boolean("moe_pad_expert_input_to_capacity");
  if (w.pad_to_capacity && !w.expert_capacity_factor)
    r.fail("moe_pad_expert_input_to_capacity", "needs moe_expert_capacity_factor, which defines the capacity");
  w.kept = read_kept(r);
  read_graphs(r, w);
  w.par.tp = r.integer_or({"tp", {"tensor_model_parallel_size"}}, 1, {1, 1 << 20});
  w.par.pp = r.integer_or({"pp", {"pipeline_model_parallel_size"}}, 1, {1, 1 << 20});
  w.par.vp = r.integer_or({"vp", {"virtual_pipeline_model_parallel_size"}}, 1, {1, 1 << 20});
  w.par.cp = r.integer_or({"cp", {"context_parallel_size"}}, 1, {1, 1 << 20});
  w.par.dp = r.integer({"dp", {"data_parallel_size"}}, {1, 1 << 20});
  if (const double gpus = static_cast<double>(w.par.tp * w.par.pp) * static_cast<double>(w.par.cp * w.par.dp);
      gpus > max_gpus) {
    r.fail("", fmt::format("tp x pp x cp x dp exceeds {:.0f} GPUs", max_gpus));
    w.par = {};
  }
  w.par.ep = r.integer_or({"ep", {"expert_model_parallel_size"}}, 1, {1, 1 << 20});
  w.par.etp = r.integer_or({"etp", {"expert_tensor_parallel_size"}}, w.par.ep == 1 ? w.par.tp : 1, {1, 1 << 20});
  w.par.sequence_parallel = r.boolean_or("sequence_parallel", w.par.tp > 1) && w.par.tp > 1;
  w.schedule = static_cast<pipeline_schedule>(r.one_of_or("schedule", schedules, w.par.vp > 1 ? 1 : 0));
  w.split = read_split(r);
  w.sharding = static_cast<data_parallel_sharding>(r.one_of_or("data_parallel_sharding", shardings, 1));
  w.sharding_groups = r.integer_or("num_distributed_optimizer_instances", 1, {1, 1 << 20});
  w.cp_exchange = static_cast<context_exchange>(r.one_of_or("cp_comm_type", exchanges, 0));
  w.expert_imbalance = r.number_or("moe_load_imbalance", 1, {1, 1000});
  w.forced_balance = r.boolean_or("moe_router_force_load_balancing", true);
  w.expert_skew = r.find_number("moe_expert_skew", {0, 1000});
  if (w.expert_skew && w.forced_balance)
    r.fail("moe_expert_skew", "needs \"moe_router_force_load_balancing\": false; forced balance has no skew");
  w.recompute = read_recompute(r);
  read_recompute_method(r, w.recompute);
  w.offload_layers = r.integer_or({"offload_layers", {"cpu_offloading_num_layers"}}, 0, config::non_negative_int);
  w.offload = read_offload(r);
  if (w.offload.any() && w.offload_layers > 0)
    r.fail("offload_modules", "offload_layers moves whole layers; give one of them");
  if (r.has("activation_func_fp8_input_store"))
    w.fp8_activation_inputs = r.boolean("activation_func_fp8_input_store");
  static const config::key fp8_params = {"fp8_param_gather", {"fp8_param"}};
  if (r.has(fp8_params)) w.fp8_params = r.boolean(fp8_params);
  if (w.fp8_params.value_or(false) && bytes_per_element(w.gemm_precision) >= 2)
    r.fail("fp8_param_gather", "needs a precision of 8 bits");
  w.optimizer = read_optimizer(r);
  w.task = static_cast<training_task>(r.one_of_or("task", tasks, 0));
  w.lora = read_lora(r, w.task);
  w.freeze_towers = r.boolean_or("freeze_vision_model", false);
  w.freeze_language = r.boolean_or("freeze_language_model", false);
  w.deterministic = r.boolean_or({"deterministic", {"deterministic_mode"}}, false);
  w.packed = read_packed(r, w.seq_length);
  w.images = read_images(r, mean_length(sequences_of(w)));
  w.token_budget = r.find_number("token_budget", config::positive);
  r.done();
  return w;
}

namespace {

value written_recompute(const recompute_spec& s) {
  if (s.full) return "full";
  value modules = written_flags(recompute_modules, flags_of(s));
  return modules.items()->empty() ? value{"none"} : modules;
}

std::string_view format_of(double bytes) { return state_formats[bytes >= 4 ? 0 : bytes >= 2 ? 1 : 3]; }

/// What departs from the defaults.
void write_memory_settings(value& out, const training_workload& w) {
  if (w.offload.any()) out.set("offload_modules", written_flags(offload_modules, flags_of(w.offload)));
  out.set("activation_func_fp8_input_store", keeps_fp8_inputs(w));
  if (w.fp8_params) out.set("fp8_param_gather", *w.fp8_params);
  out.set("optimizer", optimizers[static_cast<std::size_t>(w.optimizer.kind)]);
  out.set("main_params_dtype", format_of(w.optimizer.master));
  out.set("exp_avg_dtype", format_of(moment_bytes(w).first));
  out.set("exp_avg_sq_dtype", format_of(moment_bytes(w).second));
  if (w.optimizer.fp32_gradients) out.set("grad_reduce_in_fp32", *w.optimizer.fp32_gradients);
  if (w.lora.rank > 0) {
    out.set("lora_rank", w.lora.rank);
    out.set("lora_target_modules", written_flags(lora_targets, flags_of(w.lora)));
  }
  if (w.images) out.set("images", value::object{{"count", w.images->count}, {"tokens", w.images->tokens_each}});
  out.set("freeze_vision_model", w.freeze_towers);
  if (w.freeze_language) out.set("freeze_language_model", true);
  if (w.deterministic) out.set("deterministic", true);
}

void write_split(value& out, const pipeline_split& s) {
  std::string layout;
  for (const std::string& chunk : s.layout) layout += (layout.empty() ? "" : "|") + chunk;
  if (!layout.empty()) out.set("pipeline_model_parallel_layout", layout);
  if (s.first > 0) out.set("num_layers_in_first_pipeline_stage", s.first);
  if (s.last > 0) out.set("num_layers_in_last_pipeline_stage", s.last);
  if (s.embedding) out.set("account_for_embedding_in_pipeline_split", *s.embedding);
  if (s.loss) out.set("account_for_loss_in_pipeline_split", *s.loss);
}

void write_kept(value& out, const kept_formats& k) {
  out.set("num_layers_at_start_in_bf16", k.first_layers);
  out.set("num_layers_at_end_in_bf16", k.last_layers);
  out.set("keep_mtp_spec_in_bf16", k.predictors);
  for (const auto& [name, format] : {std::pair{"attention_precision", k.attention},
                                     {"mamba_output_precision", k.scan_output},
                                     {"latent_precision", k.latent}})
    if (format) out.set(name, nvlsim::name(*format));
}

void write_parallelism(value& out, const parallelism& p) {
  for (const auto& [name, size] : {std::pair{"tp", p.tp},
                                   {"pp", p.pp},
                                   {"vp", p.vp},
                                   {"cp", p.cp},
                                   {"dp", p.dp},
                                   {"ep", p.ep},
                                   {"etp", p.etp}})
    out.set(name, size);
  out.set("sequence_parallel", p.sequence_parallel);
}

}  // namespace

value write_training_workload(const training_workload& w) {
  value out{value::object{{"kind", "training"}}};
  out.set("seq_length", w.seq_length);
  out.set("global_batch_size", w.global_batch_size);
  out.set("micro_batch_size", w.micro_batch_size);
  out.set("precision", name(w.gemm_precision));
  out.set("fp8_attention", w.fp8_attention);
  out.set("moe_token_dispatcher_type", named(w.dispatcher, dispatchers));
  out.set("overlap_moe_expert_parallel_comm", w.moe_overlap);
  out.set("fused_expert_mlp", w.fused_expert_mlp);
  if (w.router_fusion) out.set("moe_router_fusion", *w.router_fusion);
  out.set("moe_token_drop", w.token_drop);
  if (w.expert_capacity_factor) out.set("moe_expert_capacity_factor", *w.expert_capacity_factor);
  if (w.pad_to_capacity) out.set("moe_pad_expert_input_to_capacity", true);
  write_kept(out, w.kept);
  out.set("cuda_graphs", named(w.graphs, graph_scopes));
  if (w.graphs == cuda_graphs::partial)
    out.set("cuda_graph_scope",
            written_flags(graphed_modules, {&w.graphed.attention, &w.graphed.scans, &w.graphed.mlp,
                                            &w.graphed.router, &w.graphed.router}));
  write_parallelism(out, w.par);
  out.set("schedule", named(w.schedule, schedules));
  write_split(out, w.split);
  out.set("data_parallel_sharding", named(w.sharding, shardings));
  out.set("num_distributed_optimizer_instances", w.sharding_groups);
  out.set("cp_comm_type", named(w.cp_exchange, exchanges));
  out.set("moe_load_imbalance", w.expert_imbalance);
  if (!w.forced_balance) out.set("moe_router_force_load_balancing", false);
  if (w.expert_skew) out.set("moe_expert_skew", *w.expert_skew);
  out.set("recompute", written_recompute(w.recompute));
  if (w.recompute.full) {
    out.set("recompute_method", recompute_methods[w.recompute.block ? 1 : 0]);
    out.set("recompute_num_layers", w.recompute.num_layers);
  }
  out.set("offload_layers", w.offload_layers);
  write_memory_settings(out, w);
  out.set("task", named(w.task, tasks));
  if (w.packed) out.set("packed_sequences", write_lengths(*w.packed));
  if (w.token_budget) out.set("token_budget", *w.token_budget);
  return out;
}

}  // namespace nvlsim
