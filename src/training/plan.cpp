// Plan of a training step: host work, forward and backward passes by stage, pipeline sends, data-parallel buckets
// and optimizer.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/training/step_cache.hpp"
#include "nvlsim/training/training.hpp"
#include "training/degraded_plan.hpp"
#include "training/pass_cache.hpp"
#include "training/step_templates.hpp"

namespace nvlsim {
namespace {

std::int64_t index(std::size_t i) { return static_cast<std::int64_t>(i); }

class step_builder {
 public:
  step_builder(const training_context& c, bool fold);
  plan take() {
    build();
    for (operation_template& t : plan_.templates)
      if (t.network.empty()) t.network = demands_within(c_.machine, t.parts, t.duration);
    return std::move(plan_);
  }
  /// Equal for steps with the same structure.
  std::vector<std::int64_t> key() const;
  /// Requires folded ranks. The builder cannot be used for a plan afterwards.
  step_structure structure();
  /// Prices the recipes of a structure with this step's key.
  step_prices priced(const std::vector<step_recipe>& recipes) { return templates_.priced(recipes); }

 private:
  void build();
  void build_rank(std::int64_t stage, std::int64_t copy);
  /// Also waits for `beside`. The caller signals the returned event of a paired pass.
  event_id forward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot,
                   event_id beside);
  void backward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot);
  struct reduction {
    std::int32_t template_index;  ///< template
    event_id all;                 ///< all ranks have the gradients
  };
  void reduce(rank_class& rank, const reduction& r, event_id after);
  void gather_parameters(rank_class& rank, std::int64_t stage, std::int64_t copy);
  /// Adds deferred weight gradients of the LM head, reductions that wait for them, and the optimizer.
  void finish(rank_class& rank, std::int64_t stage, std::int64_t copy);
  /// A micro-batch's activations or gradients on their way from one stage to another.
  struct handover {
    std::int64_t copy = 0, from = 0, to = 0, micro_batch = 0;
    event_id ready = no_event, arrived = no_event;
  };
  void send(rank_class& rank, const handover& h);

  bool gathers() const;
  bool reduces() const;
  event_id& input(std::int64_t copy, std::int64_t chunk, std::int64_t mb, bool fwd) {
    const std::int64_t i = (copy * chunks_ + chunk) * c_.workload.micro_batches() + mb;
    return (fwd ? forward_in_ : backward_in_)[static_cast<std::size_t>(i)];
  }
  /// Event at which ranks that share gradients meet (one arrival if folded).
  event_id group_event(std::int64_t chunk, std::int64_t copy, std::size_t bucket, bool reduce,
                       std::int32_t micro_batch = 0);

  const training_context& c_;
  plan plan_;
  pipeline_geometry shape_;
  step_templates templates_;
  std::int64_t deferred_;  ///< micro-batches with deferred LM head gradients
  std::int64_t copies_, chunks_;
  std::vector<event_id> forward_in_, backward_in_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::size_t, bool, std::int32_t>, event_id> groups_;
  std::vector<event_id> gathered_, reduced_;  ///< of the current rank: by chunk and bucket; all reductions
  std::vector<reduction> late_;               ///< of the chunk with deferred LM head gradients
  std::vector<std::size_t> first_bucket_;     ///< by local chunk: index into gathered_
  std::vector<std::int32_t>
      first_met_;  ///< by local chunk: its first micro-batch, which waits for gathered parameters
  std::vector<std::int32_t> last_of_;  ///< by local chunk: its last micro-batch, after which gradients are reduced
};

step_builder::step_builder(const training_context& c, bool fold)
    : c_(c), shape_(geometry_of(c.workload)), templates_(c, shape_, plan_), deferred_(templates_.deferred()) {
  const parallelism& par = c.workload.par;
  copies_ = fold ? 1 : par.tp * par.cp * par.dp;
  chunks_ = shape_.chunks();
}

void step_builder::build() {
  const parallelism& par = c_.workload.par;
  const auto n = static_cast<std::size_t>(copies_ * chunks_ * c_.workload.micro_batches());
  plan_.arrivals.reserve(4 * n);
  plan_.waits.reserve(6 * n);
  forward_in_.assign(n, no_event);
  backward_in_.assign(n, no_event);
  for (std::int64_t copy = 0; copy < copies_; ++copy)
    for (std::int64_t k = 0; k < chunks_; ++k)
      for (std::int64_t mb = 0; mb < c_.workload.micro_batches(); ++mb) {
        if (k > 0) input(copy, k, mb, true) = plan_.new_event();
        if (k < chunks_ - 1) input(copy, k, mb, false) = plan_.new_event();
      }
  for (std::int64_t stage = 0; stage < par.pp; ++stage)
    for (std::int64_t copy = 0; copy < copies_; ++copy) build_rank(stage, copy);
}

void step_builder::build_rank(std::int64_t stage, std::int64_t copy) {
  const parallelism& par = c_.workload.par;
  rank_class rank;
  rank.multiplicity = par.tp * par.cp * par.dp / copies_;
  rank.name = copies_ == 1 ? fmt::format("stage {}", stage) : fmt::format("stage {} rank {}", stage, copy);
  rank.streams = {{stream_kind::compute, {}}, {stream_kind::pipeline, {}}, {stream_kind::data_parallel, {}}};
  const auto passes = static_cast<std::size_t>(2 * par.vp * c_.workload.micro_batches());
  for (const std::size_t s : {0, 1}) rank.streams[s].operations.reserve(passes);
  gathered_.clear();
  reduced_.clear();
  late_.clear();
  first_bucket_.clear();
  const std::vector<pipeline_slot> slots = stage_schedule(shape_, stage);
  first_met_.assign(static_cast<std::size_t>(shape_.local), -1);
  last_of_.assign(static_cast<std::size_t>(shape_.local), -1);
  for (const pipeline_slot& s : slots) {
    const auto chunk = static_cast<std::size_t>(s.chunk);
    if (first_met_[chunk] < 0) first_met_[chunk] = s.micro_batch;
    if (s.what != pass_kind::forward && s.what != pass_kind::backward_input) last_of_[chunk] = s.micro_batch;
  }
  plan_.append(rank.streams[0], templates_.host(), {});
  gather_parameters(rank, stage, copy);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const pipeline_slot& slot = slots[i];
    if (slot.what != pass_kind::forward) {
      backward(rank, stage, copy, slot);
    } else if (!slot.paired) {
      forward(rank, stage, copy, slot, no_event);
    } else {  // starts and ends together with the backward pass it overlaps
      const pipeline_slot& beside = slots[++i];
      const event_id other = input(copy, shape_.chunk_of(stage, beside.chunk), beside.micro_batch, false);
      const event_id output = forward(rank, stage, copy, slot, other);
      backward(rank, stage, copy, beside);
      if (output != no_event) plan_.append(rank.streams[0], templates_.ready(), {}, output, {slot.micro_batch});
    }
  }
  finish(rank, stage, copy);
  std::erase_if(rank.streams, [](const stream& s) { return s.operations.empty(); });
  plan_.classes.push_back(std::move(rank));
}

void step_builder::gather_parameters(rank_class& rank, std::int64_t stage, std::int64_t copy) {
  const training_workload& w = c_.workload;
  first_bucket_.assign(static_cast<std::size_t>(shape_.local), 0);
  std::vector<std::int64_t> order(static_cast<std::size_t>(shape_.local));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // Under DualPipe both holders of a chunk must meet in the same order.
  if (shape_.schedule == pipeline_schedule::dualpipe && 2 * stage >= w.par.pp)
    std::reverse(order.begin(), order.end());
  for (const std::int64_t v : order) {
    first_bucket_[static_cast<std::size_t>(v)] = gathered_.size();
    const std::int64_t chunk = shape_.chunk_of(stage, v);
    const auto& buckets = templates_.buckets(chunk);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      event_id done = no_event;
      if (gathers()) {
        done = plan_.new_event();
        const event_id all = group_event(chunk, copy, i, false);
        plan_.append(rank.streams[2], templates_.ready(), {}, all);
        plan_.append(rank.streams[2],
                     templates_.of({.of = step_recipe::kind::gather, .at = chunk, .bucket = index(i)}), {all},
                     done);
      }
      gathered_.push_back(done);
    }
  }
}

event_id step_builder::group_event(std::int64_t chunk, std::int64_t copy, std::size_t bucket, bool reduce,
                                   std::int32_t micro_batch) {
  const std::int64_t ends = shape_.schedule == pipeline_schedule::dualpipe ? 2 : 1;
  if (copies_ == 1 && ends == 1) return plan_.new_event();
  const std::int64_t tp_rank = copies_ == 1 ? 0 : copy % c_.workload.par.tp;
  const auto [it, fresh] = groups_.try_emplace({chunk, tp_rank, bucket, reduce, micro_batch}, no_event);
  const std::int64_t ranks = copies_ == 1 ? 1 : c_.workload.par.cp * c_.workload.par.dp;
  if (fresh) it->second = plan_.new_event(static_cast<std::int32_t>(ranks * ends));
  return it->second;
}

event_id step_builder::forward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot,
                               event_id beside) {
  const std::int64_t k = shape_.chunk_of(stage, slot.chunk);
  const auto& buckets = templates_.buckets(k);
  event_id ready = input(copy, k, slot.micro_batch, true);
  const event_id arrived = k + 1 < chunks_ ? input(copy, k + 1, slot.micro_batch, true) : no_event;
  const event_id done = arrived == no_event ? no_event : plan_.new_event();
  const event_id signal = slot.paired ? no_event : done;
  if (slot.micro_batch != first_met_[static_cast<std::size_t>(slot.chunk)]) {
    plan_.append(rank.streams[0], templates_.of_chunk(slot.what, slot.paired, k), {ready, beside}, signal,
                 {slot.micro_batch});
  } else {
    // The first micro-batch waits for parameters bucket by bucket.
    const std::size_t first = first_bucket_[static_cast<std::size_t>(slot.chunk)];
    for (std::size_t i = 0; i < buckets.size(); ++i)
      plan_.append(
          rank.streams[0],
          templates_.of(
              {.at = k, .bucket = index(i), .what = slot.what, .paired = slot.paired, .data_parallel = true}),
          {i == 0 ? ready : no_event, i == 0 ? beside : no_event, gathered_[first + i]},
          i + 1 == buckets.size() ? signal : no_event, {slot.micro_batch});
  }
  if (arrived != no_event)
    send(rank, {copy, stage, shape_.stage_of(k + 1, slot.micro_batch), slot.micro_batch, done, arrived});
  return slot.paired ? done : no_event;
}

void step_builder::backward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot) {
  const std::int64_t k = shape_.chunk_of(stage, slot.chunk);
  const auto& buckets = templates_.buckets(k);
  const bool gives_input = slot.what != pass_kind::backward_weight,
             gives_weights = slot.what != pass_kind::backward_input;
  const event_id ready = gives_input ? input(copy, k, slot.micro_batch, false) : no_event;
  const event_id arrived = gives_input && k > 0 ? input(copy, k - 1, slot.micro_batch, false) : no_event;
  const event_id done = arrived == no_event ? no_event : plan_.new_event();
  const bool always = c_.workload.sharding == data_parallel_sharding::optim_grads;
  const bool heads_chunk = k == chunks_ - 1, defers = heads_chunk && slot.micro_batch < deferred_;
  const bool last =
      gives_weights && (always || slot.micro_batch == last_of_[static_cast<std::size_t>(slot.chunk)]);
  if (!last || !reduces()) {
    const std::int32_t template_index = defers ? templates_.of({.at = k, .what = slot.what, .defers_head = true})
                                               : templates_.of_chunk(slot.what, slot.paired, k);
    plan_.append(rank.streams[0], template_index, {ready}, done, {slot.micro_batch});
  } else {
    for (std::size_t i = buckets.size(); i-- > 0;) {
      // A bucket is reduced as soon as every rank of the group has its gradients.
      const event_id all = group_event(k, copy, i, true, always ? slot.micro_batch : 0);
      const bool bottom = i == 0;
      plan_.append(rank.streams[0],
                   templates_.of({.at = k,
                                  .bucket = index(i),
                                  .what = slot.what,
                                  .paired = slot.paired,
                                  .data_parallel = true,
                                  .defers_head = defers}),
                   {i + 1 == buckets.size() ? ready : no_event}, all, {slot.micro_batch});
      if (bottom && done != no_event)
        plan_.append(rank.streams[0], templates_.ready(), {}, done, {slot.micro_batch});
      const reduction r{templates_.of({.of = step_recipe::kind::reduce, .at = k, .bucket = index(i)}), all};
      if (heads_chunk && deferred_ > 0) late_.push_back(r);
      else reduce(rank, r, no_event);
    }
  }
  if (arrived != no_event)
    send(rank, {copy, stage, shape_.stage_of(k - 1, slot.micro_batch), slot.micro_batch, done, arrived});
}

void step_builder::send(rank_class& rank, const handover& h) {
  const std::int32_t template_index = templates_.of({.of = step_recipe::kind::send, .at = h.from, .bucket = h.to});
  plan_.append(rank.streams[1], template_index, {h.ready}, h.arrived,
               {static_cast<std::int32_t>(h.micro_batch), static_cast<std::int32_t>(h.to * copies_ + h.copy)});
}

void step_builder::reduce(rank_class& rank, const reduction& r, event_id after) {
  reduced_.push_back(plan_.new_event());
  plan_.append(rank.streams[2], r.template_index, {r.all, after}, reduced_.back());
}

void step_builder::finish(rank_class& rank, std::int64_t stage, std::int64_t copy) {
  if (deferred_ > 0 && shape_.stage_of(chunks_ - 1, 0) == stage) {
    const std::size_t beyond =
        templates_.buckets(chunks_ - 1).size();  // past the last bucket: stands for the whole chunk
    const event_id drained = late_.empty() ? no_event : group_event(chunks_ - 1, copy, beyond, true);
    plan_.append(rank.streams[0], templates_.of({.of = step_recipe::kind::head_gradients}), {}, drained);
    for (const reduction& r : late_) reduce(rank, r, drained);
  }
  // Streams run in order, so waiting for the last reduction is enough.
  plan_.append(rank.streams[0], templates_.of({.of = step_recipe::kind::optimizer, .at = stage}),
               {reduced_.empty() ? no_event : reduced_.back()});
}

bool step_builder::gathers() const {
  const training_workload& w = c_.workload;
  return gathers_once(w.sharding) && w.par.dp * w.par.cp > 1;
}

bool step_builder::reduces() const {
  const training_workload& w = c_.workload;
  return w.sharding != data_parallel_sharding::fsdp && w.par.dp * w.par.cp > 1;
}

std::vector<std::int64_t> step_builder::key() const {
  return {static_cast<std::int64_t>(shape_.schedule),
          shape_.pp,
          shape_.local,
          shape_.micro_batches,
          gathers() ? 1 : 0,
          reduces() ? 1 : 0,
          deferred_};
}

step_structure step_builder::structure() {
  templates_.only_note();
  build();
  return {plan_, templates_.take_recipes()};
}

}  // namespace

plan plan_training(const platform& p, const stack& s, const model& m, const training_workload& w, bool fold) {
  const double ranks = static_cast<double>(w.par.gpus()),
               passes = ranks * static_cast<double>(w.par.vp * w.micro_batches());
  if (!fold && passes > max_passes)
    throw input_error({{"",
                        "",
                        fmt::format("{} ranks without folding have {:.3g} passes of micro-batches; the limit is "
                                    "{:.3g}; fold equal ranks",
                                    w.par.gpus(), passes, max_passes),
                        {}}});
  if (!w.degraded.empty()) return plan_degraded(p, s, m, w, fold);
  const training_context c(p, s, m, w);
  return step_builder(c, fold).take();
}

step_cache::step_cache() : passes_(std::make_shared<pass_cache>()) {}

memory_report step_cache::memory_of(const platform& p, const stack& s, const model& m,
                                    const training_workload& w) const {
  return nvlsim::memory_of(training_context(p, s, m, w, *passes_));
}

bytes step_cache::min_memory(const platform& p, const stack& s, const model& m, const training_workload& w,
                             bool any_sharding) const {
  return nvlsim::min_memory(training_context(p, s, m, w, *passes_), any_sharding);
}

std::size_t step_cache::priced_passes() const { return passes_->priced(); }

bool step_cache::covers(const training_workload& w) {
  return w.degraded.empty() && w.sharding != data_parallel_sharding::optim_grads && !w.recompute.block;
}

step_cost step_cache::cost_of(const platform& p, const stack& s, const model& m, const training_workload& w) {
  const training_context c(p, s, m, w, *passes_);
  step_builder step(c, true);
  const std::vector<std::int64_t> key = step.key();
  std::shared_ptr<const step_structure> known;
  {
    const std::lock_guard lock(looking_);
    if (const auto it = known_.find(key); it != known_.end()) known = it->second;
  }
  if (!known) {
    known = std::make_shared<const step_structure>(step_builder(c, true).structure());
    const std::lock_guard lock(looking_);
    if (operations_ > max_operations) known_.clear(), operations_ = 0;
    if (known_.emplace(key, known).second) operations_ += known->operations();
  }
  const step_prices cost = step.priced(known->recipes());
  step_cost out{seconds::from_base(known->makespan(cost)), {}};
  for (const std::vector<std::int32_t>& runs : known->runs()) {
    double busy = 0, energy = 0;
    for (std::size_t r = 0; r < runs.size(); ++r)
      for (std::uint32_t i = cost.first[r]; runs[r] > 0 && i < cost.first[r + 1]; ++i)
        busy += cost.seconds[i] * runs[r], energy += cost.joules[i] * runs[r];
    out.stages.push_back({seconds::from_base(busy), joules::from_base(energy)});
  }
  return out;
}

}  // namespace nvlsim
