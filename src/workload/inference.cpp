#include "nvlsim/inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "nvlsim/units_text.hpp"
#include "workload/inference_memory.hpp"
#include "workload/iteration_time.hpp"

namespace nvlsim {
namespace {

using request_lengths = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Beyond these a run says nothing that a shorter one does not, and would fill the memory of a laptop.
constexpr std::int64_t most_requests = 10'000'000, most_iterations = 2'000'000;

std::vector<std::string> layout_reasons(const platform& p, const model& m, const inference_workload& w) {
  std::vector<std::string> out;
  std::set<std::string> shapes;
  for (const layer_spec& l : m.layers) {
    if (l.heads % w.tp != 0) shapes.insert(fmt::format("tp {} does not divide {} attention heads", w.tp, l.heads));
    if (l.kv_heads % w.tp != 0 && w.tp % l.kv_heads != 0)
      shapes.insert(fmt::format("tp {} neither divides {} KV heads nor is a multiple of them", w.tp, l.kv_heads));
    if (l.ffn_hidden % w.tp != 0)
      shapes.insert(fmt::format("tp {} does not divide {} MLP columns", w.tp, l.ffn_hidden));
  }
  out.assign(shapes.begin(), shapes.end());
  const std::int64_t domain = p.gpus_per_rack(), wanted = std::int64_t{w.tp} * w.replicas;
  if (w.tp > domain) out.push_back(fmt::format("tp {} exceeds the {} GPUs of an NVLink domain", w.tp, domain));
  if (wanted > p.gpus()) {
    out.push_back(
        fmt::format("{} replicas x tp {} need {} GPUs, {} has {}", w.replicas, w.tp, wanted, p.name, p.gpus()));
  } else if (w.tp <= domain && domain / w.tp * p.racks < w.replicas) {
    out.push_back(fmt::format("only {} replicas of tp {} fit whole into {} domains of {} GPUs",
                              domain / w.tp * p.racks, w.tp, p.racks, domain));
  }
  return out;
}

std::vector<std::string> stack_reasons(const platform& p, const stack& s, const inference_workload& w) {
  std::vector<std::string> out;
  if (!s.inference) out.push_back(fmt::format("stack {} has no \"inference\" section", s.name));
  const kernel_profile& k = kernels_for(s, p.gpu);
  for (const precision operands : std::set{w.weights, precision::bf16})
    if (!k.gemm.contains(operands))
      out.push_back(fmt::format("stack {} has no {} GEMM for {}", s.name, name(operands), p.gpu.name));
  return out;
}

std::int64_t longest(const token_lengths& l) {
  return std::max<std::int64_t>(1, std::llround(l.mean * (1 + l.spread)));
}

/// Reasons that concern the longest request, and the number of requests.
std::vector<std::string> load_reasons(const model& m, const inference_workload& w, const serving_memory& mem,
                                      const inference_profile& engine) {
  std::vector<std::string> out;
  const std::int64_t input = longest(w.input), request = input + longest(w.output);
  if (m.max_positions > 0 && request > m.max_positions)
    out.push_back(fmt::format("the longest request has {} tokens, {} takes {}", request, m.name, m.max_positions));
  if (!w.chunked_prefill && input > w.max_num_tokens)
    out.push_back(fmt::format("without chunked_prefill a prompt of {} tokens exceeds max_num_tokens {}", input,
                              w.max_num_tokens));
  if (mem.kv_capacity_tokens == 0) {
    out.push_back(fmt::format("no memory is left for a KV cache: {} are taken of {} usable",
                              format_quantity(mem.report.peak), format_quantity(mem.report.usable)));
  } else if (const std::int64_t block = engine.kv_block_tokens;
             (request + block - 1) / block * block > mem.kv_capacity_tokens) {
    out.push_back(fmt::format("the longest request needs {} KV tokens, the cache holds {}", request,
                              mem.kv_capacity_tokens));
  }
  const std::int64_t each = (w.requests + w.replicas - 1) / w.replicas;
  const std::int64_t batch = std::min(w.max_batch_size, w.max_num_tokens);
  const double iterations = static_cast<double>(each) * w.output.mean / static_cast<double>(batch);
  if (each > most_requests)
    out.push_back(fmt::format("{} requests a replica; at most {} are simulated", each, most_requests));
  else if (iterations > static_cast<double>(most_iterations))
    out.push_back(
        fmt::format("{:.0f} iterations or more a replica; at most {} are simulated", iterations, most_iterations));
  return out;
}

/// In [0, 1), by our own transform so that every library draws the same.
double uniform(std::mt19937_64& g) { return static_cast<double>(g() >> 11) * 0x1p-53; }

std::int64_t draw(std::mt19937_64& g, const token_lengths& l) {
  const double length = l.mean * (1 + l.spread * (2 * uniform(g) - 1));
  return std::max<std::int64_t>(1, std::llround(length));
}

request_lengths draw_lengths(const inference_workload& w, std::int64_t count) {
  std::mt19937_64 g(w.seed);
  request_lengths out;
  out.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t input = draw(g, w.input);
    out.emplace_back(input, draw(g, w.output));
  }
  return out;
}

/// Replicas that serve `requests` each.
struct replica_group {
  std::int64_t replicas = 0, requests = 0;
};

/// Requests are dealt in turn, so that some replicas may have one more.
std::vector<replica_group> deal(const inference_workload& w) {
  const std::int64_t each = w.requests / w.replicas, more = w.requests % w.replicas;
  std::vector<replica_group> out;
  if (more > 0) out.push_back({more, each + 1});
  if (more < w.replicas) out.push_back({w.replicas - more, each});
  return out;
}

std::vector<std::string> assumptions(const platform& p, const stack& s, const inference_workload& w) {
  std::vector<std::string> out{
      "all requests are there at the start; the cache reserves each request's own output"};
  if (w.replicas > 1)
    out.emplace_back("replicas draw the same request lengths; those with as many requests are one class");
  if (w.input.spread == 0 && w.output.spread == 0)
    out.emplace_back("all requests are equally long, so that waves of them stay in step as real ones do not");
  if (w.requests < w.replicas) out.push_back(fmt::format("{} replicas have no request", w.replicas - w.requests));
  if (!s.inference->sustained_factor.contains(p.gpu.name))
    out.push_back(
        fmt::format("the sustained rate of {} is not known: that of a short benchmark is taken", p.gpu.name));
  if (!s.inference->gemm_factor.contains(w.weights))
    out.push_back(
        fmt::format("no engine factor for {} GEMMs: rates of the kernel tables are taken", name(w.weights)));
  return out;
}

/// One operation an iteration; equal iterations share a template.
stream run_of(const batching_schedule& schedule, iteration_costs& costs, plan& work,
              std::map<iteration, std::int32_t>& known) {
  stream out;
  out.operations.reserve(schedule.iterations.size());
  for (const iteration& it : schedule.iterations) {
    const auto [at, is_new] = known.try_emplace(it);
    if (is_new) at->second = work.add_template(costs.price(it));
    work.append(out, at->second, {});
  }
  return out;
}

}  // namespace

inference_run plan_inference(const platform& p, const stack& s, const model& m, const inference_workload& w) {
  inference_run run;
  run.reasons = layout_reasons(p, m, w);
  for (std::string& r : stack_reasons(p, s, w)) run.reasons.push_back(std::move(r));
  if (!s.inference) return run;
  const serving_memory memory = plan_serving_memory(p, s, m, w);
  run.memory = memory.report;
  run.kv_capacity_tokens = memory.kv_capacity_tokens;
  for (std::string& r : load_reasons(m, w, memory, *s.inference)) run.reasons.push_back(std::move(r));
  if (!run.reasons.empty()) return run;

  run.notes = assumptions(p, s, w);
  const std::vector<replica_group> groups = deal(w);
  request_lengths lengths = draw_lengths(w, groups.front().requests);
  iteration_costs costs(p, s, m, w);
  std::map<iteration, std::int32_t> known;
  for (const replica_group& g : groups) {
    lengths.resize(static_cast<std::size_t>(g.requests));
    run.schedules.push_back(schedule_offline(lengths, w.max_num_tokens, w.max_batch_size, w.chunked_prefill,
                                             run.kv_capacity_tokens, s.inference->kv_block_tokens));
    run.replicas.push_back(g.replicas);
    run.work.classes.push_back({fmt::format("replica of {} requests", g.requests),
                                g.replicas * w.tp,
                                {run_of(run.schedules.back(), costs, run.work, known)}});
  }
  return run;
}

}  // namespace nvlsim
