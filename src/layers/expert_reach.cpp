#include "nvlsim/layers/expert_reach.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace nvlsim {
namespace {

/// Probability that at least one of `own` experts is among the `top_k` distinct ones of a token, out of `all`.
double hit(const moe_spec& e, double kept, double own, double all) {
  double missed = 1;
  for (std::int64_t i = 0; i < e.top_k; ++i)
    missed *= std::max(0.0, all - own - static_cast<double>(i)) / (all - static_cast<double>(i));
  return 1 - (kept == 1 ? missed : std::pow(missed, kept));
}

/// Probability that `wanted` of the `chosen` of `groups` groups are among `own` of them: hypergeometric.
double overlap(std::int64_t groups, std::int64_t chosen, std::int64_t own, std::int64_t wanted) {
  const auto choose = [](std::int64_t n, std::int64_t k) {
    if (k < 0 || k > n) return 0.0;
    double ways = 1;
    for (std::int64_t i = 1; i <= k; ++i) ways *= static_cast<double>(n - k + i) / static_cast<double>(i);
    return ways;
  };
  return choose(own, wanted) * choose(groups - own, chosen - wanted) / choose(groups, chosen);
}

/// Of experts that fill `own` whole groups.
double reach_of_groups(const moe_spec& e, double kept, std::int64_t own) {
  const double each = static_cast<double>(e.experts) / static_cast<double>(e.groups);
  double reached = 0;
  for (std::int64_t j = 1; j <= std::min(own, e.top_groups); ++j)
    reached += overlap(e.groups, e.top_groups, own, j) *
               hit(e, kept, each * static_cast<double>(j), each * static_cast<double>(e.top_groups));
  return reached;
}

double random_reach(const moe_spec& e, double kept, double share) {
  const double all = static_cast<double>(e.experts);
  if (e.top_groups >= e.groups) return hit(e, kept, share * all, all);
  const double chosen = static_cast<double>(e.top_groups) / static_cast<double>(e.groups);
  const double own = share * static_cast<double>(e.groups);  // groups
  if (own <= 1) return chosen * hit(e, kept, share * all, chosen * all);
  const double whole = std::floor(own);
  const auto below = static_cast<std::int64_t>(whole);
  if (below >= e.groups) return 1;
  return std::lerp(reach_of_groups(e, kept, below), reach_of_groups(e, kept, below + 1), own - whole);
}

/// A token's experts start at a multiple of their number, so they overlap a run of experts in this many starts.
double reach_in_turn(const moe_spec& e, double share) {
  const double all = static_cast<double>(e.experts), k = static_cast<double>(e.top_k);
  const auto own = static_cast<std::int64_t>(std::max(1.0, std::round(share * all)));
  return std::min(1.0, share + (k - static_cast<double>(std::gcd(own, e.top_k))) / all);
}

}  // namespace

double reach_of(const moe_spec& experts, expert_choice choice, double share, double kept) {
  if (choice == expert_choice::in_turn) return reach_in_turn(experts, share);
  return random_reach(experts, kept, share);
}

}  // namespace nvlsim
