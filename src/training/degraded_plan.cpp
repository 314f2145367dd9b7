#include "training/degraded_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim {
namespace {

/// Blocks of ranks in a stage that wait for each other in every layer and run at the pace of the slowest.
struct coupling {
  std::int64_t ranks, blocks;  ///< ranks per block; blocks per stage

  explicit coupling(const parallelism& par)
      : ranks(par.ep > 1 ? std::lcm(par.tp * par.cp, par.ep * par.etp) : par.tp * par.cp),
        blocks(par.tp * par.cp * par.dp / ranks) {}
};

/// Health of blocks with degraded hardware; all others are healthy.
class block_health {
 public:
  block_health(const platform& p, const training_workload& w)
      : workload_(w), coupled_(w.par), gpus_per_rack_(p.gpus_per_rack()) {
    for (const degradation& d : w.degraded) {
      for (const degradation::range& r : d.racks) add_racks(r, d.health);
      for (const degradation::range& r : d.gpus) add_gpus(r, d.health);
    }
  }

  hardware_health at(std::int64_t stage, std::int64_t block) const {
    const auto it = touched_.find({block, stage});
    return it == touched_.end() ? hardware_health{} : it->second;
  }
  /// Worst health per stage, which limits a collective over the stage.
  std::vector<hardware_health> worst_by_stage() const {
    std::vector<hardware_health> out(static_cast<std::size_t>(workload_.par.pp));
    for (const auto& [at, health] : touched_) {
      hardware_health& h = out[static_cast<std::size_t>(at.second)];
      h = worse(h, health);
    }
    return out;
  }
  /// Numbers of the blocks that are degraded in any stage, in order.
  std::vector<std::int64_t> touched() const {
    std::vector<std::int64_t> out;
    for (const auto& [at, health] : touched_)
      if (out.empty() || out.back() != at.first) out.push_back(at.first);
    return out;
  }
  const coupling& coupled() const { return coupled_; }

 private:
  void add_ranks(std::int64_t first, std::int64_t last, const hardware_health& h) {
    last = std::min(last, workload_.par.gpus() - 1);
    const std::int64_t stage_ranks = coupled_.ranks * coupled_.blocks;
    for (std::int64_t b = first / coupled_.ranks; first <= last && b <= last / coupled_.ranks; ++b) {
      hardware_health& at = touched_[{b % coupled_.blocks, b * coupled_.ranks / stage_ranks}];
      at = worse(at, h);
    }
  }
  void add_listed(std::int64_t first, std::int64_t last, const hardware_health& h) {
    for (std::int64_t rank = 0; rank < workload_.par.gpus(); ++rank)
      if (const std::int64_t gpu = workload_.place.table->gpu_of(rank); gpu >= first && gpu <= last)
        add_ranks(rank, rank, h);
  }
  void add_racks(const degradation::range& r, const hardware_health& h) {
    if (workload_.place.table) return add_listed(r.first * gpus_per_rack_, (r.last + 1) * gpus_per_rack_ - 1, h);
    const std::int64_t used = workload_.place.gpus_per_domain;
    add_ranks(r.first * used, (r.last + 1) * used - 1, h);
  }
  /// GPUs without a rank have no effect.
  void add_gpus(const degradation::range& r, const hardware_health& h) {
    if (workload_.place.table) return add_listed(r.first, r.last, h);
    const std::int64_t used = workload_.place.gpus_per_domain;
    for (std::int64_t rack = r.first / gpus_per_rack_;
         rack <= r.last / gpus_per_rack_ && rack * used < workload_.par.gpus(); ++rack) {
      const std::int64_t first = std::max(r.first - rack * gpus_per_rack_, std::int64_t{0});
      const std::int64_t last = std::min({r.last - rack * gpus_per_rack_, gpus_per_rack_ - 1, used - 1});
      if (first <= last) add_ranks(rack * used + first, rack * used + last, h);
    }
  }

  const training_workload& workload_;
  coupling coupled_;
  std::int64_t gpus_per_rack_;
  std::map<std::pair<std::int64_t, std::int64_t>, hardware_health> touched_;  ///< by block and stage
};

/// Templates of the same step on different hardware, in one pool. Plans of one layout have the same operations in
/// the same order, so a template has the same number in each.
class template_pool {
 public:
  template_pool(const platform& p, const stack& s, const model& m, const training_workload& w)
      : platform_(p), stack_(s), model_(m), workload_(w) {
    workload_.degraded.clear();
    healthy_ = plan_training(p, s, m, workload_);
    templates_ = healthy_.templates;
    first_[{}] = 0;
  }

  const plan& healthy() const { return healthy_; }
  const training_workload& workload() const { return workload_; }
  /// Pool number of a healthy plan's template on hardware `h`.
  std::int32_t on(const hardware_health& h, std::int32_t template_index) {
    const auto [it, fresh] = first_.try_emplace(h, static_cast<std::int32_t>(templates_.size()));
    if (fresh) add(h);
    return it->second + template_index;
  }
  std::vector<operation_template> take() { return std::move(templates_); }

 private:
  void add(const hardware_health& h) {
    platform p = platform_;
    p.gpu.nvlink = p.gpu.nvlink * h.nvlink;
    p.fabric.nic_bandwidth = p.fabric.nic_bandwidth * h.nic;
    stack s = stack_;
    s.training->time_factor = s.training->time_factor / h.speed;
    plan other = plan_training(p, s, model_, workload_);
    if (other.templates.size() != healthy_.templates.size())
      throw internal_error("degraded hardware changes the operations of a step");
    for (std::size_t i = 0; i < other.templates.size(); ++i) {
      operation_template& t = other.templates[i];
      const operation_template& usual = healthy_.templates[i];
      // The work is the same. The added time is waiting, at idle power.
      const seconds longer = t.duration - usual.duration;
      if (longer > seconds{} && t.power > watts{})
        t.power = (usual.power * usual.duration + platform_.gpu.idle_power * longer) / t.duration;
      templates_.push_back(std::move(t));
    }
  }

  const platform& platform_;
  const stack& stack_;
  const model& model_;
  training_workload workload_;
  plan healthy_;
  std::vector<operation_template> templates_;
  std::map<hardware_health, std::int32_t> first_;
};

/// Replicas with equal hardware at each stage.
struct replica_kind {
  std::vector<hardware_health> stages;
  std::int64_t replicas = 0, first = 0;  ///< count; number of the first
  bool healthy() const {
    return std::all_of(stages.begin(), stages.end(), [](const auto& h) { return h == hardware_health{}; });
  }
};

std::vector<replica_kind> kinds_of(const block_health& hardware, const training_workload& w) {
  const std::int64_t each = hardware.coupled().ranks / (w.par.tp * w.par.cp);  // replicas per block
  const auto pp = static_cast<std::size_t>(w.par.pp);
  std::vector<replica_kind> out = {{std::vector<hardware_health>(pp), w.par.dp, 0}};
  std::map<std::vector<hardware_health>, std::size_t> known;
  for (const std::int64_t block : hardware.touched()) {
    std::vector<hardware_health> stages;
    for (std::int64_t s = 0; s < w.par.pp; ++s) stages.push_back(hardware.at(s, block));
    const auto [it, fresh] = known.try_emplace(stages, out.size());
    if (fresh) out.push_back({stages, 0, block * each});
    out[it->second].replicas += each;
    out.front().replicas -= each;
  }
  if (out.front().replicas == 0) out.erase(out.begin());
  return out;
}

/// Health that an operation of class `own` depends on, given the health of each class of its replica.
template <class HealthOfClass>
hardware_health met_by(const operation& o, stream_kind stream, std::size_t own, const hardware_health& worst,
                       HealthOfClass of_class) {
  switch (stream) {
    case stream_kind::compute:
    case stream_kind::kv_transfer:
    case stream_kind::background:
      return of_class(own);
    case stream_kind::pipeline:
      return o.peer == no_peer ? of_class(own) : worse(of_class(own), of_class(static_cast<std::size_t>(o.peer)));
    case stream_kind::data_parallel:
      return worst;
  }
  return {};
}

/// Events shared by all replicas: those that the data-parallel stream waits for.
std::vector<bool> meetings(const plan& p) {
  std::vector<bool> out(p.arrivals.size());
  for (const rank_class& c : p.classes)
    for (const stream& s : c.streams)
      for (const operation& o : s.operations)
        for (std::uint32_t i = 0; s.kind == stream_kind::data_parallel && i < o.waits; ++i)
          out[static_cast<std::size_t>(p.waits[o.first_wait + i])] = true;
  return out;
}

/// One copy of the healthy plan per kind of replica.
plan folded(template_pool& pool, const std::vector<replica_kind>& kinds,
            const std::vector<hardware_health>& worst) {
  const plan& one = pool.healthy();
  const std::vector<bool> meets = meetings(one);
  plan out;
  out.arrivals = one.arrivals;  // the first kind keeps the events of the healthy plan
  for (std::size_t e = 0; e < meets.size(); ++e)
    if (meets[e]) out.arrivals[e] *= static_cast<std::int32_t>(kinds.size());
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    std::vector<event_id> event(one.arrivals.size());
    for (std::size_t e = 0; e < event.size(); ++e)
      event[e] = k == 0 || meets[e] ? static_cast<event_id>(e) : out.new_event(one.arrivals[e]);
    const auto first_class = static_cast<std::int32_t>(out.classes.size());
    for (std::size_t c = 0; c < one.classes.size(); ++c) {
      rank_class r = one.classes[c];
      r.multiplicity = r.multiplicity / pool.workload().par.dp * kinds[k].replicas;
      if (!kinds[k].healthy()) r.name += fmt::format(" like replica {}", kinds[k].first);
      for (stream& s : r.streams)
        for (operation& o : s.operations) {
          const auto met =
              met_by(o, s.kind, c, worst[c], [&](std::size_t other) { return kinds[k].stages[other]; });
          o.template_index = pool.on(met, o.template_index);
          const std::uint32_t from = o.first_wait;
          o.first_wait = static_cast<std::uint32_t>(out.waits.size());
          for (std::uint32_t i = 0; i < o.waits; ++i)
            out.waits.push_back(event[static_cast<std::size_t>(one.waits[from + i])]);
          if (o.signals != no_event) o.signals = event[static_cast<std::size_t>(o.signals)];
          if (o.peer != no_peer) o.peer += first_class;
        }
      out.classes.push_back(std::move(r));
    }
  }
  out.templates = pool.take();
  return out;
}

plan unfolded(template_pool& pool, plan every_rank, const block_health& hardware,
              const std::vector<hardware_health>& worst) {
  if (every_rank.templates.size() != pool.healthy().templates.size())
    throw internal_error("folding changes the operations of a step");
  const std::size_t copies = every_rank.classes.size() / worst.size();
  const auto health = [&](std::size_t c) {
    return hardware.at(static_cast<std::int64_t>(c / copies),
                       static_cast<std::int64_t>(c % copies) / hardware.coupled().ranks);
  };
  for (std::size_t c = 0; c < every_rank.classes.size(); ++c)
    for (stream& s : every_rank.classes[c].streams)
      for (operation& o : s.operations)
        o.template_index = pool.on(met_by(o, s.kind, c, worst[c / copies], health), o.template_index);
  every_rank.templates = pool.take();
  return every_rank;
}

}  // namespace

plan plan_degraded(const platform& p, const stack& s, const model& m, const training_workload& w, bool fold) {
  const block_health hardware(p, w);
  template_pool pool(p, s, m, w);
  const std::vector<hardware_health> worst = hardware.worst_by_stage();
  if (fold) return folded(pool, kinds_of(hardware, w), worst);
  return unfolded(pool, plan_training(p, s, m, pool.workload(), false), hardware, worst);
}

}  // namespace nvlsim
