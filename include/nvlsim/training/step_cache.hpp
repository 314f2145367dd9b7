// Step times of many layouts of one training job.
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

/// What a template of a training step does, independent of its cost.
struct step_recipe {
  enum class kind { host, ready, send, pass, head_gradients, gather, reduce, optimizer };
  kind of = kind::pass;
  std::int64_t at = 0;       ///< chunk; for an optimizer the stage, for a send the sending stage
  std::int64_t bucket = -1;  ///< bucket of the chunk, -1: all; for a send the receiving stage
  pass_kind what = pass_kind::forward;
  bool paired = false, data_parallel = false;  ///< for a pass
  bool defers_head = false;                    ///< for a pass: leaves out the weight gradient of the LM head

  friend auto operator<=>(const step_recipe&, const step_recipe&) = default;
};

/// Costs of a layout's templates, in the order of a structure's recipes. Data-parallel traffic, and passes that
/// overlap it, have one cost per bucket of their chunk.
struct step_prices {
  std::vector<double> seconds, joules;
  std::vector<std::uint32_t> first;    ///< by recipe: index of its first cost; one more entry marks the end
  std::vector<std::uint32_t> buckets;  ///< number of buckets by chunk
};

/// Operations of a step in topological order, which does not depend on durations. Layouts with the same schedule,
/// stages, chunks and micro-batches share it.
class step_structure {
 public:
  /// Requires a folded plan with one bucket per chunk. Its templates are the recipes.
  step_structure(const plan& p, std::vector<step_recipe> recipes);

  const std::vector<step_recipe>& recipes() const { return recipes_; }
  std::size_t operations() const { return steps_.size(); }
  /// Equals makespan_of the plan of that layout to the last digit.
  double makespan(const step_prices& cost) const;
  /// Number of runs on the compute stream, by stage and recipe.
  const std::vector<std::vector<std::int32_t>>& runs() const { return runs_; }

 private:
  enum class form : std::uint8_t { plain, first_pass, last_pass, gather, reduce };
  struct step {
    std::int32_t template_index, stream;
    event_id signals;
    std::int32_t chunk;
    std::uint16_t waits;  ///< number of entries in `waits_`, in order
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
  struct stage_cost {
    seconds busy;
    joules energy;
  };
  seconds makespan;
  std::vector<stage_cost> stages;  ///< compute of one GPU per stage
};

class pass_cache;

/// Step structures and passes of the layouts of one job: one platform, stack and model. Thread-safe.
class step_cache {
 public:
  step_cache();
  /// Whether the operations depend only on the schedule, stages, chunks and micro-batches. This requires healthy
  /// hardware, gradients that are reduced once per step, and the same recomputation in all layers.
  static bool covers(const training_workload& w);
  /// Cost of the folded plan_training. Requires `covers(w)`.
  step_cost cost_of(const platform& p, const stack& s, const model& m, const training_workload& w);
  /// `training_memory` without items.
  memory_report memory_of(const platform& p, const stack& s, const model& m, const training_workload& w) const;
  /// No less memory than this is needed on the fullest GPU, whatever `w` recomputes; with `any_sharding`, however
  /// it shards.
  bytes min_memory(const platform& p, const stack& s, const model& m, const training_workload& w,
                   bool any_sharding) const;
  /// Number of passes through layers, embeddings and LM heads that were priced.
  std::size_t priced_passes() const;

 private:
  static constexpr std::size_t max_operations = 4'000'000;  ///< about 100 MB; the cache is cleared beyond this
  std::map<std::vector<std::int64_t>, std::shared_ptr<const step_structure>> known_;
  std::size_t operations_ = 0;
  std::mutex looking_;
  std::shared_ptr<pass_cache> passes_;
};

}  // namespace nvlsim
