// Lengths of the sequences packed into one window. [docs/models-and-assumptions.md#packed-sequences]
#include <algorithm>
#include <cmath>

#include "nvlsim/training/training.hpp"

namespace nvlsim {
namespace {

/// Cells of the midpoint rule, and cut-offs of the tails.
constexpr int cells = 512;
constexpr double normal_tail = 8, exponential_tail = 40;

struct interval {
  double low = 0, high = 1;
};

/// Appends the length at each cell of the interval, with a share by `density`.
template <class Length, class Density>
void integrate(std::vector<sequence_share>& out, const token_lengths& l, interval range, Length length,
               Density density) {
  double total = 0;
  for (int i = 0; i < cells; ++i) {
    const double x = range.low + (range.high - range.low) * (i + 0.5) / cells;
    const double tokens = std::clamp(length(x), static_cast<double>(l.min), static_cast<double>(l.max));
    out.push_back({std::llround(tokens), density(x)});
    total += out.back().share;
  }
  for (sequence_share& s : out) s.share /= total;
}

}  // namespace

std::vector<sequence_share> sequences_of(const training_workload& w) {
  if (!w.packed) return {{w.seq_length, 1}};
  token_lengths l = *w.packed;
  l.max = std::min(l.max, w.seq_length);
  l.min = std::min(l.min, l.max);
  std::vector<sequence_share> out;
  switch (l.shape) {
    case length_shape::uniform:
      if (l.spread == 0)
        return {{std::llround(std::clamp(l.mean, static_cast<double>(l.min), static_cast<double>(l.max))), 1}};
      integrate(
          out, l, {-1, 1}, [&](double x) { return l.mean * (1 + l.spread * x); }, [](double) { return 1.0; });
      break;
    case length_shape::exponential:
      integrate(
          out, l, {0, exponential_tail}, [&](double x) { return l.mean * x; },
          [](double x) { return std::exp(-x); });
      break;
    case length_shape::lognormal: {
      const double variance = std::log1p(l.variation * l.variation), deviation = std::sqrt(variance);
      integrate(
          out, l, {-normal_tail, normal_tail},
          [&](double x) { return l.mean * std::exp(deviation * x - variance / 2); },
          [](double x) { return std::exp(-x * x / 2); });
      break;
    }
  }
  return out;
}

double mean_length(const std::vector<sequence_share>& sequences) {
  double mean = 0;
  for (const sequence_share& s : sequences) mean += s.share * static_cast<double>(s.length);
  return mean;
}

}  // namespace nvlsim
