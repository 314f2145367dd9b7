// Serving: a load, what serves it, and all that results need. [docs/serving.md]
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/requests.hpp"
#include "nvlsim/serving/server.hpp"

namespace nvlsim {

/// Use of one class of iterations: mean content, count and time.
struct iteration_use {
  operation_template operation;
  double count = 0, seconds = 0;  ///< over all workers
  int gpus = 1;                   ///< per worker
};

/// A served load, with everything that results need.
struct serving_run {
  serving_outcome outcome;
  std::vector<iteration_use> uses;  ///< by kind
  /// Transfers of KV caches, by prompt tokens.
  std::map<std::int64_t, operation_template> transfers;
  memory_report memory;
  front_end_costs front_end;  ///< zero if the engine is called in process
  std::int64_t kv_capacity_tokens = 0;
  std::int64_t prefix_tokens = 0;    ///< of a block that requests share
  std::int64_t activities = 0;       ///< of SimGrid
  std::vector<std::string> reasons;  ///< why it cannot run; empty when it can
  /// With shared runs: the earlier run, by number, to which this one is equal in all but memory and notes.
  /// Outcome, uses and transfers are then left out.
  std::optional<std::size_t> same_as;
  std::vector<std::string> notes;
};

/// The workers of a run as a plan that has been run, for traces: the first iterations, and counters of what runs,
/// waits and is cached.
struct serving_picture {
  plan planned;
  timeline times;
  std::vector<trace_counter> counters;
  std::vector<std::vector<iteration_batch>> batches;  ///< by class and operation of its first stream
};
/// The counter of the share of its KV cache that a worker holds.
inline constexpr const char* kv_used_counter = "KV cache used (fraction)";
/// At most 64 workers, unless `whole`.
serving_picture trace_serving(const serving_run& run, const inference_workload& w, bool whole = false);

/// What runs of one layout share: prices, requests, and runs that are equal. The platform, stack, model and
/// workload must be the same but for `max_batch_size`, `max_num_tokens` and the size of the load (requests,
/// concurrency and rates). Used by one thread at a time.
struct shared_runs;
/// Those of a layout; hardware, software and model must outlive them.
std::shared_ptr<shared_runs> runs_of_layout(const serving_case& c);

struct serving_options {
  std::optional<std::int64_t> kv_capacity_tokens = {};   ///< of a worker, in place of what the memory model gives
  bool explained = false;                                ///< keeps all iterations, and the facts of their parts
  bool traced = true;                                    ///< keeps what traces show
  bool traffic = false;                                  ///< iterations have their traffic, for `play`
  std::int64_t rack_spacing = 1;                         ///< racks from one of the server's to the next
  bool fold = true;                                      ///< simulates one of equal replicas that share nothing
  shared_runs* shared = nullptr;                         ///< of this layout
  std::function<void(const request_record&)> seen = {};  ///< as of `server_settings`
  server_player play = serve_by_queue;                   ///< none: only looks for reasons why it cannot run
};
serving_run serve(const platform& p, const stack& s, const model& m, const inference_workload& w,
                  const serving_options& options = {});

}  // namespace nvlsim
