#include "scheduling/priorities.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace nvlsim {

job_order::job_order(const job_list& jobs, const queue_setting& setting)
    : jobs_(jobs.jobs), policy_(setting.policy.priority), decay_(std::log(2.0) / policy_.half_life.base()),
      gpus_(static_cast<double>(setting.cluster.gpus())), tier_(std::max<std::size_t>(jobs.queues.size(), 1)),
      of_queue_(tier_.size()), users_(std::max<std::size_t>(jobs.users.size(), 1)),
      fair_share_(users_.size(), 1.0), priority_(policy_.by_factors() ? jobs.jobs.size() : 0) {
  for (std::size_t q = 0; q < jobs.queues.size(); ++q)
    for (const queue_rules& rules : setting.policy.queues)
      if (rules.name == jobs.queues[q]) tier_[q] = rules.tier, of_queue_[q] = rules.priority;
}

bool job_order::before(int a, int b) const {
  const auto key = [this](int j) {
    const auto i = static_cast<std::size_t>(j);
    return std::tuple(-tier_[static_cast<std::size_t>(jobs_[i].queue)], priority_.empty() ? 0.0 : -priority_[i],
                      jobs_[i].submit.base(), j);
  };
  return key(a) < key(b);
}

void job_order::insert(std::vector<int>& waiting, int job, double now) {
  if (!priority_.empty()) priority_[static_cast<std::size_t>(job)] = priority_of(job, now);
  waiting.insert(
      std::upper_bound(waiting.begin(), waiting.end(), job, [this](int a, int b) { return before(a, b); }), job);
}

/// Used time decays by half in a half-life; d used/dt = gpus - decay x used.
void job_order::bring_up_to(user_time& u, double now) const {
  const double kept = std::exp(-decay_ * (now - u.since));
  u.used = u.used * kept + u.gpus * (1 - kept) / decay_;
  u.since = now;
}

void job_order::hold(int job, std::int64_t gpus, double now) {
  if (policy_.fair_share == 0) return;
  user_time& u = users_[static_cast<std::size_t>(jobs_[static_cast<std::size_t>(job)].user)];
  bring_up_to(u, now);
  u.gpus += static_cast<double>(gpus);
}

double job_order::priority_of(int job, double now) const {
  const batch_job& j = jobs_[static_cast<std::size_t>(job)];
  const double waited = now - j.submit.base(), most = policy_.max_age.base();
  return policy_.age * (most > 0 ? std::min(1.0, waited / most) : 1) +
         policy_.fair_share * fair_share_[static_cast<std::size_t>(j.user)] + policy_.size * j.gpus / gpus_ +
         policy_.queue * of_queue_[static_cast<std::size_t>(j.queue)];
}

void job_order::sort(std::vector<int>& waiting, double now) {
  if (sorted_at_ >= 0 && now - sorted_at_ < policy_.period.base()) return;
  sorted_at_ = now;
  if (policy_.fair_share != 0) {
    double all = 0;
    for (user_time& u : users_) bring_up_to(u, now), all += u.used;
    // Slurm's classic form with equal shares: 2^(-use / share).
    for (std::size_t u = 0; u < users_.size(); ++u)
      fair_share_[u] = all > 0 ? std::exp2(-users_[u].used / all * static_cast<double>(users_.size())) : 1.0;
  }
  for (const int j : waiting) priority_[static_cast<std::size_t>(j)] = priority_of(j, now);
  std::sort(waiting.begin(), waiting.end(), [this](int a, int b) { return before(a, b); });
}

}  // namespace nvlsim
