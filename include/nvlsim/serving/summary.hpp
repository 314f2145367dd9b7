// Summary of a schedule: classes of similar iterations, and how often requests wait for each.
// [docs/models-and-assumptions.md#inference-classes]
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Iterations with nearly equal content. Weights are means over requests.
struct iteration_class {
  iteration_content mean;
  double count = 0;
  double steady = 0;       ///< those with more than 0.6 of the largest batch
  double first_token = 0;  ///< iterations between the arrival of a request and its first token
  double per_token = 0;    ///< iterations between two of its tokens
};

struct schedule_summary {
  std::vector<iteration_class> classes;
  std::vector<std::int32_t> class_of;  ///< by iteration; may have been dropped
  std::vector<request_progress> requests;
  double output_tokens = 0, mean_input = 0, mean_output = 0, tokens_per_step = 1;
};

/// Builds eight classes per doubling of decodes and of prompt tokens.
schedule_summary summarise(batching_schedule s, double tokens_per_step = 1);

/// Iterations of both pools with their times in the schedule, and the mean time between them.
struct pooled_summary {
  schedule_summary prefill, decode;
  double between_s = 0;  ///< transfers, and waits outside iterations
};
pooled_summary summarise(const pooled_schedule& s, double tokens_per_step);
/// The same for one worker that serves with a clock; the result is in `decode`. `begin_s` and `end_s` are times of
/// iterations.
pooled_summary summarise(const std::vector<iteration>& iterations, const std::vector<double>& begin_s,
                         const std::vector<double>& end_s, const std::vector<request_record>& requests,
                         double tokens_per_step);

/// Latencies as seen by clients of a worker, over all requests.
struct client_times {
  double ttft_s = 0, tpot_s = 0, makespan_s = 0, steady_tokens_per_s = 0;
};
/// Means over requests. `times` are durations of the classes.
client_times mean_times(const schedule_summary& s, const std::vector<double>& times, const front_end_costs& f);
/// Medians over requests; requires `class_of`.
client_times median_times(const schedule_summary& s, const std::vector<double>& times, const front_end_costs& f);

}  // namespace nvlsim
