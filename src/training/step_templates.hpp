// Templates of a training step's operations, priced on first use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/training/step_cache.hpp"
#include "training/gradient_buckets.hpp"

namespace nvlsim {

/// Adds the templates of one layout's step to a plan.
class step_templates {
 public:
  /// All arguments must outlive it.
  step_templates(const training_context& c, const pipeline_geometry& shape, plan& p);
  step_templates(const step_templates&) = delete;

  const std::vector<bucket>& buckets(std::int64_t chunk) const {
    return buckets_[static_cast<std::size_t>(chunk)];
  }
  /// Micro-batches with deferred LM head gradients.
  std::int64_t deferred() const { return deferred_; }

  std::int32_t of(const step_recipe& r);
  /// Template of a pass through a whole chunk that overlaps no data-parallel traffic.
  std::int32_t of_chunk(pass_kind what, bool paired, std::int64_t chunk);
  std::int32_t host() const { return host_; }
  std::int32_t ready() const { return ready_; }  ///< takes no time

  /// From now on, templates are recipes without costs, and every chunk is one bucket. Nothing can be priced
  /// afterwards.
  void only_note();
  /// Recipes by template.
  std::vector<step_recipe> take_recipes() { return std::move(recipes_); }
  step_prices priced(const std::vector<step_recipe>& recipes);

 private:
  const bucket& bucket_of(const step_recipe& r) const {
    const auto k = static_cast<std::size_t>(r.at);
    return r.bucket < 0 ? whole_[k] : buckets_[k][static_cast<std::size_t>(r.bucket)];
  }
  /// A template without costs, one per recipe.
  std::int32_t noted(const step_recipe& r);
  std::int32_t pass_template(const step_recipe& r);
  std::int32_t make_pass(const step_recipe& r);
  /// Reduction or gather of a bucket. Buckets with equal layers share it.
  std::int32_t traffic_template(const step_recipe& r);
  std::int32_t make_traffic(const step_recipe& r);
  std::int32_t send_template(std::int64_t from, std::int64_t to);
  std::int32_t optimizer_template(std::int64_t stage);
  std::int32_t make_optimizer(std::int64_t stage);
  std::int32_t head_gradients_template();
  std::int32_t simple_template(part_kind kind, const char* name, seconds t, watts power, const part_facts& f);
  /// Template of an operation that uses the network.
  std::int32_t transfer_template(part_kind kind, const char* name, const priced_transfer& t);

  void price_layers(const layer_kinds& kinds);
  /// A pass as other layouts of a search have priced it, or else as `make` does.
  std::shared_ptr<const costed_parts> known_or(const training_context& by, std::int64_t kind, pass_kind what,
                                               bool paired, const std::function<costed_parts()>& make) const;

  const training_context& c_;
  const pipeline_geometry& shape_;
  plan& plan_;
  std::int64_t deferred_;
  std::vector<std::vector<bucket>> buckets_;  ///< by chunk
  std::vector<bucket> whole_;                 ///< by chunk, all buckets merged
  using shared_pass = std::shared_ptr<const costed_parts>;
  std::vector<shared_pass> layer_[pass_kinds][2];  ///< by kind of pass, paired, kind of layer
  shared_pass embedding_[pass_kinds], head_[pass_kinds];
  std::vector<costed_parts> orthogonal_;  ///< Muon's part of a step, by kind of layer; empty: another optimizer
  std::int32_t host_, ready_, send_nvlink_, send_fabric_;
  std::int32_t head_gradients_ = -1;
  std::vector<std::int32_t> whole_templates_[pass_kinds][2];  ///< by kind of pass, paired, chunk; -1 until needed
  std::map<std::tuple<pass_kind, bool, std::vector<std::int64_t>, bool, bool, bool, bool>, std::int32_t> passes_;
  std::map<std::tuple<step_recipe::kind, std::vector<std::int64_t>, bool, bool>, std::int32_t> traffic_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t>
      send_templates_;  ///< by sending and receiving stage
  std::map<std::vector<std::int64_t>, std::int32_t>
      optimizers_;  ///< by layers, embeddings and LM heads of the stage
  bool structure_only_ = false;
  std::vector<step_recipe> recipes_;  ///< by template, if only the structure is wanted
  std::map<step_recipe, std::int32_t> known_recipes_;
};

}  // namespace nvlsim
