// Summary of a served run: classes of similar iterations, and how often requests wait for each. Computes the run's
// times again at other costs, with its iterations as they were. [docs/models-and-assumptions.md#inference-classes]
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/server.hpp"

namespace nvlsim {

/// All iterations of one worker.
struct worker_iterations {
  bool prefills = false;
  std::vector<iteration> contents;
  std::vector<double> begin_s, end_s;
};

/// Iterations with nearly equal content. Weights are means over requests.
struct iteration_class {
  iteration_content mean;
  double count = 0;
  double first_token = 0;  ///< iterations between the arrival of a request and its first token
  double per_token = 0;    ///< iterations between two of its tokens
};

/// Progress of a request, as iteration indices of its worker.
struct request_progress {
  std::int64_t input = 0, output = 0;
  std::int32_t arrived = 0;      ///< iteration that begins when it is sent
  std::int32_t first_token = 0;  ///< iteration that produces its first token
  std::int32_t last_token = 0;
};

struct run_summary {
  std::vector<iteration_class> prefill, decode;  ///< of workers that only prefill, and of the others
  double between_s = 0;  ///< mean time of a request outside iterations: transfers, and waits for a worker to begin
  double output_tokens = 0, mean_input = 0, mean_output = 0;
  // Of a single worker, for medians.
  std::vector<std::int32_t> class_of;  ///< by iteration
  std::vector<request_progress> requests;
};

/// Builds eight classes per doubling of decodes and of prompt tokens.
run_summary summarise(const std::vector<worker_iterations>& workers, const std::vector<request_record>& requests);

/// Latencies as seen by clients, over all requests.
struct client_times {
  double ttft_s = 0, tpot_s = 0;
  double makespan_s = 0;  ///< of a single worker that never idles
};
/// Durations of the classes of a summary.
struct class_times {
  std::vector<double> prefill, decode;
};
/// Means over requests.
client_times mean_times(const run_summary& s, const class_times& times, const front_end_costs& f);
/// Medians over requests; requires a single worker.
client_times median_times(const run_summary& s, const class_times& times, const front_end_costs& f);

}  // namespace nvlsim
