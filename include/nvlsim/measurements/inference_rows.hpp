// Turns rows of inference.csv into simulations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "nvlsim/measurements/csv.hpp"
#include "nvlsim/measurements/input_cache.hpp"
#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/serving/inference.hpp"

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

  int workers() const { return workload.replicas * workload.pp; }
};

inference_row read_inference_row(const csv_row& row, const std::string& table, input_cache& inputs);

/// Whether `suspect` casts doubt on the row, beyond notes on how to read it or on its TTFT.
bool doubtful(std::string_view suspect);

}  // namespace nvlsim
