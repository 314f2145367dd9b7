#include "search/offline_ceiling.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {
namespace {

constexpr double steps_per_doubling = 16;
constexpr double prompts_at_once = 16'384;  ///< tokens; more of them make an iteration hardly more efficient
/// By how much the time of many iterations may lie below that of as many mean ones, as a share: times grow with
/// content, but not evenly (kernels work on whole tiles), and short answers weigh more in the mean of users.
/// (assumed; tests/unit/search/offline_ceiling_test.cpp holds runs against it)
constexpr double unevenness = 0.05;

/// Requests of the worker with most of them, where all come at once.
std::int64_t requests_of_worker(const inference_workload& w) {
  const std::int64_t workers = std::int64_t{w.replicas} * w.pp;
  return (w.requests + workers - 1) / workers;
}

schedule_limits limits_in(const serving_case& c) {
  const serving_memory memory = plan_serving_memory(c.hardware, c.software, c.net, c.workload);
  return limits_of(*c.software.inference, c.workload, memory);
}

/// Whether a prompt begins as soon as the batch, the token budget and memory have room.
bool begins_at_once(const schedule_limits& l, const inference_workload& w) {
  const engine_settings& s = l.settings;
  return w.load == load_kind::offline && !w.pooled() && s.prefill == prefill_policy::chunked &&
         s.batch_wait_iterations <= 0 && (s.rank_wait_iterations <= 0 || l.ranks <= 1);
}

}  // namespace

bool has_ceiling(const inference_workload& w) {
  return (w.load == load_kind::offline || w.load == load_kind::static_batch) && dealt(w) &&
         w.measured.warmup <= 0 && w.measured.tail <= 0 && !w.measured.steady && !w.mlperf;
}

offline_ceiling ceiling_of(const serving_case& c) {
  const inference_workload& w = c.workload;
  inference_workload own = w;
  own.requests = requests_of_worker(w);
  const double a_step = w.drafts.tokens_per_step, workers = static_cast<double>(w.replicas) * w.pp;
  offline_ceiling out;
  for (const served_request& r : generate_requests(own, c.net.max_positions).requests) {
    const auto steps = static_cast<double>(decode_steps(r.output - 1, a_step)),
               input = static_cast<double>(r.input);
    out.decoded += steps;
    out.prompts += input;
    out.cached += steps * (input + a_step * std::max(0.0, steps - 1) / 2);
    out.output_tokens += workers * static_cast<double>(r.output);
    out.total_tokens += workers * static_cast<double>(r.input + r.output);
    out.requests += workers;
    ++out.count;
    out.longest_prompt = std::max(out.longest_prompt, r.input);
    out.longest_steps = std::max(out.longest_steps, decode_steps(r.output - 1, a_step));
    out.longest = std::max(out.longest, r.input + r.output);
  }
  if (out.decoded == 0) return out;
  iteration_costs costs(c.hardware, c.software, c.net, w);
  const auto all = static_cast<double>(own.requests);
  const double each = std::min(out.prompts, prompts_at_once);
  const double prompts_alone = out.prompts / each * costs.time({.prompt_tokens = each}).base();
  const double last = std::ceil(steps_per_doubling * std::log2(all));
  for (double i = 0; i <= last; ++i) {
    const double batch = std::min(all, std::exp2(i / steps_per_doubling)), iterations = out.decoded / batch;
    iteration_content mean{.decodes = batch, .context = out.cached / iterations};
    const double decodes_alone = costs.time(mean).base();
    mean.prompt_tokens = out.prompts / iterations;  // their attention counts as nothing
    // Prompts are spread over the iterations, or have their own. Ranks take whole prompts, all of which together
    // may cost what one does.
    double time = iterations * decodes_alone;
    if (w.attention_dp == 1) time = std::min(time + prompts_alone, iterations * costs.time(mean).base());
    const double before = out.steps.empty() ? HUGE_VAL : out.steps.back().run_s;
    out.steps.push_back(
        {batch, std::min(before, (1 - unevenness) * time), a_step / ((1 - unevenness) * decodes_alone)});
  }
  return out;
}

double largest_batch(const offline_ceiling& of, const serving_case& c) {
  const schedule_limits l = limits_in(c);
  const batch_limits limits(l);
  const double in_cache = static_cast<double>(limits.cache_tokens) * of.decoded / of.cached;
  return std::min(static_cast<double>(limits.sequences), in_cache);
}

// Before the last prompt begins, an iteration has either as many sequences as limits and memory hold, each in a
// step of its own or in its prompt, or as many decodes and prompt tokens as the budget. After that, sequences only
// end.
double least_batch(const offline_ceiling& of, const serving_case& c) {
  const schedule_limits l = limits_in(c);
  if (!begins_at_once(l, c.workload) || of.count < 2) return 0;
  const batch_limits limits(l);
  const std::int64_t each = held_tokens(l, of.longest) + l.kv_block_tokens;
  const std::int64_t in_cache = limits.cache_tokens / each;
  if (l.settings.preemption != preemption_policy::none && in_cache <= limits.sequences) return 0;
  const auto sequences = static_cast<double>(std::min(limits.sequences, in_cache));
  if (sequences < 1) return 0;
  const double ranks = std::max(l.ranks, 1), in_rank = static_cast<double>(limits.rank_tokens);
  // A full iteration cuts at most one prompt of each rank, which is then in one iteration more.
  const double full = (1 + ranks / sequences) / (ranks * in_rank);
  const double prompts = static_cast<double>(of.count) + of.prompts / in_rank;
  const double end =
      static_cast<double>(of.longest_steps) + std::ceil(static_cast<double>(of.longest_prompt) / in_rank) + 1;
  const double iterations =
      of.decoded * std::max(1 / sequences, full) + prompts / sequences + of.prompts * full + end;
  // Other workers may have a request less.
  return std::max(0.0, of.decoded - static_cast<double>(of.longest_steps)) / iterations;
}

}  // namespace nvlsim
