// Workers put together to deployments.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/serving_trials.hpp"
#include "planner/worker_rates.hpp"

namespace nvlsim {

/// Workers of all shapes, rated.
struct rated_shapes {
  std::vector<rated_worker> combined, prefill, decode;
  std::int64_t domain = 1;  ///< GPUs of an NVLink domain
};

/// The best deployments on at most `gpus` GPUs, by the rates of their workers; one of each pair of shapes. Best
/// first; of equal ones that with fewer GPUs. GPUs that help nothing stay idle.
std::vector<server_trial> combinations(const rated_shapes& r, bool pooled, std::int64_t gpus, std::size_t most);
/// The deployments of each pair of shapes with the fewest GPUs for a rate. Fewest first.
std::vector<server_trial> combinations_for(const rated_shapes& r, bool pooled, double wanted, std::size_t most);

/// The same shapes with one worker more or fewer in a pool, on at most `gpus` GPUs (0: any number).
std::vector<server_trial> neighbours(const rated_shapes& r, const server_trial& t, int by, std::int64_t gpus);
/// Moves GPUs between the pools: one worker more of a kind, and as many of the other as still fit.
std::vector<server_trial> shifted(const rated_shapes& r, const server_trial& t, std::int64_t gpus);
/// Other limits on the tokens of an iteration.
std::vector<server_trial> with_other_limits(const server_trial& t, std::int64_t own_tokens);

/// The points of tokens/s/GPU over tokens/s/user that deployments of `gpus` GPUs reach, by the rates of their
/// workers. Those with a TTFT above `ttft_s` are left out.
std::vector<serving_point> points_of(const rated_shapes& r, std::int64_t gpus, double output_tokens,
                                     double ttft_s);

}  // namespace nvlsim
