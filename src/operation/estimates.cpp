#include "nvlsim/operation/estimates.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/facility/money.hpp"

namespace nvlsim {

seconds job_mttf(double units, double per_unit_day) { return seconds::from_base(86400 / (units * per_unit_day)); }

seconds young_interval(const restart_costs& c) {
  return seconds::from_base(std::sqrt(2 * c.save.base() * c.mttf.base()));
}

seconds daly_interval(const restart_costs& c) { return std::max(seconds{}, young_interval(c) - c.save); }

// The derivative of (e^(x + save/mttf) - 1)/x vanishes where x = 1 - e^-(x + save/mttf).
seconds best_interval(const restart_costs& c) {
  if (!(c.save > seconds{})) return {};
  const double save = c.save / c.mttf;
  double low = 0, high = 1;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double x = (low + high) / 2;
    (x < -std::expm1(-(x + save)) ? low : high) = x;
  }
  return c.mttf * ((low + high) / 2);
}

double daly_useful_share(const restart_costs& c, seconds interval) {
  return daly_useful_share(c.mttf, interval, c.save, c.restart);
}

double first_order_useful_share(const restart_costs& c, seconds interval) {
  const double kept = 1 - (c.restart + interval / 2) / c.mttf;
  const double saving = c.save > seconds{} ? 1 + c.save / interval : 1;
  return std::max(0.0, kept / saving);
}

double k_of_n_up(int k, int n, double availability) {
  double out = 0, ways = 1;  // of n parts, i are down
  for (int i = 0; i <= n - std::max(k, 0); ++i) {
    out += ways * std::pow(availability, n - i) * std::pow(1 - availability, i);
    ways *= static_cast<double>(n - i) / (i + 1);
  }
  return out;
}

double masked_failures(double groups, double neighbours) {
  return std::tgamma(1 / neighbours) / neighbours * std::pow(groups, 1 - 1 / neighbours);
}

}  // namespace nvlsim
