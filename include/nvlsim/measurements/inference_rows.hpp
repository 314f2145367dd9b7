// Turns rows of inference.csv into simulations.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/summary.hpp"

namespace nvlsim {

enum class served_metric { tpot, ttft, throughput, throughput_per_gpu };

struct metric_target {
  served_metric what;
  const char* column;
  double published;
  bool median = false;
};

/// A row's simulation inputs and the values to compare.
struct inference_row {
  validation_record record;            ///< all keys but `metric` filled; status ok until a problem is found
  std::vector<metric_target> targets;  ///< one record each; a row without targets gives one record
  platform hardware;
  const model* net = nullptr;
  const stack* software = nullptr;
  inference_workload workload;
  std::optional<double> request_rate;  ///< open loop: requests/s over all replicas
  double gpus = 1;
  bool counts_prompts = false;  ///< throughput counts prompt tokens
  bool steady = false;          ///< a long run: throughput of a full batch, corrected for ramp-up and drain
  double samples = 0;           ///< minimum number of requests in a long run

  int workers() const { return workload.replicas * workload.pp; }
};

inference_row read_inference_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Whether `suspect` casts doubt on the row, beyond notes on how to read it or on its TTFT.
bool doubtful(std::string_view suspect);

/// Caches schedules by the settings that determine them.
class schedule_cache {
 public:
  /// The schedule of one replica. Throws internal_error if a request fits in no iteration.
  std::shared_ptr<const schedule_summary> schedule_of(const inference_row& r, const serving_memory& memory);

 private:
  std::map<std::vector<double>, std::shared_ptr<const schedule_summary>> known_;
};

/// Reasons why the row's requests do not fit in memory. Empty if they fit.
std::vector<std::string> capacity_problems(const inference_row& r, const serving_memory& memory);

/// Simulated values of the row's targets, in the units of their columns. `s` may differ from the row's own stack.
std::vector<double> simulate_row(const inference_row& r, const stack& s, const schedule_summary& schedule);
/// Like `simulate_row` for an open loop, simulated request by request. Adds a note if it saturates. Sets status
/// and reason if it cannot run.
std::vector<double> simulate_open_loop(inference_row& r, const stack& s);
/// Whether the iterations of an open loop can be reused to compute its values at slightly different costs. True
/// for one replica below saturation with mean values as targets.
bool can_freeze(const inference_row& r);
/// The iterations of such an open loop on stack `s`.
pooled_summary summarise_open_loop(const inference_row& r, const stack& s);

}  // namespace nvlsim
