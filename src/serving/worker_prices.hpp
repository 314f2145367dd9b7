// Prices of all workers of a run, by what they run on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "nvlsim/serving/iteration_prices.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

class worker_prices {
 public:
  /// `swap_rate`: cached tokens per second to or from CPU memory, of a decode worker.
  worker_prices(const serving_case& c, double swap_rate);

  /// Index of the hardware of a worker.
  std::size_t hardware_of(bool prefills, const hardware_health& h);
  iteration_price price(std::size_t hardware, const iteration& it, std::int64_t workers) {
    return known_[hardware]->prices.price(it, workers);
  }
  /// Transfer of the cache of a prompt between workers of this health.
  cache_transfer transfer(std::int64_t tokens, const hardware_health& h);
  /// Transfers on healthy hardware, by tokens.
  std::map<std::int64_t, operation_template> transfers() const;
  /// Uses of all hardware, one after the other, and the index of each hardware's first.
  std::pair<std::vector<iteration_use>, std::vector<std::int32_t>> uses(bool explained);

 private:
  struct priced {
    platform machine;
    inference_workload workload;
    iteration_costs costs;
    iteration_prices prices;
    priced(const serving_case& c, const inference_workload& w, const hardware_health& h, double swap_rate);
  };

  serving_case case_;
  double swap_rate_;
  std::map<std::pair<bool, hardware_health>, std::size_t> index_;
  std::vector<std::unique_ptr<priced>> known_;
  std::map<std::pair<hardware_health, std::int64_t>, operation_template> transfers_;
};

}  // namespace nvlsim
