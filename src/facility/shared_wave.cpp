#include "nvlsim/facility/shared_wave.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim {
namespace {

/// Energy of a wave from the start of a period on.
class energy_since {
 public:
  explicit energy_since(const power_wave& w) : wave_(w), period_(w.period().base()) {
    double t = 0, joules = 0;
    for (const wave_piece& p : w.pieces) {
      begins_.push_back(t);
      energy_.push_back(joules);
      t += p.time.base();
      joules += (p.from + p.to).base() / 2 * p.time.base();
    }
    whole_ = joules;
  }
  double operator()(double t) const {
    const double periods = std::floor(t / period_);
    const double within = std::max(0.0, t - periods * period_);  // the quotient may be rounded up
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), within);
    const auto i = static_cast<std::size_t>(after - begins_.begin()) - 1;
    const wave_piece& p = wave_.pieces[i];
    const double dt = std::min(within - begins_[i], p.time.base());
    const double slope = p.time.base() > 0 ? (p.to - p.from).base() / p.time.base() : 0;
    return periods * whole_ + energy_[i] + (p.from.base() + slope * dt / 2) * dt;
  }

 private:
  const power_wave& wave_;
  double period_ = 0, whole_ = 0;
  std::vector<double> begins_, energy_;  ///< by piece
};

}  // namespace

power_wave superposed(const std::vector<shifted_wave>& waves, watts base, seconds window, std::size_t pieces) {
  const double each = window.base() / static_cast<double>(pieces);
  std::vector<double> level(pieces, base.base());
  for (const shifted_wave& x : waves) {
    if (!(x.wave.period() > seconds{})) continue;
    const energy_since energy(x.wave);
    double before = energy(x.shift.base());
    for (std::size_t i = 0; i < pieces; ++i) {
      const double until = energy(x.shift.base() + static_cast<double>(i + 1) * each);
      level[i] += x.factor * (until - before) / each;
      before = until;
    }
  }
  power_wave out;
  for (const double l : level)
    out.pieces.push_back({seconds::from_base(each), watts::from_base(l), watts::from_base(l)});
  return out;
}

}  // namespace nvlsim
