#include "nvlsim/training/step_floor.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "training/pass_cache.hpp"

namespace nvlsim {
namespace {

/// What costs nothing at best: moved activations, and parameters sharded like those of FSDP.
training_workload cheapest(training_workload w) {
  w.offload_layers = 0;
  w.offload = {};
  w.sharding = data_parallel_sharding::distributed_optimizer;
  return w;
}

/// Shortest time of a chunk's passes, seconds, by pass kind. 0 for kinds that the schedule does not use.
struct chunk_floor {
  double seconds[pass_kinds] = {};
  double deferrable = 0;  ///< of the gradients, what may follow when the pipeline has drained

  double forward() const { return seconds[static_cast<std::size_t>(pass_kind::forward)]; }
  double backward() const { return seconds[static_cast<std::size_t>(pass_kind::backward)]; }
  /// Both gradients, in one pass or in two.
  double gradients(bool split) const {
    return split ? seconds[static_cast<std::size_t>(pass_kind::backward_input)] +
                       seconds[static_cast<std::size_t>(pass_kind::backward_weight)]
                 : backward();
  }
};

}  // namespace

struct step_floor::passes {
  const platform& machine;
  const stack& software;
  const model& net;
  pass_cache shared;
  layer_kinds kinds;
  std::optional<pass_key> key;
  training_workload workload;
  std::vector<double> layers, ends;  ///< by kind of layer, or embedding and head; then by kind of pass, and paired
  std::int64_t priced = 0;

  static constexpr std::size_t width = 2 * pass_kinds;
  static std::size_t at(std::size_t kind, pass_kind what, bool paired) {
    return kind * width + 2 * static_cast<std::size_t>(what) + (paired ? 1 : 0);
  }

  /// Forgets the passes unless they are those of `w`.
  void look_at(const training_workload& w) {
    const pass_key wanted = key_of(w);
    workload = w;
    if (key == wanted) return;
    key = wanted;
    kinds = shared.kinds(net, w);
    layers.assign(kinds.count() * width, NAN);
    ends.assign(2 * width, NAN);
  }

  double layer(const training_context& c, std::size_t kind, pass_kind what, bool paired) {
    double& known = layers[at(kind, what, paired)];
    if (std::isnan(known)) {
      ++priced;
      const std::size_t other = kind / kinds.distinct.size();
      known = (other == 0 ? layer_pass(c, kinds.spec(kind), what, paired)
                          : layer_pass({c, kinds.workloads[other]}, kinds.spec(kind), what, paired))
                  .duration()
                  .base();
    }
    return known;
  }
  double end(const training_context& c, bool head, pass_kind what) {
    double& known = ends[at(head ? 1 : 0, what, false)];
    if (std::isnan(known)) {
      ++priced;
      known = (head ? head_pass(c, what) : embedding_pass(c, what)).duration().base();
    }
    return known;
  }
  /// The head's gradients, also where those of its weights are deferred.
  double head(const training_context& c, pass_kind what, bool deferred) {
    if (what != pass_kind::backward || !deferred) return end(c, true, what);
    return std::min(end(c, true, what),
                    end(c, true, pass_kind::backward_input) + end(c, true, pass_kind::backward_weight));
  }

  /// Part of the time of the head's gradients that may be deferred, seconds.
  double deferrable(const training_context& c) {
    return std::max(0.0, head(c, pass_kind::backward, true) - end(c, true, pass_kind::backward_input));
  }

  std::vector<chunk_floor> chunks(const training_context& c);
};

/// Of every chunk, in the order of their numbers.
std::vector<chunk_floor> step_floor::passes::chunks(const training_context& c) {
  const bool dual = workload.schedule == pipeline_schedule::dualpipe, splits = splits_backward(workload.schedule);
  const bool deferred = deferred_head_gradients(c) > 0;
  const std::vector<std::int64_t> counts = chunk_layers(net, workload);
  std::vector<chunk_floor> out(counts.size());
  std::vector<std::int64_t> of_kind(kinds.count());
  std::size_t layer_at = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    std::fill(of_kind.begin(), of_kind.end(), 0);
    for (std::int64_t i = 0; i < counts[k]; ++i) ++of_kind[kinds.of_layer[layer_at++]];
    for (const pass_kind what :
         {pass_kind::forward, pass_kind::backward, pass_kind::backward_input, pass_kind::backward_weight}) {
      const bool half = what == pass_kind::backward_input || what == pass_kind::backward_weight;
      if (half && !splits) continue;
      double t = k == 0 ? end(c, false, what) : 0;
      if (k + 1 == counts.size()) t += head(c, what, deferred);
      for (std::size_t kind = 0; kind < of_kind.size(); ++kind) {
        if (of_kind[kind] == 0) continue;
        double each = layer(c, kind, what, false);
        if (dual) each = std::min(each, layer(c, kind, what, true));
        t += each * static_cast<double>(of_kind[kind]);
      }
      if (workload.par.pp > 1 && what != pass_kind::backward_weight) t += c.framework.pipeline_launch.base();
      out[k].seconds[static_cast<std::size_t>(what)] = t;
    }
  }
  if (deferred) out.back().deferrable = deferrable(c);
  return out;
}

step_floor::step_floor(const platform& p, const stack& s, const model& m)
    : known_(new passes{p, s, m, {}, {}, {}, {}, {}, {}, 0}) {}
step_floor::~step_floor() = default;

std::int64_t step_floor::priced() const { return known_->priced; }

seconds step_floor::of(const training_workload& asked) {
  known_->look_at(cheapest(asked));
  const training_workload& w = known_->workload;
  const training_context c(known_->machine, known_->software, known_->net, w, known_->shared);
  const std::vector<chunk_floor> chunks = known_->chunks(c);
  const pipeline_geometry shape = geometry_of(w);
  using enum pipeline_schedule;
  const bool drains = w.schedule == one_f_one_b || w.schedule == interleaved, dual = w.schedule == dualpipe;
  double send = 0;
  if (w.par.pp > 1) {
    send = pipeline_send(c, false).time.base();
    if (spans_domains(w.par, w.place)) send = std::min(send, pipeline_send(c, true).time.base());
  }
  // A stage begins once its first micro-batch has passed the stages before it; 1F1B and the interleaved order end
  // with the gradients of the last one on their way back.
  double worst = 0, filled = 0, drained = 0;
  for (std::int64_t stage = 0; stage < (dual ? (w.par.pp + 1) / 2 : w.par.pp); ++stage) {
    double busy = 0, late = 0;
    for (std::int64_t v = 0; v < shape.local; ++v) {
      const chunk_floor& f = chunks[static_cast<std::size_t>(shape.chunk_of(stage, v))];
      // DualPipe splits only some backward passes.
      const double back =
          dual ? std::min(f.gradients(true), f.gradients(false)) : f.gradients(splits_backward(w.schedule));
      busy += (f.forward() + back) * static_cast<double>(shape.micro_batches) / (dual ? 2.0 : 1.0);
      late += f.deferrable * static_cast<double>(shape.micro_batches);
    }
    worst = std::max({worst, filled + busy, filled + busy - late + drained});
    const chunk_floor& first = chunks[static_cast<std::size_t>(stage)];
    // Near the middle of DualPipe either end may come first.
    const double onward =
        dual ? std::min(first.forward(), chunks[chunks.size() - 1 - static_cast<std::size_t>(stage)].forward())
             : first.forward();
    filled += onward + send;
    if (drains) drained += first.backward() + send;
  }
  return c.framework.step_host + seconds::from_base(worst);
}

}  // namespace nvlsim
