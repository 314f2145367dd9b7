#include "nvlsim/facility/footprint.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nvlsim {

double grid_carbon::mean() const {
  double sum = 0;
  for (const constant<double>& g : g_per_kWh) sum += g;
  return sum / hours_a_day;
}

double grid_carbon::mean_over(double start_h, seconds time) const {
  const double hours = time.base() / 3600, days = std::floor(hours / hours_a_day);
  const double first = start_h - hours_a_day * std::floor(start_h / hours_a_day);
  const auto at = [this](double hour) { return g_per_kWh[static_cast<std::size_t>(hour) % hours_a_day].read(); };
  if (!(hours > 0)) return at(first);
  double sum = days * hours_a_day * (days > 0 ? mean() : 0), now = first;
  for (double left = hours - days * hours_a_day; left > 0;) {
    const double part = std::min(left, std::floor(now) + 1 - now);
    sum += part * at(now);
    now += part;
    left -= part;
  }
  return sum / hours;
}

int grid_carbon::best_start(seconds time) const {
  int best = 0;
  for (int h = 1; h < hours_a_day; ++h)
    if (mean_over(h, time) < mean_over(best, time) * (1 - 1e-12)) best = h;
  return best;
}

double kWh(joules e) { return e.base() / 3.6e6; }

footprint footprint_of(const site_overheads& s, joules racks, seconds time) {
  footprint out;
  if (s.wue_L_per_kWh) out.water_L = kWh(racks) * *s.wue_L_per_kWh;
  if (!s.pue) return out;
  out.at_meter = racks * s.pue->read();
  if (s.carbon) out.carbon_g = kWh(*out.at_meter) * s.carbon->mean_over(s.start_h, time);
  return out;
}

footprint footprint_of(const site_overheads& s, const std::array<joules, hours_a_day>& racks) {
  const seconds hour = seconds::from_base(3600);
  footprint out = footprint_of(s, std::accumulate(racks.begin(), racks.end(), joules{}), hour);
  if (!out.carbon_g) return out;
  out.carbon_g = 0;
  for (std::size_t h = 0; h < racks.size(); ++h)
    *out.carbon_g += kWh(racks[h] * s.pue->read()) * s.carbon->mean_over(s.start_h + static_cast<double>(h), hour);
  return out;
}

}  // namespace nvlsim
