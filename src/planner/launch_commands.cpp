#include "nvlsim/planner/launch_commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "nvlsim/config/value.hpp"
#include "nvlsim/serving/pools.hpp"

namespace nvlsim {
namespace {

constexpr int first_port = 8000;

/// Copies of the busiest experts with which every rank has equally many. None where the ranks divide the experts.
struct expert_copies {
  std::int64_t more = 0, all = 0;  ///< copies; experts with their copies
};

expert_copies expert_copies_for(const model& m, int ep) {
  expert_copies out;
  for (const layer_spec& l : m.layers) {
    const std::int64_t more = l.routed() && ep > 1 ? (ep - l.moe.experts % ep) % ep : 0;
    if (more > 0) out = {more, l.moe.experts + more};
  }
  return out;
}

/// One kind of worker of a deployment.
struct fleet {
  rank_counts ranks;
  engine_overrides engine;
  engine_settings runs;   ///< what the engine runs with, said or not
  const char* role = "";  ///< "prefill", "decode" or ""
  int host_gpus = 0;      ///< of a host; 0: not known
  std::string engine_of_stack = {};
  expert_copies copies = {};

  /// Hosts of one worker. Those of SGLang have equally many of its GPUs.
  int hosts(bool equal = false) const {
    if (host_gpus <= 0) return 1;
    const int gpus = ranks.gpus_per_replica();
    int out = (gpus + host_gpus - 1) / host_gpus;
    while (equal && gpus % out != 0) ++out;
    return out;
  }
};

fleet fleet_of(const scenario& s, const inference_workload& w, const char* role) {
  return {w,
          w.engine,
          settings_of(*s.stack.inference, w),
          role,
          s.platform.vm.gpus.read(),
          engine_of(s),
          expert_copies_for(s.model, w.ep)};
}

std::vector<fleet> fleets_of(const scenario& s, const inference_workload& w) {
  if (!w.prefill_pool) return {fleet_of(s, w, "")};
  return {fleet_of(s, prefill_workload(w), "prefill"), fleet_of(s, w, "decode")};
}

struct flags {
  std::string text;
  void add(std::string_view flag) { text += fmt::format(" {}", flag); }
  template <class T>
  void add(std::string_view flag, const T& v) {
    text += fmt::format(" {} {}", flag, v);
  }
};

/// What a launch says of a setting: what the plan says or, where it always has one, what the engine runs with.
/// Nothing for names, which frameworks spell in other ways.
std::optional<value> told(const fleet& f, const engine_field& field) {
  return std::visit(
      [&](const auto& m) -> std::optional<value> {
        if constexpr (requires { (f.runs.*m.value).read(); }) {
          if (field.flags.always) return value{(f.runs.*m.value).read()};
          if (f.engine.*m.said) return value{(f.engine.*m.said)->read()};
        } else if constexpr (requires { m.otherwise == true; }) {
          if (f.engine.*m.said) return value{*(f.engine.*m.said)};
        }
        return std::nullopt;
      },
      field.member);
}

bool is_off(const value& v) {
  if (const bool* b = v.boolean()) return !*b;
  if (const double* x = v.number()) return *x == 0;
  return v.integer() && *v.integer() == 0;
}

std::string yaml_scalar(const value& v) {
  if (const std::int64_t* i = v.integer()) return fmt::format("{}", *i);
  if (const double* x = v.number()) return fmt::format("{}", *x);
  if (const bool* b = v.boolean()) return *b ? "true" : "false";
  return v.string() ? *v.string() : "null";
}

struct framework {
  std::string_view engine;
  std::string_view launch_flags::*flag;
  std::string_view launch_flags::*zero;
};
constexpr framework of_vllm{"vllm", &launch_flags::vllm, &launch_flags::vllm_zero},
    of_sglang{"sglang", &launch_flags::sglang, &launch_flags::sglang_zero},
    of_tensorrt_llm{"tensorrt-llm", &launch_flags::tensorrt_llm, nullptr};

/// SGLang's number of a setting: of all ranks together, or whole.
value for_sglang(const fleet& f, const launch_flags& how, value v) {
  if (const std::int64_t* i = v.integer(); i && how.sums_ranks) return value{*i * f.ranks.attention_dp};
  if (const double* x = v.number(); x && how.whole) return value{std::floor(*x)};
  return v;
}

/// Adds what a framework takes of the settings: those that the plan says, and those that a command always has.
void add_settings(flags& out, const fleet& f, const framework& to) {
  for (const engine_field& field : engine_fields) {
    const launch_flags& how = field.flags;
    const std::string_view flag = how.*to.flag, zero = to.zero ? how.*to.zero : std::string_view();
    if (how.own && f.engine_of_stack != to.engine) continue;
    const std::optional<value> v = told(f, field);
    if (!v) continue;
    if (is_off(*v) && !zero.empty()) out.add(zero);
    else if (!flag.empty() && v->boolean()) out.add(flag);
    else if (!flag.empty())
      out.add(flag, yaml_scalar(to.engine == of_sglang.engine ? for_sglang(f, how, *v) : *v));
  }
}

bool eight_bit_cache(const inference_workload& w) { return w.kv_cache == precision::fp8; }

std::string vllm_flags(const inference_workload& w, const fleet& f) {
  flags out;
  if (f.ranks.tp > 1) out.add("--tensor-parallel-size", f.ranks.tp);
  if (f.ranks.pp > 1) out.add("--pipeline-parallel-size", f.ranks.pp);
  if (f.ranks.attention_dp > 1) out.add("--data-parallel-size", f.ranks.attention_dp);
  if (f.ranks.ep > 1) out.add("--enable-expert-parallel");
  if (f.copies.more > 0)
    out.add("--enable-eplb --eplb-config", fmt::format("'{{\"num_redundant_experts\": {}}}'", f.copies.more));
  if (eight_bit_cache(w)) out.add("--kv-cache-dtype", "fp8");
  if (f.hosts() > 1 && f.ranks.attention_dp > 1) {
    out.add("--data-parallel-size-local", std::max(1, f.host_gpus / (f.ranks.tp * f.ranks.pp)));
    out.add("--data-parallel-address", "HOST0");
  }
  add_settings(out, f, of_vllm);
  if (w.drafts.by_module())
    out.add("--speculative-config",
            fmt::format("'{{\"method\": \"mtp\", \"num_speculative_tokens\": {}}}'", w.drafts.draft_tokens));
  return out.text;
}

std::string sglang_flags(const inference_workload& w, const fleet& f) {
  flags out;
  const int gpus = f.ranks.tp * f.ranks.attention_dp;
  if (gpus > 1) out.add("--tp-size", gpus);
  if (f.ranks.attention_dp > 1) out.add("--enable-dp-attention"), out.add("--dp-size", f.ranks.attention_dp);
  if (f.ranks.ep > 1) out.add("--ep-size", f.ranks.ep);
  if (f.copies.more > 0) out.add("--ep-num-redundant-experts", f.copies.more);
  if (f.ranks.pp > 1) out.add("--pp-size", f.ranks.pp);
  if (eight_bit_cache(w)) out.add("--kv-cache-dtype", "fp8_e4m3");
  if (f.hosts(true) > 1)
    out.add("--nnodes", f.hosts(true)), out.add("--node-rank RANK --dist-init-addr HOST0:5000");
  add_settings(out, f, of_sglang);
  if (w.drafts.by_module()) {
    out.add("--speculative-algorithm", "EAGLE");
    out.add("--speculative-num-steps", w.drafts.draft_tokens);
    out.add("--speculative-num-draft-tokens", w.drafts.draft_tokens + 1);
  }
  return out.text;
}

std::string trtllm_flags(const fleet& f) {
  flags out;
  const int gpus = f.ranks.tp * f.ranks.attention_dp;
  if (gpus > 1) out.add("--tp_size", gpus);
  if (f.ranks.ep > 1) out.add("--ep_size", f.ranks.ep);
  if (f.ranks.pp > 1) out.add("--pp_size", f.ranks.pp);
  add_settings(out, f, of_tensorrt_llm);
  return out.text;
}

/// YAML in one line: `{dtype: fp8, tokens_per_block: 64}`.
std::string yaml_of(const value& v) {
  if (!v.members()) return yaml_scalar(v);
  std::vector<std::string> all;
  for (const auto& [key, member] : *v.members()) all.push_back(fmt::format("{}: {}", key, yaml_of(member)));
  return fmt::format("{{{}}}", fmt::join(all, ", "));
}

/// The options that TensorRT-LLM reads from a file.
value trtllm_options(const inference_workload& w, const fleet& f) {
  value out{value::object{{"enable_attention_dp", f.ranks.attention_dp > 1}}};
  const auto set = [&](std::string_view pointer, value v) {
    value* at = &out;
    for (const std::string& key : split_pointer(pointer)) at = at->find(key) ? at->find(key) : &at->set(key, {});
    *at = std::move(v);
  };
  if (eight_bit_cache(w)) set("/kv_cache_config/dtype", "fp8");
  if (*f.role) set("/cache_transceiver_config/backend", "UCX");
  if (w.drafts.by_module()) {
    set("/speculative_config/decoding_type", "MTP");
    set("/speculative_config/num_nextn_predict_layers", w.drafts.draft_tokens);
  }
  if (f.copies.more > 0) set("/moe_config/load_balancer/num_slots", f.copies.all);
  for (const engine_field& field : engine_fields) {
    const launch_flags& how = field.flags;
    if (how.tensorrt_llm_file.empty() || (how.own && f.engine_of_stack != of_tensorrt_llm.engine)) continue;
    const std::optional<value> v = told(f, field);
    if (!v) continue;
    if (is_off(*v) && !how.off_in_file.empty()) set(how.off_in_file, nullptr);
    else set(how.tensorrt_llm_file, *v);
  }
  if (const value* waits = out.at_pointer("/attention_dp_config"); waits && waits->members())
    set("/attention_dp_config/enable_balance", true);
  if (f.engine.schedule_ahead) set("/disable_overlap_scheduler", !*f.engine.schedule_ahead);
  if (f.engine.preemption)
    set("/scheduler_config/capacity_scheduler_policy",
        *f.engine.preemption == preemption_policy::none ? "GUARANTEED_NO_EVICT" : "MAX_UTILIZATION");
  return out;
}

/// A command that writes lines to a file.
std::string write_file(const std::vector<std::string>& lines, std::string_view name) {
  return fmt::format("printf '%s\\n' '{}' > {}", fmt::join(lines, "' '"), name);
}

std::string trtllm_file(const inference_workload& w, const fleet& f, const std::string& name) {
  const value options = trtllm_options(w, f);
  std::vector<std::string> lines;
  for (const auto& [key, v] : *options.members()) lines.push_back(fmt::format("{}: {}", key, yaml_of(v)));
  return write_file(lines, name);
}

std::string heading(const fleet& f) {
  const int gpus = f.ranks.gpus_per_replica();
  return fmt::format("# {}x {} worker of {} GPU{}", f.ranks.replicas, *f.role ? f.role : "serving", gpus,
                     gpus == 1 ? "" : "s");
}

/// How a worker is started that is on several hosts; empty for one host.
std::string over_hosts(const fleet& f, std::string_view engine) {
  if (f.hosts() < 2) return {};
  const bool equal = engine == of_sglang.engine;
  const int gpus = f.ranks.gpus_per_replica(), hosts = f.hosts(equal);
  const int of_rank = f.ranks.tp * f.ranks.pp, local = std::max(1, f.host_gpus / of_rank);
  const int last = f.ranks.attention_dp - (hosts - 1) * local;  // ranks of the last host
  std::string how = "the command on each, with its RANK";
  if (engine == "tensorrt-llm") how = "through mpirun, one process a GPU";
  else if (engine == "vllm" && f.ranks.attention_dp > 1) {
    how = "the command on HOST0, and on each other with --headless --data-parallel-start-rank RANK";
    if (last > 0 && last != local) how += fmt::format(", on the last with --data-parallel-size-local {}", last);
  } else if (engine == "vllm") how = "one Ray cluster, with --distributed-executor-backend ray";
  return fmt::format("# each on {} hosts of {} GPUs: {}", hosts, equal ? gpus / hosts : f.host_gpus, how);
}

void add_heading(launch_commands& out, const fleet& f, std::string_view engine) {
  out.lines.push_back(heading(f));
  if (std::string hosts = over_hosts(f, engine); !hosts.empty()) out.lines.push_back(std::move(hosts));
}

/// What the checkpoint must hold, as the plan counts it.
std::string checkpoint_line(const inference_workload& w) {
  std::string out = fmt::format("# the checkpoint must have {} weights", name(w.weights));
  if (w.attention_weights && *w.attention_weights != w.weights)
    out += fmt::format(", attention {}", name(*w.attention_weights));
  if (w.expert_weights && *w.expert_weights != w.weights)
    out += fmt::format(", experts {}", name(*w.expert_weights));
  return out + "; replace the model's name if your checkpoint differs";
}

/// `mpirun` for a worker on several hosts, else nothing.
std::string by_mpi(const fleet& f) {
  if (f.hosts() < 2) return {};
  return fmt::format("mpirun -n {} -H HOSTS trtllm-llmapi-launch ", f.ranks.gpus_per_replica());
}

launch_commands vllm(const scenario& s, const inference_workload& w) {
  launch_commands out{"vllm", {checkpoint_line(w)}};
  for (const fleet& f : fleets_of(s, w)) {
    add_heading(out, f, "vllm");
    std::string line = fmt::format("vllm serve {}{} --port PORT", hub_name(s), vllm_flags(w, f));
    if (*f.role) line += " --kv-transfer-config '{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}'";
    out.lines.push_back(line);
  }
  out.lines.emplace_back(w.prefill_pool ? "# in front: vLLM's router with the PORTs of both kinds"
                                        : "# in front, of several workers: any HTTP load balancer over all PORTs");
  return out;
}

launch_commands sglang(const scenario& s, const inference_workload& w) {
  launch_commands out{"sglang", {checkpoint_line(w)}};
  for (const fleet& f : fleets_of(s, w)) {
    add_heading(out, f, "sglang");
    std::string line = fmt::format("python3 -m sglang.launch_server --model-path {}{} --host 0.0.0.0 --port PORT",
                                   hub_name(s), sglang_flags(w, f));
    if (*f.role) line += fmt::format(" --disaggregation-mode {}", f.role);
    out.lines.push_back(line);
  }
  out.lines.emplace_back("# in front");
  out.lines.push_back(
      w.prefill_pool ? "python3 -m sglang_router.launch_router --pd-disaggregation --prefill http://HOST:PORT "
                       "... --decode http://HOST:PORT ..."
                     : "python3 -m sglang_router.launch_router --worker-urls http://HOST:PORT ...");
  return out;
}

launch_commands tensorrt_llm(const scenario& s, const inference_workload& w) {
  launch_commands out{"tensorrt-llm", {checkpoint_line(w)}};
  for (const fleet& f : fleets_of(s, w)) {
    const std::string file = fmt::format("{}.yaml", *f.role ? f.role : "serving");
    add_heading(out, f, "tensorrt-llm");
    out.lines.push_back(trtllm_file(w, f, file));
    out.lines.push_back(fmt::format("{}trtllm-serve {}{} --extra_llm_api_options {} --host 0.0.0.0 --port PORT",
                                    by_mpi(f), hub_name(s), trtllm_flags(f), file));
  }
  if (!w.prefill_pool) {
    out.lines.emplace_back("# in front, of several workers: any HTTP load balancer over all PORTs");
    return out;
  }
  out.lines.emplace_back("# in front");
  const auto servers = [](const char* kind, int workers) {
    return fmt::format("{}: {{num_instances: {}, urls: [HOST:PORT, ...]}}", kind, workers);
  };
  out.lines.push_back(
      write_file({"hostname: 0.0.0.0", fmt::format("port: {}", first_port),
                  servers("context_servers", w.prefill_pool->replicas), servers("generation_servers", w.replicas)},
                 "disagg.yaml"));
  out.lines.emplace_back("trtllm-serve disaggregated -c disagg.yaml");
  return out;
}

launch_commands dynamo(const scenario& s, const inference_workload& w, const std::string& backend) {
  launch_commands out{
      "dynamo",
      {checkpoint_line(w), "# in front", fmt::format("python3 -m dynamo.frontend --http-port {}", first_port)}};
  for (const fleet& f : fleets_of(s, w)) {
    const bool prefill = f.role == std::string_view("prefill");
    add_heading(out, f, backend);
    if (backend == "vllm") {
      out.lines.push_back(fmt::format("python3 -m dynamo.vllm --model {}{}{}", hub_name(s), vllm_flags(w, f),
                                      prefill ? " --is-prefill-worker" : ""));
    } else if (backend == "sglang") {
      out.lines.push_back(fmt::format("python3 -m dynamo.sglang --model-path {}{}{}", hub_name(s),
                                      sglang_flags(w, f),
                                      *f.role ? fmt::format(" --disaggregation-mode {}", f.role) : ""));
    } else {
      const std::string file = fmt::format("{}.yaml", *f.role ? f.role : "serving");
      out.lines.push_back(trtllm_file(w, f, file));
      flags more;
      const int gpus = f.ranks.tp * f.ranks.attention_dp;
      if (gpus > 1) more.add("--tensor-parallel-size", gpus);
      if (f.ranks.ep > 1) more.add("--expert-parallel-size", f.ranks.ep);
      flags limits;  // spelt with dashes there
      add_settings(limits, f, of_tensorrt_llm);
      std::replace(limits.text.begin(), limits.text.end(), '_', '-');
      more.text += limits.text;
      if (*f.role) more.add("--disaggregation-mode", f.role);
      out.lines.push_back(fmt::format("{}python3 -m dynamo.trtllm --model-path {}{} --extra-engine-args {}",
                                      by_mpi(f), hub_name(s), more.text, file));
    }
  }
  return out;
}

}  // namespace

std::string hub_name(const scenario& s) {
  const value* source = s.inputs.at_pointer("/model/source");
  constexpr std::string_view begin = "config.json of ", end = " on the Hugging Face hub";
  if (source && source->string()) {
    const std::string& text = *source->string();
    const std::size_t from = text.find(begin), to = text.find(end);
    if (from != std::string::npos && to != std::string::npos && from + begin.size() < to) {
      std::string name = text.substr(from + begin.size(), to - from - begin.size());
      if (name.find(' ') == std::string::npos) return name;
    }
  }
  return s.model.name;
}

std::string engine_of(const scenario& s) {
  for (const char* engine : {"sglang", "tensorrt-llm"})
    if (s.stack.name.starts_with(engine)) return engine;
  return "vllm";
}

launch_commands launch_of(const scenario& s, const std::string& engine, const std::string& backend) {
  const auto& w = std::get<inference_workload>(s.workload);
  const constants_unrecorded texts;
  if (engine == "vllm") return vllm(s, w);
  if (engine == "sglang") return sglang(s, w);
  if (engine == "tensorrt-llm") return tensorrt_llm(s, w);
  return dynamo(s, w, backend);
}

}  // namespace nvlsim
