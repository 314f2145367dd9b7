#include "scenario/training_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenario/lengths_reader.hpp"

namespace nvlsim {
namespace {

const std::array<std::string, 8> gemm_precisions = {"fp32", "tf32",      "bf16",  "fp16",
                                                    "fp8",  "fp8_block", "mxfp8", "nvfp4"};
const std::array<std::string, 5> schedules = {"1f1b", "interleaved", "zb_h1", "zb_v", "dualpipe"};
const std::array<std::string, 4> shardings = {"replicated", "distributed_optimizer", "fsdp", "optim_grads"};
const std::array<std::string, 2> exchanges = {"p2p", "a2a"};
const std::array<std::string, 2> dispatchers = {"alltoall", "deduplicated"};
const std::array<std::string, 3> graph_scopes = {"none", "partial", "full_iteration"};
const std::array<std::string, 3> tasks = {"pretrain", "sft", "lora"};
const std::array<std::string, 2> recompute_methods = {"uniform", "block"};
const std::array<std::string, 6> recompute_modules = {"core_attn", "layernorm",   "mlp",
                                                      "moe_act",   "mla_up_proj", "moe"};

void set_module(recompute_spec& out, std::size_t module) {
  bool* const flags[] = {&out.core_attention, &out.layernorm,   &out.mlp,
                         &out.activation,     &out.mla_up_proj, &out.moe};
  *flags[module] = true;
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
  } else if (const auto* list = v->items()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string* name = (*list)[i].string();
      const auto it =
          name ? std::find(recompute_modules.begin(), recompute_modules.end(), *name) : recompute_modules.end();
      if (it != recompute_modules.end()) set_module(out, static_cast<std::size_t>(it - recompute_modules.begin()));
      else
        r.fail("recompute", fmt::format("element {}: expected one of {}", i, fmt::join(recompute_modules, ", ")),
               name ? nearest(*name, recompute_modules) : "");
    }
  } else {
    r.fail("recompute", fmt::format("expected none, full, selective or a list of {}, found {}",
                                    fmt::join(recompute_modules, ", "), v->type_name()));
  }
  return out;
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
      static_cast<moe_dispatcher>(r.one_of_or({"moe_token_dispatcher_type", {"dispatcher"}}, dispatchers, 1));
  w.moe_overlap = r.boolean_or({"overlap_moe_expert_parallel_comm", {"moe_a2a_overlap"}}, false);
  w.fused_expert_mlp = r.boolean_or({"fused_expert_mlp", {"cutedsl_fused_grouped_mlp"}}, false);
  w.token_drop = r.boolean_or("moe_token_drop", false);
  w.expert_capacity_factor = r.find_number("moe_expert_capacity_factor", {0.01, 1000});
  w.pad_to_capacity = r.has("moe_pad_expert_input_to_capacity") && r.boolean("moe_pad_expert_input_to_capacity");
  if (w.pad_to_capacity && !w.expert_capacity_factor)
    r.fail("moe_pad_expert_input_to_capacity", "needs moe_expert_capacity_factor, which defines the capacity");
  w.graphs = static_cast<cuda_graphs>(r.one_of_or("cuda_graphs", graph_scopes, 0));
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
  w.recompute = read_recompute(r);
  read_recompute_method(r, w.recompute);
  w.offload_layers = r.integer_or({"offload_layers", {"cpu_offloading_num_layers"}}, 0, config::non_negative_int);
  w.task = static_cast<training_task>(r.one_of_or("task", tasks, 0));
  w.packed = read_packed(r, w.seq_length);
  w.token_budget = r.find_number("token_budget", config::positive);
  r.done();
  return w;
}

namespace {

value written_recompute(const recompute_spec& s) {
  if (s.full) return "full";
  const bool flags[] = {s.core_attention, s.layernorm, s.mlp, s.activation, s.mla_up_proj, s.moe};
  value modules{value::array{}};
  for (std::size_t i = 0; i < recompute_modules.size(); ++i)
    if (flags[i]) modules.items()->emplace_back(recompute_modules[i]);
  return modules.items()->empty() ? value{"none"} : modules;
}

template <class E, class Names>
const std::string& named(E x, const Names& names) {
  return names[static_cast<std::size_t>(x)];
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
  out.set("moe_token_drop", w.token_drop);
  if (w.expert_capacity_factor) out.set("moe_expert_capacity_factor", *w.expert_capacity_factor);
  if (w.pad_to_capacity) out.set("moe_pad_expert_input_to_capacity", true);
  out.set("cuda_graphs", named(w.graphs, graph_scopes));
  write_parallelism(out, w.par);
  out.set("schedule", named(w.schedule, schedules));
  write_split(out, w.split);
  out.set("data_parallel_sharding", named(w.sharding, shardings));
  out.set("num_distributed_optimizer_instances", w.sharding_groups);
  out.set("cp_comm_type", named(w.cp_exchange, exchanges));
  out.set("moe_load_imbalance", w.expert_imbalance);
  out.set("recompute", written_recompute(w.recompute));
  if (w.recompute.full) {
    out.set("recompute_method", recompute_methods[w.recompute.block ? 1 : 0]);
    out.set("recompute_num_layers", w.recompute.num_layers);
  }
  out.set("offload_layers", w.offload_layers);
  out.set("task", named(w.task, tasks));
  if (w.packed) out.set("packed_sequences", write_lengths(*w.packed));
  if (w.token_budget) out.set("token_budget", *w.token_budget);
  return out;
}

}  // namespace nvlsim
