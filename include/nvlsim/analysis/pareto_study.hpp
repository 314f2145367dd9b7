// Trade-off of server layouts between tokens/s per user and tokens/s per GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"

namespace nvlsim {

/// One layout at one number of concurrent clients.
struct pareto_point {
  std::string layout;  ///< "tp 4 ep 4"
  int tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;
  std::int64_t concurrency = 0;
  inference_metrics metrics;
  bool efficient = false;  ///< on the Pareto front: no other point is better in one rate and no worse in the other
};

struct pareto_study {
  std::string name;
  std::int64_t gpus = 0;
  std::vector<pareto_point> points;   ///< by tokens/s per user, fastest first
  std::vector<std::string> left_out;  ///< layouts that cannot run, with the reason
};

}  // namespace nvlsim
