#include "training/step_templates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "nvlsim/plan/part_facts.hpp"
#include "training/pass_cache.hpp"

namespace nvlsim {
namespace {

std::int64_t number(std::size_t i) { return static_cast<std::int64_t>(i); }

}  // namespace

step_templates::step_templates(const training_context& c, const pipeline_geometry& shape, plan& p)
    : c_(c), shape_(shape), plan_(p), deferred_(deferred_head_gradients(c)) {
  const parallelism& par = c.workload.par;
  const std::int64_t chunks = shape_.chunks();
  const auto counts = chunk_layers(c.net, c.workload);
  const layer_kinds kinds = c.passes ? c.passes->kinds(c.net, c.workload) : kinds_of(c.net, c.workload);
  std::size_t first = 0;
  for (std::int64_t k = 0; k < chunks; ++k) {
    const auto n_layers = static_cast<std::size_t>(counts[static_cast<std::size_t>(k)]);
    buckets_.push_back(
        buckets_of(c, kinds, std::span(kinds.of_layer).subspan(first, n_layers), k == 0, k == chunks - 1));
    whole_.push_back(merged(buckets_.back()));
    first += n_layers;
  }
  for (int k = 0; k < pass_kinds; ++k) {
    const auto what = static_cast<pass_kind>(k);
    const bool half = what == pass_kind::backward_input || what == pass_kind::backward_weight;
    const bool splits = splits_backward(shape_.schedule);
    if (!half || splits || deferred_ > 0)
      head_[k] = known_or(c, pass_cache::head, what, false, [&] { return head_pass(c, what); });
    if (!half || splits)
      embedding_[k] = known_or(c, pass_cache::embedding, what, false, [&] { return embedding_pass(c, what); });
  }
  price_layers(kinds);
  host_ = simple_template(part_kind::host, "host", c.framework.step_host, c.machine.gpu.idle_power,
                          facts_of_wait(resource::host, c.framework.step_host));
  ready_ = simple_template(part_kind::host, "ready", {}, {}, {});
  send_nvlink_ = transfer_template(part_kind::pp, "send (nvlink)", pipeline_send(c, false));
  send_fabric_ =
      transfer_template(part_kind::pp, "send (fabric)",
                        spans_domains(par, c.workload.place) ? pipeline_send(c, true) : priced_transfer{});
  for (auto& kind : whole_templates_)
    for (auto& indices : kind) indices.assign(static_cast<std::size_t>(chunks), -1);
}

void step_templates::price_layers(const layer_kinds& kinds) {
  for (std::size_t i = 0; i < kinds.count(); ++i) {
    const bool used = std::find(kinds.of_layer.begin(), kinds.of_layer.end(), i) != kinds.of_layer.end();
    const std::size_t workload = i / kinds.distinct.size();
    std::optional<training_context> other;
    if (used && workload > 0) other.emplace(c_, kinds.workloads[workload]);
    const training_context& by = other ? *other : c_;
    if (c_.workload.optimizer.kind == optimizer_kind::muon)
      orthogonal_.push_back(used ? orthogonalisation(by, kinds.spec(i)) : costed_parts());
    for (int k = 0; k < pass_kinds; ++k) {
      const auto what = static_cast<pass_kind>(k);
      const bool half = what == pass_kind::backward_input || what == pass_kind::backward_weight;
      if (half && !splits_backward(shape_.schedule)) continue;
      const auto pass = [&](bool paired) {
        if (!used) return std::make_shared<const costed_parts>();
        return known_or(by, number(i), what, paired, [&] { return layer_pass(by, kinds.spec(i), what, paired); });
      };
      layer_[k][0].push_back(pass(false));
      if (shape_.schedule == pipeline_schedule::dualpipe) layer_[k][1].push_back(pass(true));
    }
  }
}

std::shared_ptr<const costed_parts> step_templates::known_or(const training_context& by, std::int64_t kind,
                                                             pass_kind what, bool paired,
                                                             const std::function<costed_parts()>& make) const {
  return by.passes ? by.passes->pass(by, kind, what, paired, make) : std::make_shared<const costed_parts>(make());
}

std::int32_t step_templates::of(const step_recipe& r) {
  using enum step_recipe::kind;
  switch (r.of) {
    case host:
      return host_;
    case ready:
      return ready_;
    case send:
      return send_template(r.at, r.bucket);
    case pass:
      return pass_template(r);
    case optimizer:
      return optimizer_template(r.at);
    case head_gradients:
      return head_gradients_template();
    case gather:
    case reduce:
      break;
  }
  return traffic_template(r);
}

void step_templates::only_note() {
  structure_only_ = true;
  for (std::size_t k = 0; k < buckets_.size(); ++k) buckets_[k] = {whole_[k]};
  plan_.templates.clear();
  host_ = noted({.of = step_recipe::kind::host});
  ready_ = noted({.of = step_recipe::kind::ready});
}

step_prices step_templates::priced(const std::vector<step_recipe>& recipes) {
  step_prices out;
  for (const auto& chunk : buckets_) out.buckets.push_back(static_cast<std::uint32_t>(chunk.size()));
  for (step_recipe r : recipes) {
    using kind = step_recipe::kind;
    out.first.push_back(static_cast<std::uint32_t>(out.seconds.size()));
    const bool by_bucket = r.of == kind::gather || r.of == kind::reduce || r.data_parallel;
    const std::int64_t n = by_bucket ? number(buckets_[static_cast<std::size_t>(r.at)].size()) : 1;
    for (std::int64_t i = 0; i < n; ++i) {
      if (by_bucket) r.bucket = i;
      const operation_template& t = plan_.templates[static_cast<std::size_t>(of(r))];
      out.seconds.push_back(t.duration.base());
      out.joules.push_back((t.power * t.duration).base());
    }
  }
  out.first.push_back(static_cast<std::uint32_t>(out.seconds.size()));
  return out;
}

std::int32_t step_templates::of_chunk(pass_kind what, bool paired, std::int64_t chunk) {
  const auto k = static_cast<std::size_t>(chunk);
  std::int32_t& template_index = whole_templates_[static_cast<std::size_t>(what)][paired ? 1 : 0][k];
  if (template_index < 0) template_index = pass_template({.at = chunk, .what = what, .paired = paired});
  return template_index;
}

std::int32_t step_templates::pass_template(const step_recipe& r) {
  if (structure_only_) return noted(r);
  const bucket& b = bucket_of(r);
  const auto [it, fresh] =
      passes_.try_emplace({r.what, r.paired, b.layers, b.embedding, b.head, r.data_parallel, r.defers_head}, 0);
  return fresh ? it->second = make_pass(r) : it->second;
}

std::int32_t step_templates::make_pass(const step_recipe& r) {
  const bucket& b = bucket_of(r);
  const pass_kind what = r.what;
  constexpr const char* names[pass_kinds] = {"forward", "backward", "backward (inputs)", "backward (weights)"};
  const auto k = static_cast<std::size_t>(what);
  const bool is_forward = what == pass_kind::forward;
  costed_parts cost;
  if (is_forward && b.embedding) cost.append(*embedding_[k], 1);
  const auto inputs = static_cast<std::size_t>(pass_kind::backward_input);
  if (!is_forward && b.head) cost.append(*head_[r.defers_head ? inputs : k], 1);
  for (std::size_t i = 0; i < b.layers.size(); ++i) {
    const std::size_t layer = is_forward ? i : b.layers.size() - 1 - i;
    cost.append(*layer_[k][r.paired ? 1 : 0][layer], b.layers[layer]);
  }
  if (is_forward && b.head) cost.append(*head_[k], 1);
  if (!is_forward && b.embedding) cost.append(*embedding_[k], 1);
  const watts idle = c_.machine.gpu.idle_power;
  const auto wait = [&](part_kind kind, const char* name, seconds t, const part_facts& why) {
    if (t > seconds{})
      cost.parts.push_back({kind, name, t, 1, c_.passes ? nullptr : std::make_shared<part_facts>(why)});
    cost.energy += idle * t;
  };
  const seconds launch = c_.framework.pipeline_launch;
  if (c_.workload.par.pp > 1 && what != pass_kind::backward_weight)
    wait(part_kind::pp, "pp.launch", launch, facts_of_wait(resource::latency, launch));
  const bool overlaps = r.data_parallel && what != pass_kind::backward_input &&
                        c_.workload.par.dp * c_.workload.par.cp > 1 &&
                        c_.workload.sharding != data_parallel_sharding::fsdp;
  if (overlaps) {
    const bool gathers = gathers_once(c_.workload.sharding);
    const priced_transfer traffic = !is_forward ? gradient_reduction(c_, b.parameters)
                                    : gathers   ? parameter_gather(c_, b.parameters)
                                                : priced_transfer{};
    part_facts why = facts_of(c_.machine, traffic);
    why.traffic = {};  // runs on a stream of its own
    wait(part_kind::dp, "dp.interference", traffic.time * c_.framework.dp_interference, why);
  }
  operation_template t;
  if (!c_.passes)
    t.name = fmt::format("{} ({} layers{}{})", names[k],
                         std::accumulate(b.layers.begin(), b.layers.end(), std::int64_t{0}),
                         b.embedding ? ", embedding" : "", b.head ? ", loss" : "");
  const seconds duration = cost.duration();
  if (duration > seconds{}) t.power = cost.energy / duration;
  t.parts = std::move(cost.parts);
  return plan_.add_template(std::move(t));
}

std::int32_t step_templates::traffic_template(const step_recipe& r) {
  if (structure_only_) return noted(r);
  const bucket& b = bucket_of(r);
  const auto [it, fresh] = traffic_.try_emplace({r.of, b.layers, b.embedding, b.head}, 0);
  return fresh ? it->second = make_traffic(r) : it->second;
}

std::int32_t step_templates::make_traffic(const step_recipe& r) {
  const bool reduce = r.of == step_recipe::kind::reduce;
  const local_parameters p = bucket_of(r).parameters;
  const priced_transfer t = reduce ? gradient_reduction(c_, p) : parameter_gather(c_, p);
  const bool whole = c_.workload.sharding == data_parallel_sharding::replicated;
  const char* what = !reduce ? "parameter all-gather" : whole ? "gradient all-reduce" : "gradient reduce-scatter";
  return transfer_template(part_kind::dp, what, t);
}

std::int32_t step_templates::send_template(std::int64_t from, std::int64_t to) {
  const auto [it, fresh] = send_templates_.try_emplace({from, to}, ready_);
  if (!fresh || from == to) return it->second;
  if (structure_only_) return it->second = noted({.of = step_recipe::kind::send, .at = from, .bucket = to});
  const parallelism& par = c_.workload.par;
  const placement& place = c_.workload.place;
  const std::int64_t lower = std::min(from, to), upper = std::max(from, to);
  const bool wraps = upper - lower > 1;  // from the last stage to the first, between model chunks
  const bool crosses = wraps && !place.table ? place.domain_of(0) != place.domain_of(par.gpus() - 1)
                                             : stages_cross(par, place, lower, upper);
  return it->second = crosses ? send_fabric_ : send_nvlink_;
}

std::int32_t step_templates::optimizer_template(std::int64_t stage) {
  if (structure_only_) return noted({.of = step_recipe::kind::optimizer, .at = stage});
  std::vector<std::int64_t> held;
  for (std::int64_t v = 0; v < shape_.local && !c_.workload.frozen_layers(); ++v) {
    const bucket& b = whole_[static_cast<std::size_t>(shape_.chunk_of(stage, v))];
    held.resize(b.layers.size() + 2);
    for (std::size_t k = 0; k < b.layers.size(); ++k) held[k] += b.layers[k];
    held[b.layers.size()] += b.embedding ? 1 : 0;
    held.back() += b.head ? 1 : 0;
  }
  const auto [it, fresh] = optimizers_.try_emplace(std::move(held), 0);
  return fresh ? it->second = make_optimizer(stage) : it->second;
}

std::int32_t step_templates::make_optimizer(std::int64_t stage) {
  const training_workload& w = c_.workload;
  local_parameters local;
  for (std::int64_t v = 0; v < shape_.local; ++v) {
    const local_parameters p = whole_[static_cast<std::size_t>(shape_.chunk_of(stage, v))].parameters;
    local.dense += p.dense;
    local.expert += p.expert;
  }
  const bool sharded = w.sharding != data_parallel_sharding::replicated, frozen = w.frozen_layers();
  const double updated =
      !sharded ? local.total()
               : local.dense / gradient_group(w).ranks + local.expert / expert_gradient_group(w).ranks;
  costed_parts cost = optimizer_step(c_, frozen ? 0.0 : local.total(), frozen ? 0.0 : updated);
  for (std::int64_t v = 0; v < shape_.local && !frozen; ++v) {
    const std::vector<std::int64_t>& layers = whole_[static_cast<std::size_t>(shape_.chunk_of(stage, v))].layers;
    for (std::size_t k = 0; k < layers.size() && !orthogonal_.empty(); ++k) cost.append(orthogonal_[k], layers[k]);
  }
  operation_template t{"optimizer", cost.parts, {}, {}};
  if (cost.duration() > seconds{}) t.power = cost.energy / cost.duration();
  return plan_.add_template(std::move(t));
}

std::int32_t step_templates::head_gradients_template() {
  if (structure_only_) return noted({.of = step_recipe::kind::head_gradients});
  if (head_gradients_ >= 0) return head_gradients_;
  costed_parts cost;
  cost.append(*head_[static_cast<std::size_t>(pass_kind::backward_weight)], deferred_);
  operation_template t{
      fmt::format("deferred weight gradients of the LM head ({} micro-batches)", deferred_), cost.parts, {}, {}};
  if (cost.duration() > seconds{}) t.power = cost.energy / cost.duration();
  return head_gradients_ = plan_.add_template(std::move(t));
}

std::int32_t step_templates::noted(const step_recipe& r) {
  const auto [it, fresh] = known_recipes_.try_emplace(r, static_cast<std::int32_t>(recipes_.size()));
  if (fresh) recipes_.push_back(r), plan_.templates.emplace_back();
  return it->second;
}

std::int32_t step_templates::simple_template(part_kind kind, const char* name, seconds t, watts power,
                                             const part_facts& f) {
  operation_template w{name, {}, {}, power};
  if (t > seconds{}) w.parts.push_back({kind, name, t, 1, c_.passes ? nullptr : std::make_shared<part_facts>(f)});
  return plan_.add_template(std::move(w));
}

std::int32_t step_templates::transfer_template(part_kind kind, const char* name, const priced_transfer& t) {
  const std::int32_t template_index = simple_template(kind, name, t.time, {}, facts_of(c_.machine, t));
  if (t.time > seconds{}) plan_.templates.back().network = {demand_on(c_.machine, t)};
  return template_index;
}

}  // namespace nvlsim
