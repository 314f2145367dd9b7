// The site of a cluster as a scenario describes it: power, cooling, grid and money. [docs/facility.md]
#pragma once

#include <optional>
#include <string>

#include "nvlsim/facility/footprint.hpp"
#include "nvlsim/facility/limits.hpp"
#include "nvlsim/facility/money.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// What is done about racks that would draw more than they may.
enum class over_limit {
  report,  ///< run as asked, and say so
  cap      ///< cap the power of GPUs so that no rack can
};

/// Who gives way when jobs would draw more than the site's budget.
enum class capping_policy {
  rack,      ///< each rack has an equal share of the budget, whatever the others draw
  uniform,   ///< all GPUs at work have one cap
  priority,  ///< jobs of lower tiers are capped first, each as far as it goes
  admission  ///< no cap: jobs of lower tiers do not run while there is no power for them
};

/// What stands between the racks' load and the grid. Zeros: nothing.
struct power_smoothing {
  constant<joules> storage_per_gpu;        ///< in the power supplies
  constant<watts> rack_floor;              ///< below, racks burn power
  constant<watts> rise_per_s, fall_per_s;  ///< of a rack; the supplies' power changes no faster
};

struct facility_spec {
  power_budget budget;
  over_limit when_over = over_limit::report;
  capping_policy capping = capping_policy::rack;  ///< of jobs that share a cluster
  power_smoothing smoothing;
  std::optional<rack_cooling> cooling;
  site_overheads overheads;
  std::string region;  ///< of the grid; empty if its carbon is given
  std::optional<payment> money;

  double pue() const { return overheads.pue ? overheads.pue->read() : 1; }
};

}  // namespace nvlsim
