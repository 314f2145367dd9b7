#include "serving/worker_prices.hpp"

#include <algorithm>
#include <tuple>

#include "nvlsim/plan/part_facts.hpp"
#include "nvlsim/serving/pools.hpp"
#include "nvlsim/serving/worker_health.hpp"

namespace nvlsim {

worker_prices::priced::priced(const serving_case& c, const inference_workload& w, const hardware_health& h,
                              const pricing_rules& rules)
    : machine(seen_with(h, c.hardware)), workload(w), costs(machine, c.software, c.net, workload),
      prices(costs, rules.swap_rate, rules.traffic) {
  costs.slow_to(h.speed);
}

worker_prices::worker_prices(const serving_case& c, double swap_rate, bool traffic)
    : case_(c), rules_{swap_rate, traffic} {}

std::size_t worker_prices::hardware_of(bool prefills, const hardware_health& h) {
  const auto [at, is_new] = index_.try_emplace({prefills, h}, known_.size());
  if (is_new)
    known_.push_back(prefills ? std::make_unique<priced>(case_, prefill_workload(case_.workload), h,
                                                         pricing_rules{1, rules_.traffic})
                              : std::make_unique<priced>(case_, decode_workload(case_.workload), h, rules_));
  return at->second;
}

void worker_prices::begin_run(const inference_workload& w) {
  transfers_.clear();
  for (const auto& [key, at] : index_)
    known_[at]->prices.begin_run(key.first ? prefill_workload(w) : decode_workload(w));
}

limit_use worker_prices::prompt_tokens_use() const {
  limit_use out;
  for (const auto& k : known_) out.add(k->prices.prompt_tokens_use());
  return out;
}

cache_transfer worker_prices::transfer(std::int64_t tokens, const hardware_health& h, std::int64_t distance) {
  const auto [at, is_new] = transfers_.try_emplace({h, tokens, distance});
  if (is_new) {
    const platform machine = seen_with(h, case_.hardware);
    const priced_transfer t =
        kv_transfer({machine, case_.software, case_.net, case_.workload}, static_cast<double>(tokens), distance);
    operation_part part{part_kind::kv_transfer, "kv_transfer", t.time, 1,
                        std::make_shared<part_facts>(facts_of(machine, t))};
    at->second = {"kv_transfer", {std::move(part)}, t.time, {}, {demand_on(machine, t)}};
  }
  return {at->second.duration.base(), &at->second};
}

std::map<std::int64_t, operation_template> worker_prices::transfers() const {
  std::map<std::int64_t, operation_template> out;
  for (const auto& [key, operation] : transfers_) out.try_emplace(std::get<1>(key), operation);
  return out;
}

std::pair<std::vector<iteration_use>, std::vector<std::int32_t>> worker_prices::uses(bool explained) {
  std::pair<std::vector<iteration_use>, std::vector<std::int32_t>> out;
  for (const auto& k : known_) {
    out.second.push_back(static_cast<std::int32_t>(out.first.size()));
    for (iteration_use& u : k->prices.uses(explained)) {
      u.gpus = k->workload.tp * k->workload.attention_dp;
      out.first.push_back(std::move(u));
    }
  }
  return out;
}

namespace {

auto size_of_load(const inference_workload& w) {
  return std::tuple(w.requests, w.concurrency, w.arrivals.rate_per_s, w.rate_scale);
}

std::int64_t prompt_limit(const serving_case& c, const inference_workload& w) {
  return settings_of(*c.software.inference, w).max_num_tokens;
}

}  // namespace

shared_runs::shared_runs(const serving_case& c)
    : workload(c.workload), of{c.hardware, c.software, c.net, workload} {}

void shared_runs::run_under(const inference_workload& w) {
  if (size_of_load(w) != size_of_load(workload)) {
    list.reset();
    runs.clear();
  }
  workload = w;
}

std::optional<std::size_t> shared_runs::like(const schedule_limits& limits, const inference_workload& w) const {
  if (w.pooled()) return std::nullopt;
  const batch_limits wanted(limits);
  const std::int64_t prompts = prompt_limit(of, w);
  const auto at = std::find_if(runs.begin(), runs.end(), [&](const past_run& r) {
    return r.limits.alike(r.used, wanted) && r.prompts.alike(r.prompt_tokens, prompts);
  });
  return at == runs.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - runs.begin()));
}

void shared_runs::remember(const schedule_limits& limits, const inference_workload& w, const limits_use& used) {
  runs.push_back({batch_limits(limits), used, prompt_limit(of, w), prices->prompt_tokens_use()});
}

std::shared_ptr<shared_runs> runs_of_layout(const serving_case& c) { return std::make_shared<shared_runs>(c); }

}  // namespace nvlsim
