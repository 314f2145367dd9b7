#include "nvlsim/units/max_min.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace nvlsim {

std::vector<double> max_min_shares(const std::vector<double>& most, double together) {
  std::vector<std::size_t> order(most.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return most[a] < most[b]; });
  std::vector<double> out(most.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    out[order[k]] = std::min(most[order[k]], together / static_cast<double>(order.size() - k));
    together -= out[order[k]];
  }
  return out;
}

}  // namespace nvlsim
