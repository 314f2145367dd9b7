#include "nvlsim/measurements/training_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "nvlsim/analysis/training_metrics.hpp"
#include "nvlsim/training/idle_settings.hpp"

namespace nvlsim {
namespace {

/// Frameworks other than Megatron have a stack of their own if one of their steps is known.
struct framework_stack {
  std::string_view framework, stack;
};
constexpr std::array<framework_stack, 8> framework_stacks = {{{"torchtitan", "pytorch-fsdp-torchtitan"},
                                                              {"automodel", "pytorch-fsdp-automodel"},
                                                              {"llm-foundry", "pytorch-fsdp-llm-foundry"},
                                                              {"fms-fsdp", "pytorch-fsdp-fms-fsdp"},
                                                              {"hf-transformers", "pytorch-fsdp-transformers"},
                                                              {"swift-deepspeed", "pytorch-fsdp-transformers"},
                                                              {"internevo", "internevo-0.2"},
                                                              {"deepspeed", "megatron-lm-deepspeed"}}};

/// Whether the row's framework has a stack, with a band of its own.
bool known_framework(const csv_row& row) {
  return row.blank("framework") || row["framework"] == "megatron" ||
         std::any_of(framework_stacks.begin(), framework_stacks.end(),
                     [&](const framework_stack& f) { return f.framework == row["framework"]; });
}

/// "LoRA rank 8 on qkv and proj". Without targets all four, and without a rank in a row of Megatron-Bridge 32,
/// which are its defaults (peft/lora.py); elsewhere none is known.
lora_spec adapters_of(const csv_row& row) {
  const std::string& notes = row["notes"];
  lora_spec out;
  if (row["release"].starts_with("megatron-bridge")) out.rank = 32;
  constexpr std::string_view words = "LoRA rank ";
  const std::size_t at = notes.find(words);
  if (at == std::string::npos) return out;
  const char* digits = notes.c_str() + at + words.size();
  std::from_chars(digits, notes.c_str() + notes.size(), out.rank);
  if (notes.find("on qkv and proj", at) != std::string::npos) out.fc1 = out.fc2 = false;
  return out;
}

/// The stack for a training release. Releases without their own stack use the nearest one; rows without a release
/// use the papers' stack.
std::string stack_of(const csv_row& row) {
  const std::string& release = row["release"];
  const auto other = std::find_if(framework_stacks.begin(), framework_stacks.end(),
                                  [&](const framework_stack& f) { return f.framework == row["framework"]; });
  if (other != framework_stacks.end()) return std::string(other->stack);
  for (const char* year_month : {"24.01", "24.03", "24.05", "24.07"})
    if (release.starts_with(std::string("nemo ") + year_month)) return std::string("nemo-") + year_month;
  if (row["notes"].find("NeMo 25.09 stack") != std::string::npos) return "mlperf-training-v5.1";
  if (release.starts_with("MLPerf ")) return "mlperf-training-" + release.substr(7);
  if (release.find("v25.05") != std::string::npos) return "nemo-25.05";
  if (row["source"].starts_with("NVIDIA/dgxc") || release.find("v25.04") != std::string::npos) return "nemo-25.04";
  if (release.starts_with("25.")) return "megatron-bridge-25.11";
  if (release.starts_with("26.02") || row["source"].find("2603.07685") != std::string::npos)
    return "megatron-bridge-26.02";
  if (release.starts_with("26.04")) return "megatron-bridge-26.04";
  if (!release.empty()) return "megatron-bridge-26.06";
  // Papers with A100 and older GPUs ran Megatron-LM before it had fused attention.
  const bool early = row["system"].starts_with("a100") || row["system"].starts_with("v100");
  return early ? "megatron-lm-2022" : "megatron-lm-papers";
}

struct precision_name {
  std::string_view column;
  precision p;
};
constexpr std::array<precision_name, 9> precision_names = {{{"BF16", precision::bf16},
                                                            {"FP16", precision::bf16},
                                                            {"FP8", precision::fp8},
                                                            {"FP8-CS", precision::fp8},
                                                            {"FP8-DS", precision::fp8},
                                                            {"FP8-SC", precision::fp8},
                                                            {"MXFP8", precision::mxfp8},
                                                            {"FP8-MX", precision::mxfp8},
                                                            {"NVFP4", precision::nvfp4}}};

class training_row_reader {
 public:
  training_row_reader(const csv_row& row, training_row& out) : row_(row), out_(out) {}

  void note(std::string text) {
    std::string& notes = out_.record.notes;
    notes += (notes.empty() ? "" : "; ") + std::move(text);
  }
  void defaulted(std::string text) {
    note(std::move(text));
    out_.defaulted_layout = true;
  }
  bool has(std::string_view column, std::string_view word) const {
    return row_[column].find(word) != std::string::npos;
  }

  /// Sequences of 4,096 tokens, and enough micro-batches to fill a pipeline, where the source is silent.
  void read_size(std::int64_t gpus) {
    training_workload& w = out_.workload;
    const auto seq = row_.integer("seq_len"), batch = row_.integer("global_batch");
    w.seq_length = seq.value_or(4096);
    if (!seq) defaulted("sequence length not stated: 4096 assumed");
    if (batch) {
      w.global_batch_size = *batch;
      return;
    }
    const std::int64_t pp = row_.integer("pp").value_or(1), tp = row_.integer("tp").value_or(1),
                       replicas = std::max<std::int64_t>(1, gpus / std::max<std::int64_t>(1, pp * tp));
    w.global_batch_size =
        row_.integer("dp").value_or(replicas) * row_.integer("micro_batch").value_or(1) * (pp > 1 ? 8 * pp : 1);
    defaulted(fmt::format("global batch not stated: {} assumed", w.global_batch_size));
  }

  void read_precision() {
    precision& p = out_.workload.gemm_precision;
    const std::string& cell = row_["precision"];
    const auto it = std::find_if(precision_names.begin(), precision_names.end(),
                                 [&](const auto& n) { return n.column == cell; });
    if (it != precision_names.end()) {
      p = it->p;
    } else if (cell.starts_with("FP8")) {
      p = precision::fp8;
    } else {
      // Primus trains in BF16 where a configuration does not ask for FP8. [assumed]
      const bool fp4 = has("suspect", "FP8 does not"), half = has("framework", "primus");
      p = half ? precision::bf16 : fp4 ? precision::nvfp4 : precision::fp8;
      defaulted(fmt::format("precision not stated: {} assumed", half ? "BF16" : fp4 ? "NVFP4" : "FP8"));
    }
    const gpu_spec& gpu = out_.hardware.gpu;
    if (!gpu.dense_peak(precision::fp8)) p = precision::bf16;
    else if (!gpu.dense_peak(precision::nvfp4) && p == precision::mxfp8)
      p = precision::fp8;  // GPUs before Blackwell have no MX formats
  }

  void read_layout(std::int64_t gpus) {
    training_workload& w = out_.workload;
    parallelism& par = w.par;
    for (const char* size : {"gpus", "tp", "pp", "vp", "cp", "ep", "etp", "micro_batch"})
      if (const auto n = row_.integer(size); n && (*n < 1 || *n > (std::int64_t{1} << 20)))
        throw cell_error(fmt::format("{}: {} is not a positive count", size, *n));
    par.tp = row_.integer("tp").value_or(0);
    par.pp = row_.integer("pp").value_or(0);
    par.cp = row_.integer("cp").value_or(1);
    if (par.tp == 0 || par.pp == 0) {
      assume_layout(gpus);
      defaulted(fmt::format("layout not stated: tp {} pp {} cp {} assumed", par.tp, par.pp, par.cp));
    }
    const std::int64_t model_parallel = par.tp * par.pp * par.cp;
    if (gpus % model_parallel != 0)
      throw cell_error(fmt::format("gpus: {} is not divisible by tp x pp x cp = {}", gpus, model_parallel));
    par.dp = gpus / model_parallel;
    par.ep = row_.integer("ep").value_or(1);
    par.etp = row_.integer("etp").value_or(default_etp(par));
    par.sequence_parallel = par.tp > 1 && row_["sequence_parallel"] != "no";
    const auto micro = row_.integer("micro_batch");
    w.micro_batch_size = micro.value_or(has("suspect", "micro-batch unknown, 4 fits") ? 4 : 1);
    if (!micro && w.task != training_task::lora)
      defaulted(fmt::format("micro-batch not stated: {} assumed", w.micro_batch_size));
    read_model_chunks();
  }

  /// Megatron-Core's default is TP, and NeMo's recipes keep it. Megatron-Bridge recipes set 1.
  std::int64_t default_etp(const parallelism& par) {
    if (par.ep == 1) return par.tp;
    const bool left =
        out_.software->name.starts_with("nemo-") && par.tp * par.cp * par.dp % (par.ep * par.tp) == 0;
    if (!left || par.tp == 1) return 1;
    note(fmt::format("expert tensor parallelism not stated: etp {}, the Megatron-Core default", par.tp));
    return par.tp;
  }

  /// Assumes the smallest tensor parallel size that fits in memory, and context parallelism if there are more GPUs
  /// than sequences.
  void assume_layout(std::int64_t gpus) {
    training_workload& w = out_.workload;
    parallelism& par = w.par;
    const std::int64_t spare = gpus / std::max<std::int64_t>(1, w.global_batch_size);
    par = {};
    if (parameters(*out_.net) > 100'000'000'000) {
      par.tp = 4, par.pp = 8;
      return;
    }
    for (par.tp = 1; par.tp < 8; par.tp *= 2) {
      par.cp = std::max<std::int64_t>(1, spare / par.tp);
      par.dp = std::max<std::int64_t>(1, gpus / (par.tp * par.cp));
      par.etp = par.tp;
      par.sequence_parallel = par.tp > 1;
      w.place.gpus_per_domain = default_segment(out_.hardware, gpus);
      if (!training_memory(out_.hardware, *out_.software, *out_.net, w).refused()) return;
    }
    par.cp = std::max<std::int64_t>(1, spare / par.tp);
  }

  void read_model_chunks() {
    parallelism& par = out_.workload.par;
    const std::int64_t micro_batches =
        std::max<std::int64_t>(1, out_.workload.global_batch_size / (out_.workload.micro_batch_size * par.dp));
    const auto layers = static_cast<std::int64_t>(out_.net->layers.size());
    const auto stated = row_.integer("vp");
    const bool wrong = has("suspect", "treat VP as unknown");
    par.vp = stated.value_or(1);
    if (par.pp == 1) {
      par.vp = 1;
    } else if (!stated || wrong) {
      const std::int64_t by_layer = std::max<std::int64_t>(1, layers / par.pp);
      par.vp = micro_batches < 4 * par.pp ? by_layer : std::max<std::int64_t>(1, by_layer / 2);
      if (micro_batches % par.pp != 0) par.vp = 1;  // interleaving needs micro-batches in groups of PP
      defaulted(fmt::format("model chunks {}: vp {} assumed", wrong ? "misprinted" : "not stated", par.vp));
    }
    out_.workload.schedule = par.vp > 1 ? pipeline_schedule::interleaved : pipeline_schedule::one_f_one_b;
  }

  void read_rest() {
    training_workload& w = out_.workload;
    const std::string& recompute = row_["activation_recompute"];
    w.recompute.full = recompute == "full";
    w.recompute.core_attention = has("activation_recompute", "core");
    w.recompute.layernorm = has("activation_recompute", "layernorm");
    w.recompute.mlp =
        recompute == "selective:mlp" || has("activation_recompute", "+mlp") || has("activation_recompute", "mlp+");
    w.recompute.mla_up_proj = has("activation_recompute", "mla_up_proj");
    w.recompute.moe = has("activation_recompute", "moe+");
    w.recompute.activation = has("activation_recompute", "moe_act");
    const std::string& sharding = row_["dp_sharding"];
    w.sharding = sharding.find("replicated") != std::string::npos ? data_parallel_sharding::replicated
                 : sharding.find("fsdp") != std::string::npos || sharding.find("FSDP") != std::string::npos ||
                         sharding.find("FULL_SHARD") != std::string::npos ||
                         sharding.find("ZeRO-3") != std::string::npos
                     ? data_parallel_sharding::fsdp
                     : data_parallel_sharding::distributed_optimizer;
    w.fp8_attention = has("notes", "fp8_dot_product_attention");
    if (has_routed_experts(*out_.net)) read_experts();
    else read_graphs(false);
    // Tables of performance come from recipes that accumulate gradients in BF16.
    if (out_.software->training && out_.software->training->gradient_memory_bytes.peek() < 4)
      w.optimizer.fp32_gradients = false;
    w.fp8_attention = w.fp8_attention && w.gemm_precision != precision::bf16;
  }

  /// The published run did fit. If the source gives no recomputation, assumes the smallest set of cheap modules
  /// that makes it fit. Does not assume more: step times contradict it.
  void assume_recomputation() {
    recompute_spec& r = out_.workload.recompute;
    const auto fits = [&] {
      return !training_memory(out_.hardware, *out_.software, *out_.net, out_.workload).refused();
    };
    if (!row_.blank("activation_recompute") || fits()) return;
    r.layernorm = r.activation = true;
    if (!fits()) r.mla_up_proj = true;
    if (fits())
      note(fmt::format("recomputation not stated: layernorm and activations{} assumed",
                       r.mla_up_proj ? " and up-projections" : ""));
    else r = {};
  }

  /// The NVFP4 recipe of Nemotron 3 (arXiv 2604.12374, table 3; Megatron-Bridge mixed_precision.py, 14 of 88
  /// layers).
  void keep_formats_of_hybrids() {
    training_workload& w = out_.workload;
    const auto layers = static_cast<double>(out_.net->layers.size());
    w.kept.last_layers = std::llround(layers * 14 / 88);
    w.kept.predictors = true;
    w.kept.attention = w.kept.latent = precision::bf16;
    w.kept.scan_output = precision::mxfp8;
    note("layers and projections that the NVFP4 recipe of Nemotron 3 keeps in BF16 and MXFP8");
  }

  /// "a2a overlap", but not "no a2a overlap" or "a2a overlap off".
  bool overlaps_in_words() const {
    for (const char* words : {"a2a overlap", "EP overlap"}) {
      const std::string& notes = row_["notes"];
      const std::size_t at = notes.find(words);
      if (at == std::string::npos) continue;
      const std::string after = notes.substr(at + std::string_view(words).size(), 6);
      const bool denied = at >= 3 && notes.compare(at - 3, 3, "no ") == 0;
      if (!denied && !after.starts_with(" off") && !after.starts_with(" state")) return true;
    }
    return false;
  }

  /// CUDA graphs of the notes. Dense models of MLPerf graph every layer. Recipes of Megatron-Bridge 25.11 graph
  /// whole iterations of dense models on Blackwell (its CHANGELOG, 0.2.0), those of mixtures of experts parts of
  /// layers.
  void read_graphs(bool newest) {
    training_workload& w = out_.workload;
    const bool routed = has_routed_experts(*out_.net);
    const bool recipe = has("notes", "cuda_graph="), off = has("notes", "cuda_graph=none");
    const bool dense_recipe = !routed && !recipe && has("notes", "no exact recipe match") &&
                              out_.hardware.gpu.architecture == "blackwell" &&
                              w.sharding != data_parallel_sharding::fsdp;
    const bool full = has("notes", "full_iteration") || has("notes", "full CUDA graph") ||
                      has("notes", "full-iteration") || newest || dense_recipe;
    const bool any =
        has("notes", "transformer_engine/") || has("notes", "TE graph") ||
        (has("notes", "CUDA graph") && !has("notes", "no CUDA graph") && !has("notes", "CUDA graphs off"));
    w.graphs = off             ? cuda_graphs::none
               : full          ? cuda_graphs::full_iteration
               : any && routed ? cuda_graphs::partial
               : any           ? cuda_graphs::full_iteration
                               : cuda_graphs::none;
    const bool named = has("notes", "transformer_engine/"), in_words = has("notes", "TE graph");
    if (full || !(named || in_words)) return;
    w.graphs = cuda_graphs::partial;
    w.graphed = {has("notes", named ? "attn" : "graphs att"), has("notes", "mamba"), has("notes", "/mlp"),
                 has("notes", "router")};
  }

  /// Settings of the first known recipe for a model and system, for rows of releases whose recipes are not known:
  /// those of 26.02 in the notes of its rows, and of DeepSeek-V3 in 25.11 (deepseek_workload_base_configs.py).
  void read_first_recipe() {
    struct first_recipe {
      std::string_view model, system;
      moe_dispatcher dispatcher;
      bool overlap;
      bool router_graph, attention_graph;
    };
    constexpr auto copies = moe_dispatcher::alltoall, deepep = moe_dispatcher::deduplicated,
                   hybridep = moe_dispatcher::hybridep;
    static constexpr std::array<first_recipe, 13> recipes = {
        {{"deepseek-v3", "gb300", hybridep, false, true, true},
         {"deepseek-v3", "gb200", hybridep, false, true, false},
         {"deepseek-v3", "b200", copies, false, false, false},
         {"deepseek-v3", "h100", deepep, true, false, false},
         {"deepseek-v3-nomtp", "gb200", hybridep, false, true, false},
         {"qwen3-235b-a22b", "gb300", hybridep, false, true, true},
         {"qwen3-235b-a22b", "gb200", hybridep, false, true, true},
         {"qwen3-235b-a22b", "b200", copies, false, false, false},
         {"qwen3-235b-a22b", "h100", copies, true, false, false},
         {"qwen3-30b-a3b", "gb300", hybridep, false, true, false},
         {"qwen3-30b-a3b", "b200", copies, false, true, false},
         {"gpt-oss-120b", "gb300", copies, false, true, true},
         {"gpt-oss-120b", "gb200", copies, false, false, false}}};
    const auto it = std::find_if(recipes.begin(), recipes.end(), [&](const first_recipe& f) {
      return f.model == row_["model"] && f.system == row_["system"];
    });
    if (it == recipes.end()) return;
    training_workload& w = out_.workload;
    w.dispatcher = it->dispatcher;
    w.moe_overlap = it->overlap;
    if (it->router_graph) {
      w.graphs = cuda_graphs::partial;
      w.graphed = {it->attention_graph, false, false, true};
    }
    note("expert exchange and graphs of the first known recipe of the model and system");
  }

  /// Defaults of a release, for rows whose notes name no recipe.
  void read_experts() {
    training_workload& w = out_.workload;
    const std::string& stack = out_.software->name;
    const bool grace = row_["system"].starts_with("gb");
    const bool unmatched = stack == "megatron-bridge-26.06" && grace && !has("notes", "recipe match v");
    // Recipes for softmax attention use overlap and full-iteration CUDA graphs; recipes for hybrid models graph
    // each layer.
    const auto& layers = out_.net->layers;
    const bool plain = std::all_of(layers.begin(), layers.end(), [](const layer_spec& l) {
      return (l.attention == attention_kind::grouped_query || l.attention == attention_kind::mla) &&
             l.sparse_keys == 0;
    });
    const bool hybrid =
        std::any_of(layers.begin(), layers.end(), [](const layer_spec& l) { return l.scan.heads > 0; });
    if (hybrid && w.gemm_precision == precision::nvfp4) keep_formats_of_hybrids();
    // Fused expert MLPs and attention in 8 bits are of the MXFP8 recipes.
    const bool newest = unmatched && plain && bytes_per_element(w.gemm_precision) < 2;
    w.fp8_attention = w.fp8_attention || newest || stack == "mlperf-training-v6.0";
    w.moe_overlap = has("notes", "moe_a2a_overlap") || has("notes", "1F1B A2A") || overlaps_in_words() || newest;
    read_graphs(newest);
    if (unmatched && !plain && w.graphs == cuda_graphs::none) w.graphs = cuda_graphs::partial;
    w.fused_expert_mlp = has("notes", "fused_grouped_mlp") || newest || stack == "mlperf-training-v6.0";
    // Tables of pretraining come from performance recipes, whose routers are fused.
    if (w.task == training_task::pretrain) w.router_fusion = true;
    w.token_drop = row_["release"] == "25.09";
    const bool deepep = has("notes", "deepep") || has("notes", "DeepEP") || w.token_drop;
    const bool hybridep = has("notes", "hybridep") || has("notes", "HybridEP") || unmatched;
    w.dispatcher = hybridep ? moe_dispatcher::hybridep
                   : deepep ? moe_dispatcher::deduplicated
                            : moe_dispatcher::alltoall;
    // Fine-tuning needs real data, on which routers choose.
    w.forced_balance = w.task == training_task::pretrain && !has("notes", "natural routing") &&
                       !has("notes", "real (not forced) routing");
    if (has("notes", "1.10x fixed expert capacity")) w.expert_capacity_factor = 1.1;
    if ((stack == "megatron-bridge-25.11" && !has("notes", "recipe match v")) ||
        has("notes", "dispatcher not printed"))
      read_first_recipe();
  }

 private:
  const csv_row& row_;
  training_row& out_;
};

/// Chooses the column to compare: a measured step time, else TFLOP/s, else tokens/s, else a derived step time.
void choose_metric(const csv_row& row, training_row& out) {
  const bool derived_step = row["derived_fields"].find("step_time_s") != std::string::npos;
  std::string_view column = "step_time_s";
  if (row.blank("step_time_s") || derived_step) {
    const bool counted_otherwise = row["flops_convention"].find("pre-26.06 counts") != std::string::npos;
    if (!row.blank("model_tflops_per_gpu") && !(counted_otherwise && !row.blank("tokens_per_s_per_gpu")))
      column = "model_tflops_per_gpu";
    else if (!row.blank("tokens_per_s_per_gpu")) column = "tokens_per_s_per_gpu";
  }
  out.record.metric = std::string(column);
  out.full_attention_flops = row["flops_convention"].find("non-causal") != std::string::npos;
  out.record.published = published_value(row, column);
  if (!out.record.published) {
    out.record.status = record_status::excluded;
    out.record.reason = "nothing to compare";
  }
}

/// Excludes a row whose tokens and FLOP/s, both as Megatron-LM prints them, are not those of its model, whichever
/// way attention is counted: part of the model ran.
void check_flops(const csv_row& row, training_row& out) {
  const auto tokens = row.number("tokens_per_s_per_gpu"), rate = row.number("model_tflops_per_gpu");
  if (!tokens || !rate || !row["flops_convention"].starts_with("Megatron-LM")) return;
  const std::string& derived = row["derived_fields"];
  if (derived.find("tokens_per_s") != std::string::npos || derived.find("tflops") != std::string::npos) return;
  if (out.workload.task != training_task::pretrain) return;
  constexpr double tolerance = 0.25;  // releases count embedding, head and router differently
  const double step = static_cast<double>(out.workload.global_batch_size * out.workload.seq_length);
  const double least = model_flops_per_step(*out.net, out.workload, true) / step,
               most = model_flops_per_step(*out.net, out.workload, false) / step, ran = *rate * 1e12 / *tokens;
  if (ran > least * (1 - tolerance) && ran < most * (1 + tolerance)) return;
  out.record.status = record_status::excluded;
  out.record.reason =
      fmt::format("{:.1f} GFLOP a token as printed, where the model has {:.1f} to {:.1f}: not the whole model",
                  ran / 1e9, least / 1e9, most / 1e9);
}

void read_into(const csv_row& row, input_cache& inputs, training_row& out) {
  validation_record& r = out.record;
  choose_metric(row, out);
  if (r.suspect.starts_with("exclude:")) {
    r.status = record_status::excluded;
    r.reason = r.suspect;
  }
  if (r.status != record_status::ok) return;
  const std::string platform_name(platform_of_system(row["system"]));
  if (platform_name.empty()) throw cell_error(fmt::format("system: \"{}\" is unknown", row["system"]));
  out.hardware = inputs.platform_named(platform_name);
  out.net = &inputs.model_named(row["model"]);
  out.software = &inputs.stack_named(stack_of(row));
  const auto gpus = row.integer("gpus");
  if (!gpus) {
    r.status = record_status::unsupported;
    r.reason = "number of GPUs not stated";
    return;
  }
  training_workload& w = out.workload;
  training_row_reader reader(row, out);
  reader.read_size(*gpus);
  const std::string& task = row["task"];
  w.task = task == "lora" ? training_task::lora : task == "sft" ? training_task::sft : training_task::pretrain;
  reader.read_precision();
  reader.read_layout(*gpus);
  reader.read_rest();
  if (w.task == training_task::lora) w.lora = adapters_of(row);
  w.deterministic = row["notes"].find("--deterministic") != std::string::npos;
  w.place.gpus_per_domain = default_segment(out.hardware, *gpus);
  out.hardware.racks = static_cast<int>((*gpus + w.place.gpus_per_domain - 1) / w.place.gpus_per_domain);
  const auto problems = training_problems(out.hardware, *out.net, w);
  if (!problems.empty()) {
    r.status = record_status::infeasible;
    r.reason = fmt::format("{}", fmt::join(problems, "; "));
    return;
  }
  reader.assume_recomputation();
  check_flops(row, out);
}

}  // namespace

training_row read_training_row(const csv_row& row, const std::string& table, input_cache& inputs) {
  training_row out;
  validation_record& r = out.record;
  r = record_of(row, table);
  r.precision = row["precision"];
  r.kind = row["task"];
  r.release = row["release"];
  try {
    read_into(row, inputs, out);
  } catch (const std::exception&) {
    record_failure(r);
  }
  return out;
}

std::string cell_of(const training_row& r) {
  const step_residuals k = kind_of_step(r.hardware, *r.net, r.workload);
  return fmt::format("{}, {}, {}-bit", r.record.model, k.rack ? "racks" : "servers", k.weight_bits);
}

double metric_of_step(const training_row& r, seconds step) {
  const training_workload& w = r.workload;
  const double gpus = static_cast<double>(w.par.gpus());
  if (r.record.metric == "step_time_s") return step.base();
  if (r.record.metric == "tokens_per_s_per_gpu")
    return static_cast<double>(w.global_batch_size * w.seq_length) / step.base() / gpus;
  return model_flops_per_step(*r.net, w, !r.full_attention_flops) / step.base() / gpus / 1e12;
}

seconds step_time(const training_row& r) {
  return evaluate(plan_training(r.hardware, *r.software, *r.net, r.workload)).makespan;
}

std::vector<validation_record> validate_training(const csv_table& t, const data_folders& data,
                                                 const progress& report) {
  input_cache inputs(data);
  return records_by_row(t, report, [&](const csv_row& row) {
    training_row r = read_training_row(row, t.stem, inputs);
    if (r.record.status == record_status::ok) {
      try {
        const memory_report memory = training_memory(r.hardware, *r.software, *r.net, r.workload);
        if (memory.refused())
          r.record.notes +=
              (r.record.notes.empty() ? "" : "; ") + std::string("modelled memory exceeds the GPU's");
        const double simulated = metric_of_step(r, step_time(r));
        // An unknown precision, layout or micro-batch size doubles the band.
        const step_band b = step_band_90(r.hardware, *r.software, *r.net, r.workload);
        const double times = r.defaulted_layout ? 2 : 1, low = std::pow(b.low, times),
                     high = std::pow(b.high, times);
        r.record.simulated = simulated;
        r.record.cell = cell_of(r);
        const std::vector<std::string> unpriced = unpriced_work(*r.net, r.workload);
        if (!unpriced.empty()) {
          r.record.notes += (r.record.notes.empty() ? "" : "; ") + unpriced.front();
        } else if (!known_framework(row)) {
          r.record.notes +=
              (r.record.notes.empty() ? "" : "; ") + fmt::format("no band: {} has no stack", row["framework"]);
        } else if (r.record.metric == "step_time_s") r.record.band = {simulated * low, simulated * high};
        else r.record.band = {simulated / high, simulated / low};
      } catch (const input_error& e) {
        r.record.status = record_status::unsupported;
        r.record.reason = e.what();
      }
    }
    return std::vector<validation_record>{std::move(r.record)};
  });
}

}  // namespace nvlsim
