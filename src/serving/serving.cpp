#include "nvlsim/serving/serving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

#include "nvlsim/plan/part_facts.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/mlperf.hpp"
#include "nvlsim/serving/pools.hpp"
#include "nvlsim/serving/serving_notes.hpp"
#include "nvlsim/serving/worker_health.hpp"
#include "nvlsim/units/units_text.hpp"
#include "serving/load_shares.hpp"
#include "serving/worker_prices.hpp"

namespace nvlsim {
namespace {

/// Reasons caused by individual requests.
std::vector<std::string> request_reasons(const model& m, const inference_workload& w,
                                         const schedule_limits& limits, const request_list& list) {
  std::int64_t longest = 0, longest_prompt = 0, beyond_model = 0, beyond_cache = 0;
  for (const served_request& r : list.requests) {
    const std::int64_t tokens = r.input + r.output;
    longest = std::max(longest, tokens);
    longest_prompt = std::max(longest_prompt, r.input);
    beyond_model += m.max_positions > 0 && tokens > m.max_positions ? 1 : 0;
    beyond_cache += held_tokens(limits, tokens) > max_request_tokens(limits) ? 1 : 0;
  }
  std::vector<std::string> out;
  const std::size_t n = list.requests.size();
  if (beyond_model > 0)
    out.push_back(fmt::format("{} of {} requests exceed the {} tokens that {} takes; the longest has {}",
                              beyond_model, n, m.max_positions, m.name, longest));
  if (beyond_cache > 0)
    out.push_back(fmt::format("{} of {} requests exceed the {} KV tokens of the cache{}; the longest needs {}",
                              beyond_cache, n, max_request_tokens(limits), limits.ranks > 1 ? " of a rank" : "",
                              held_tokens(limits, longest)));
  if (!w.pooled() && limits.settings.prefill == prefill_policy::whole_prompt &&
      longest_prompt > limits.settings.max_num_tokens / limits.ranks)
    out.push_back(
        fmt::format("prefill whole_prompt: a prompt of {} tokens exceeds max_num_tokens {}; use prefill chunked",
                    longest_prompt, limits.settings.max_num_tokens / limits.ranks));
  refuse_many(out, static_cast<std::int64_t>(n));
  if (n == 0) out.emplace_back("the load has no requests");
  return out;
}

/// The longest prompt, of which a worker that only prefills holds the cache.
std::int64_t longest_prompt(const request_list& list) {
  std::int64_t out = 0;
  for (const served_request& r : list.requests) out = std::max(out, r.input);
  return out;
}

/// Adds the outcome of a case; each of its workers stands for `times` equal ones.
void add_outcome(serving_outcome& to, serving_outcome from, std::int64_t times) {
  const auto before = static_cast<std::int32_t>(to.workers.size());
  for (worker_record& w : from.workers) {
    w.workers = times;
    to.workers.push_back(std::move(w));
  }
  for (request_record& r : from.requests) {
    r.worker += before;
    if (r.prompt_worker >= 0) r.prompt_worker += before;
    r.workers = static_cast<std::int32_t>(times);
    to.requests.push_back(r);
  }
  to.gaps.add(from.gaps, times);
  to.end_s = std::max(to.end_s, from.end_s);
  to.prompt_tokens += times * from.prompt_tokens;
  to.output_tokens += times * from.output_tokens;
  to.recomputed_tokens += times * from.recomputed_tokens;
  to.swapped_tokens += times * from.swapped_tokens;
  to.tier_blocks.resize(from.tier_blocks.size());
  for (std::size_t k = 0; k < from.tier_blocks.size(); ++k) to.tier_blocks[k] += times * from.tier_blocks[k];
  to.requests_times_s += static_cast<double>(times) * from.requests_times_s;
  to.steady_from_s = std::max(to.steady_from_s, from.steady_from_s);
  to.steady_to_s = before == 0 ? from.steady_to_s : std::min(to.steady_to_s, from.steady_to_s);
  to.limits.add(from.limits);
  to.at_half = from.at_half;  // only for loads with arrival times, which are one case
  to.at_last = from.at_last;
}

struct tier_store {
  bytes capacity;  ///< of a worker's GPU; of a pool: in all
  bandwidth rate;  ///< of one GPU
};
/// What a tier has and what is not said of it. A disk and a CPU are shared by the GPUs of their VM.
tier_store store_of(const platform& p, const cache_tier& t, double host_copy_share) {
  const double gpus = std::max(1, static_cast<int>(p.vm.gpus));
  tier_store out;
  switch (t.kind) {
    case tier_kind::cpu:
      out = {cpu_room(p), p.gpu.c2c * host_copy_share};
      break;
    case tier_kind::nvme:
      out = {p.vm.nvme / gpus, p.vm.nvme_read / gpus};
      break;
    case tier_kind::pool:
      out = {{}, p.fabric.nic_bandwidth};
      break;
  }
  return {t.capacity.value_or(out.capacity), t.rate.value_or(out.rate)};
}

/// Why tiers lack a size or a rate; such a run is refused.
std::vector<std::string> tier_reasons(const platform& p, const inference_workload& w) {
  constexpr std::array names = {"cpu", "nvme", "pool"};
  std::vector<std::string> out;
  for (const cache_tier& t : w.tiers) {
    const tier_store s = store_of(p, t, 1);
    const char* const name = names[static_cast<std::size_t>(t.kind)];
    if (!(s.capacity > bytes{}))
      out.push_back(fmt::format("cache tier {}: {} states no size for it; give a capacity", name, p.name));
    if (!(s.rate > bandwidth{}))
      out.push_back(fmt::format("cache tier {}: {} states no rate for it; give a bandwidth", name, p.name));
  }
  return out;
}

/// A load with the servers that it needs.
class load_setup {
 public:
  load_setup(const serving_case& c, const serving_options& o, serving_run& run)
      : case_(c), options_(o), run_(run), decodes_(decode_workload(c.workload)), memory_(memory_of(decodes_)),
        limits_(limits_of(*c.software.inference, decodes_, memory_)) {
    run.memory = memory_.report;
    if (c.workload.pooled()) run.memory.where = "each decode GPU";
    run.kv_capacity_tokens = memory_.kv_capacity_tokens;
    refuse_offload(c.workload.prefill_pool ? prefill_workload(c.workload) : decodes_);
    if (c.workload.prefill_pool) refuse_offload(decodes_);
    if (run.kv_capacity_tokens == 0 && kv_bytes_per_token(c.net, c.workload.kv_cache) > 0)
      run.reasons.push_back(memory_.no_cache);
  }

  void play() {
    if (!read_load() || !set_limits() || !options_.play) return;
    const inference_workload& w = case_.workload;
    run_.notes = serving_notes(case_, std::int64_t{w.replicas} * w.pp);
    add_prompt_note();
    if (behind_server(w)) run_.front_end = case_.software.inference->front_end;
    shared_runs* const shared = options_.shared;
    if (shared && (run_.same_as = shared->like(limits_, w))) return;
    std::optional<worker_prices> own;
    worker_prices& prices = shared ? shared_prices(*shared) : own.emplace(case_, swap_rate(), options_.traffic);
    add_cases(prices);
    served_cases played = options_.play(cases_);
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const auto before = run_.outcome.workers.size();
      add_outcome(run_.outcome, std::move(played.outcomes[i]), cases_[i].times);
      renumber_.resize(run_.outcome.workers.size());
      for (std::size_t k = 0; k < hardware_[i].size(); ++k) renumber_[before + k] = hardware_[i][k];
    }
    run_.activities = played.activities;
    std::vector<std::int32_t> first;
    std::tie(run_.uses, first) = prices.uses(options_.explained);
    for (std::size_t k = 0; k < renumber_.size(); ++k)
      for (traced_iteration& t : run_.outcome.workers[k].iterations) t.kind += first[renumber_[k]];
    run_.transfers = prices.transfers();
    if (shared) shared->remember(limits_, w, run_.outcome.limits);
  }

 private:
  serving_memory memory_of(const inference_workload& pool) const {
    serving_memory out = plan_serving_memory(case_.hardware, case_.software, case_.net, pool);
    if (options_.kv_capacity_tokens) out.kv_capacity_tokens = *options_.kv_capacity_tokens;
    return out;
  }

  worker_prices& shared_prices(shared_runs& shared) const {
    if (shared.prices) shared.prices->begin_run(case_.workload);
    return shared.prices ? *shared.prices : shared.prices.emplace(shared.of, swap_rate(), options_.traffic);
  }

  void refuse_offload(const inference_workload& pool) {
    for (std::string& reason :
         offload_problems(case_.hardware, *case_.software.inference, pool, memory_of(pool).report))
      if (std::find(run_.reasons.begin(), run_.reasons.end(), reason) == run_.reasons.end())
        run_.reasons.push_back(std::move(reason));
  }

  /// Samples the requests: those of the fullest replica if each serves alone.
  bool sample_requests() {
    inference_workload sampled = case_.workload;
    if (dealt(sampled)) {
      shares_ = shares_of(case_.hardware, sampled, options_.fold);
      sampled.requests = shares_.empty() ? 0 : shares_.front().requests;
    }
    if (sampled.load != load_kind::trace)
      refuse_many(run_.reasons, sampled.requests, shares_.empty() ? "" : " per replica");
    if (!run_.reasons.empty()) return false;
    list_ = generate_requests(sampled, case_.net.max_positions);
    return true;
  }

  bool read_load() {
    shared_runs* const shared = options_.shared;
    if (shared) shared->run_under(case_.workload);
    if (shared && shared->list) {
      list_ = *shared->list;
      shares_ = shared->shares;
    } else if (!sample_requests()) {
      return false;
    } else if (shared) {
      shared->list = list_;
      shared->shares = shares_;
    }
    limits_.prefix_tokens = run_.prefix_tokens = list_.prefix_tokens;
    run_.reasons = request_reasons(case_.net, case_.workload, limits_, list_);
    return run_.reasons.empty();
  }

  double swap_rate() const {
    return (case_.hardware.gpu.c2c / memory_.kv_per_token).base() * case_.workload.attention_dp;
  }

  bool set_limits() {
    const auto& [p, s, m, w] = case_;
    if (w.prefill_pool) {
      const inference_workload pool = prefill_workload(w);
      schedule_limits l = of_prompts_alone(limits_of(*s.inference, pool, memory_of(pool)));
      l.prefix_tokens = list_.prefix_tokens;
      const std::int64_t longest = longest_prompt(list_);
      if (held_tokens(l, longest + 1) > max_request_tokens(l))
        run_.reasons.push_back(
            fmt::format("prefill pool: the longest prompt needs {} KV tokens; the cache holds {}", longest,
                        max_request_tokens(l)));
      prefill_ = {l, std::int64_t{pool.replicas} * pool.pp, {}};
    }
    if (limits_.settings.preemption == preemption_policy::swap) {
      limits_.swap_capacity_tokens =
          static_cast<std::int64_t>(cpu_room(p) / memory_.kv_per_token * w.attention_dp / w.pp);
      if (!(swap_rate() > 0))
        run_.reasons.push_back(
            fmt::format("preemption swap: {} has no bandwidth between GPU and CPU (gpu/c2c)", p.name));
    }
    return run_.reasons.empty();
  }

  /// The tiers as a worker sees them: its GPUs fetch their parts of a block at the same time.
  void add_tiers(server_settings& to) const {
    const auto& [p, s, m, w] = case_;
    const inference_workload pool = w.prefill_pool ? prefill_workload(w) : decodes_;
    const serving_memory memory = w.prefill_pool ? memory_of(pool) : memory_;
    const double block = static_cast<double>(list_.prefix_tokens);
    for (const cache_tier& t : w.tiers) {
      const tier_store store = store_of(p, t, s.inference->host_copy_share);
      const double tokens = store.capacity / memory.kv_per_token;
      tier_settings x;
      x.shared = t.kind == tier_kind::pool;
      x.capacity_blocks = static_cast<std::int64_t>(
          (x.shared ? tokens / (pool.tp * pool.pp) : tokens * pool.attention_dp / pool.pp) / block);
      x.block_s = (memory.kv_per_token * block / store.rate).base();
      x.latency_s = t.latency.base();
      x.write = t.write;
      to.tiers.push_back(x);
    }
  }

  void add_prompt_note() {
    const inference_workload& w = case_.workload;
    if (w.pooled()) return;
    const std::int64_t all =
        w.load == load_kind::closed_loop ? w.concurrency : static_cast<std::int64_t>(list_.requests.size());
    const std::int64_t workers = std::int64_t{w.replicas} * w.pp;
    const std::int64_t each = !shares_.empty() ? (shares_.front().clients > 0 ? shares_.front().clients : all)
                                               : (all + workers - 1) / workers;
    if (std::string held_up = prompts_held_up(limits_, longest_prompt(list_), each); !held_up.empty())
      run_.notes.push_back(std::move(held_up));
  }

  server_settings settings(std::int64_t workers, std::int64_t clients) const {
    server_settings out;
    out.worker = limits_;
    out.workers = workers;
    out.router = case_.workload.router;
    out.pool_router = case_.workload.pool_router;
    out.clients = clients;
    out.prompts_cached = case_.workload.prompts_cached;
    out.keep_iterations = options_.explained;
    out.traced = options_.traced || options_.explained;
    out.seen = options_.seen;
    return out;
  }

  void add_cases(worker_prices& prices) {
    if (shares_.empty()) return add_shared_case(prices);
    for (const load_share& share : shares_) {
      const std::size_t hardware = prices.hardware_of(false, share.health);
      request_list own = list_;
      own.requests.resize(static_cast<std::size_t>(share.requests));
      const std::int64_t times = share.workers;
      cases_.push_back({std::move(own), settings(1, share.clients),
                        [&prices, hardware, times](std::size_t, const iteration& it) {
                          return prices.price(hardware, it, times);
                        },
                        times, stretches_of(prices, {hardware}, times)});
      hardware_.push_back({hardware});
    }
  }

  /// Prices of stretches on this hardware; each worker stands for `times` equal ones.
  static stretch_pricing stretches_of(worker_prices& prices, const std::vector<std::size_t>& hardware,
                                      std::int64_t times) {
    return {[&prices, hardware](std::size_t worker, std::int64_t decodes, std::span<const std::int64_t> contexts,
                                std::vector<double>& took) {
              prices.price_decodes(hardware[worker], decodes, contexts, took);
            },
            [&prices, hardware, times](std::size_t worker, std::int64_t decodes,
                                       std::span<const std::int64_t> contexts, std::span<const double> took) {
              prices.count_decodes(hardware[worker], decodes, contexts, took, times);
            }};
  }

  /// The first GPU of the rack of each worker on the fabric.
  std::vector<std::int64_t> racks_of_workers() const {
    const inference_workload& w = case_.workload;
    const std::int64_t rack = case_.hardware.gpus_per_rack();
    std::vector<std::int64_t> out;
    for (const bool prefills : {false, true})
      for (std::int64_t i = 0, n = workers_of(w, prefills); i < n; ++i)
        out.push_back(worker_place(i, prefills, rack, w).first / rack * rack * options_.rack_spacing);
    return out;
  }

  /// All workers behind one router.
  void add_shared_case(worker_prices& prices) {
    const inference_workload& w = case_.workload;
    const std::int64_t decoding = std::int64_t{w.replicas} * w.pp;
    server_settings set = settings(decoding, w.load == load_kind::closed_loop ? w.concurrency : 0);
    set.prefill = prefill_;
    if ((prefill_ ? prefill_->worker : limits_).settings.prefix_cache) add_tiers(set);
    std::vector<hardware_health> health;
    std::vector<std::size_t> hardware;
    for (std::int64_t i = 0; i < decoding + (prefill_ ? prefill_->workers : 0); ++i) {
      const bool prefills = i >= decoding;
      health.push_back(health_of(prefills ? i - decoding : i, prefills, case_.hardware, w));
      hardware.push_back(prices.hardware_of(prefills, health.back()));
    }
    if (set.prefill)
      set.prefill->transfer = [&prices, health, racks = racks_of_workers()](std::int64_t tokens, std::size_t from,
                                                                            std::size_t to) {
        return prices.transfer(tokens, worse(health[from], health[to]), std::abs(racks[from] - racks[to]));
      };
    set.hardware = hardware;
    cases_.push_back({list_, std::move(set),
                      [&prices, hardware](std::size_t worker, const iteration& it) {
                        return prices.price(hardware[worker], it, 1);
                      },
                      1, stretches_of(prices, hardware, 1)});
    hardware_.push_back(std::move(hardware));
  }

  serving_case case_;
  const serving_options& options_;
  serving_run& run_;
  inference_workload decodes_;
  serving_memory memory_;
  schedule_limits limits_;
  std::vector<load_share> shares_;  ///< of a dealt load
  request_list list_;
  std::optional<prefill_settings> prefill_;
  std::vector<server_case> cases_;
  std::vector<std::vector<std::size_t>> hardware_;  ///< by case and worker
  std::vector<std::size_t> renumber_;               ///< hardware by worker of the outcome
};

}  // namespace

namespace {

serving_run serve_once(const serving_case& c, const serving_options& options) {
  const auto& [p, s, m, w] = c;
  serving_run run;
  run.reasons = serving_problems(p, s, m, w);
  if (!s.inference) return run;
  for (std::string& r : tier_reasons(p, w)) run.reasons.push_back(std::move(r));
  load_setup load(c, options, run);
  if (run.reasons.empty()) load.play();
  return run;
}

/// Whether a run gives nothing beyond what the event queue gives.
bool times_alone(const serving_options& o) {
  const auto* const by = o.play.target<served_cases (*)(const std::vector<server_case>&)>();
  return by && *by == serve_by_queue && !o.explained && !o.traced && !o.traffic && !o.shared && !o.seen;
}

/// All samples at once, and as many as keep the server busy for ten minutes; each replica gets as many.
serving_run serve_offline_by_rules(const serving_case& c, const serving_options& options) {
  inference_workload w = c.workload;
  const std::int64_t workers = std::int64_t{w.replicas} * w.pp;
  const auto shared_alike = [workers](std::int64_t n) { return (n + workers - 1) / workers * workers; };
  w.requests = shared_alike(w.requests);
  const serving_case longer{c.hardware, c.software, c.net, w};
  serving_options trial = options;
  trial.explained = trial.traced = trial.traffic = false;
  trial.shared = nullptr;
  trial.seen = {};
  trial.play = serve_by_queue;
  for (;;) {
    serving_run run = serve_once(longer, trial);
    if (!run.reasons.empty()) return run;
    if (run.outcome.end_s >= mlperf_run_s) return times_alone(options) ? run : serve_once(longer, options);
    w.requests = shared_alike(mlperf_longer(w.requests, run.outcome.end_s));
  }
}

}  // namespace

serving_run serve(const platform& p, const stack& s, const model& m, const inference_workload& w,
                  const serving_options& options) {
  const serving_case c{p, s, m, w};
  const bool by_rules = w.mlperf && w.load == load_kind::offline && options.play;
  return by_rules ? serve_offline_by_rules(c, options) : serve_once(c, options);
}

}  // namespace nvlsim
