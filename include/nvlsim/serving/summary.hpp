// A schedule boiled down to what its times need: classes of like iterations, and how often clients wait for each.
// [docs/models-and-assumptions.md#inference-classes]
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/serving/iteration_time.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

/// Iterations that hold nearly the same. Weights are means over requests.
struct iteration_class {
  iteration_content mean;
  double count = 0;
  double steady = 0;       ///< of those, with more than 0.6 of the largest batch
  double first_token = 0;  ///< between the arrival of a request and its first token
  double per_token = 0;    ///< between two of its tokens
};

struct schedule_summary {
  std::vector<iteration_class> classes;
  std::vector<std::int32_t> class_of;  ///< by iteration; empty once it is dropped
  std::vector<request_progress> requests;
  double output_tokens = 0, mean_input = 0, mean_output = 0, tokens_per_step = 1;
};

/// Eight classes for each doubling of the decodes, and of the prompt tokens.
schedule_summary summarise(batching_schedule s, double tokens_per_step = 1);

/// The iterations of both pools, as they were when the schedule was made, and the mean time of what is between
/// them.
struct pooled_summary {
  schedule_summary prefill, decode;
  double between_s = 0;  ///< transfers, and waits that no iteration explains
};
pooled_summary summarise(const pooled_schedule& s, double tokens_per_step);
/// The same of one lane that serves requests in time, in `decode`. `begin_s` and `end_s` are those of its
/// iterations.
pooled_summary summarise(const std::vector<iteration>& iterations, const std::vector<double>& begin_s,
                         const std::vector<double>& end_s, const std::vector<request_record>& requests,
                         double tokens_per_step);

/// What clients of a lane see, all requests counted.
struct client_times {
  double ttft_s = 0, tpot_s = 0, makespan_s = 0, steady_tokens_per_s = 0;
};
/// `times` are those of the classes. Means.
client_times mean_times(const schedule_summary& s, const std::vector<double>& times, const front_end_costs& f);
/// Medians over requests; requires `class_of`.
client_times median_times(const schedule_summary& s, const std::vector<double>& times, const front_end_costs& f);

}  // namespace nvlsim
