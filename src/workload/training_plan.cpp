// A training step as streams: host work, forward and backward passes by stage, pipeline sends, data-parallel buckets,
// optimizer.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "nvlsim/diagnostics.hpp"
#include "nvlsim/training.hpp"
#include "workload/degraded_plan.hpp"
#include "workload/part_facts.hpp"
#include "workload/step_cache.hpp"
#include "workload/training_costs.hpp"

namespace nvlsim {
namespace {

/// A run of layers of one chunk that data parallelism reduces or gathers as one bucket. Layers are counted by kind:
/// kinds are the distinct layers of the model in order of appearance.
struct bucket {
  std::vector<std::int64_t> layers;  ///< by kind
  bool embedding = false, head = false;
  local_parameters parameters;       ///< on one GPU
};

/// Megatron's DDP default: buckets of at least 40 M parameters, or 1 M for each data-parallel rank.
double bucket_parameters(const training_workload& w) {
  return std::max(40e6, 1e6 * static_cast<double>(w.par.dp * w.par.cp));
}

/// Whether updated parameters are gathered at the start of a step, to stay until its end.
bool gathers_once(data_parallel_sharding s) {
  return s == data_parallel_sharding::distributed_optimizer || s == data_parallel_sharding::optim_grads;
}

/// The distinct layers of a model, and of each layer (multi-token-prediction layers last) which of them it is. Where a
/// part of the layers is recomputed, the kinds that are not follow those that are.
struct layer_kinds {
  std::vector<layer_spec> distinct;
  std::vector<std::size_t> of_layer;
  std::size_t count = 0;

  const layer_spec& spec(std::size_t kind) const { return distinct[kind % distinct.size()]; }
};

layer_kinds kinds_of(const model& m, const training_workload& w) {
  layer_kinds k;
  const auto index = [&](const layer_spec& l) {
    const auto it = std::find(k.distinct.begin(), k.distinct.end(), l);
    if (it != k.distinct.end()) return static_cast<std::size_t>(it - k.distinct.begin());
    k.distinct.push_back(l);
    return k.distinct.size() - 1;
  };
  for (const layer_spec& l : m.layers) k.of_layer.push_back(index(l));
  for (std::int64_t i = 0; i < m.mtp_layers; ++i)
    for (const layer_spec& l : m.mtp_block) k.of_layer.push_back(index(l));
  k.count = k.distinct.size();
  if (!w.recompute.full || !w.recompute.block) return k;
  k.count *= 2;
  std::size_t at = 0;
  for (const std::int64_t n : chunk_layers(m, w))
    for (std::int64_t i = 0; i < n; ++i, ++at)
      if (!recomputes_layer(w.recompute, i, at >= m.layers.size())) k.of_layer[at] += k.distinct.size();
  return k;
}

/// The same work with every layer's activations kept.
training_workload without_recompute(training_workload w) {
  w.recompute = {};
  return w;
}

/// Cuts a chunk's layers (kinds in order) into buckets of nearly equal numbers of layers.
std::vector<bucket> buckets_of(const training_context& c, const layer_kinds& kinds, std::span<const std::size_t> layers,
                               bool embedding, bool head) {
  const double vocabulary = local_vocabulary_parameters(c);
  const bool own_head = head && !(embedding && c.net.tied_embeddings);
  double total = vocabulary * ((embedding ? 1 : 0) + (own_head ? 1 : 0));
  for (const std::size_t k : layers) total += parameters_on_gpu(c.net, kinds.spec(k), c.work.par).total();
  const auto count = static_cast<std::int64_t>(layers.size());
  const auto wanted = static_cast<std::int64_t>(total / bucket_parameters(c.work));
  const std::int64_t n = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, count));
  std::vector<bucket> out;
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bucket b;
    b.layers.assign(kinds.count, 0);
    b.embedding = embedding && i == 0;
    b.head = head && i == n - 1;
    b.parameters.dense = vocabulary * ((b.embedding ? 1 : 0) + (b.head && own_head ? 1 : 0));
    if (b.head) b.parameters.dense += local_predictor_parameters(c);
    for (const std::int64_t end = next + count / n + (i < count % n ? 1 : 0); next < end; ++next) {
      const std::size_t k = layers[static_cast<std::size_t>(next)];
      const local_parameters p = parameters_on_gpu(c.net, kinds.spec(k), c.work.par);
      ++b.layers[k];
      b.parameters.dense += p.dense;
      b.parameters.expert += p.expert;
    }
    out.push_back(std::move(b));
  }
  return out;
}

bucket merged(const std::vector<bucket>& buckets) {
  bucket whole = buckets.front();
  for (std::size_t i = 1; i < buckets.size(); ++i) {
    for (std::size_t k = 0; k < whole.layers.size(); ++k) whole.layers[k] += buckets[i].layers[k];
    whole.embedding |= buckets[i].embedding;
    whole.head |= buckets[i].head;
    whole.parameters.dense += buckets[i].parameters.dense;
    whole.parameters.expert += buckets[i].parameters.expert;
  }
  return whole;
}

std::int64_t index(std::size_t i) { return static_cast<std::int64_t>(i); }

class step_builder {
 public:
  /// `kept` prices layers that are not recomputed where others are.
  step_builder(const training_context& c, const training_context& kept, bool fold);
  plan take() {
    build();
    for (work_template& t : plan_.templates)
      if (t.network.empty()) t.network = demands_within(c_.machine, t);
    return std::move(plan_);
  }
  /// Equal for steps of one structure.
  std::vector<std::int64_t> key() const;
  /// Requires that ranks are folded. This step cannot be planned afterwards.
  step_structure structure();
  step_prices priced(const std::vector<step_recipe>& recipes);

 private:
  void build();
  void build_rank(std::int64_t stage, std::int64_t copy);
  /// Waits for `beside` too; the output of a paired pass is handed on by whoever gets its event.
  event_id forward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot, event_id beside);
  void backward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot);
  struct reduction {
    std::int32_t work;
    event_id all;  ///< of its gradients are there
  };
  void reduce(rank_class& rank, const reduction& r, event_id after);
  void gather_parameters(rank_class& rank, std::int64_t stage, std::int64_t copy);
  /// Deferred weight gradients of the LM head, reductions that wait for them, and the optimizer.
  void finish(rank_class& rank, std::int64_t stage, std::int64_t copy);
  std::int32_t send_template(std::int64_t from, std::int64_t to);
  void send(rank_class& rank, std::int64_t copy, std::int64_t from, std::int64_t to, std::int64_t mb, event_id ready,
            event_id arrived);

  const bucket& bucket_of(const step_recipe& r) const {
    const auto k = static_cast<std::size_t>(r.at);
    return r.bucket < 0 ? whole_[k] : buckets_[k][static_cast<std::size_t>(r.bucket)];
  }
  bool gathers() const;
  bool reduces() const;
  /// A template without costs, one for each recipe.
  std::int32_t noted(const step_recipe& r);
  std::int32_t template_of(const step_recipe& r);
  std::int32_t make_pass(const step_recipe& r);
  std::int32_t make_traffic(const step_recipe& r);
  std::int32_t make_optimizer(std::int64_t stage);
  std::int32_t head_gradients_template();
  std::int32_t optimizer_template(std::int64_t stage);
  std::int32_t pass_template(const step_recipe& r);
  /// Of a whole chunk, without data-parallel traffic beside it.
  std::int32_t chunk_template(pass_kind what, bool paired, std::int64_t chunk);
  std::int32_t simple_template(work_kind kind, const char* name, seconds t, watts power, const part_facts& f);
  /// Of an operation that shares the network.
  std::int32_t transfer_template(work_kind kind, const char* name, const priced_transfer& t);
  /// Reduce or gather of a bucket; shared by buckets of the same layers.
  std::int32_t traffic_template(const step_recipe& r);

  event_id& input(std::int64_t copy, std::int64_t chunk, std::int64_t mb, bool fwd) {
    const std::int64_t i = (copy * chunks_ + chunk) * c_.work.micro_batches() + mb;
    return (fwd ? forward_in_ : backward_in_)[static_cast<std::size_t>(i)];
  }
  /// Rendezvous of the ranks that share gradients (one arrival when folded).
  event_id group_event(std::int64_t chunk, std::int64_t copy, std::size_t bucket, bool reduce,
                       std::int32_t micro_batch = 0);

  const training_context& c_;
  plan plan_;
  pipeline_geometry shape_;
  std::int64_t copies_, chunks_;
  std::vector<std::vector<bucket>> buckets_;  ///< by chunk
  std::vector<bucket> whole_;                 ///< by chunk, all its buckets as one
  std::vector<std::int32_t> whole_work_[pass_kinds][2];  ///< by kind of pass, paired or not, and chunk: its template, -1 until needed
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> send_work_;  ///< by stages: template of what one sends the other
  std::vector<event_id> forward_in_, backward_in_;
  std::map<std::tuple<pass_kind, bool, std::vector<std::int64_t>, bool, bool, bool, bool>, std::int32_t> passes_;
  std::map<std::tuple<step_recipe::kind, std::vector<std::int64_t>, bool, bool>, std::int32_t> traffic_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::size_t, bool, std::int32_t>, event_id> groups_;
  std::map<std::vector<std::int64_t>, std::int32_t> optimizers_;  ///< by layers, embeddings and heads of the stage
  std::vector<step_recipe> recipes_;              ///< of templates, where only the structure is wanted
  std::map<step_recipe, std::int32_t> known_recipes_;
  bool structure_only_ = false;
  std::vector<costed_parts> layer_[pass_kinds][2];  ///< by kind of pass, paired or not, and kind of layer
  costed_parts embedding_[pass_kinds], head_[pass_kinds];
  std::int64_t deferred_;  ///< micro-batches whose head gradients come last
  std::int32_t head_gradients_ = -1;  ///< its template
  std::vector<event_id> gathered_, reduced_;  ///< of the rank being built: by chunk and bucket; all reductions
  std::vector<reduction> late_;               ///< of the chunk whose head gradients come last
  std::vector<std::size_t> first_bucket_;     ///< by local chunk, into gathered_
  std::vector<std::int32_t> first_met_;       ///< by local chunk: its first micro-batch, which meets the parameters
  std::vector<std::int32_t> last_of_;         ///< by local chunk: its last, after which gradients leave
  std::int32_t host_, ready_, send_nvlink_, send_fabric_;  ///< templates; `ready_` takes no time
};

step_builder::step_builder(const training_context& c, const training_context& kept, bool fold)
    : c_(c), deferred_(deferred_head_gradients(c)) {
  const parallelism& par = c.work.par;
  copies_ = fold ? 1 : par.tp * par.cp * par.dp;
  shape_ = geometry_of(c.work);
  chunks_ = shape_.chunks();
  const auto counts = chunk_layers(c.net, c.work);
  const layer_kinds kinds = kinds_of(c.net, c.work);
  std::size_t first = 0;
  for (std::int64_t k = 0; k < chunks_; ++k) {
    const auto n_layers = static_cast<std::size_t>(counts[static_cast<std::size_t>(k)]);
    buckets_.push_back(buckets_of(c, kinds, std::span(kinds.of_layer).subspan(first, n_layers), k == 0, k == chunks_ - 1));
    whole_.push_back(merged(buckets_.back()));
    first += n_layers;
  }
  for (int k = 0; k < pass_kinds; ++k) {
    const auto what = static_cast<pass_kind>(k);
    const bool half = what == pass_kind::backward_input || what == pass_kind::backward_weight;
    const bool splits = splits_backward(shape_.schedule);
    if (!half || splits || deferred_ > 0) head_[k] = head_pass(c, what);
    if (half && !splits) continue;
    for (std::size_t i = 0; i < kinds.count; ++i) {
      const training_context& by = i < kinds.distinct.size() ? c : kept;
      layer_[k][0].push_back(layer_pass(by, kinds.spec(i), what));
      if (shape_.schedule == pipeline_schedule::dualpipe)
        layer_[k][1].push_back(layer_pass(by, kinds.spec(i), what, true));
    }
    embedding_[k] = embedding_pass(c, what);
  }
  host_ = simple_template(work_kind::host, "host", c.framework.step_host, c.machine.gpu.idle_power,
                          facts_of_wait(resource::host, c.framework.step_host));
  ready_ = simple_template(work_kind::host, "ready", {}, {}, {});
  send_nvlink_ = transfer_template(work_kind::pp, "send (nvlink)", pipeline_send(c, false));
  send_fabric_ = transfer_template(work_kind::pp, "send (fabric)",
                                   spans_domains(par, c.work.place) ? pipeline_send(c, true) : priced_transfer{});
  for (auto& kind : whole_work_)
    for (auto& work : kind) work.assign(static_cast<std::size_t>(chunks_), -1);
}

void step_builder::build() {
  const parallelism& par = c_.work.par;
  const auto n = static_cast<std::size_t>(copies_ * chunks_ * c_.work.micro_batches());
  plan_.arrivals.reserve(4 * n);
  plan_.waits.reserve(6 * n);
  forward_in_.assign(n, no_event);
  backward_in_.assign(n, no_event);
  for (std::int64_t copy = 0; copy < copies_; ++copy)
    for (std::int64_t k = 0; k < chunks_; ++k)
      for (std::int64_t mb = 0; mb < c_.work.micro_batches(); ++mb) {
        if (k > 0) input(copy, k, mb, true) = plan_.new_event();
        if (k < chunks_ - 1) input(copy, k, mb, false) = plan_.new_event();
      }
  for (std::int64_t stage = 0; stage < par.pp; ++stage)
    for (std::int64_t copy = 0; copy < copies_; ++copy) build_rank(stage, copy);
}

void step_builder::build_rank(std::int64_t stage, std::int64_t copy) {
  const parallelism& par = c_.work.par;
  rank_class rank;
  rank.multiplicity = par.tp * par.cp * par.dp / copies_;
  rank.name = copies_ == 1 ? fmt::format("stage {}", stage) : fmt::format("stage {} rank {}", stage, copy);
  rank.streams = {{stream_kind::compute, {}}, {stream_kind::pipeline, {}}, {stream_kind::data_parallel, {}}};
  const auto passes = static_cast<std::size_t>(2 * par.vp * c_.work.micro_batches());
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
  plan_.append(rank.streams[0], host_, {});
  gather_parameters(rank, stage, copy);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const pipeline_slot& slot = slots[i];
    if (slot.what != pass_kind::forward) {
      backward(rank, stage, copy, slot);
    } else if (!slot.paired) {
      forward(rank, stage, copy, slot, no_event);
    } else {  // starts, and hands on its output, with the backward pass beside it
      const pipeline_slot& beside = slots[++i];
      const event_id other = input(copy, shape_.chunk_of(stage, beside.chunk), beside.micro_batch, false);
      const event_id output = forward(rank, stage, copy, slot, other);
      backward(rank, stage, copy, beside);
      if (output != no_event) plan_.append(rank.streams[0], ready_, {}, output, slot.micro_batch);
    }
  }
  finish(rank, stage, copy);
  std::erase_if(rank.streams, [](const stream& s) { return s.operations.empty(); });
  plan_.classes.push_back(std::move(rank));
}

void step_builder::gather_parameters(rank_class& rank, std::int64_t stage, std::int64_t copy) {
  const training_workload& w = c_.work;
  first_bucket_.assign(static_cast<std::size_t>(shape_.local), 0);
  std::vector<std::int64_t> order(static_cast<std::size_t>(shape_.local));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // Both holders of a chunk under DualPipe must meet in the same order.
  if (shape_.schedule == pipeline_schedule::dualpipe && 2 * stage >= w.par.pp) std::reverse(order.begin(), order.end());
  for (const std::int64_t v : order) {
    first_bucket_[static_cast<std::size_t>(v)] = gathered_.size();
    const std::int64_t chunk = shape_.chunk_of(stage, v);
    const auto& buckets = buckets_[static_cast<std::size_t>(chunk)];
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      event_id done = no_event;
      if (gathers()) {
        done = plan_.new_event();
        const event_id all = group_event(chunk, copy, i, false);
        plan_.append(rank.streams[2], ready_, {}, all);
        plan_.append(rank.streams[2], traffic_template({.of = step_recipe::kind::gather, .at = chunk, .bucket = index(i)}), {all},
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
  const std::int64_t tp_rank = copies_ == 1 ? 0 : copy % c_.work.par.tp;
  const auto [it, fresh] = groups_.try_emplace({chunk, tp_rank, bucket, reduce, micro_batch}, no_event);
  const std::int64_t ranks = copies_ == 1 ? 1 : c_.work.par.cp * c_.work.par.dp;
  if (fresh) it->second = plan_.new_event(static_cast<std::int32_t>(ranks * ends));
  return it->second;
}

event_id step_builder::forward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot,
                               event_id beside) {
  const std::int64_t k = shape_.chunk_of(stage, slot.chunk);
  const auto& buckets = buckets_[static_cast<std::size_t>(k)];
  event_id ready = input(copy, k, slot.micro_batch, true);
  const event_id arrived = k + 1 < chunks_ ? input(copy, k + 1, slot.micro_batch, true) : no_event;
  const event_id done = arrived == no_event ? no_event : plan_.new_event();
  const event_id signal = slot.paired ? no_event : done;
  if (slot.micro_batch != first_met_[static_cast<std::size_t>(slot.chunk)]) {
    plan_.append(rank.streams[0], chunk_template(slot.what, slot.paired, k), {ready, beside}, signal, slot.micro_batch);
  } else {
    // The first micro-batch meets the parameters as they are gathered, bucket by bucket.
    const std::size_t first = first_bucket_[static_cast<std::size_t>(slot.chunk)];
    for (std::size_t i = 0; i < buckets.size(); ++i)
      plan_.append(rank.streams[0],
                   pass_template({.at = k, .bucket = index(i), .what = slot.what, .paired = slot.paired, .data_parallel = true}),
                   {i == 0 ? ready : no_event, i == 0 ? beside : no_event, gathered_[first + i]},
                   i + 1 == buckets.size() ? signal : no_event, slot.micro_batch);
  }
  if (arrived != no_event) send(rank, copy, stage, shape_.stage_of(k + 1, slot.micro_batch), slot.micro_batch, done, arrived);
  return slot.paired ? done : no_event;
}

void step_builder::backward(rank_class& rank, std::int64_t stage, std::int64_t copy, const pipeline_slot& slot) {
  const std::int64_t k = shape_.chunk_of(stage, slot.chunk);
  const auto& buckets = buckets_[static_cast<std::size_t>(k)];
  const bool gives_input = slot.what != pass_kind::backward_weight, gives_weights = slot.what != pass_kind::backward_input;
  const event_id ready = gives_input ? input(copy, k, slot.micro_batch, false) : no_event;
  const event_id arrived = gives_input && k > 0 ? input(copy, k - 1, slot.micro_batch, false) : no_event;
  const event_id done = arrived == no_event ? no_event : plan_.new_event();
  const bool always = c_.work.sharding == data_parallel_sharding::optim_grads;
  const bool heads_chunk = k == chunks_ - 1, defers = heads_chunk && slot.micro_batch < deferred_;
  const bool last =
      gives_weights && (always || slot.micro_batch == last_of_[static_cast<std::size_t>(slot.chunk)]);
  if (!last || !reduces()) {
    const std::int32_t work = defers ? pass_template({.at = k, .what = slot.what, .defers_head = true})
                                     : chunk_template(slot.what, slot.paired, k);
    plan_.append(rank.streams[0], work, {ready}, done, slot.micro_batch);
  } else {
    for (std::size_t i = buckets.size(); i-- > 0;) {
      // A bucket's gradients leave as soon as every rank of the group has them.
      const event_id all = group_event(k, copy, i, true, always ? slot.micro_batch : 0);
      const bool bottom = i == 0;
      plan_.append(rank.streams[0],
                   pass_template({.at = k, .bucket = index(i), .what = slot.what, .paired = slot.paired, .data_parallel = true,
                                  .defers_head = defers}),
                   {i + 1 == buckets.size() ? ready : no_event}, all, slot.micro_batch);
      if (bottom && done != no_event) plan_.append(rank.streams[0], ready_, {}, done, slot.micro_batch);
      const reduction r{traffic_template({.of = step_recipe::kind::reduce, .at = k, .bucket = index(i)}), all};
      if (heads_chunk && deferred_ > 0) late_.push_back(r);
      else reduce(rank, r, no_event);
    }
  }
  if (arrived != no_event) send(rank, copy, stage, shape_.stage_of(k - 1, slot.micro_batch), slot.micro_batch, done, arrived);
}

std::int32_t step_builder::send_template(std::int64_t from, std::int64_t to) {
  const auto [it, fresh] = send_work_.try_emplace({from, to}, ready_);
  if (!fresh || from == to) return it->second;
  if (structure_only_) return it->second = noted({.of = step_recipe::kind::send, .at = from, .bucket = to});
  const parallelism& par = c_.work.par;
  const placement& place = c_.work.place;
  const std::int64_t lower = std::min(from, to), upper = std::max(from, to);
  const bool wraps = upper - lower > 1;  // last stage to first, between model chunks
  const bool crosses = wraps && !place.table ? place.domain_of(0) != place.domain_of(par.gpus() - 1)
                                             : stages_cross(par, place, lower, upper);
  return it->second = crosses ? send_fabric_ : send_nvlink_;
}

void step_builder::send(rank_class& rank, std::int64_t copy, std::int64_t from, std::int64_t to, std::int64_t mb,
                         event_id ready, event_id arrived) {
  plan_.append(rank.streams[1], send_template(from, to), {ready}, arrived, static_cast<std::int32_t>(mb),
               static_cast<std::int32_t>(to * copies_ + copy));
}

void step_builder::reduce(rank_class& rank, const reduction& r, event_id after) {
  reduced_.push_back(plan_.new_event());
  plan_.append(rank.streams[2], r.work, {r.all, after}, reduced_.back());
}

void step_builder::finish(rank_class& rank, std::int64_t stage, std::int64_t copy) {
  if (deferred_ > 0 && shape_.stage_of(chunks_ - 1, 0) == stage) {
    const std::size_t beyond = buckets_.back().size();  // no bucket: of the whole chunk
    const event_id drained = late_.empty() ? no_event : group_event(chunks_ - 1, copy, beyond, true);
    plan_.append(rank.streams[0], head_gradients_template(), {}, drained);
    for (const reduction& r : late_) reduce(rank, r, drained);
  }
  // One operation cannot wait for an unbounded list, so reductions are awaited through the stream's last one: a stream
  // is in order.
  plan_.append(rank.streams[0], optimizer_template(stage), {reduced_.empty() ? no_event : reduced_.back()});
}

std::int32_t step_builder::optimizer_template(std::int64_t stage) {
  if (structure_only_) return noted({.of = step_recipe::kind::optimizer, .at = stage});
  std::vector<std::int64_t> held;
  for (std::int64_t v = 0; v < shape_.local && c_.work.task != training_task::lora; ++v) {
    const bucket& b = whole_[static_cast<std::size_t>(shape_.chunk_of(stage, v))];
    held.resize(b.layers.size() + 2);
    for (std::size_t k = 0; k < b.layers.size(); ++k) held[k] += b.layers[k];
    held[b.layers.size()] += b.embedding ? 1 : 0;
    held.back() += b.head ? 1 : 0;
  }
  const auto [it, fresh] = optimizers_.try_emplace(std::move(held), 0);
  return fresh ? it->second = make_optimizer(stage) : it->second;
}

std::int32_t step_builder::make_optimizer(std::int64_t stage) {
  const training_workload& w = c_.work;
  local_parameters local;
  for (std::int64_t v = 0; v < shape_.local; ++v) {
    const local_parameters p = whole_[static_cast<std::size_t>(shape_.chunk_of(stage, v))].parameters;
    local.dense += p.dense;
    local.expert += p.expert;
  }
  const bool sharded = w.sharding != data_parallel_sharding::replicated, frozen = w.task == training_task::lora;
  const double updated = !sharded ? local.total()
                                  : local.dense / gradient_group(w).ranks + local.expert / expert_gradient_group(w).ranks;
  const costed_parts cost = optimizer_step(c_, frozen ? 0.0 : local.total(), frozen ? 0.0 : updated);
  work_template t{"optimizer", cost.parts, {}, {}};
  if (cost.duration() > seconds{}) t.power = cost.energy / cost.duration();
  return plan_.add_template(std::move(t));
}

std::int32_t step_builder::head_gradients_template() {
  if (structure_only_) return noted({.of = step_recipe::kind::head_gradients});
  if (head_gradients_ >= 0) return head_gradients_;
  costed_parts cost;
  cost.append(head_[static_cast<std::size_t>(pass_kind::backward_weight)], deferred_);
  work_template t{fmt::format("deferred weight gradients of the LM head ({} micro-batches)", deferred_), cost.parts, {}, {}};
  if (cost.duration() > seconds{}) t.power = cost.energy / cost.duration();
  return head_gradients_ = plan_.add_template(std::move(t));
}

std::int32_t step_builder::chunk_template(pass_kind what, bool paired, std::int64_t chunk) {
  const auto k = static_cast<std::size_t>(chunk);
  std::int32_t& work = whole_work_[static_cast<std::size_t>(what)][paired ? 1 : 0][k];
  if (work < 0) work = pass_template({.at = chunk, .what = what, .paired = paired});
  return work;
}

std::int32_t step_builder::pass_template(const step_recipe& r) {
  if (structure_only_) return noted(r);
  const bucket& b = bucket_of(r);
  const auto [it, fresh] = passes_.try_emplace({r.what, r.paired, b.layers, b.embedding, b.head, r.data_parallel, r.defers_head}, 0);
  return fresh ? it->second = make_pass(r) : it->second;
}

std::int32_t step_builder::make_pass(const step_recipe& r) {
  const bucket& b = bucket_of(r);
  const pass_kind what = r.what;
  constexpr const char* names[pass_kinds] = {"forward", "backward", "backward (inputs)", "backward (weights)"};
  const auto k = static_cast<std::size_t>(what);
  const bool is_forward = what == pass_kind::forward;
  costed_parts cost;
  if (is_forward && b.embedding) cost.append(embedding_[k], 1);
  const auto inputs = static_cast<std::size_t>(pass_kind::backward_input);
  if (!is_forward && b.head) cost.append(head_[r.defers_head ? inputs : k], 1);
  for (std::size_t i = 0; i < b.layers.size(); ++i) {
    const std::size_t layer = is_forward ? i : b.layers.size() - 1 - i;
    cost.append(layer_[k][r.paired ? 1 : 0][layer], b.layers[layer]);
  }
  if (is_forward && b.head) cost.append(head_[k], 1);
  if (!is_forward && b.embedding) cost.append(embedding_[k], 1);
  const watts idle = c_.machine.gpu.idle_power;
  const auto wait = [&](work_kind kind, const char* name, seconds t, const part_facts& why) {
    if (t > seconds{}) cost.parts.push_back({kind, name, t, 1, std::make_shared<part_facts>(why)});
    cost.energy += idle * t;
  };
  const seconds launch = c_.framework.pipeline_launch;
  if (c_.work.par.pp > 1 && what != pass_kind::backward_weight)
    wait(work_kind::pp, "pp.launch", launch, facts_of_wait(resource::latency, launch));
  const bool overlaps = r.data_parallel && what != pass_kind::backward_input && c_.work.par.dp * c_.work.par.cp > 1 &&
                        c_.work.sharding != data_parallel_sharding::fsdp;
  if (overlaps) {
    const bool gathers = gathers_once(c_.work.sharding);
    const priced_transfer traffic = !is_forward ? gradient_reduction(c_, b.parameters)
                                    : gathers   ? parameter_gather(c_, b.parameters)
                                                : priced_transfer{};
    part_facts why = facts_of(c_.machine, traffic);
    why.traffic = {};  // it flows on a stream of its own
    wait(work_kind::dp, "dp.interference", traffic.time * c_.framework.dp_interference, why);
  }
  work_template t{fmt::format("{} ({} layers{}{})", names[k], std::accumulate(b.layers.begin(), b.layers.end(), std::int64_t{0}),
                              b.embedding ? ", embedding" : "", b.head ? ", loss" : ""),
                  cost.parts, {}, {}};
  const seconds duration = cost.duration();
  if (duration > seconds{}) t.power = cost.energy / duration;
  return plan_.add_template(std::move(t));
}

std::int32_t step_builder::traffic_template(const step_recipe& r) {
  if (structure_only_) return noted(r);
  const bucket& b = bucket_of(r);
  const auto [it, fresh] = traffic_.try_emplace({r.of, b.layers, b.embedding, b.head}, 0);
  return fresh ? it->second = make_traffic(r) : it->second;
}

std::int32_t step_builder::make_traffic(const step_recipe& r) {
  const bool reduce = r.of == step_recipe::kind::reduce;
  const local_parameters p = bucket_of(r).parameters;
  const priced_transfer t = reduce ? gradient_reduction(c_, p) : parameter_gather(c_, p);
  const bool whole = c_.work.sharding == data_parallel_sharding::replicated;
  const char* what = !reduce ? "parameter all-gather" : whole ? "gradient all-reduce" : "gradient reduce-scatter";
  return transfer_template(work_kind::dp, what, t);
}

std::int32_t step_builder::noted(const step_recipe& r) {
  const auto [it, fresh] = known_recipes_.try_emplace(r, static_cast<std::int32_t>(recipes_.size()));
  if (fresh) recipes_.push_back(r), plan_.templates.emplace_back();
  return it->second;
}

std::int32_t step_builder::template_of(const step_recipe& r) {
  using enum step_recipe::kind;
  switch (r.of) {
    case host: return host_;
    case ready: return ready_;
    case send: return send_template(r.at, r.bucket);
    case pass: return pass_template(r);
    case optimizer: return optimizer_template(r.at);
    case head_gradients: return head_gradients_template();
    case gather:
    case reduce: break;
  }
  return traffic_template(r);
}

bool step_builder::gathers() const {
  const training_workload& w = c_.work;
  return gathers_once(w.sharding) && w.par.dp * w.par.cp > 1;
}

bool step_builder::reduces() const {
  const training_workload& w = c_.work;
  return w.sharding != data_parallel_sharding::fsdp && w.par.dp * w.par.cp > 1;
}

std::vector<std::int64_t> step_builder::key() const {
  return {static_cast<std::int64_t>(shape_.schedule), shape_.pp, shape_.local, shape_.micro_batches, gathers() ? 1 : 0,
          reduces() ? 1 : 0, deferred_};
}

step_structure step_builder::structure() {
  structure_only_ = true;
  for (std::size_t k = 0; k < buckets_.size(); ++k) buckets_[k] = {whole_[k]};
  plan_.templates.clear();
  host_ = noted({.of = step_recipe::kind::host});
  ready_ = noted({.of = step_recipe::kind::ready});
  build();
  return {plan_, std::move(recipes_)};
}

step_prices step_builder::priced(const std::vector<step_recipe>& recipes) {
  step_prices out;
  for (const auto& chunk : buckets_) out.buckets.push_back(static_cast<std::uint32_t>(chunk.size()));
  for (step_recipe r : recipes) {
    using kind = step_recipe::kind;
    out.first.push_back(static_cast<std::uint32_t>(out.seconds.size()));
    const bool by_bucket = r.of == kind::gather || r.of == kind::reduce || r.data_parallel;
    const std::int64_t n = by_bucket ? index(buckets_[static_cast<std::size_t>(r.at)].size()) : 1;
    for (std::int64_t i = 0; i < n; ++i) {
      if (by_bucket) r.bucket = i;
      const work_template& t = plan_.templates[static_cast<std::size_t>(template_of(r))];
      out.seconds.push_back(t.duration.base());
      out.joules.push_back((t.power * t.duration).base());
    }
  }
  out.first.push_back(static_cast<std::uint32_t>(out.seconds.size()));
  return out;
}

std::int32_t step_builder::simple_template(work_kind kind, const char* name, seconds t, watts power,
                                           const part_facts& f) {
  work_template w{name, {}, {}, power};
  if (t > seconds{}) w.parts.push_back({kind, name, t, 1, std::make_shared<part_facts>(f)});
  return plan_.add_template(std::move(w));
}

std::int32_t step_builder::transfer_template(work_kind kind, const char* name, const priced_transfer& t) {
  const std::int32_t work = simple_template(kind, name, t.time, {}, facts_of(c_.machine, t));
  if (t.time > seconds{}) plan_.templates.back().network = {demand_on(c_.machine, t)};
  return work;
}

}  // namespace

plan plan_training(const platform& p, const stack& s, const model& m, const training_workload& w, bool fold) {
  const double ranks = static_cast<double>(w.par.gpus()), passes = ranks * static_cast<double>(w.par.vp * w.micro_batches());
  if (!fold && passes > most_passes)
    throw input_error({{"", "", fmt::format("unfolded, {} ranks make {:.3g} passes of micro-batches, and {:.3g} are the most; fold equal ranks",
                                            w.par.gpus(), passes, most_passes), {}}});
  if (!w.degraded.empty()) return plan_degraded(p, s, m, w, fold);
  const training_context c(p, s, m, w);
  if (!w.recompute.block) return step_builder(c, c, fold).take();
  const training_workload all_kept = without_recompute(w);
  return step_builder(c, training_context(p, s, m, all_kept), fold).take();
}

bool step_cache::covers(const training_workload& w) {
  return w.degraded.empty() && w.sharding != data_parallel_sharding::optim_grads && !w.recompute.block;
}

step_cost step_cache::cost_of(const platform& p, const stack& s, const model& m, const training_workload& w) {
  const training_context c(p, s, m, w);
  step_builder step(c, c, true);
  const std::vector<std::int64_t> key = step.key();
  std::shared_ptr<const step_structure> known;
  {
    const std::lock_guard lock(looking_);
    if (const auto it = known_.find(key); it != known_.end()) known = it->second;
  }
  if (!known) {
    known = std::make_shared<const step_structure>(step_builder(c, c, true).structure());
    const std::lock_guard lock(looking_);
    if (operations_ > most_operations) known_.clear(), operations_ = 0;
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
