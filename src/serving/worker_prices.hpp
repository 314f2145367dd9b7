// Prices of all workers of a run, by what they run on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "nvlsim/serving/iteration_prices.hpp"
#include "nvlsim/serving/serving.hpp"
#include "serving/load_shares.hpp"

namespace nvlsim {

class worker_prices {
 public:
  /// `swap_rate`: cached tokens per second to or from CPU memory, of a decode worker. `traffic`: iterations have
  /// their demands on the network.
  worker_prices(const serving_case& c, double swap_rate, bool traffic);

  /// Index of the hardware of a worker.
  std::size_t hardware_of(bool prefills, const hardware_health& h);
  iteration_price price(std::size_t hardware, const iteration& it, std::int64_t workers) {
    return known_[hardware]->prices.price(it, workers);
  }
  void price_decodes(std::size_t hardware, std::int64_t decodes, std::span<const std::int64_t> contexts,
                     std::vector<double>& took) {
    known_[hardware]->prices.price_decodes(decodes, contexts, took);
  }
  void count_decodes(std::size_t hardware, std::int64_t decodes, std::span<const std::int64_t> contexts,
                     std::span<const double> took, std::int64_t workers) {
    known_[hardware]->prices.count_decodes(decodes, contexts, took, workers);
  }
  /// Begins another run of the same layout under the load and limits of `w`.
  void begin_run(const inference_workload& w);
  /// What prompts asked of `max_num_tokens` in this run.
  limit_use prompt_tokens_use() const;
  /// Transfer of the cache of a prompt between workers of this health, that many GPUs apart.
  cache_transfer transfer(std::int64_t tokens, const hardware_health& h, std::int64_t distance);
  /// Transfers on healthy hardware, by tokens.
  std::map<std::int64_t, operation_template> transfers() const;
  /// Uses of all hardware, one after the other, and the index of each hardware's first.
  std::pair<std::vector<iteration_use>, std::vector<std::int32_t>> uses(bool explained);

 private:
  struct pricing_rules {
    double swap_rate;
    bool traffic;
  };
  struct priced {
    platform machine;
    inference_workload workload;
    iteration_costs costs;
    iteration_prices prices;
    priced(const serving_case& c, const inference_workload& w, const hardware_health& h,
           const pricing_rules& rules);
  };

  serving_case case_;
  pricing_rules rules_;
  std::map<std::pair<bool, hardware_health>, std::size_t> index_;
  std::vector<std::unique_ptr<priced>> known_;
  std::map<std::tuple<hardware_health, std::int64_t, std::int64_t>, operation_template>
      transfers_;  ///< by health, tokens and distance
};

/// What runs of one layout share.
struct shared_runs {
  explicit shared_runs(const serving_case& c);
  shared_runs(const shared_runs&) = delete;
  shared_runs& operator=(const shared_runs&) = delete;

  /// Forgets requests and runs of another load.
  void run_under(const inference_workload& w);
  /// Index of an earlier run whose result these limits do not change. None with pools: the limits of both matter.
  std::optional<std::size_t> like(const schedule_limits& limits, const inference_workload& w) const;
  void remember(const schedule_limits& limits, const inference_workload& w, const limits_use& used);

  /// Limits of a run, and what it asked of them. Ranks with prompts of their own also read `max_num_tokens` when
  /// iterations are priced.
  struct past_run {
    batch_limits limits;
    limits_use used;
    std::int64_t prompt_tokens = 0;
    limit_use prompts;
  };

  inference_workload workload;
  serving_case of;
  std::optional<worker_prices> prices;
  std::optional<request_list> list;
  std::vector<load_share> shares;
  std::vector<past_run> runs;
};

}  // namespace nvlsim
