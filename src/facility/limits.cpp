#include "nvlsim/facility/limits.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim {
namespace {

/// Heat that warms the flow of a rack by a kelvin, in watts.
double watts_per_kelvin(const rack_cooling& c) {
  return c.flow_L_per_min / 60 * c.density_kg_per_L * c.heat_J_per_kg_K;
}

}  // namespace

double warming_K(const rack_cooling& c, watts power) {
  return power.base() * c.liquid_share / watts_per_kelvin(c);
}

watts coolable_power(const rack_cooling& c) {
  const double room_K = std::max(0.0, c.return_limit_C - c.supply_C);
  return watts::from_base(room_K * watts_per_kelvin(c) / c.liquid_share);
}

rack_limit limit_of_rack(const power_budget& b, const std::optional<rack_cooling>& c, std::int64_t racks,
                         double pue) {
  rack_limit out;
  const auto take = [&out](watts power, const char* from) {
    if (!out.power || power < *out.power) out = {power, from};
  };
  if (b.rack) take(*b.rack, "the rack's budget");
  if (b.row) {
    const auto in_row = static_cast<double>(std::min<std::int64_t>(b.racks_per_row, racks));
    take(b.row->read() / in_row, "the row's budget");
  }
  if (b.site) take(b.site->read() / pue / static_cast<double>(racks), "the site's budget");
  if (c) take(coolable_power(*c), "cooling");
  return out;
}

std::int64_t racks_within(watts budget, watts each) {
  return static_cast<std::int64_t>(std::floor(budget / each * (1 + 1e-12)));
}

// n mean + z sqrt(n) deviation = budget, solved for sqrt(n).
std::int64_t independent_racks_within(watts budget, watts mean, watts deviation, double deviations) {
  const double z = deviations * deviation.base(), m = mean.base();
  const double root = (std::sqrt(z * z + 4 * m * budget.base()) - z) / (2 * m);
  return static_cast<std::int64_t>(std::floor(root * root * (1 + 1e-12)));
}

}  // namespace nvlsim
