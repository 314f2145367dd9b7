// Power and heat that a rack may have: budgets of racks, rows and the site, and its cooling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Power that may be drawn at the racks' supplies; at the site's meter with what cools and supplies them.
struct power_budget {
  std::optional<constant<watts>> rack, row, site;
  constant<int> racks_per_row = 1;
};

/// Liquid cooling of a rack. [docs/facility.md#cooling]
struct rack_cooling {
  constant<double> flow_L_per_min;   ///< of one rack
  constant<double> supply_C;         ///< temperature of the coolant that enters
  constant<double> return_limit_C;   ///< highest temperature at which it may leave
  constant<double> heat_J_per_kg_K;  ///< of the coolant
  constant<double> density_kg_per_L;
  constant<double> liquid_share;  ///< of the rack's heat, which the liquid takes; air takes the rest
};

/// By how much the coolant warms with `power` in the rack, in kelvin.
double warming_K(const rack_cooling& c, watts power);
/// The power at which the coolant leaves at its limit. Zero if it enters at the limit or above.
watts coolable_power(const rack_cooling& c);

/// The power that each of `racks` equal racks may draw, and what sets it.
struct rack_limit {
  std::optional<watts> power;  ///< nothing: no limit
  std::string from;            ///< "the row's budget"
};
/// The smallest of the budgets' shares and what cooling takes. A row has its racks or all that there are; the
/// site's budget covers `pue` times the power of the racks. Requires at least one rack.
rack_limit limit_of_rack(const power_budget& b, const std::optional<rack_cooling>& c, std::int64_t racks,
                         double pue);

/// Racks that fit into `budget` (at the racks' supplies) if each has power `each`. Requires power above zero.
std::int64_t racks_within(watts budget, watts each);

/// Racks whose loads are independent: powers of mean `mean` and standard deviation `deviation` each. The largest
/// number whose sum stays within `budget` except for a share of the time that `deviations` standard deviations
/// leave (3.09: a thousandth). [docs/facility.md#oversubscription]
std::int64_t independent_racks_within(watts budget, watts mean, watts deviation, double deviations);

}  // namespace nvlsim
