#include "nvlsim/facility/site_figures.hpp"

#include <algorithm>

namespace nvlsim {

power_figures figures_of(const platform& p, const facility_spec& f, const site_power& w) {
  power_figures out;
  out.rack_peak = w.rack_draw.peak();
  out.site_peak = w.meter.peak();
  out.site_swing = w.meter.swing();
  out.change_in_a_second = largest_change_within(w.meter, seconds::from_base(1));
  out.oscillation = oscillation(w.meter, low_oscillation_hz, high_oscillation_hz);
  constexpr double rounding = 1e-9;
  const double burnt = w.load.energy() > joules{} ? w.draw.energy() / w.load.energy() - 1 : 0;
  out.burnt_share = burnt > rounding ? burnt : 0;
  if (f.budget.site)
    out.racks = racks_within(f.budget.site->read(), out.site_peak / static_cast<double>(std::max(1, p.racks)));
  return out;
}

site_figures figures_of(const facility_spec& f, const site_work& w, const std::optional<power_figures>& power) {
  site_figures out;
  out.power = power;
  const joules racks = w.racks * (1 + (power ? power->burnt_share : 0));
  out.took = footprint_of(f.overheads, racks, w.time);
  if (!f.money) return out;
  const bill b = bill_for(*f.money, w.gpus, w.time, out.took.at_meter.value_or(joules{}));
  out.bill = b.total();
  out.paid = b.paid();
  return out;
}

}  // namespace nvlsim
