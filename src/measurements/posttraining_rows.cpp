#include "nvlsim/measurements/posttraining_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "measurements/cell_text.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {
namespace {

/// All whole numbers of a text such as "[4,1,1,4,n/a]" or "512x16". Throws cell_error for a number that is not
/// from 1 to 2^24.
std::vector<std::int64_t> numbers_in(std::string_view cell) {
  constexpr std::int64_t most = 1 << 24;
  std::string_view text = cell;
  std::vector<std::int64_t> out;
  while (!text.empty()) {
    std::int64_t n = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (status == std::errc::result_out_of_range || (status == std::errc() && (n < 1 || n > most)))
      throw cell_error(fmt::format("\"{}\" has a number that is not from 1 to {}", cell, most));
    if (status == std::errc()) out.push_back(n);
    const auto used = status == std::errc() ? static_cast<std::size_t>(end - text.data()) : 1;
    text.remove_prefix(used);
  }
  return out;
}

/// The first number of a cell such as "45 (wait)", "2.39-2.83" (their mean) or "~20".
std::optional<double> number_in(std::string_view text) {
  const std::size_t begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  double first = 0, second = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), first);
  if (status != std::errc()) return std::nullopt;
  const char* const last = text.data() + text.size();
  if (end != last && *end == '-' && std::from_chars(end + 1, last, second).ec == std::errc())
    return (first + second) / 2;
  return first;
}

struct known_name {
  std::string_view column, name;
};
constexpr std::array<known_name, 12> models_of_column = {{{"LLAMA3.1_8B", "llama3.1-8b"},
                                                          {"DeepSeek V3", "deepseek-v3"},
                                                          {"DeepSeek-V3", "deepseek-v3"},
                                                          {"Qwen3-235B", "qwen3-235b-a22b"},
                                                          {"Qwen3-30B3A", "qwen3-30b-a3b"},
                                                          {"Qwen3-30B-A3B", "qwen3-30b-a3b"},
                                                          {"Qwen3-32B", "qwen3-32b"},
                                                          {"Qwen3-4B", "qwen3-4b"},
                                                          {"Qwen3.5-397B", "qwen3.5-397b-a17b"},
                                                          {"Qwen2.5-Math-7B", "qwen2.5-7b"},
                                                          {"Qwen2.5-7B", "qwen2.5-7b"},
                                                          {"Qwen 7B", "qwen2.5-7b"}}};
constexpr std::array<known_name, 4> more_models = {
    {{"GLM-4.5-Air", "glm-4.5-air"}, {"Kimi-K2", "kimi-k2"}, {"Kimi K2", "kimi-k2"}, {"GLM-4.5", "glm-4.5"}}};

std::string model_of(std::string_view cell) {
  for (const known_name& m : models_of_column)
    if (cell.starts_with(m.column)) return std::string(m.name);
  for (const known_name& m : more_models)
    if (cell.starts_with(m.column)) return std::string(m.name);
  return {};
}

struct known_hardware {
  std::string_view column, platform;
  int domain;  ///< GPUs of a domain that jobs use
};
constexpr std::array<known_hardware, 6> hardwares = {{{"DGX-H100", "h100-ndr-sharp", 8},
                                                      {"GB200", "gb200-nvl72", 64},
                                                      {"GB300", "gb300-nvl72", 64},
                                                      {"H20", "h20", 8},
                                                      {"H800", "h800", 8},
                                                      {"H100", "h100-ndr-sharp", 8}}};
const known_hardware* hardware_of(std::string_view cell) {
  for (const known_hardware& h : hardwares)
    if (cell.starts_with(h.column) && !cell.starts_with("H200")) return &h;
  return nullptr;
}

/// Prompt tokens that NeMo RL's rows imply: tokens per second times step, GPUs and samples, less the response.
constexpr std::int64_t nemo_prompt = 130;

/// What NeMo RL's recipes (examples/configs/recipes/llm/performance) say of a model beside the table.
struct nemo_recipe {
  std::string_view model;
  std::int64_t samples;  ///< of a prompt
  bool recompute;        ///< activation checkpointing of all layers
};
constexpr std::array<nemo_recipe, 5> nemo_recipes = {{{"llama3.1-8b", 32, true},
                                                      {"deepseek-v3", 16, true},
                                                      {"qwen3-235b-a22b", 32, true},
                                                      {"qwen3-30b-a3b", 32, false},
                                                      {"qwen3-32b", 32, false}}};
const nemo_recipe& nemo_recipe_of(std::string_view model) {
  for (const nemo_recipe& r : nemo_recipes)
    if (r.model == model) return r;
  return nemo_recipes.front();
}

/// What verl's scripts (recipe/dapo, recipe/fully_async_policy/shell) say of an experiment beside the table, and
/// its mean response, which nobody states: `fit loops` infers it from the updates of one row.
struct verl_experiment {
  std::int64_t max_len;  ///< of the table
  bool tools, megatron;
  std::int64_t max_response;
  int rollout_tp, sequence_parallel, pp;
  std::int64_t sharded_over;  ///< GPUs that share one copy of the trainer's states
  double mean, mean_async;    ///< response, tokens: in turns or one step off; fully asynchronous
};
constexpr std::array<verl_experiment, 5> verl_experiments = {{{28672, false, false, 28672, 4, 4, 1, 8, 1419, 469},
                                                              {20480, false, false, 20480, 2, 4, 1, 4, 689, 689},
                                                              {10240, false, false, 8192, 1, 1, 1, 2, 1000, 1000},
                                                              {8192, false, true, 8192, 2, 2, 2, 4, 798, 798},
                                                              {28672, true, false, 16384, 4, 4, 1, 4, 251, 200}}};
const verl_experiment& verl_experiment_of(std::int64_t max_len, bool tools, bool megatron) {
  const verl_experiment* best = &verl_experiments.front();
  for (const verl_experiment& e : verl_experiments)
    if (e.max_len == max_len && e.tools == tools && e.megatron == megatron) best = &e;
  return *best;
}
constexpr std::int64_t verl_prompt = 300;

class post_training_row_reader {
 public:
  post_training_row_reader(const csv_row& row, input_cache& inputs, post_training_row& out)
      : row_(row), inputs_(inputs), out_(out), verl_(row["system"].starts_with("verl")) {}

  void read() {
    const known_hardware* h = hardware_of(row_["hardware"]);
    const std::string name = model_of(row_["model"]);
    if (!h) throw input_error({{"hardware", "", fmt::format("no platform for {}", row_["hardware"]), {}}});
    if (name.empty()) throw input_error({{"model", "", fmt::format("no model for {}", row_["model"]), {}}});
    out_.hardware = inputs_.platform_named(std::string(h->platform));
    out_.net = &inputs_.model_named(name);
    read_loop();
    read_pools(h->domain);
    read_stacks();
    read_rollout();
    read_training();
  }

 private:
  void note(std::string text) { out_.notes += (out_.notes.empty() ? "" : "; ") + std::move(text); }

  void read_loop() {
    loop_settings& l = out_.loop.loop;
    const bool tools = holds(row_["sync_mode"], "multi-turn");
    verl_run_ =
        &verl_experiment_of(row_.integer("max_len").value_or(0), tools, holds(row_["train_parallel"], "Megatron"));
    read_batch();
    const auto max = static_cast<std::int64_t>(need(row_, "max_len"));
    l.prompt_tokens = verl_ ? verl_prompt : nemo_prompt;
    l.response.max = verl_ ? std::min(max, verl_run_->max_response) : max - l.prompt_tokens;
    const auto mean = row_.number("avg_response_tokens");
    const double inferred = fully_async() ? verl_run_->mean_async : verl_run_->mean;
    l.response.mean = std::min(mean.value_or(inferred), 0.995 * static_cast<double>(l.response.max));
    if (!mean) {
      note(fmt::format("mean response of {:.0f} tokens inferred from updates", l.response.mean));
      out_.unknown_lengths = fmt::format("{}{}{}, {}", max, tools ? " with tools" : "",
                                         holds(row_["train_parallel"], "Megatron") ? " Megatron" : "",
                                         fully_async() ? "fully asynchronous" : "in turns");
    }
    if (tools) {
      l.tools = {3, 2.0, 200};
      note("3 turns, 2 s a tool call and 200 tokens of its answer assumed");
    }
    const bool dapo = holds(row_["algorithm"], "DAPO");
    out_.loop.algorithm = dapo ? post_training_algorithm::dapo : post_training_algorithm::grpo;
    out_.loop.reference_logprobs = !dapo;
    read_synchrony();
    l.steps = 3;
    if (std::string problem = samples_problem(l); !problem.empty()) throw cell_error(std::move(problem));
  }

  void read_batch() {
    loop_settings& l = out_.loop.loop;
    const auto batch = numbers_in(row_["batch_samples"]);
    if (batch.empty()) throw cell_error("batch_samples: no number");
    if (batch.size() > 1) {
      l.prompts = batch[0];
      l.samples = batch[1];
    } else {
      l.samples = nemo_recipe_of(out_.net->name).samples;
      l.prompts = std::max<std::int64_t>(1, batch[0] / l.samples);
      note(fmt::format("{} prompts with {} samples each, of the recipe", l.prompts, l.samples));
    }
    const std::int64_t all = l.prompts * l.samples;
    out_.loop.mini_batch = std::min(all, row_.integer("train_minibatch").value_or(verl_ ? 512 : all));
    // verl's trainer takes four mini-batches at a time.
    const std::int64_t taken = verl_ ? 4 * out_.loop.mini_batch : out_.loop.mini_batch;
    l.mini_batch_prompts = std::max<std::int64_t>(1, std::min(all, taken) / l.samples);
  }

  bool fully_async() const { return holds(row_["sync_mode"], "async") && !holds(row_["sync_mode"], "off"); }

  void read_synchrony() {
    loop_settings& l = out_.loop.loop;
    const std::string& mode = row_["sync_mode"];
    l.colocated = !fully_async() && !holds(mode, "Off") && !holds(mode, "off");
    if (holds(mode, "8-step")) l.staleness = 8;
    else if (!l.colocated) l.staleness = fully_async() ? 0.5 : 1;
    if (fully_async()) {
      l.streaming = true;
      l.update = on_update::recompute;
      out_.loop.policy_logprobs = false;  // those of the rollouts are used
    } else if (!l.colocated && verl_) {
      l.admission = admission_policy::batch;
    } else if (!l.colocated) {
      l.update = on_update::keep_cache;
    }
    l.warmup = l.colocated ? 0 : 3 + static_cast<std::int64_t>(l.staleness);
    out_.loop.transfer = l.colocated ? transfer_path::ipc : transfer_path::broadcast;
    out_.loop.sleep = sleep_level::offload;
    if (verl_ && !holds(row_["train_parallel"], "Megatron")) out_.loop.packing = packing_kind::dynamic;
  }

  void read_pools(int domain) {
    const auto gpus = numbers_in(row_["gpus"]);
    if (gpus.empty()) throw cell_error("gpus: no number");
    const std::int64_t all = gpus[0];
    rollout_gpus_ = training_gpus_ = all;
    if (!out_.loop.loop.colocated) {
      // Recipes halve the GPUs; the one of eight steps trains on two thirds.
      const std::int64_t usual = out_.loop.loop.staleness > 1 ? 2 * all / 3 : all / 2;
      training_gpus_ = row_.integer("train_gpus").value_or(usual);
      rollout_gpus_ = row_.integer("gen_gpus").value_or(all - training_gpus_);
      if (row_.blank("train_gpus")) note(fmt::format("{} GPUs train, of the recipe", training_gpus_));
    }
    out_.hardware.racks = static_cast<int>((all + domain - 1) / domain) + (domain > 8 ? 1 : 0);
    domain_ = domain;
  }

  void read_stacks() {
    const std::string& system = row_["system"];
    const bool later = holds(system, "v0.6") || holds(system, "v0.7");
    out_.rollout_stack = &inputs_.stack_named("vllm-0.11");
    const char* megatron = later ? "megatron-bridge-26.02" : "megatron-bridge-25.11";
    const bool fsdp = verl_ && !holds(row_["train_parallel"], "Megatron");
    out_.training_stack = &inputs_.stack_named(fsdp ? "pytorch-fsdp-torchtitan" : megatron);
    out_.loop.costs = load_loop_profile(verl_ ? "verl" : "nemo-rl", inputs_.folders());
  }

  bool fp8() const { return holds(row_["hardware"], "FP8"); }

  void read_rollout() {
    inference_workload& w = out_.rollout;
    const auto sizes = numbers_in(row_["gen_parallel"]);
    w.tp = static_cast<int>(!sizes.empty() ? sizes[0] : verl_run_->rollout_tp);
    if (sizes.empty()) note(fmt::format("rollout engines of {} GPUs, of the script", w.tp));
    w.replicas = static_cast<int>(std::max<std::int64_t>(1, rollout_gpus_ / w.tp));
    if (fp8()) w.weights = precision::fp8_block;
    w.load = load_kind::offline;
    w.requests = out_.loop.loop.prompts * out_.loop.loop.samples;
    w.input.mean = static_cast<double>(out_.loop.loop.prompt_tokens);
    w.output.mean = out_.loop.loop.response.mean;
    w.front_end = false;
    w.engine.max_batch_size = constant<std::int64_t>(1024);
    // Colocated engines leave memory to the trainer; where weights leave too little, recipes raise the share.
    const double usual = out_.loop.loop.colocated && !verl_ ? 0.6 : 0.8;
    const auto longest = static_cast<double>(out_.loop.loop.prompt_tokens + 2 * out_.loop.loop.response.max);
    for (const double share : {usual, 0.8, 0.9, 0.95}) {
      if (share < usual) continue;
      w.engine.kv_fraction = constant<double>(share);
      w.usual = {};
      find_usual_settings(out_.hardware, *out_.rollout_stack, *out_.net, w);
      const serving_memory m = plan_serving_memory(out_.hardware, *out_.rollout_stack, *out_.net, w);
      if (static_cast<double>(m.kv_capacity_tokens) > longest) break;
    }
    note(fmt::format("{:.0f} % of memory for the rollout engine", 100 * w.engine.kv_fraction->peek()));
  }

  void read_training() {
    training_workload& w = out_.training;
    const auto sizes = numbers_in(row_["train_parallel"]);
    const auto size = [&](std::size_t i) { return i < sizes.size() ? std::max<std::int64_t>(1, sizes[i]) : 1; };
    w.seq_length = out_.loop.loop.prompt_tokens + out_.loop.loop.response.max;
    w.gemm_precision = fp8() ? precision::fp8_block : precision::bf16;
    w.par.tp = size(0);
    w.par.cp = size(1);
    w.par.ep = size(2);
    w.par.pp = size(3);
    if (verl_) read_verl_layout(w);
    w.par.dp = std::max<std::int64_t>(1, training_gpus_ / (w.par.tp * w.par.cp * w.par.pp));
    if (w.par.ep > w.par.tp * w.par.cp * w.par.dp) {
      note(fmt::format("experts over {} GPUs instead of {}, which the pool has not", w.par.cp * w.par.dp,
                       w.par.ep));
      w.par.ep = w.par.tp * w.par.cp * w.par.dp;
    }
    w.par.sequence_parallel = w.par.tp > 1;
    w.global_batch_size = w.par.dp * w.par.pp;
    w.dispatcher = moe_dispatcher::alltoall;
    w.recompute.full = verl_ || nemo_recipe_of(out_.net->name).recompute;
    w.place.gpus_per_domain = std::min<std::int64_t>(domain_, std::max<std::int64_t>(1, training_gpus_));
    note(w.recompute.full ? "full recomputation, of the recipe" : "no recomputation, of the recipe");
    if (w.sharding != data_parallel_sharding::fsdp) return;
    const std::int64_t over = verl_run_->sharded_over;
    if (over < training_gpus_ && training_gpus_ % over == 0) w.sharding_groups = training_gpus_ / over;
  }

  void read_verl_layout(training_workload& w) const {
    w.par = {};
    if (holds(row_["train_parallel"], "Megatron")) {
      w.par.tp = verl_run_->sequence_parallel;
      w.par.pp = verl_run_->pp;
      return;
    }
    w.par.cp = training_gpus_ % verl_run_->sequence_parallel == 0 ? verl_run_->sequence_parallel : 1;
    w.cp_exchange = context_exchange::all_to_all;
    w.sharding = data_parallel_sharding::fsdp;
    w.seq_length *= w.par.cp;  // tokens of a micro-batch are limited by GPU
  }

  const csv_row& row_;
  input_cache& inputs_;
  post_training_row& out_;
  bool verl_;
  const verl_experiment* verl_run_ = nullptr;
  std::int64_t rollout_gpus_ = 1, training_gpus_ = 1;
  int domain_ = 8;
};

/// A transfer of weights between pools that the table states, as the loop of its framework has it.
post_training_row read_transfer_row(const csv_row& row, input_cache& inputs) {
  post_training_row out;
  const known_hardware* h = hardware_of(row["hardware"]);
  const std::string name = model_of(row["model"]);
  if (!h || name.empty()) throw cell_error("no platform or model for a transfer");
  const bool verl = row["system"].starts_with("verl");
  const std::int64_t trains = row.integer("train_gpus").value_or(1),
                     generates = row.integer("gen_gpus").value_or(1);
  out.hardware = inputs.platform_named(std::string(h->platform));
  out.net = &inputs.model_named(name);
  out.rollout_stack = &inputs.stack_named("vllm-0.11");
  out.training_stack = &inputs.stack_named("megatron-bridge-25.11");
  out.loop.costs = load_loop_profile(verl ? "verl" : "nemo-rl", inputs.folders());
  out.loop.loop.colocated = false;
  out.loop.transfer = verl                          ? transfer_path::broadcast
                      : holds(row["model"], "NIXL") ? transfer_path::rdma
                                                    : transfer_path::reshard;
  const auto sizes = numbers_in(row["gen_parallel"]);
  out.rollout.tp = static_cast<int>(sizes.empty() ? 1 : sizes.front());
  out.rollout.replicas = static_cast<int>(std::max<std::int64_t>(1, generates / out.rollout.tp));
  out.training.par.dp = trains;
  return out;
}

/// A published phase, and its simulated value.
struct phase {
  const char* column;
  double (*of)(const post_training_run&);
};
template <class F>
double mean_of(const post_training_run& r, F of) {
  double sum = 0;
  for (const step_record& s : r.record.steps) sum += of(s);
  return sum / static_cast<double>(r.record.steps.size());
}
constexpr std::array<phase, 4> phases = {{
    {"step_s",
     [](const post_training_run& r) { return mean_of(r, [](const step_record& s) { return s.step_s(); }); }},
    {"gen_s",
     [](const post_training_run& r) { return mean_of(r, [](const step_record& s) { return s.wait_s; }); }},
    {"logp_ref_s",
     [](const post_training_run& r) { return mean_of(r, [](const step_record& s) { return s.logprobs_s; }); }},
    {"train_s",
     [](const post_training_run& r) { return mean_of(r, [](const step_record& s) { return s.update_s; }); }},
}};

/// Rows with a step time: the step, then the phases that are given.
void add_loop_records(const csv_row& row, validation_record base, input_cache& inputs,
                      std::vector<validation_record>& out) {
  base.metric = "step_s";
  base.published = number_in(row["step_s"]);
  try {
    if (row.blank("step_s")) {
      const post_training_row r = read_transfer_row(row, inputs);
      base.metric = "weight_sync_s";
      base.published = number_in(row["weight_sync_s"]);
      base.simulated = weight_transfer_time(r.parts(), r.loop).total().base();
      base.notes = fmt::format("{} of {}", transfer_path_names[static_cast<std::size_t>(r.loop.transfer)],
                               r.loop.costs.name);
      out.push_back(std::move(base));
      return;
    }
    const post_training_row r = read_post_training_row(row, inputs);
    base.notes = r.notes;
    const post_training_run run = run_loop(r.parts(), r.loop);
    if (!run.reasons.empty()) {
      base.status = record_status::infeasible;
      base.reason = run.reasons.front();
      out.push_back(base);
      return;
    }
    for (const compared_phase& p : compare_phases(row, run)) {
      validation_record one = base;
      one.metric = p.metric;
      one.published = p.published;
      one.simulated = p.simulated;
      if (const double e = r.loop.costs.error_90; e > 0 && one.metric == "step_s")
        one.band = {*one.simulated / (1 + e), *one.simulated * (1 + e)};
      out.push_back(std::move(one));
    }
  } catch (const std::exception&) {
    record_failure(base);
    out.push_back(base);
  }
}

}  // namespace

std::vector<compared_phase> compare_phases(const csv_row& row, const post_training_run& run) {
  std::vector<compared_phase> out;
  for (const phase& p : phases)
    if (const auto published = number_in(row[p.column]); published && *published > 0)
      out.push_back({p.column, *published, p.of(run)});
  return out;
}

post_training_row read_post_training_row(const csv_row& row, input_cache& inputs) {
  post_training_row out;
  post_training_row_reader(row, inputs, out).read();
  return out;
}

std::string post_training_exclusion(const csv_row& row) {
  const std::string& suspect = row["suspect"];
  if (suspect.starts_with("exclude:")) return suspect.substr(8);
  if (holds(row["other"], "DO NOT USE")) return row["other"];
  if (row.blank("step_s") && row.blank("weight_sync_s")) return "nothing to compare";
  const bool known = row["system"].starts_with("NeMo RL v") || row["system"].starts_with("verl");
  if (!row.blank("step_s") && !known) return "the loop of this system is not modelled";
  if (row.blank("step_s")) {
    const bool framework = known || row["system"] == "NeMo RL refit";
    if (!framework) return "a transfer of a program whose loop is not modelled: see docs/post-training.md";
    // By RDMA the time is that of the model, whatever the pools.
    const bool stated = !row.blank("train_gpus") || holds(row["model"], "NIXL");
    return stated ? "" : "a transfer alone, whose pools are not stated: see docs/post-training.md";
  }
  if (row.blank("max_len") || row.blank("batch_samples")) return "lengths or batch are not stated";
  if (holds(row["algorithm"], "SWE")) return "agents in sandboxes, whose times are not stated";
  return {};
}

std::vector<validation_record> validate_posttraining(const csv_table& t, const data_folders& data,
                                                     const progress& report) {
  input_cache inputs(data);
  std::vector<validation_record> out;
  std::size_t done = 0;
  for (const csv_row& row : t.rows) {
    validation_record r = record_of(row, t.stem);
    r.system = row["hardware"];
    r.release = row["system"];
    r.kind = row["sync_mode"];
    if (const std::string why = post_training_exclusion(row); !why.empty()) {
      r.metric = row.blank("step_s") ? "weight_sync_s" : "step_s";
      r.status = record_status::excluded;
      r.reason = why;
      out.push_back(std::move(r));
    } else {
      add_loop_records(row, std::move(r), inputs, out);
    }
    if (report) report(++done, t.rows.size());
  }
  return out;
}

}  // namespace nvlsim
