#include "search/offline_ceiling.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"

namespace nvlsim {
namespace {

constexpr double steps_per_doubling = 4;
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
  const serving_memory memory = plan_serving_memory(c.hardware, c.software, c.net, c.workload);
  const schedule_limits l = limits_of(*c.software.inference, c.workload, memory);
  const batch_limits limits(l);
  const double in_cache = static_cast<double>(limits.cache_tokens) * of.decoded / of.cached;
  return std::min(static_cast<double>(limits.sequences), in_cache);
}

}  // namespace nvlsim
