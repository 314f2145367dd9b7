#include "nvlsim/post_training/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "nvlsim/serving/iteration_prices.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/training/step_cache.hpp"

namespace nvlsim {
namespace {

/// Of a priced update of some micro-batches.
struct update_price {
  double update_s = 0, forward_s = 0;
  double update_J = 0;
};

/// Prices updates by the number of their micro-batches, which is all that differs between them.
class update_prices {
 public:
  update_prices(const post_training_parts& p, const post_training_workload& w, const model& m)
      : parts_(p), loop_(w), model_(m), base_(layout_of(p, m)) {
    if (w.packing == packing_kind::packed || w.packing == packing_kind::dynamic) {
      const response_lengths& r = w.loop.response;
      const double deviation = log_deviation(r);
      token_lengths l;
      const std::int64_t tools = (w.loop.tools.turns - 1) * w.loop.tools.tokens;
      l.max = std::min(base_.seq_length, w.loop.prompt_tokens + r.max + tools);
      l.mean = std::min(r.mean + static_cast<double>(w.loop.prompt_tokens + tools), static_cast<double>(l.max));
      if (deviation > 0) {
        l.shape = length_shape::lognormal;
        l.variation = std::sqrt(std::expm1(deviation * deviation));
      }
      base_.packed = l;
    }
  }

  update_price of(const packed_batch& b) {
    const std::int64_t count = micro_batches(b);
    if (loop_.packing == packing_kind::unpadded) return at(count, std::llround(b.tokens));
    if (loop_.packing != packing_kind::dynamic) return at(count, base_.seq_length);
    // Interpolates between priced sizes.
    const double size = std::max(1.0, static_cast<double>(base_.seq_length) / size_steps);
    const double low = std::max(1.0, std::floor(b.tokens / size));
    const update_price &x = at(count, std::llround(low * size)), &y = at(count, std::llround((low + 1) * size));
    const double share = std::clamp(b.tokens / size - low, 0.0, 1.0);
    const auto between = [share](double from, double to) { return from + share * (to - from); };
    return {between(x.update_s, y.update_s), between(x.forward_s, y.forward_s), between(x.update_J, y.update_J)};
  }

  /// Interleaved schedules take micro-batches in multiples of the stages.
  std::int64_t micro_batches(const packed_batch& b) const {
    const std::int64_t m = (b.micro_batches + base_.micro_batch_size - 1) / base_.micro_batch_size;
    const std::int64_t step = base_.par.vp > 1 ? base_.par.pp : 1;
    return std::max<std::int64_t>(1, (m + step - 1) / step) * step;
  }

  /// The trainer's layout. A model without experts spreads none.
  static training_workload layout_of(const post_training_parts& p, const model& m) {
    training_workload w = p.training;
    const auto routed = [](const layer_spec& l) { return l.routed(); };
    if (std::none_of(m.layers.begin(), m.layers.end(), routed)) w.par.ep = w.par.etp = 1;
    return w;
  }

 private:
  static constexpr double size_steps = 16;  ///< sizes of dynamic micro-batches that are priced, up to the window

  const update_price& at(std::int64_t count, std::int64_t tokens) {
    const auto [at, fresh] = known_.try_emplace({count, tokens});
    if (fresh) at->second = priced(count, tokens);
    return at->second;
  }
  update_price priced(std::int64_t count, std::int64_t tokens) {
    training_workload w = base_;
    w.seq_length = std::max<std::int64_t>(1, tokens);
    w.global_batch_size = count * w.micro_batch_size * w.par.dp;
    const platform& p = parts_.hardware;
    const stack& s = parts_.training_stack;
    const model& m = model_;
    update_price out;
    // A plan of a few micro-batches has the passes of all.
    training_workload few = w;
    const std::int64_t planned = std::min<std::int64_t>(count, std::max<std::int64_t>(w.par.pp, 1));
    few.global_batch_size = planned * w.micro_batch_size * w.par.dp;
    const double factor = loop_.costs.update_factor;
    out.forward_s = factor * forward_time(plan_training(p, s, m, few), planned, count).base();
    if (step_cache::covers(w)) {
      const step_cost c = caches_[tokens].cost_of(p, s, m, w);
      out.update_s = c.makespan.base();
      const double gpus = static_cast<double>(w.par.gpus()) / static_cast<double>(c.stages.size());
      for (const auto& stage : c.stages) {
        const double idle = std::max(0.0, out.update_s - stage.busy.base());
        out.update_J += gpus * (stage.energy.base() + idle * p.gpu.idle_power.base());
      }
    } else {
      const plan whole = plan_training(p, s, m, w);
      const timeline times = evaluate(whole);
      out.update_s = times.makespan.base();
      for (std::size_t c = 0; c < whole.classes.size(); ++c) out.update_J += class_energy(whole, times, c);
    }
    out.update_s *= factor;
    out.update_J *= factor;
    return out;
  }

  double class_energy(const plan& whole, const timeline& times, std::size_t c) const {
    double busy = 0, energy = 0;
    for (const operation& o : whole.classes[c].streams.front().operations) {
      const operation_template& t = whole.templates[static_cast<std::size_t>(o.template_index)];
      busy += t.duration.base();
      energy += (t.power * t.duration).base();
    }
    const double idle = std::max(0.0, times.makespan.base() - busy);
    return static_cast<double>(whole.classes[c].multiplicity) *
           (energy + idle * parts_.hardware.gpu.idle_power.base());
  }

  const post_training_parts& parts_;
  const post_training_workload& loop_;
  const model& model_;
  training_workload base_;
  std::map<std::int64_t, step_cache> caches_;  ///< by tokens of a micro-batch: one cache knows one size
  std::map<std::pair<std::int64_t, std::int64_t>, update_price> known_;
};

const model& critic_of(const post_training_parts& p, const post_training_workload& w) {
  return w.models.critic ? *w.models.critic : p.training_model;
}

/// Time in which models and states come to the GPU and leave it, for each batch that the trainer takes.
struct copy_times {
  seconds passes, updates;
};

/// The trainer's part of a loop.
class trainer_pricing {
 public:
  trainer_pricing(const post_training_parts& p, const post_training_workload& w, const copy_times& copies)
      : loop_(w), prices_(p, w, p.training_model), window_(p.training.seq_length), ranks_(p.training.par.dp),
        forward_J_share_(1.0 / 3), copies_(copies) {
    using enum post_training_algorithm;
    if (w.algorithm == ppo) critic_.emplace(p, w, critic_of(p, w));
    if (w.models.teacher) teacher_.emplace(p, w, *w.models.teacher);
    if (w.reward.on_trainer) reward_.emplace(p, w, w.models.reward ? *w.models.reward : p.training_model);
  }

  update_times operator()(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& scored) {
    update_times out;
    const packed_batch whole = pack(lengths, ranks_, window_, loop_.packing);
    double passes_s = 0;
    const auto pass_of = [&](update_prices& of, const packed_batch& batch) {
      const update_price price = of.of(batch);
      passes_s += loop_.costs.logprobs_factor * price.forward_s;
      energy_ += price.update_J * forward_J_share_;
    };
    const auto pass = [&](update_prices& of) { pass_of(of, whole); };
    if (loop_.policy_logprobs) pass(prices_);
    if (loop_.reference_logprobs) pass(teacher_ ? *teacher_ : prices_);
    if (critic_) pass(*critic_);  // values
    if (reward_) pass_of(*reward_, pack(scored, ranks_, window_, loop_.packing));
    out.logprobs_s = passes_s + copies_.passes.base();
    computes_s_ += passes_s;
    const auto mini = static_cast<std::size_t>(std::max<std::int64_t>(1, share(loop_.mini_batch)));
    out.update_s = copies_.updates.base();
    for (std::size_t i = 0; i < lengths.size(); i += mini) {
      const auto end = std::min(lengths.size(), i + mini);
      const packed_batch b = pack(
          {lengths.begin() + static_cast<std::ptrdiff_t>(i), lengths.begin() + static_cast<std::ptrdiff_t>(end)},
          ranks_, window_, loop_.packing);
      const double times = static_cast<double>(loop_.epochs);
      for (update_prices* of : {&prices_, critic_ ? &*critic_ : nullptr}) {
        if (!of) continue;
        const update_price u = of->of(b);
        out.update_s += times * u.update_s;
        if (of != &prices_) critic_s_ += times * u.update_s;
        energy_ += times * u.update_J;
        computes_s_ += times * u.update_s;
      }
      updates_ += times;
      micro_batches_ += times * static_cast<double>(prices_.micro_batches(b));
      fill_ += times * b.fill;
      tokens_ += times * b.tokens;
    }
    update_s_ += out.update_s;
    copies_s_ += copies_.updates.base();
    return out;
  }

  /// `steps`: all, with the warm-up.
  void report(post_training_run& out, double measured_share, double steps) const {
    out.updates = updates_ / steps;
    if (update_s_ > 0) out.critic_share = critic_s_ / update_s_, out.copy_share = copies_s_ / update_s_;
    out.training_energy = joules::from_base(energy_ * measured_share);
    out.training_computes = seconds::from_base(computes_s_ * measured_share);
    const double n = std::max(1.0, updates_);
    out.micro_batches = std::llround(micro_batches_ / n);
    out.fill = fill_ / n;
    out.tokens_per_micro_batch = tokens_ / n;
  }

 private:
  std::int64_t share(std::int64_t samples) const {
    const std::int64_t of = loop_.loop.samples, kept = loop_.loop.trained_samples;
    return kept > 0 && kept < of ? samples * kept / of : samples;
  }

  const post_training_workload& loop_;
  update_prices prices_;
  std::optional<update_prices> critic_, teacher_, reward_;
  std::int64_t window_, ranks_;
  double forward_J_share_;  ///< FLOPs of a forward pass over those of a step
  copy_times copies_;
  double energy_ = 0, computes_s_ = 0, update_s_ = 0, critic_s_ = 0, copies_s_ = 0;
  double updates_ = 0, micro_batches_ = 0, fill_ = 0, tokens_ = 0;
};

bytes sum_of(const memory_report& m, std::initializer_list<std::string_view> names) {
  bytes out;
  for (const memory_item& i : m.items)
    if (std::find(names.begin(), names.end(), i.name) != names.end()) out += i.size;
  return out;
}

/// Weights in tensors as checkpoints have them: each expert of a layer has three.
std::int64_t tensors_of(const model& m) {
  std::int64_t out = 3;
  for (const layer_spec& l : m.layers) out += 9 + 3 * l.moe.experts;
  return out;
}

transfer_job transfer_of(const post_training_parts& p, const post_training_workload& w) {
  transfer_job j;
  j.path = w.transfer;
  const double parameters = static_cast<double>(nvlsim::parameters(p.training_model));
  j.weights = j.weights_16bit = bytes::from_base(2 * parameters);
  j.tensors = tensors_of(p.training_model);
  j.train_ranks = p.training.par.gpus();
  j.rollout_ranks = p.rollout.gpus();
  j.rollout_shards = p.rollout.gpus_per_replica();
  j.replicas = p.rollout.replicas;
  j.servers = std::max<std::int64_t>(1, (j.rollout_ranks + p.hardware.vm.gpus - 1) / p.hardware.vm.gpus);
  const std::int64_t gpus = j.train_ranks + (w.loop.colocated ? 0 : j.rollout_ranks);
  const bool on_nvlink = gpus <= p.hardware.gpus_per_rack() || w.transfer == transfer_path::ipc;
  j.port = on_nvlink ? p.hardware.gpu.nvlink.read() : p.hardware.fabric.nic_bandwidth.read();
  j.requantise = bytes_per_element(p.rollout.weights) < 2;
  return j;
}

/// The framework's rates that this transfer uses.
transfer_rates rates_of(const loop_profile& c, const transfer_job& j) {
  transfer_rates r;
  if (j.requantise) r.requantise_rate = c.requantise_rate;
  if (j.path == transfer_path::rdma) {
    r.rdma = c.rdma_rate;
    r.rdma_fixed = c.rdma_fixed;
    return r;
  }
  r.fixed = c.transfer_fixed;
  if (j.path == transfer_path::ipc) r.per_tensor_shared = c.per_tensor_shared;
  else r.per_tensor = c.per_tensor;
  if (j.path == transfer_path::broadcast) {
    r.broadcast = c.broadcast_rate;
    if (j.servers > 1) r.growth = c.broadcast_growth;
  } else {
    r.port_share = c.port_share;
  }
  return r;
}

/// Through pageable memory: slower than the link by what the framework's copies reach.
bandwidth pageable_rate(const post_training_parts& p, const loop_profile& c) {
  const bandwidth link = p.hardware.gpu.c2c.read(), copies = c.host_copy_rate.read();
  return link > bandwidth{} ? std::min(link, copies) : copies;
}

/// Memory of training another model in the trainer's layout.
memory_report memory_of(const post_training_parts& p, const model& m) {
  return training_memory(p.hardware, p.training_stack, m, update_prices::layout_of(p, m));
}

/// One set of weights is on the GPU: the policy's leave, the reference's, teacher's or reward model's come, and
/// the policy's come back. A critic whose states are in CPU memory brings its weights for values, and all of them
/// for its update, after which they leave.
copy_times copies_of(const post_training_parts& p, const post_training_workload& w, const post_training_run& run) {
  copy_times out;
  const bandwidth pageable = pageable_rate(p, w.costs), link = p.hardware.gpu.c2c.read();
  const bytes policy = sum_of(run.training_memory, {"weights"});
  const double copies = w.costs.reference_copies.read();
  const auto visit = [&](const std::shared_ptr<const model>& other) {
    if (!other) return policy * copies / pageable;
    return (policy * std::max(0.0, copies - 1) + sum_of(memory_of(p, *other), {"weights"})) / pageable;
  };
  if (w.reference_logprobs) out.passes += visit(w.models.teacher);
  if (w.reward.on_trainer) out.passes += visit(w.models.reward);
  if (w.offload_critic) {
    const memory_report critic = memory_of(p, critic_of(p, w));
    const bytes weights = sum_of(critic, {"weights"}), optimizer = sum_of(critic, {"optimizer"});
    out.passes += weights / link;
    out.updates = 2.0 * (weights / link + optimizer / pageable);
  }
  return out;
}

/// Whether another model can have the trainer's layout.
bool has_layout(const post_training_parts& p, const char* who, const model& m, post_training_run& out) {
  for (const std::string& r : training_problems(p.hardware, m, update_prices::layout_of(p, m)))
    out.reasons.push_back(fmt::format("{}: {}", who, r));
  return out.reasons.empty();
}

/// A model that visits the trainer's GPUs needs `own` beside the states that stay.
void check_visit(const char* who, bytes own, bytes stays, post_training_run& out) {
  const bytes usable = out.training_memory.usable;
  if (own + stays > usable)
    out.reasons.push_back(
        fmt::format("{}: {:.1f} GB, and {:.1f} GB of the policy's states that stay, exceed the {:.1f} GB of a GPU",
                    who, own.base() / 1e9, stays.base() / 1e9, usable.base() / 1e9));
}

/// Layout and memory of a critic. Its states join the trainer's, or stay in CPU memory.
void add_critic(const post_training_parts& p, const post_training_workload& w, post_training_run& out) {
  const model& m = critic_of(p, w);
  if (!has_layout(p, "critic", m, out)) return;
  const memory_report critic = memory_of(p, m);
  if (w.offload_critic) {
    check_visit("critic", critic.peak, sum_of(out.training_memory, {"weights", "optimizer"}), out);
    if (!(p.hardware.gpu.c2c.read() > bandwidth{}))
      out.reasons.push_back(
          fmt::format("{} has no GPU-CPU bandwidth (gpu/c2c), which offload_critic needs", p.hardware.name));
    out.moved_to_cpu += sum_of(critic, {"weights", "optimizer"});
    return;
  }
  for (const memory_item& i : critic.items) {
    if (i.name != "weights" && i.name != "gradients" && i.name != "optimizer") continue;
    out.training_memory.items.push_back({"critic_" + i.name, i.size, i.reason, {}});
    out.training_memory.peak += i.size;
    out.training_memory.allocated += i.size;
  }
}

/// Layouts and memory of the models beside the policy. A teacher or reward model takes the place of the policy's
/// weights.
void add_models(const post_training_parts& p, const post_training_workload& w, post_training_run& out) {
  if (w.algorithm == post_training_algorithm::ppo) add_critic(p, w, out);
  const bytes stays = sum_of(out.training_memory,
                             {"gradients", "optimizer", "critic_weights", "critic_gradients", "critic_optimizer"});
  for (const auto& [who, m] : {std::pair{"teacher", w.models.teacher}, {"reward model", w.models.reward}}) {
    if (!m || !has_layout(p, who, *m, out)) continue;
    const bytes weights = sum_of(memory_of(p, *m), {"weights"});
    check_visit(who, weights, stays, out);
    out.visitors += weights;
  }
  const bool moves_reference = w.reference_logprobs && !w.models.teacher && w.costs.reference_copies > 0;
  if (moves_reference) out.visitors += sum_of(out.training_memory, {"weights"});
}

/// What is moved to CPU memory fits there.
void check_cpu_memory(const post_training_parts& p, post_training_run& out) {
  const bytes room = cpu_room(p.hardware);
  if (!(room > bytes{}) && !(out.moved_to_cpu > bytes{})) return;  // the platform does not say what its CPUs have
  if (out.moved_to_cpu > room) {
    out.reasons.push_back(fmt::format("moving {:.1f} GB of each GPU to CPU memory exceeds its {:.1f} GB",
                                      out.moved_to_cpu.base() / 1e9, room.base() / 1e9));
    return;
  }
  // What moves has half of the memory; published loops run with more once the models that wait are counted.
  const bytes all = p.hardware.cpu.memory * (static_cast<double>(p.hardware.vm.cpus) / p.hardware.vm.gpus);
  if (out.moved_to_cpu + out.visitors > all)
    out.reasons.push_back(fmt::format(
        "{:.1f} GB of each GPU that move to CPU memory and {:.1f} GB of weights that wait there for their pass "
        "exceed its {:.1f} GB",
        out.moved_to_cpu.base() / 1e9, out.visitors.base() / 1e9, all.base() / 1e9));
}

/// Changes between rollout and training on the same GPUs. Gradients are given up and not moved.
void add_changes(const post_training_parts& p, const post_training_workload& w, post_training_run& out) {
  const bytes engine =
      w.sleep == sleep_level::offload ? sum_of(out.rollout_memory, {"weights", "vocabulary_weights"}) : bytes{};
  const bytes weights = sum_of(out.training_memory, {"weights", "critic_weights"});
  const bytes optimizer = sum_of(out.training_memory, {"optimizer", "critic_optimizer"});
  const bytes states = sum_of(out.training_memory, {"weights", "gradients", "optimizer", "critic_weights",
                                                    "critic_gradients", "critic_optimizer"});
  const bytes pinned = engine + (w.offload_training ? weights : bytes{});
  const bytes pageable = w.offload_training ? optimizer : bytes{};
  const bytes leaves = pinned + pageable;
  out.moved_to_cpu += leaves;
  const bandwidth link = p.hardware.gpu.c2c.read();
  if (leaves > bytes{} && !(link > bandwidth{})) {
    out.reasons.push_back(
        fmt::format("{} has no GPU-CPU bandwidth (gpu/c2c), which moving memory needs", p.hardware.name));
    return;
  }
  // To training: the engine's weights leave and the trainer's state comes; back the other way.
  out.to_training = w.costs.change_host;
  if (leaves > bytes{}) out.to_training += pinned / link + pageable / pageable_rate(p, w.costs);
  out.to_rollout = out.to_training;
  const bytes beside_training = w.sleep == sleep_level::awake ? out.rollout_memory.peak : bytes{};
  const bytes beside_rollout = w.offload_training ? bytes{} : states;
  const auto check = [&](const char* phase, const memory_report& m, bytes beside, const char* whose) {
    if (m.peak + beside > m.usable && beside > bytes{})
      out.reasons.push_back(fmt::format("{}: {:.1f} GB and {:.1f} GB of {} exceed the {:.1f} GB of a GPU", phase,
                                        m.peak.base() / 1e9, beside.base() / 1e9, whose, m.usable.base() / 1e9));
  };
  check("training", out.training_memory, beside_training, "the rollout engine, which does not sleep");
  check("rollouts", out.rollout_memory, beside_rollout, "the trainer, which is not offloaded");
}

/// Pools, memory and layouts.
void check_parts(const post_training_parts& p, const post_training_workload& w, post_training_run& out) {
  out.rollout_gpus = p.rollout.gpus();
  out.training_gpus = p.training.par.gpus();
  const auto add = [&](const char* who, const std::vector<std::string>& reasons) {
    for (const std::string& r : reasons) out.reasons.push_back(std::string(who) + ": " + r);
  };
  add("rollout", serving_problems(p.hardware, p.rollout_stack, p.rollout_model, p.rollout));
  add("training", training_problems(p.hardware, p.training_model, p.training));
  add("training", format_problems(p.hardware, p.training_stack, p.training));
  if (w.loop.colocated && out.rollout_gpus != out.training_gpus)
    out.reasons.push_back(fmt::format("colocated pools need equal numbers of GPUs; rollouts have {}, training {}",
                                      out.rollout_gpus, out.training_gpus));
  if (out.gpus() > p.hardware.gpus())
    out.reasons.push_back(fmt::format("the pools need {} GPUs, but the platform has {}; give more racks",
                                      out.gpus(), p.hardware.gpus()));
}

/// Limits and prices of the rollout engines. `prices` must outlive it.
rollout_engine engine_of(const post_training_parts& p, const post_training_workload& w,
                         const serving_memory& memory, iteration_prices& prices) {
  const schedule_limits limits = limits_of(*p.rollout_stack.inference, p.rollout, memory);
  rollout_engine e;
  e.kv_tokens = limits.kv_capacity_tokens;
  e.max_batch = limits.settings.max_batch_size * limits.ranks;
  e.max_tokens = limits.settings.max_num_tokens;
  e.tokens_per_step = limits.tokens_per_step;
  const double factor = w.costs.rollout_factor;
  e.iteration_s = [&prices, factor](const iteration& it, std::int64_t count) {
    return factor * prices.price(it, count).seconds;
  };
  return e;
}

}  // namespace

bool post_training_workload::operator==(const post_training_workload& o) const {
  return costs == o.costs && framework == o.framework && mini_batch == o.mini_batch && algorithm == o.algorithm;
}

transfer_time weight_transfer_time(const post_training_parts& p, const post_training_workload& w) {
  const transfer_job j = transfer_of(p, w);
  return time_of(j, rates_of(w.costs, j));
}

seconds forward_time(const plan& step, std::int64_t micro_batches_planned, std::int64_t micro_batches) {
  seconds sum, slowest;
  for (const rank_class& c : step.classes) {
    seconds mine;
    for (const stream& s : c.streams) {
      if (s.kind == stream_kind::data_parallel) continue;
      const bool sends = s.kind == stream_kind::pipeline;
      for (const operation& o : s.operations) {
        const operation_template& t = step.templates[static_cast<std::size_t>(o.template_index)];
        // Half of the sends are gradients on their way back.
        if (sends) sum += t.duration / (2.0 * static_cast<double>(micro_batches_planned));
        else if (t.name.starts_with("forward")) mine += t.duration / static_cast<double>(micro_batches_planned);
      }
    }
    sum += mine;
    slowest = std::max(slowest, mine);
  }
  return sum + slowest * static_cast<double>(micro_batches - 1);
}

post_training_run run_loop(const post_training_parts& p, const post_training_workload& w,
                           const loop_player& play) {
  post_training_run out;
  out.colocated = w.loop.colocated;
  check_parts(p, w, out);
  if (!out.reasons.empty()) return out;
  const serving_memory memory = plan_serving_memory(p.hardware, p.rollout_stack, p.rollout_model, p.rollout);
  out.rollout_memory = memory.report;
  for (const std::string& why : offload_problems(p.hardware, *p.rollout_stack.inference, p.rollout, memory.report))
    out.reasons.push_back("rollout: " + why);
  out.training_memory = training_memory(p.hardware, p.training_stack, p.training_model, p.training);
  const auto longest = static_cast<double>(w.loop.prompt_tokens + w.loop.response.max +
                                           (w.loop.tools.turns - 1) * w.loop.tools.tokens);
  if (memory.kv_capacity_tokens == 0) out.reasons.push_back("rollout: " + memory.no_cache);
  else if (longest > static_cast<double>(memory.kv_capacity_tokens))
    out.reasons.push_back(fmt::format("rollout: a sample of {:.0f} tokens exceeds the {} KV tokens of the cache",
                                      longest, memory.kv_capacity_tokens));
  if (p.rollout_model.max_positions > 0 && longest > static_cast<double>(p.rollout_model.max_positions))
    out.reasons.push_back(fmt::format("rollout: a sample of {:.0f} tokens exceeds the {} that {} takes", longest,
                                      p.rollout_model.max_positions, p.rollout_model.name));
  add_models(p, w, out);
  if (out.training_memory.refused())
    out.reasons.push_back(fmt::format("training: {:.1f} GB exceed the {:.1f} GB of a GPU",
                                      out.training_memory.peak.base() / 1e9,
                                      out.training_memory.usable.base() / 1e9));
  if (out.colocated) add_changes(p, w, out);
  check_cpu_memory(p, out);
  if (!out.reasons.empty()) return out;

  out.transfer = weight_transfer_time(p, w);
  iteration_costs costs(p.hardware, p.rollout_stack, p.rollout_model, p.rollout);
  iteration_prices prices(costs, 1);
  trainer_pricing trainer(p, w, copies_of(p, w, out));
  loop_prices all;
  all.engine = engine_of(p, w, memory, prices);
  all.workers = std::int64_t{p.rollout.replicas} * p.rollout.pp;
  out.workers = all.workers;
  all.train = [&trainer](const std::vector<std::int64_t>& trained, const std::vector<std::int64_t>& scored) {
    return trainer(trained, scored);
  };
  all.reward_s = w.reward.time.base();
  all.reward_slots = w.reward.slots;
  all.sample_s = w.costs.sample_host.base();
  all.step_s = w.costs.step_host.base();
  all.to_training_s = out.to_training.base();
  all.to_rollout_s = out.to_rollout.base();
  all.transfer_s = out.transfer.total().base();
  out.record = play(w.loop, all);

  const double share = static_cast<double>(w.loop.steps) / static_cast<double>(w.loop.steps + w.loop.warmup);
  trainer.report(out, share, static_cast<double>(w.loop.steps + w.loop.warmup));
  const double busy_gpus = static_cast<double>(out.rollout_gpus) / static_cast<double>(all.workers);
  double joule = 0, busy = 0;
  for (const iteration_use& u : prices.uses(false)) {
    joule += (u.operation.power * seconds::from_base(u.seconds)).base();
    busy += u.seconds;
  }
  // Mean power over all iterations, for the time that workers were busy in the measured steps.
  if (busy > 0) out.rollout_energy = joules::from_base(joule / busy * out.record.rollout_busy_s * busy_gpus);
  return out;
}

}  // namespace nvlsim
