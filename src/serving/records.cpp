#include <algorithm>
#include <cmath>

#include "nvlsim/serving/server.hpp"

namespace nvlsim {
namespace {

constexpr double bins_per_e = 500, smallest = 1e-9;  // smaller values share the first bin
constexpr std::size_t max_bins = 40'000;

}  // namespace

/// Remembers values that are certainly in the same bin: logarithms are dear, and values that follow each other are
/// often near each other.
std::size_t value_histogram::bin_of(double value) {
  if (value >= low_ && value < high_) return last_;
  const double at = value > smallest ? bins_per_e * std::log(value / smallest) : 0;
  last_ = static_cast<std::size_t>(std::min(at, static_cast<double>(max_bins)));
  constexpr double rounding = 1e-9;  // of a bin
  const double below = (at - static_cast<double>(last_) - rounding) / bins_per_e,
               above = (1 - (at - static_cast<double>(last_)) - rounding) / bins_per_e;
  const bool inside = value > smallest && at < static_cast<double>(max_bins) && below > 0 && above > 0;
  // exp(-x) <= 1 - x + x^2 / 2 and exp(x) >= 1 + x
  low_ = inside ? value * (1 - below + below * below / 2) : 0;
  high_ = inside ? value * (1 + above) : 0;
  return last_;
}

void value_histogram::add(double value, std::int64_t count) {
  if (count <= 0) return;
  const std::size_t i = bin_of(value);
  if (bins_.size() <= i) bins_.resize(i + 1);
  bins_[i].sum += value * static_cast<double>(count);
  bins_[i].count += count;
}

void value_histogram::add(const value_histogram& other, std::int64_t times) {
  if (bins_.size() < other.bins_.size()) bins_.resize(other.bins_.size());
  for (std::size_t i = 0; i < other.bins_.size(); ++i) {
    bins_[i].sum += other.bins_[i].sum * static_cast<double>(times);
    bins_[i].count += other.bins_[i].count * times;
  }
}

std::vector<weighted> value_histogram::values() const {
  std::vector<weighted> out;
  for (const bin& b : bins_)
    if (b.count > 0) out.push_back({b.sum / static_cast<double>(b.count), b.count});
  return out;
}

void time_series::add(double from, double to, double value) {
  if (!(to > from)) return;
  while (to > width_ * max) {
    for (std::size_t i = 0; i < areas_.size(); i += 2)
      areas_[i / 2] = areas_[i] + (i + 1 < areas_.size() ? areas_[i + 1] : 0);
    areas_.resize((areas_.size() + 1) / 2);
    width_ *= 2;
  }
  auto i = static_cast<std::size_t>(from / width_);
  while (from < to) {
    const double end = std::min(to, static_cast<double>(i + 1) * width_);
    if (i >= max) break;
    if (areas_.size() <= i) areas_.resize(i + 1);
    areas_[i] += std::max(0.0, end - from) * value;
    from = std::max(from, end);
    ++i;
  }
}

std::vector<std::pair<double, double>> time_series::points() const {
  std::vector<std::pair<double, double>> out;
  for (std::size_t i = 0; i < areas_.size(); ++i)
    out.emplace_back(static_cast<double>(i) * width_, areas_[i] / width_);
  if (!out.empty()) out.emplace_back(static_cast<double>(areas_.size()) * width_, 0.0);
  return out;
}

}  // namespace nvlsim
