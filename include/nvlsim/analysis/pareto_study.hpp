// What layouts of a server trade: rates of a user against rates of a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"

namespace nvlsim {

/// A layout under a number of clients.
struct pareto_point {
  std::string layout;  ///< "tp 4 ep 4"
  int tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;
  std::int64_t concurrency = 0;
  inference_metrics metrics;
  bool efficient = false;  ///< no other point has more of one rate and no less of the other
};

struct pareto_study {
  std::string name;
  std::int64_t gpus = 0;
  std::vector<pareto_point> points;   ///< by tokens a second and user, fastest first
  std::vector<std::string> left_out;  ///< layouts that cannot run, with the reason
};

}  // namespace nvlsim
