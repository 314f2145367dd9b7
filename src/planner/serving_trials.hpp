// Deployments that a plan runs until it knows what they hold.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/planner/serving_plan.hpp"
#include "planner/worker_rates.hpp"

namespace nvlsim {

/// A deployment, and the load at which the search for what it holds begins.
struct server_trial {
  bool pooled = false;
  rank_counts workers, prefill;
  std::int64_t max_num_tokens = 0, prefill_tokens = 0;  ///< 0: the engine's own
  int racks = 1;
  double guess = 1;   ///< requests/s
  double tpot_s = 0;  ///< at that load, for the length of the run

  std::int64_t gpus() const;
  /// Equal for deployments that are the same but for the guess.
  std::string key() const;
};

/// What a deployment holds.
struct server_held {
  server_trial trial;
  double requests_per_s = 0, users = 0;  ///< 0: no load
  std::int64_t requests = 0;             ///< of the run
  std::string limit;                     ///< see planned_server
  std::string missed;                    ///< why it holds no load
  std::int64_t runs = 0;
  bool stopped = false;  ///< before the highest load was known
};

/// Runs deployments, each once. Safe to call from several threads.
class trial_runner {
 public:
  trial_runner(const plan_base& base, const plan_watch& watch) : base_(base), watch_(watch) {}

  /// Runs those that have not been run on all processors. The order is that of `trials`.
  std::vector<server_held> hold(const std::vector<server_trial>& trials);
  /// All that were run, in the order of their keys.
  std::vector<server_held> all() const;
  std::int64_t runs() const { return runs_; }

 private:
  const plan_base& base_;
  const plan_watch& watch_;
  std::map<std::string, server_held> done_;
  std::int64_t runs_ = 0;
};

/// Pointers and values that make the base this deployment under an open loop.
std::vector<std::pair<std::string, value>> members_of(const plan_base& base, const server_trial& t,
                                                      double requests_per_s, std::int64_t requests);
/// The fewest copies that hold `demand` where each holds `one`, in the same unit: copies * one >= demand.
std::int64_t copies_for(double demand, double one);
/// So many copies of the deployment, as the scenario of one, and its result.
planned_server finished(const plan_base& base, const server_held& h, std::int64_t copies);

}  // namespace nvlsim
