#include "nvlsim/serving/pooled_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "nvlsim/plan/part_facts.hpp"
#include "nvlsim/serving/limits.hpp"
#include "nvlsim/serving/memory.hpp"
#include "nvlsim/serving/rank_weights.hpp"

namespace nvlsim {
namespace {

pool_limits limits_of(const stack& s, const inference_workload& pool, const serving_memory& memory) {
  return {pool.replicas * pool.pp, limits_of(*s.inference, pool, memory)};
}

/// Builds a plan's streams and events from a schedule.
class plan_builder {
 public:
  plan_builder(const serving_case& c, inference_run& run, bool explained)
      : platform_(c.hardware), stack_(c.software), model_(c.net), workload_(c.workload), run_(run),
        explained_(explained), pools_(*run.pools),
        decode_costs_(c.hardware, c.software, c.net, decode_workload(c.workload)) {
    if (workload_.prefill_pool) prefill_costs_.emplace(platform_, stack_, model_, prefill_workload(workload_));
  }

  void build() {
    plan_events();
    const auto prefills = static_cast<std::int32_t>(pools_.prefill.size());
    if (workload_.prefill_pool) {
      const int gpus = workload_.prefill_pool->tp * workload_.prefill_pool->attention_dp;
      for (std::int32_t i = 0; i < prefills; ++i) add_prefill(i, gpus, prefills);
    }
    for (std::size_t i = 0; i < pools_.decode.size(); ++i) add_decode(i);
  }

 private:
  using place = std::pair<std::int32_t, std::int32_t>;  ///< worker, iteration

  event_id event_of(std::map<place, event_id>& known, std::int32_t worker, std::int32_t at) {
    const auto [it, is_new] = known.try_emplace({worker, at}, no_event);
    if (is_new) it->second = run_.planned.new_event();
    return it->second;
  }

  /// Dependencies: a prompt waits for the client's previous request, a transfer for its prompt, a decode for its
  /// cache.
  void plan_events() {
    delivered_.assign(pools_.requests.size(), no_event);
    for (std::size_t i = 0; i < pools_.requests.size(); ++i) {
      const pooled_request& r = pools_.requests[i];
      if (r.prefill_worker >= 0 && r.decode_worker >= 0) {
        event_of(prefilled_, r.prefill_worker, r.prefill_last);
        delivered_[i] = run_.planned.new_event();
        decode_waits_[{r.decode_worker, r.decode_first}].push_back(delivered_[i]);
      }
      if (r.sent_after < 0) continue;
      const pooled_request& before = pools_.requests[static_cast<std::size_t>(r.sent_after)];
      const event_id end = before.decode_worker >= 0
                               ? event_of(decoded_, before.decode_worker, before.decode_last)
                               : event_of(prefilled_, before.prefill_worker, before.prefill_last);
      if (r.prefill_worker >= 0) prefill_waits_[{r.prefill_worker, r.prefill_first}].push_back(end);
      else decode_waits_[{r.decode_worker, r.decode_first}].push_back(end);
    }
  }

  /// What the iterations of one kind of worker share.
  struct pool {
    iteration_costs& costs;
    std::map<iteration, std::int32_t>& known;  ///< templates
    std::map<place, std::vector<event_id>>& waits;
    std::map<place, event_id>& signals;
  };
  stream iterations(const std::vector<iteration>& all, std::int32_t worker, const pool& p) {
    const auto& [costs, known, waits, signals] = p;
    stream out;
    out.operations.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [at, is_new] = known.try_emplace(all[i]);
      if (is_new) at->second = run_.planned.add_template(costs.price(all[i], explained_));
      const place here{worker, static_cast<std::int32_t>(i)};
      const auto after = waits.find(here);
      const auto done = signals.find(here);
      static const std::vector<event_id> none;
      run_.planned.append(out, at->second, std::span<const event_id>(after == waits.end() ? none : after->second),
                          done == signals.end() ? no_event : done->second);
    }
    return out;
  }

  std::int32_t transfer_of(std::int64_t tokens) {
    const auto [at, is_new] = transfers_.try_emplace(tokens);
    if (is_new) {
      const priced_transfer t = kv_transfer(platform_, stack_, model_, workload_, static_cast<double>(tokens));
      operation_part part{part_kind::kv_transfer, "kv transfer", t.time, 1};
      if (explained_) part.facts = std::make_shared<part_facts>(facts_of(platform_, t));
      at->second =
          run_.planned.add_template({"kv transfer", {std::move(part)}, {}, {}, {demand_on(platform_, t)}});
    }
    return at->second;
  }

  void add_prefill(std::int32_t worker, int gpus, std::int32_t prefills) {
    const auto index = static_cast<std::size_t>(worker);
    rank_class c{fmt::format("prefill worker {}", worker), gpus, {}};
    c.streams.push_back(iterations(pools_.prefill[index], worker,
                                   {*prefill_costs_, prefill_templates_, prefill_waits_, prefilled_}));
    std::vector<std::tuple<std::int32_t, double, std::size_t>> sends;
    for (std::size_t i = 0; i < pools_.requests.size(); ++i) {
      const pooled_request& r = pools_.requests[i];
      if (r.prefill_worker == worker && r.decode_worker >= 0) sends.emplace_back(r.prefill_last, r.delivered_s, i);
    }
    std::sort(sends.begin(), sends.end());
    stream transfers{stream_kind::kv_transfer, {}};
    for (const auto& [last, at, i] : sends) {
      const pooled_request& r = pools_.requests[i];
      run_.planned.append(transfers, transfer_of(r.input), {prefilled_.at({worker, last})}, delivered_[i],
                          {-1, prefills + r.decode_worker});
    }
    c.streams.push_back(std::move(transfers));
    run_.planned.classes.push_back(std::move(c));
  }

  void add_decode(std::size_t index) {
    const auto worker = static_cast<std::int32_t>(index);
    run_.planned.classes.push_back(
        {fmt::format("decode worker {}", index), workload_.tp * workload_.attention_dp, {}});
    run_.planned.classes.back().streams.push_back(
        iterations(pools_.decode[index], worker, {decode_costs_, decode_templates_, decode_waits_, decoded_}));
  }

  const platform& platform_;
  const stack& stack_;
  const model& model_;
  const inference_workload& workload_;
  inference_run& run_;
  bool explained_;
  const pooled_schedule& pools_;
  iteration_costs decode_costs_;
  std::optional<iteration_costs> prefill_costs_;
  std::map<iteration, std::int32_t> prefill_templates_, decode_templates_;
  std::map<std::int64_t, std::int32_t> transfers_;
  std::map<place, event_id> prefilled_, decoded_;
  std::map<place, std::vector<event_id>> prefill_waits_, decode_waits_;
  std::vector<event_id> delivered_;
};

}  // namespace

inference_workload prefill_workload(const inference_workload& w) {
  inference_workload out = w;
  const pool_layout& pool = w.prefill_pool.value();
  out.prefill_pool.reset();
  static_cast<rank_counts&>(out) = pool;
  out.engine = pool.engine;
  return out;
}

inference_workload decode_workload(const inference_workload& w) {
  inference_workload out = w;
  out.prefill_pool.reset();
  out.prompts_cached = false;
  return out;
}

int inference_workload::gpus() const {
  const int prefill = prefill_pool ? prefill_pool->gpus_per_replica() * prefill_pool->replicas : 0;
  return gpus_per_replica() * replicas + prefill;
}

// Each rank sends its part of the prompt's cache. Ranks with a latent cache all hold it whole and send a share
// each.
priced_transfer kv_transfer(const platform& p, const stack& s, const model& m, const inference_workload& w,
                            double tokens) {
  const inference_workload from = prefill_workload(w);
  double size = 0;
  for (const layer_slice& l : slice_layers(m, ranks_of(from))) {
    const double kept = l.windowed() ? std::min(tokens, static_cast<double>(l.spec.window)) : tokens;
    const bool shared = l.spec.attention == attention_kind::mla || l.spec.attention == attention_kind::compressed;
    const double share = shared ? from.tp : 1;
    size += l.layers * (kept * l.kv_values() * bytes_per_element(w.kv_cache) / share + l.state_bytes);
  }
  const int domains = w.gpus() <= p.gpus_per_rack() ? 1 : 2;
  return price_transfer(s.collectives, p, collective::send_recv, bytes::from_base(size / from.pp),
                        {.ranks = 2, .domains = domains});
}

pool_setup setup_pools(const serving_case& c, request_extent longest, std::vector<std::string>& reasons) {
  const auto& [p, s, m, w] = c;
  pool_setup out;
  out.prompts_cached = w.prompts_cached;
  out.concurrency = w.load == load_kind::closed_loop ? w.concurrency : 0;
  const serving_memory decode = plan_serving_memory(p, s, m, decode_workload(w));
  out.decode = limits_of(s, decode_workload(w), decode);
  const auto check = [&](const serving_memory& memory, const schedule_limits& l, const char* pool,
                         std::int64_t tokens) {
    if (!memory.no_cache.empty()) {
      reasons.push_back(fmt::format("{} pool: {}", pool, memory.no_cache));
      return;
    }
    const std::int64_t needed = held_tokens(l, tokens);
    if (needed > max_request_tokens(l))
      reasons.push_back(fmt::format("{} pool: the longest request needs {} KV tokens; the cache holds {}", pool,
                                    needed, max_request_tokens(l)));
  };
  check(decode, out.decode.worker, "decode", longest.whole);
  if (!w.prefill_pool) return out;
  const serving_memory prefill = plan_serving_memory(p, s, m, prefill_workload(w));
  out.prefill = limits_of(s, prefill_workload(w), prefill);
  out.prefill.worker = of_prompts_alone(out.prefill.worker);
  check(prefill, out.prefill.worker, "prefill", longest.prompt);
  return out;
}

void plan_pools(const serving_case& c, const pool_setup& setup, const request_lengths& lengths, inference_run& run,
                bool explained) {
  const platform& p = c.hardware;
  const stack& s = c.software;
  const model& m = c.net;
  const inference_workload& w = c.workload;
  {
    iteration_costs decode(p, s, m, decode_workload(w));
    std::optional<iteration_costs> prefill;
    if (w.prefill_pool) prefill.emplace(p, s, m, prefill_workload(w));
    pool_prices prices;
    // Templates of the plan sum the same parts, so their times agree.
    prices.decode = [&](const iteration& it) { return decode.price(it).duration.base(); };
    prices.prefill = [&](const iteration& it) { return prefill->price(it).duration.base(); };
    prices.transfer = [&](std::int64_t tokens) {
      return kv_transfer(p, s, m, w, static_cast<double>(tokens)).time.base();
    };
    run.pools = schedule_pools(lengths, setup, prices);
  }
  plan_builder(c, run, explained).build();
}

}  // namespace nvlsim
