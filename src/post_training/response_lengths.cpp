#include "nvlsim/post_training/response_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "nvlsim/units/random.hpp"

namespace nvlsim {
namespace {

constexpr double quantile_99 = 2.3263478740408408;  // of a standard normal

double below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

double log_deviation(const response_lengths& l) { return std::log(std::max(1.0, l.tail)) / quantile_99; }

double mean_after_cut(double median, double deviation, double max) {
  if (deviation <= 0) return std::min(median, max);
  const double at = std::log(max / median) / deviation;
  return median * std::exp(deviation * deviation / 2) * below(at - deviation) + max * below(-at);
}

double median_before_cut(const response_lengths& l) {
  const double deviation = log_deviation(l), max = static_cast<double>(l.max);
  if (deviation <= 0) return l.mean;
  double low = std::log(1e-6 * l.mean), high = std::log(l.mean) + 40;
  for (int i = 0; i < 200 && high - low > 1e-14 * std::abs(high); ++i) {
    const double middle = (low + high) / 2;
    (mean_after_cut(std::exp(middle), deviation, max) < l.mean ? low : high) = middle;
  }
  return std::exp((low + high) / 2);
}

double share_cut(const response_lengths& l) {
  const double deviation = log_deviation(l);
  if (deviation <= 0) return l.mean >= static_cast<double>(l.max) ? 1 : 0;
  return below(std::log(median_before_cut(l) / static_cast<double>(l.max)) / deviation);
}

std::vector<std::int64_t> sample_responses(const response_lengths& l, std::int64_t prompts, std::int64_t samples,
                                           std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const double deviation = log_deviation(l), median = median_before_cut(l);
  const double common = deviation * std::sqrt(l.together), own = deviation * std::sqrt(1 - l.together);
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(prompts * samples));
  for (std::int64_t p = 0; p < prompts; ++p) {
    const double prompt = common * normal(random);
    for (std::int64_t s = 0; s < samples; ++s) {
      const double length = median * std::exp(prompt + own * normal(random));
      out.push_back(std::llround(std::clamp(length, 1.0, static_cast<double>(l.max))));
    }
  }
  return out;
}

}  // namespace nvlsim
