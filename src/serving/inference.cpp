#include "nvlsim/serving/inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/pools.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/serving/routes.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

/// What ranks share out.
struct dividend {
  std::int64_t whole;
  const char* unit;
  bool replicated = false;  ///< where there are fewer than ranks
};

/// `part` must divide the whole, or be a multiple of it where it may be replicated.
void check_division(std::set<std::string>& out, const char* what, std::int64_t part, const dividend& d) {
  if (d.whole % part == 0 || (d.replicated && d.whole > 0 && part % d.whole == 0)) return;
  out.insert(d.replicated ? fmt::format("{} {} neither divides {} {} nor is a multiple of them", what, part,
                                        d.whole, d.unit)
                          : fmt::format("{} {} does not divide {} {}", what, part, d.whole, d.unit));
}

std::vector<std::string> shape_reasons(const model& m, const inference_workload& w) {
  std::set<std::string> out;
  for (const layer_spec& l : m.layers) {
    check_division(out, "tp", w.tp, {l.heads, "attention heads"});
    if (l.attention == attention_kind::grouped_query)
      check_division(out, "tp", w.tp, {l.kv_heads, "KV heads", true});
    check_division(out, "tp", w.tp, {l.ffn_hidden, "MLP columns"});
    check_division(out, "tp", w.tp, {l.moe.shared_ffn, "columns of shared experts"});
    check_division(out, "tp", w.tp, {l.scan.heads, "scan heads"});
    check_division(out, "tp", w.tp,
                   {l.attention == attention_kind::mamba ? l.scan.groups : l.scan.key_heads,
                    "scan groups or key heads", true});
    check_division(out, "tp", w.tp, {l.compressed.o_groups, "groups of the attention's output", true});
    // Wide expert parallelism fills its ranks with copies of the busiest experts.
    if (l.routed() && w.attention_dp == 1) check_division(out, "ep", w.ep, {l.moe.experts, "experts"});
    if (l.routed() && w.ep > l.moe.experts)
      out.insert(fmt::format("ep {} exceeds {} experts", w.ep, l.moe.experts));
  }
  if (kv_bytes_per_token(m, w.kv_cache) == 0)
    out.insert(fmt::format("{} has no layer with a KV cache; serving such models is not modelled", m.name));
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  if (w.pp > layers) out.insert(fmt::format("pp {} exceeds {} layers", w.pp, layers));
  const bool routed = has_routed_experts(m);
  if (w.ep > 1 && !routed) out.insert(fmt::format("ep {}: {} has no experts", w.ep, m.name));
  if (w.attention_dp > 1 && w.tp > 1) out.insert("tp and attention_dp cannot both be above 1");
  if (w.drafts.by_module() && m.mtp_layers == 0)
    out.insert(fmt::format("speculative: {} has no prediction module (MTP)", m.name));
  const int ranks = w.tp * w.attention_dp;
  if (w.ep > ranks) out.insert(fmt::format("ep {} exceeds the {} ranks of a replica", w.ep, ranks));
  else if (routed) check_division(out, "ep", w.ep, {ranks, "ranks of a replica"});
  return {out.begin(), out.end()};
}

/// Decode context parallelism shares out what ranks would hold more than once.
void check_context_ranks(const model& m, const inference_workload& w, std::int64_t ranks,
                         std::set<std::string>& out) {
  if (ranks == 1) return;
  check_division(out, "decode_context_parallel", ranks, {w.tp, "tensor-parallel ranks"});
  for (const layer_spec& l : m.layers)
    if (l.attention == attention_kind::grouped_query && l.kv_heads * ranks > w.tp)
      out.insert(fmt::format("decode_context_parallel {}: {} KV heads on tp {} are held {} times", ranks,
                             l.kv_heads, w.tp, std::max<std::int64_t>(1, w.tp / l.kv_heads)));
}

std::vector<std::string> layout_reasons(const platform& p, const stack& s, const model& m,
                                        const inference_workload& w) {
  std::vector<std::string> out = shape_reasons(m, w);
  if (s.inference) {
    std::set<std::string> more;
    check_context_ranks(m, w, settings_of(*s.inference, w).decode_context_parallel, more);
    out.insert(out.end(), more.begin(), more.end());
  }
  const int ranks = w.tp * w.attention_dp, each = w.gpus_per_replica();
  const std::int64_t domain = p.gpus_per_rack(), wanted = std::int64_t{each} * w.replicas;
  const char* const unit = w.attention_dp > 1 ? "attention_dp" : "tp";
  if (ranks > domain && ranks % domain != 0)
    out.push_back(fmt::format("{} {} exceeds the {} GPUs of {} and is not a multiple of them", unit, ranks, domain,
                              a_domain(p.gpu)));
  if (wanted > p.gpus()) {
    out.push_back(fmt::format("{} replicas x {} {}{} need {} GPUs; {} has {}", w.replicas, unit, ranks,
                              w.pp > 1 ? fmt::format(" x pp {}", w.pp) : "", wanted, p.name, p.gpus()));
  } else if (each <= domain && domain / each * p.racks < w.replicas) {
    out.push_back(fmt::format("only {} replicas of {} {} fit into {} {} domains of {} GPUs without crossing one",
                              domain / each * p.racks, unit, each, p.racks, link_name(p.gpu), domain));
  }
  return out;
}

std::vector<std::string> stack_reasons(const platform& p, const stack& s, const inference_workload& w) {
  if (!s.inference) return {fmt::format("stack {} has no \"inference\" section", s.name)};
  std::vector<std::string> out;
  const bool amd = p.gpu.architecture.starts_with("cdna");
  if (amd && s.name.starts_with("tensorrt-llm"))
    return {fmt::format("stack {} runs on NVIDIA GPUs only, not on {}; vllm-rocm-0.19 and sglang-rocm-0.5.15 do",
                        s.name, p.gpu.name)};
  if (w.kv_cache == precision::nvfp4 && (amd || !p.gpu.dense_peak(precision::nvfp4)))
    out.push_back(fmt::format("kv_cache nvfp4: no kernel for {} reads it; fp8 and bf16 are possible", p.gpu.name));
  const kernel_profile& k = kernels_for(s, p.gpu);
  const engine_costs costs = s.inference->costs(p.gpu.name, p.gpu.architecture);
  std::set<precision> wanted;
  for (const weight_role r :
       {weight_role::dense, weight_role::attention, weight_role::expert, weight_role::sixteen_bit})
    if (const precision x = weights_of(w, r); wanted.insert(x).second && !route_gemm(p.gpu, k, costs, {r, x}, 1))
      out.push_back(fmt::format("stack {} has no {} GEMM for {}", s.name, name(x), p.gpu.name));
  const bool exchanges = w.ep > 1 && w.attention_dp > 1 && w.attention_dp <= p.gpus_per_rack();
  if (exchanges && !expert_exchange_time(s.collectives, p, dispatch_kernel, {1, 1, 1, w.attention_dp, 1, true}))
    out.push_back(fmt::format("stack {} has no {} kernel to dispatch tokens to experts", s.name, dispatch_kernel));
  return out;
}

}  // namespace

namespace {

engine_overrides usual_on(const gpu_spec& gpu, const inference_profile& engine, const model& m, int attention_dp) {
  engine_overrides out;
  for (const usual_settings& u : engine.usual) {
    if (!u.gpu.empty() && u.gpu != gpu.name && u.gpu != gpu.architecture) continue;
    if (!u.model_type.empty() && u.model_type != m.model_type) continue;
    engine_overrides said = u.settings;
    if (u.of_replica && said.max_batch_size)
      said.max_batch_size = std::max<std::int64_t>(1, said.max_batch_size->read() / attention_dp);
    out = merged(out, said);
  }
  return out;
}

}  // namespace

void find_usual_settings(const platform& p, const stack& s, const model& m, inference_workload& w) {
  if (!s.inference) return;
  w.usual = usual_on(p.gpu, *s.inference, m, w.attention_dp);
  if (w.prefill_pool) w.prefill_pool->usual = usual_on(p.gpu, *s.inference, m, w.prefill_pool->attention_dp);
}

engine_settings settings_of(const inference_profile& engine, const inference_workload& w) {
  return merged(merged(engine.settings, w.usual), w.engine);
}

double expected_tokens_per_step(int draft_tokens, double acceptance) {
  double all = 1, all_so_far = 1;
  for (int i = 0; i < draft_tokens; ++i) all += all_so_far *= acceptance;
  return all;
}

std::int64_t decode_steps(std::int64_t tokens, double tokens_per_step) {
  return tokens == 0 ? 0 : std::max<std::int64_t>(1, std::llround(static_cast<double>(tokens) / tokens_per_step));
}

std::vector<std::string> serving_problems(const platform& p, const stack& s, const model& m,
                                          const inference_workload& w) {
  if (w.prefill_pool) {
    std::vector<std::string> out = serving_problems(p, s, m, decode_workload(w));
    for (const std::string& r : serving_problems(p, s, m, prefill_workload(w)))
      if (std::find(out.begin(), out.end(), r) == out.end()) out.push_back("prefill pool: " + r);
    if (out.empty() && w.gpus() > p.gpus())
      out.push_back(fmt::format("both pools together need {} GPUs; {} has {}", w.gpus(), p.name, p.gpus()));
    return out;
  }
  std::vector<std::string> out = layout_reasons(p, s, m, w);
  for (std::string& r : stack_reasons(p, s, w)) out.push_back(std::move(r));
  return out;
}

void refuse_many(std::vector<std::string>& reasons, std::int64_t requests, const char* whose) {
  if (requests > max_requests)
    reasons.push_back(fmt::format("{} requests{} exceed the limit of {}", requests, whose, max_requests));
}

schedule_limits limits_of(const inference_profile& engine, const inference_workload& w,
                          const serving_memory& memory) {
  schedule_limits out;
  out.settings = settings_of(engine, w);
  out.kv_capacity_tokens = memory.kv_capacity_tokens;
  out.kv_block_tokens = memory.kv_block_tokens;
  if (memory.max_sequences > 0)
    out.settings.max_batch_size = std::min(out.settings.max_batch_size.read(), memory.max_sequences);
  out.tokens_per_step = w.drafts.tokens_per_step;
  out.ranks = w.attention_dp;
  out.sequence = memory.sequence;
  // Under attention data parallelism limits are per rank.
  out.settings.max_num_tokens *= w.attention_dp;
  out.settings.max_batch_size *= w.attention_dp;
  if (w.load == load_kind::static_batch) {
    out.ranks = 1;
    out.settings.prefill = prefill_policy::exclusive;
    out.settings.max_num_tokens = out.settings.max_batch_size = std::int64_t{1} << 40;
    out.settings.preemption = preemption_policy::none;
  }
  return out;
}

schedule_limits of_prompts_alone(schedule_limits l) {
  l.tokens_per_step = 1;
  // Without decodes both are the same, except that prompts longer than the budget are split.
  if (l.settings.prefill == prefill_policy::whole_prompt) l.settings.prefill = prefill_policy::exclusive;
  return l;
}

std::int64_t held_tokens(const schedule_limits& l, std::int64_t tokens) {
  return (tokens + l.kv_block_tokens - 1) / l.kv_block_tokens * l.kv_block_tokens + l.sequence.beside(tokens);
}

std::int64_t max_request_tokens(const schedule_limits& l) { return l.kv_capacity_tokens / l.ranks; }

std::string prompts_held_up(const schedule_limits& l, std::int64_t prompt, std::int64_t clients) {
  if (l.settings.prefill != prefill_policy::whole_prompt) return {};
  // Limits are per rank of attention data parallelism.
  const std::int64_t budget = l.settings.max_num_tokens / l.ranks, room = budget - prompt;
  const std::int64_t batch = std::min(l.settings.max_batch_size / l.ranks, (clients + l.ranks - 1) / l.ranks);
  if (room >= batch - 1) return {};
  return fmt::format(
      "prefill whole_prompt: a prompt of {} tokens leaves room for {} decodes in max_num_tokens {} and waits "
      "until no more are running; use a larger max_num_tokens or prefill chunked",
      prompt, std::max<std::int64_t>(room, 0), budget);
}

}  // namespace nvlsim
