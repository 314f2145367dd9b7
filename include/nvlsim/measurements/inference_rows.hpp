// A row of inference.csv as a simulation.
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

/// What a row asks to be simulated and compared.
struct inference_row {
  validation_record record;            ///< keys filled but for `metric`; ok until something says otherwise
  std::vector<metric_target> targets;  ///< one record each; a row without one gives a single record
  platform hardware;
  const model* net = nullptr;
  const stack* software = nullptr;
  inference_workload work;
  std::optional<double> request_rate;  ///< of an open loop, requests a second over all replicas
  double gpus = 1;
  bool counts_prompts = false;  ///< throughput is of prompt tokens
  bool steady = false;          ///< a long run: throughput of a full batch, and what beginning and end take longer
  double samples = 0;           ///< least number of requests of such a run

  int lanes() const { return work.replicas * work.pp; }
};

inference_row read_inference_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Whether a mark in `suspect` says more than how the row is to be read, or that its TTFT is not to be trusted.
bool doubtful(std::string_view suspect);

/// Schedules by what decides them; rows that differ in nothing else share one.
class schedule_cache {
 public:
  /// That of one lane. Throws internal_error when a request fits no iteration.
  std::shared_ptr<const schedule_summary> schedule_of(const inference_row& r, const serving_memory& memory);

 private:
  std::map<std::vector<double>, std::shared_ptr<const schedule_summary>> known_;
};

/// Reasons why the row's requests cannot be served; empty when they can.
std::vector<std::string> capacity_problems(const inference_row& r, const serving_memory& memory);

/// Values of the row's targets in their columns' units, on a stack that may differ from the row's own.
std::vector<double> simulate_row(const inference_row& r, const stack& s, const schedule_summary& schedule);
/// The same of an open loop, request by request; notes when it is saturated. Sets status and reason when it cannot
/// run.
std::vector<double> simulate_open_loop(inference_row& r, const stack& s);
/// Whether the iterations of an open loop tell its values at costs near those they ran at: one lane, below
/// saturation, means.
bool can_freeze(const inference_row& r);
/// The iterations of such a row, as they run on a stack.
pooled_summary summarise_open_loop(const inference_row& r, const stack& s);

}  // namespace nvlsim
