#include "nvlsim/facility/money.hpp"

#include <algorithm>
#include <cmath>

#include "nvlsim/facility/footprint.hpp"

namespace nvlsim {

dollar_rate fixed_cost_per_gpu(const ownership& o) {
  const double i = o.interest, years = o.years, left = o.residual;
  const double grown = std::pow(1 + i, years);
  // The residual is worth less today than when it is paid.
  const double yearly = i > 0 ? (1 - left / grown) * i * grown / (grown - 1) : (1 - left) / years;
  const dollars a_year = o.capital_per_gpu.read() * yearly + o.staff_per_gpu_year.read();
  return a_year / seconds::from_base(hours_a_year * 3600);
}

double daly_useful_share(seconds between, seconds interval, seconds save, seconds restart) {
  const double work = interval / between, cycle = (interval + save) / between;
  const double useful = work > 0 ? work / std::expm1(cycle) : save > seconds{} ? 0 : 1;
  return useful * std::exp(-(restart / between));
}

double useful_share(const spot_market& s, double gpus) {
  const seconds interval = s.checkpoint_interval, save = s.save, restart = s.restart;
  const seconds between = s.eviction_after.read() / std::max(1.0, std::ceil(gpus / s.gpus_per_machine));
  if (s.notice.read() < save) return daly_useful_share(between, interval, save, restart);
  // Nothing is computed twice: what is lost is the saving on notice and restarts, which may be interrupted too.
  const double m = between.base();
  return m / (m + save.base() + m * std::expm1(restart.base() / m));
}

bill bill_for(const payment& p, double gpus, seconds time, joules at_meter) {
  bill out;
  if (p.way == purchase::owned) {
    out.fixed = fixed_cost_per_gpu(*p.owned) * time * gpus;
    out.power = dollars::from_base(kWh(at_meter) * p.owned->usd_per_kWh);
  } else {
    out.fixed = p.gpu_price->read() * time * gpus * (1 - p.discount);
  }
  out.useful = p.goodput;
  if (p.way == purchase::spot && !p.plays_evictions) out.useful *= useful_share(*p.spot, gpus);
  return out;
}

}  // namespace nvlsim
