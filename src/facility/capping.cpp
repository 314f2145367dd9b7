#include "nvlsim/facility/capping.hpp"

#include <algorithm>
#include <numeric>

namespace nvlsim {
namespace {

constexpr double budget_rounding = 1e-9;

power_share at_cap(const power_asker& j, watts cap) {
  const std::vector<cap_point>& p = j.points;
  const auto after = std::find_if(p.begin(), p.end(), [&](const cap_point& x) { return x.cap >= cap; });
  if (after == p.end()) return {true, p.back().cap, p.back().drawn, p.back().speed};
  if (after == p.begin()) return {true, p.front().cap, p.front().drawn, p.front().speed};
  const cap_point& before = *(after - 1);
  const double f = (cap - before.cap) / (after->cap - before.cap);
  return {true, cap, before.drawn + (after->drawn - before.drawn) * f,
          before.speed + (after->speed - before.speed) * f};
}

/// The highest value up to `high` that is fine; `low` if none is. What is fine for a value is fine below it.
template <class Fine>
watts highest_that(watts low, watts high, const Fine& fine) {
  if (fine(high)) return high;
  for (int i = 0; i < 60; ++i) {
    const watts middle = (low + high) / 2;
    (fine(middle) ? low : high) = middle;
  }
  return low;
}

watts lowest_cap(const std::vector<power_asker>& jobs) {
  watts out = jobs.front().points.front().cap;
  for (const power_asker& j : jobs) out = std::min(out, j.points.front().cap);
  return out;
}
watts highest_cap(const std::vector<power_asker>& jobs) {
  watts out;
  for (const power_asker& j : jobs) out = std::max(out, j.points.back().cap);
  return out;
}

watts drawn_by(const std::vector<power_asker>& jobs, const std::vector<power_share>& shares) {
  watts out;
  for (std::size_t i = 0; i < jobs.size(); ++i) out += shares[i].drawn * jobs[i].gpus;
  return out;
}

/// Job numbers, those of the highest tier first.
std::vector<std::size_t> by_tier(const std::vector<power_asker>& jobs) {
  std::vector<std::size_t> out(jobs.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return jobs[a].tier > jobs[b].tier; });
  return out;
}

/// Raises the caps of the jobs of a tier together, as far as the budget goes.
void raise_tier(std::vector<power_share>& shares, const std::vector<power_asker>& jobs, int tier, watts budget) {
  const auto with = [&](watts cap) {
    std::vector<power_share> out = shares;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (jobs[i].tier == tier) out[i] = at_cap(jobs[i], cap);
    return out;
  };
  const watts cap = highest_that(lowest_cap(jobs), highest_cap(jobs), [&](watts c) {
    return drawn_by(jobs, with(c)) <= budget * (1 + budget_rounding);
  });
  shares = with(cap);
}

std::vector<power_share> admit(const std::vector<power_asker>& jobs, const shared_budget& b) {
  std::vector<power_share> out(jobs.size(), power_share{false, {}, b.idle, 0});
  for (const std::size_t i : by_tier(jobs)) {
    const power_share off = out[i];
    out[i] = at_cap(jobs[i], jobs[i].points.back().cap);
    if (drawn_by(jobs, out) > b.all * (1 + budget_rounding)) out[i] = off;
  }
  return out;
}

std::vector<power_share> capped(capping_policy policy, const std::vector<power_asker>& jobs,
                                const shared_budget& b) {
  std::vector<power_share> out;
  for (const power_asker& j : jobs) out.push_back(at_cap(j, j.points.front().cap));
  if (policy == capping_policy::rack) {
    for (std::size_t i = 0; i < jobs.size(); ++i)
      out[i] = at_cap(jobs[i], highest_that(jobs[i].points.front().cap, jobs[i].points.back().cap, [&](watts c) {
                        return at_cap(jobs[i], c).drawn <= b.each * (1 + budget_rounding);
                      }));
    return out;
  }
  if (policy == capping_policy::priority) {
    for (const std::size_t i : by_tier(jobs)) raise_tier(out, jobs, jobs[i].tier, b.all);
    return out;
  }
  const auto all_at = [&](watts cap) {
    std::vector<power_share> x;
    for (const power_asker& j : jobs) x.push_back(at_cap(j, cap));
    return x;
  };
  return all_at(highest_that(lowest_cap(jobs), highest_cap(jobs),
                             [&](watts c) { return drawn_by(jobs, all_at(c)) <= b.all * (1 + budget_rounding); }));
}

}  // namespace

power_shares share_power(capping_policy policy, const std::vector<power_asker>& jobs, const shared_budget& b) {
  power_shares out;
  if (jobs.empty()) return out;
  out.jobs = policy == capping_policy::admission ? admit(jobs, b) : capped(policy, jobs, b);
  out.drawn = drawn_by(jobs, out.jobs);
  double gpus = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    out.speed += out.jobs[i].speed * jobs[i].gpus;
    gpus += jobs[i].gpus;
    if (policy == capping_policy::rack && out.jobs[i].drawn > b.each * (1 + budget_rounding)) out.fits = false;
  }
  if (gpus > 0) out.speed /= gpus;
  if (policy != capping_policy::rack) out.fits = out.drawn <= b.all * (1 + budget_rounding);
  return out;
}

}  // namespace nvlsim
