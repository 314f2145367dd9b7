// What a server of an offline load cannot exceed, whatever its batches are. [docs/search.md#bounds]
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/serving/inference.hpp"

namespace nvlsim {

/// More than a server gives whose mean batch of decodes is at most `batch`, and more than at the step before: its
/// rates of all tokens and requests are lower, and so is the rate that a user sees.
struct ceiling_step {
  double batch = 0;
  double run_s = 0;     ///< least time of the run
  double per_user = 0;  ///< most tokens/s
};

/// Ceilings of a layout at every mean batch, from one sequence to all of them. Batch limits do not matter.
struct offline_ceiling {
  std::vector<ceiling_step> steps;
  double output_tokens = 0, total_tokens = 0, requests = 0;  ///< of all workers, at most
  // Of a worker.
  double decoded = 0, prompts = 0,
         cached = 0;  ///< decode steps, prompt tokens, cached tokens summed over the steps
  std::int64_t count = 0, longest_prompt = 0, longest_steps = 0,
               longest = 0;  ///< requests; most prompt tokens, decode steps and tokens of one
};

/// Whether there are ceilings for a load: all requests wait from the start, each worker has its own, and the run
/// counts as a whole.
bool has_ceiling(const inference_workload& w);
/// Requires `has_ceiling` and no `serving_problems`.
offline_ceiling ceiling_of(const serving_case& c);
/// The largest mean batch that the limits and the cache of `c` allow.
double largest_batch(const offline_ceiling& of, const serving_case& c);
/// No run has a smaller mean batch, since its scheduler begins a prompt wherever one may begin. 0 where that is
/// not known: prompts that wait for others or have iterations of their own, batches that start whole, preemptions.
double least_batch(const offline_ceiling& of, const serving_case& c);

}  // namespace nvlsim
