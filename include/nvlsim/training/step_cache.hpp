// Costs of many layouts of one training job.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "nvlsim/training/training.hpp"

namespace nvlsim {

/// What a template of a training step stands for, whatever it costs.
struct step_recipe {
  enum class kind { host, ready, send, pass, head_gradients, gather, reduce, optimizer };
  kind of = kind::pass;
  std::int64_t at = 0;       ///< chunk; of an optimizer the stage, of a send the stage it comes from
  std::int64_t bucket = -1;  ///< of the chunk, -1: all; of a send the stage it goes to
  pass_kind what = pass_kind::forward;
  bool paired = false, data_parallel = false;  ///< of a pass
  bool defers_head = false;                    ///< of a pass: leaves out the weight gradient of the LM head

  friend auto operator<=>(const step_recipe&, const step_recipe&) = default;
};

/// What the templates of a layout cost, in the order of a structure's recipes. Passes beside data-parallel
/// traffic, and that traffic, have a cost for each bucket of their chunk.
struct step_prices {
  std::vector<double> seconds, joules;
  std::vector<std::uint32_t> first;    ///< by recipe, and the end: where its costs are
  std::vector<std::uint32_t> buckets;  ///< by chunk: how many
};

/// Operations of a step in an order in which each follows all that it waits for, which does not depend on how long
/// they take. Layouts with the same schedule, stages, chunks and micro-batches have it in common.
class step_structure {
 public:
  /// Of a folded plan in which every chunk is one bucket, whose templates are the recipes.
  step_structure(const plan& p, std::vector<step_recipe> recipes);

  const std::vector<step_recipe>& recipes() const { return recipes_; }
  std::size_t operations() const { return steps_.size(); }
  /// To the last digit what makespan_of gives for the plan of that layout.
  double makespan(const step_prices& cost) const;
  /// Of each recipe on the compute stream of a stage.
  const std::vector<std::vector<std::int32_t>>& runs() const { return runs_; }

 private:
  enum class form : std::uint8_t { plain, first_pass, last_pass, gather, reduce };
  struct step {
    std::int32_t work, stream;
    event_id signals;
    std::int32_t chunk;
    std::uint16_t waits;  ///< how many of the pool, in order
    form what;
  };
  std::vector<step> steps_;
  std::vector<event_id> waits_;
  std::vector<step_recipe> recipes_;
  std::vector<std::vector<std::int32_t>> runs_;
  std::size_t events_, streams_ = 0;
};

/// A step's totals.
struct step_cost {
  struct work {
    seconds busy;
    joules energy;
  };
  seconds makespan;
  std::vector<work> stages;  ///< compute of one GPU of each
};

/// Structures of the steps of one model and kind of job. May be used by several threads.
class step_cache {
 public:
  /// Layouts whose operations depend on nothing but the schedule, stages, chunks and micro-batches: on healthy
  /// hardware, with gradients that leave once a step and layers that are all recomputed alike.
  static bool covers(const training_workload& w);
  /// What the folded plan_training gives. Requires that it `covers` the layout.
  step_cost cost_of(const platform& p, const stack& s, const model& m, const training_workload& w);

 private:
  static constexpr std::size_t most_operations = 4'000'000;  ///< about 100 MB; beyond, it starts anew
  std::map<std::vector<std::int64_t>, std::shared_ptr<const step_structure>> known_;
  std::size_t operations_ = 0;
  std::mutex looking_;
};

}  // namespace nvlsim
