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
#include "nvlsim/serving/pooled_plan.hpp"
#include "nvlsim/serving/rank_weights.hpp"
#include "nvlsim/serving/routes.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

/// What ranks share out.
struct divided {
  std::int64_t whole;
  const char* unit;
  bool replicated = false;  ///< where there are fewer than ranks
};

/// `part` must divide the whole, or be a multiple of it where it may be replicated.
void check_division(std::set<std::string>& out, const char* what, std::int64_t part, const divided& d) {
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
  if (w.drafts.draft_tokens > 0 && m.mtp_layers == 0)
    out.insert(fmt::format("speculative: {} has no prediction module (MTP)", m.name));
  const int ranks = w.tp * w.attention_dp;
  if (w.ep > ranks) out.insert(fmt::format("ep {} exceeds the {} ranks of a replica", w.ep, ranks));
  else if (routed) check_division(out, "ep", w.ep, {ranks, "ranks of a replica"});
  return {out.begin(), out.end()};
}

std::vector<std::string> layout_reasons(const platform& p, const model& m, const inference_workload& w) {
  std::vector<std::string> out = shape_reasons(m, w);
  const int ranks = w.tp * w.attention_dp, each = w.gpus_per_replica();
  const std::int64_t domain = p.gpus_per_rack(), wanted = std::int64_t{each} * w.replicas;
  const char* const unit = w.attention_dp > 1 ? "attention_dp" : "tp";
  if (ranks > domain && ranks % domain != 0)
    out.push_back(fmt::format("{} {} exceeds the {} GPUs of an NVLink domain and is not a multiple of them", unit,
                              ranks, domain));
  if (wanted > p.gpus()) {
    out.push_back(fmt::format("{} replicas x {} {}{} need {} GPUs; {} has {}", w.replicas, unit, ranks,
                              w.pp > 1 ? fmt::format(" x pp {}", w.pp) : "", wanted, p.name, p.gpus()));
  } else if (each <= domain && domain / each * p.racks < w.replicas) {
    out.push_back(
        fmt::format("only {} replicas of {} {} fit into {} NVLink domains of {} GPUs without crossing one",
                    domain / each * p.racks, unit, each, p.racks, domain));
  }
  return out;
}

std::vector<std::string> stack_reasons(const platform& p, const stack& s, const inference_workload& w) {
  if (!s.inference) return {fmt::format("stack {} has no \"inference\" section", s.name)};
  std::vector<std::string> out;
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

/// Number of requests to draw; one if there are too many to simulate.
std::int64_t drawn(std::int64_t requests) { return requests > max_requests ? 1 : requests; }

/// Reasons that concern the longest of the requests, and the iterations that they all take.
std::vector<std::string> load_reasons(const serving_case& c, const serving_memory& mem,
                                      const schedule_limits& limits, request_extent longest,
                                      std::int64_t requests) {
  std::vector<std::string> out;
  const model& m = c.net;
  const inference_workload& w = c.workload;
  const engine_settings& set = limits.settings;
  if (m.max_positions > 0 && longest.whole > m.max_positions)
    out.push_back(
        fmt::format("the longest request has {} tokens; {} takes {}", longest.whole, m.name, m.max_positions));
  if (set.prefill == prefill_policy::whole_prompt && longest.prompt > set.max_num_tokens / limits.ranks)
    out.push_back(
        fmt::format("prefill whole_prompt: a prompt of {} tokens exceeds max_num_tokens {}; use prefill chunked",
                    longest.prompt, set.max_num_tokens / limits.ranks));
  const bool caches = kv_bytes_per_token(m, w.kv_cache) > 0;  // otherwise the shape reasons cover it
  if (caches && mem.kv_capacity_tokens == 0) {
    out.push_back(mem.no_cache);
  } else if (const std::int64_t needed = held_tokens(limits, longest.whole);
             caches && needed > max_request_tokens(limits)) {
    out.push_back(fmt::format("the longest request needs {} KV tokens; the cache {}holds {}", needed,
                              limits.ranks > 1 ? "of a rank " : "", max_request_tokens(limits)));
  }
  std::int64_t batch = std::min(set.max_batch_size, set.max_num_tokens);
  if (w.load == load_kind::closed_loop) batch = std::min(batch, w.concurrency);
  const double iterations =
      static_cast<double>(requests) * w.output.mean / (static_cast<double>(batch) * limits.tokens_per_step);
  if (iterations > static_cast<double>(max_iterations))
    out.push_back(
        fmt::format("a replica needs at least {:.0f} iterations; the limit is {}", iterations, max_iterations));
  return out;
}

/// Workers with `requests` requests and `clients` clients each.
struct worker_group {
  std::int64_t workers = 0, requests = 0, clients = 0;
};

/// Distributes requests over workers in turn, so some workers may have one more. In a closed loop requests go to
/// clients, and clients to workers; workers without a client get no requests.
std::vector<worker_group> deal(const inference_workload& w) {
  const bool closed = w.load == load_kind::closed_loop;
  const std::int64_t all = std::int64_t{w.replicas} * w.pp, workers = closed ? std::min(all, w.concurrency) : all;
  const std::int64_t of_client = closed ? w.requests / w.concurrency : 0,
                     dealt = w.requests - of_client * w.concurrency * closed;
  const std::int64_t each = dealt / workers, more = dealt % workers;
  const std::int64_t clients = closed ? w.concurrency / workers : 0;
  const std::int64_t more_clients = closed ? w.concurrency % workers : 0;
  std::vector<worker_group> out;
  std::vector<std::int64_t> cuts = {0, std::min(more, more_clients), std::max(more, more_clients), workers};
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i + 1] == cuts[i]) continue;
    const std::int64_t first = cuts[i];
    const std::int64_t here = clients + (first < more_clients ? 1 : 0);
    out.push_back({cuts[i + 1] - first, here * of_client + each + (first < more ? 1 : 0), here});
  }
  if (all > workers) out.push_back({all - workers, 0, 0});
  return out;
}

std::vector<std::string> assumptions(const platform& p, const stack& s, const model& m,
                                     const inference_workload& w) {
  std::vector<std::string> out;
  if (w.load == load_kind::closed_loop)
    out.push_back(fmt::format(
        "{} clients start together and send their next request when the last one ends; all requests are counted",
        w.concurrency));
  else out.emplace_back("all requests arrive at the start");
  const double reserve = settings_of(*s.inference, w).kv_reserve;
  out.push_back(fmt::format("admission reserves cache for the prompt and {:.0f} % of the output of each request",
                            100 * reserve));
  if (w.pp > 1)
    out.push_back(
        fmt::format("a pipeline of {0} stages has {0} micro-batches in flight, each scheduled separately", w.pp));
  if (w.replicas > 1)
    out.emplace_back(
        "all replicas draw the same request lengths; replicas with equally many requests form one class");
  if (w.input.spread == 0 && w.output.spread == 0)
    out.emplace_back("all requests have the same length, so they start and end in lockstep, unlike real ones");
  const std::int64_t workers = std::int64_t{w.replicas} * w.pp;
  const std::int64_t busy = w.load == load_kind::closed_loop ? std::min(w.requests, w.concurrency) : w.requests;
  if (busy < workers)
    out.push_back(fmt::format("{} of {} workers (replicas x pp) have no requests", workers - busy, workers));
  if (!s.inference->sustained_factor.contains(p.gpu.name))
    out.push_back(
        fmt::format("the sustained rate of {} is unknown; the rate in a short benchmark is used", p.gpu.name));
  if (!costs_for(s, p.gpu, m).gemm_factor.contains(w.weights))
    out.push_back(fmt::format("there is no engine factor for {} GEMMs; the rates of the kernel tables are used",
                              name(w.weights)));
  return out;
}

/// One operation per iteration. Equal iterations share a template.
stream run_of(const batching_schedule& schedule, iteration_costs& costs, plan& planned,
              std::map<iteration, std::int32_t>& known, bool explained) {
  stream out;
  out.operations.reserve(schedule.iterations.size());
  for (const iteration& it : schedule.iterations) {
    const auto [at, is_new] = known.try_emplace(it);
    if (is_new) at->second = planned.add_template(costs.price(it, explained));
    planned.append(out, at->second, {});
  }
  return out;
}

}  // namespace

engine_settings settings_of(const inference_profile& engine, const inference_workload& w) {
  return merged(engine.settings, w.engine);
}

double expected_tokens_per_step(int draft_tokens, double acceptance) {
  double all = 1, all_so_far = 1;
  for (int i = 0; i < draft_tokens; ++i) all += all_so_far *= acceptance;
  return all;
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
  std::vector<std::string> out = layout_reasons(p, m, w);
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
  out.kv_block_tokens = engine.kv_block_tokens;
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
    out.settings.kv_reserve = 1;
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

request_extent extent_of(const request_lengths& lengths) {
  request_extent out;
  for (const auto& [input, output] : lengths) {
    out.prompt = std::max(out.prompt, input);
    out.whole = std::max(out.whole, input + output);
  }
  return out;
}

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

namespace {

void run_pools(const serving_case& c, bool explained, inference_run& run) {
  const auto& [p, s, m, w] = c;
  const serving_memory memory = plan_serving_memory(p, s, m, decode_workload(w));
  run.memory = memory.report;
  run.memory.where = "each decode GPU";
  refuse_many(run.reasons, w.requests);
  const request_lengths lengths = draw_lengths(w, drawn(w.requests));
  const request_extent longest = extent_of(lengths);
  if (m.max_positions > 0 && longest.whole > m.max_positions)
    run.reasons.push_back(
        fmt::format("the longest request has {} tokens; {} takes {}", longest.whole, m.name, m.max_positions));
  const pool_setup setup = setup_pools(c, longest, run.reasons);
  run.kv_capacity_tokens = setup.decode.worker.kv_capacity_tokens;
  if (w.load == load_kind::static_batch)
    run.reasons.emplace_back("static_batch is not supported with pools, which take requests one by one");
  if (!run.reasons.empty()) return;
  run.notes = assumptions(p, s, m, w);
  run.notes.emplace_back(w.prompts_cached
                             ? "decode workers only: requests arrive with the KV cache of their prompt"
                             : "the first token is streamed when the decode worker starts on the request");
  run.tokens_per_step = w.drafts.tokens_per_step;
  if (behind_server(w)) run.front_end = s.inference->front_end;
  plan_pools(c, setup, lengths, run, explained);
}

}  // namespace

inference_run plan_inference(const platform& p, const stack& s, const model& m, const inference_workload& w,
                             bool explained) {
  inference_run run;
  run.reasons = serving_problems(p, s, m, w);
  if (!s.inference) return run;
  if (w.pooled()) {
    run_pools({p, s, m, w}, explained, run);
    return run;
  }
  const serving_memory memory = plan_serving_memory(p, s, m, w);
  run.memory = memory.report;
  run.kv_capacity_tokens = memory.kv_capacity_tokens;
  const std::vector<worker_group> groups = deal(w);
  const std::int64_t each = groups.front().requests;
  refuse_many(run.reasons, each, " per replica");
  const request_lengths lengths = draw_lengths(w, drawn(each));
  const request_extent longest = extent_of(lengths);
  schedule_limits limits = limits_of(*s.inference, w, memory);
  for (std::string& r : load_reasons({p, s, m, w}, memory, limits, longest, drawn(each)))
    run.reasons.push_back(std::move(r));
  if (!run.reasons.empty()) return run;

  run.notes = assumptions(p, s, m, w);
  run.tokens_per_step = w.drafts.tokens_per_step;
  if (behind_server(w)) run.front_end = s.inference->front_end;
  iteration_costs costs(p, s, m, w);
  std::map<iteration, std::int32_t> known;
  for (const worker_group& g : groups) {
    limits.concurrency = g.clients;
    const std::string held_up = prompts_held_up(limits, longest.prompt, g.clients > 0 ? g.clients : g.requests);
    if (!held_up.empty() && std::find(run.notes.begin(), run.notes.end(), held_up) == run.notes.end())
      run.notes.push_back(held_up);
    run.schedules.push_back(
        schedule_requests({lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(g.requests)}, limits));
    run.workers.push_back(g.workers);
    run.planned.classes.push_back({fmt::format("replica of {} requests", g.requests),
                                   g.workers * w.tp * w.attention_dp,
                                   {run_of(run.schedules.back(), costs, run.planned, known, explained)}});
  }
  return run;
}

}  // namespace nvlsim
