#include "nvlsim/layers/expert_popularity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace nvlsim {

double largest_of(double n) {
  static constexpr std::array of_doublings = {0.0,   0.564, 1.029, 1.424,
                                              1.766, 2.070, 2.344, 2.594};  // of 1, 2, 4, ... 128
  const double at = std::clamp(std::log2(n), 0.0, static_cast<double>(of_doublings.size() - 1));
  const auto below = std::min(static_cast<std::size_t>(at), of_doublings.size() - 2);
  return std::lerp(of_doublings[below], of_doublings[below + 1], at - static_cast<double>(below));
}

// The number of tokens of an expert is negative binomial, and none with probability (1 + tokens rate)^(-1 / skew).
double touched_share(double mean, double skew, double tokens) {
  const double missed = std::log1p(-std::min(mean, 1 - 1e-12));  // by one token, in log
  if (skew == 0) return -std::expm1(tokens * missed);
  return -std::expm1(-std::log1p(tokens * std::expm1(-skew * missed)) / skew);
}

// The total popularity of the experts of a rank varies by 1 / sqrt(experts per rank) times that of one expert. A
// token takes k of E experts without repeating one, so its number on a rank is hypergeometric.
double busiest_share(const expert_spread& s, double tokens) {
  if (s.ranks <= 1) return 1;
  const double popularity = s.skew * s.ranks / s.experts;
  const double others = s.experts > 1 ? (s.experts - s.top_k) / (s.experts - 1) : 0;
  const double sample = (s.ranks - 1) * others / (tokens * s.top_k);
  const double most = std::min(s.ranks, s.experts / s.top_k);  // all choices on one rank, or all of its experts
  return std::min(most, 1 + largest_of(s.ranks) * std::sqrt(popularity + sample));
}

// Whether a batch uses an expert is nearly independent of the others on its rank.
double max_touched(const expert_spread& s, double tokens) {
  const double local = s.experts / s.ranks, used = touched_share(s.top_k / s.experts, s.skew, tokens);
  return std::min(local, local * used + largest_of(s.ranks) * std::sqrt(local * used * (1 - used)));
}

}  // namespace nvlsim
