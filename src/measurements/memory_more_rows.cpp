// Reads peaks of training runs of several frameworks. The case gives the configuration:
// "qwen3-30b-a3b_pretrain_g16_bf16_tp1_pp1_cp1_vp1_ep16_dp16_mbs1_gbs1024_seq4096_rc-selective:moe+layernorm".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "nvlsim/measurements/memory_rows.hpp"
#include "nvlsim/measurements/training_rows.hpp"

namespace nvlsim {
namespace {

/// How a framework keeps what it trains, and which stack stands for it.
struct framework_row {
  std::string_view name, stack;
  bool shards_all = false;         ///< FSDP2
  bool sequence_parallel = true;   ///< with tensor parallelism
  double gradient = 0;             ///< bytes per parameter; 0: as the recipe has it
  double master = 4, moments = 4;  ///< beside BF16 weights of 2 bytes
};
constexpr std::array<framework_row, 9> frameworks = {{
    {"megatron", "megatron-bridge-26.06"},
    {"primus-megatron", "megatron-bridge-26.06"},
    {"swift-megatron", "megatron-bridge-26.06"},
    {"torchtitan", "megatron-bridge-26.06", true, true, 4, 2, 4},  // shards of FP32 are weights and master copy
    {"automodel", "megatron-bridge-26.06", true, true, 2, 0, 2},   // everything in BF16
    {"hf-transformers", "megatron-bridge-26.06", true, true, 2, 0, 2},
    {"deepspeed", "megatron-lm-deepspeed", false, false},
    {"swift-deepspeed", "megatron-lm-deepspeed", false, false},
    {"internevo", "internevo-0.2", false, true, 2},  // gradients have the format of the weights
}};

/// The words of a case behind the model: letters and what follows, or a whole word.
using case_words = std::map<std::string, std::string>;

case_words words_of(std::string_view text) {
  case_words out;
  if (const std::size_t rc = text.find("_rc-"); rc != text.npos) {  // the last word may hold underscores
    out["rc"] = text.substr(rc + 4);
    text = text.substr(0, rc);
  }
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('_'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t end = std::min(word.find_first_of("0123456789N-"), word.size());
    out[std::string(word.substr(0, end))] = word.substr(end);
  }
  return out;
}

std::optional<std::int64_t> number_in(const case_words& c, const char* name) {
  const auto it = c.find(name);
  std::int64_t n = 0;
  if (it == c.end() ||
      std::from_chars(it->second.data(), it->second.data() + it->second.size(), n).ec != std::errc())
    return {};
  return n;
}

bool has(const case_words& c, const char* name) { return c.find(name) != c.end(); }

precision precision_in(const case_words& c) {
  const std::pair<const char*, precision> names[] = {
      {"mxfp", precision::mxfp8}, {"nvfp", precision::nvfp4}, {"fp", precision::fp8}};
  for (const auto& [name, p] : names) {
    const auto it = c.find(name);
    if (it != c.end()) return it->second == "16" ? precision::fp16 : p;
  }
  return precision::bf16;
}

/// "full", or "selective:" and modules joined by "+".
void read_recompute(recompute_spec& r, std::string_view text) {
  r.full = text.starts_with("full");
  if (const std::size_t colon = text.find(':'); colon != text.npos) text.remove_prefix(colon + 1);
  const std::pair<std::string_view, bool*> modules[] = {
      {"core_attn", &r.core_attention},
      {"layernorm", &r.layernorm},
      {"mlp", &r.mlp},
      {"moe_act", &r.activation},
      {"mla_up_proj", &r.mla_up_proj},
      {"moe", &r.moe},
      {"per-op", &r.mlp}};  // torchtitan's policy by operator: about the MLP is computed again [assumed]
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find('+'));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    for (const auto& [name, on] : modules)
      if (word == name) *on = true;
  }
}

struct memory_row {
  const framework_row* of = nullptr;
  training_workload w;
  std::string notes;
  bool recompute_stated = false;
};

/// The run did fit. If its source does not say what is recomputed, assumes the first of these that fits: nothing,
/// norms and activations, also the up-projections of latent attention, also the experts, everything.
void assume_recompute(memory_row& m, const platform& p, const stack& s, const model& net) {
  recompute_spec& r = m.w.recompute;
  const auto fits = [&] { return training_memory(p, s, net, m.w).fits(); };
  if (m.recompute_stated || fits()) return;
  const auto note = [&](const char* what) {
    m.notes += fmt::format("{}recomputation not stated: {} assumed", m.notes.empty() ? "" : "; ", what);
  };
  if (m.of->name == "torchtitan") {
    r.mlp = true;
    return note("its policy by operator");
  }
  bool* const steps[] = {&r.activation, &r.mla_up_proj, &r.moe, &r.full};
  r.layernorm = true;
  for (bool* step : steps) {
    *step = true;
    if (fits()) break;
  }
  if (!fits() && m.w.sharding == data_parallel_sharding::optim_grads) {
    m.w.sharding = data_parallel_sharding::fsdp;
    m.notes += fmt::format("{}sharding not stated: ZeRO-3 assumed", m.notes.empty() ? "" : "; ");
  }
  note(r.full          ? "full"
       : r.moe         ? "layernorm, moe_act, mla_up_proj and moe"
       : r.mla_up_proj ? "layernorm, moe_act and mla_up_proj"
                       : "layernorm and moe_act");
}

memory_row read_row(const csv_row& row, const case_words& c, const platform& p, const model& net) {
  memory_row out;
  const auto it = std::find_if(frameworks.begin(), frameworks.end(),
                               [&](const framework_row& f) { return f.name == row["framework"]; });
  if (it == frameworks.end())
    throw cell_error(fmt::format("framework: \"{}\" is not supported", row["framework"]));
  out.of = &*it;
  training_workload& w = out.w;
  const auto assumed = [&](const char* name, std::int64_t otherwise) {
    const auto n = number_in(c, name);
    if (!n)
      out.notes += fmt::format("{}{} not stated: {} assumed", out.notes.empty() ? "" : "; ", name, otherwise);
    return n.value_or(otherwise);
  };
  w.gemm_precision = precision_in(c);
  w.task = has(c, "lora") ? training_task::lora : has(c, "sft") ? training_task::sft : training_task::pretrain;
  w.forced_balance = w.task == training_task::pretrain;  // fine-tuning needs real data, on which routers choose
  parallelism& par = w.par;
  par.tp = assumed("tp", 1);
  par.pp = assumed("pp", 1);
  par.cp = number_in(c, "cp").value_or(1);
  par.vp = par.pp > 1 ? number_in(c, "vp").value_or(1) : 1;
  par.ep = has_routed_experts(net) ? number_in(c, "ep").value_or(1) : 1;
  par.etp = par.ep == 1 ? par.tp : 1;
  const std::int64_t gpus =
      number_in(c, "g").value_or(par.tp * par.pp * par.cp * std::max<std::int64_t>(1, par.ep));
  par.dp = number_in(c, "dp").value_or(std::max<std::int64_t>(1, gpus / (par.tp * par.pp * par.cp)));
  par.sequence_parallel = par.tp > 1 && out.of->sequence_parallel;
  w.seq_length = assumed("seq", 4096);
  w.micro_batch_size = assumed("mbs", 1);
  const std::int64_t steps = number_in(c, "acc").value_or(par.pp > 1 ? 4 * par.pp : 1);
  w.global_batch_size = number_in(c, "gbs").value_or(w.micro_batch_size * par.dp * steps);
  w.schedule = par.vp > 1 ? pipeline_schedule::interleaved : pipeline_schedule::one_f_one_b;
  w.sharding = out.of->shards_all || has(c, "fsdp") ? data_parallel_sharding::fsdp
               : out.of->name == "swift-deepspeed"  ? data_parallel_sharding::optim_grads
                                                    : data_parallel_sharding::distributed_optimizer;
  if (const auto rc = c.find("rc"); rc != c.end()) read_recompute(w.recompute, rc->second);
  out.recompute_stated = has(c, "rc") && c.at("rc") != "NA";
  w.optimizer.master = out.of->master;
  w.optimizer.first_moment = w.optimizer.second_moment = out.of->moments;
  // Pretraining rows of Megatron come from recipes that accumulate gradients in BF16.
  if (out.of->gradient > 0) w.optimizer.fp32_gradients = out.of->gradient > 2;
  else if (w.gemm_precision == precision::fp16 ||
           (out.of->name == "megatron" && w.task == training_task::pretrain))
    w.optimizer.fp32_gradients = false;
  const std::string settings = row["optimizer"] + row["notes"];
  if (settings.find("BF16 moments") != settings.npos) w.optimizer.first_moment = w.optimizer.second_moment = 2;
  if (settings.find("expert_fc1 activations offloaded") != settings.npos) w.offload.expert_fc1 = true;
  if (settings.find("frozen vision") != settings.npos) w.freeze_towers = true;
  if (const std::size_t at = settings.find("LoRA rank "); at != settings.npos)
    w.lora.rank = std::atoi(settings.c_str() + at + 10);
  w.place.gpus_per_domain = p.gpus_per_rack();
  return out;
}

/// What was measured, in GiB or in the GB that Megatron prints.
double peak_of_kind(const csv_row& row, const memory_report& r) {
  const std::string& kind = row["peak_memory_kind"];
  const auto says = [&](const char* word) { return kind.find(word) != kind.npos; };
  bytes size = r.allocated;
  const auto fragments =
      std::find_if(r.items.begin(), r.items.end(), [](const memory_item& i) { return i.name == "fragmentation"; });
  if (says("nvidia-smi") || says("device")) size = r.peak;
  else if ((says("reserved") || row["framework"] != "megatron") && !says("alloc") && fragments != r.items.end())
    size += fragments->size;
  const bool decimal = row["framework"] == "megatron" && says("GB");
  return size.base() / (decimal ? 1e9 : 0x1p30);
}

}  // namespace

validation_record compare_peak(const csv_row& row, const std::string& table, input_cache& inputs) {
  validation_record r;
  const std::string& name = row["case"];
  r.table = table;
  r.id = row["row_id"].empty() ? name : row["row_id"];
  r.metric = "peak_alloc_GiB";
  r.system = row["system"];
  r.kind = row["framework"];
  r.suspect = row["suspect"];
  try {
    r.published = published_value(row, "peak_alloc_GiB");
    const std::string model_name = name.substr(0, name.find('_'));
    r.model = model_name;
    const std::string_view platform_name = platform_of_system(row["system"]);
    if (platform_name.empty()) throw cell_error(fmt::format("system: \"{}\" is unknown", row["system"]));
    const platform& p = inputs.platform_named(std::string(platform_name));
    const model& net = inputs.model_named(model_name);
    memory_row m = read_row(row, words_of(std::string_view(name).substr(model_name.size() + 1)), p, net);
    const stack& s = inputs.stack_named(std::string(m.of->stack));
    assume_recompute(m, p, s, net);
    r.notes = m.notes;
    if (m.notes.find("mbs not stated") != m.notes.npos) {
      r.status = record_status::excluded;
      r.reason = "the micro-batch, which decides the peak, is not stated";
      return r;
    }
    const memory_report memory = training_memory(p, s, net, m.w);
    r.simulated = peak_of_kind(row, memory);
    r.status = record_status::ok;
    if (memory.refused()) r.notes += (r.notes.empty() ? "" : "; ") + std::string("refused: does not fit");
    if (row["peak_memory_kind"].find("OUT OF MEMORY") != std::string::npos) {
      r.status = record_status::excluded;
      r.reason = fmt::format("a lower bound: the run does not fit; simulated {}", memory.refused() ? "too large"
                                                                                  : memory.tight() ? "tight"
                                                                                                   : "fits");
    }
  } catch (const std::exception&) {
    record_failure(r);
  }
  if (r.suspect.starts_with("exclude:")) {
    r.status = record_status::excluded;
    r.reason = r.suspect;
  }
  return r;
}

}  // namespace nvlsim
