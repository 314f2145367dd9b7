#include "nvlsim/facility/waveform.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <deque>
#include <numbers>

namespace nvlsim {

seconds power_wave::period() const {
  seconds out;
  for (const wave_piece& p : pieces) out += p.time;
  return out;
}

joules power_wave::energy() const {
  joules out;
  for (const wave_piece& p : pieces) out += (p.from + p.to) * 0.5 * p.time;
  return out;
}

watts power_wave::mean() const {
  const seconds whole = period();
  return whole > seconds{} ? energy() / whole : watts{};
}

watts power_wave::peak() const {
  watts out;
  for (const wave_piece& p : pieces) out = std::max({out, p.from, p.to});
  return out;
}

watts power_wave::floor() const {
  watts out = pieces.empty() ? watts{} : pieces.front().from;
  for (const wave_piece& p : pieces) out = std::min({out, p.from, p.to});
  return out;
}

power_wave wave_of(std::vector<power_change> changes, watts base, seconds period) {
  std::sort(changes.begin(), changes.end(),
            [](const power_change& a, const power_change& b) { return a.at_s < b.at_s; });
  power_wave out;
  double from = 0, now = base.base();
  const auto add = [&](double until) {
    if (until > from)
      out.pieces.push_back({seconds::from_base(until - from), watts::from_base(now), watts::from_base(now)});
    from = std::max(from, until);
  };
  for (const power_change& c : changes) {
    add(std::clamp(c.at_s, 0.0, period.base()));
    now += c.change_W;
  }
  add(period.base());
  return out;
}

power_wave scaled(const power_wave& w, double factor, watts added) {
  power_wave out = w;
  for (wave_piece& p : out.pieces) {
    p.from = p.from * factor + added;
    p.to = p.to * factor + added;
  }
  return out;
}

power_wave condensed(const power_wave& w, std::size_t pieces) {
  const bool constant =
      std::all_of(w.pieces.begin(), w.pieces.end(), [](const wave_piece& p) { return p.from == p.to; });
  if ((w.pieces.size() <= pieces && constant) || w.pieces.empty()) return w;
  const double whole = w.period().base(), each = whole / static_cast<double>(pieces);
  std::vector<double> energy(pieces);
  double begin = 0;
  for (const wave_piece& p : w.pieces) {
    const double end = begin + p.time.base();
    const double slope = p.time > seconds{} ? (p.to - p.from).base() / p.time.base() : 0;
    const auto level = [&](double t) { return p.from.base() + slope * (t - begin); };
    for (auto bin = static_cast<std::size_t>(begin / each); bin < pieces; ++bin) {
      const double from = std::max(begin, static_cast<double>(bin) * each);
      const double to = bin + 1 == pieces ? end : std::min(end, static_cast<double>(bin + 1) * each);
      if (to > from) energy[bin] += (level(from) + level(to)) / 2 * (to - from);
      if (!(to < end)) break;
    }
    begin = end;
  }
  power_wave out;
  for (const double e : energy)
    out.pieces.push_back({seconds::from_base(each), watts::from_base(e / each), watts::from_base(e / each)});
  return out;
}

namespace {

struct point {
  double t = 0, y = 0;
};
double slope(const point& a, const point& b) { return (b.y - a.y) / (b.t - a.t); }

/// The shortest path between two walls: a funnel of the lines of sight from its last bend.
class taut_string {
 public:
  explicit taut_string(point start) : low_{start}, high_{start}, path_{start} {}

  void above(const point& p) { add(p, low_, high_, 1); }
  void below(const point& p) { add(p, high_, low_, -1); }
  const std::vector<point>& end_at(const point& p) {
    above(p);
    below(p);
    path_.push_back(p);
    return path_;
  }

 private:
  /// `side` 1: a point of the lower wall, which pushes the string up; -1: of the upper wall.
  void add(const point& p, std::deque<point>& own, std::deque<point>& other, double side) {
    while (own.size() >= 2 &&
           side * slope(own[own.size() - 2], own.back()) <= side * slope(own[own.size() - 2], p))
      own.pop_back();
    while (own.size() == 1 && other.size() >= 2 && other[1].t < p.t &&
           side * slope(own.front(), p) >= side * slope(own.front(), other[1])) {
      other.pop_front();
      own.front() = other.front();
      path_.push_back(other.front());
    }
    own.push_back(p);
  }

  std::deque<point> low_, high_;
  std::vector<point> path_;
};

/// The part of a path of energy over time between two times, as power.
power_wave power_between(const std::vector<point>& path, double from, double to) {
  power_wave out;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const double begin = std::max(from, path[i].t), end = std::min(to, path[i + 1].t);
    if (!(end > begin)) continue;
    const watts level = watts::from_base(slope(path[i], path[i + 1]));
    out.pieces.push_back({seconds::from_base(end - begin), level, level});
  }
  return out;
}

}  // namespace

// The energy supplied so far lies between what the load has taken and that plus the storage. The shortest path
// between these walls is the answer; with the same before and after it, the second of three periods repeats.
power_wave with_storage(const power_wave& w, joules storage) {
  if (!(storage > joules{}) || w.pieces.empty()) return w;
  const double whole = w.period().base(), mean = w.mean().base(), room = storage.base();
  double taken = 0, t = 0, lowest = 0, highest = 0;
  for (const wave_piece& p : w.pieces) {
    taken += (p.from - watts::from_base(mean)).base() * p.time.base();
    lowest = std::min(lowest, taken);
    highest = std::max(highest, taken);
  }
  if (highest - lowest <= room) return {{{w.period(), w.mean(), w.mean()}}};
  constexpr int periods = 3;
  taut_string path({0, room / 2});
  taken = 0;
  for (int k = 0; k < periods; ++k)
    for (std::size_t i = 0; i < w.pieces.size(); ++i) {
      const double before = t;
      t = i + 1 == w.pieces.size() ? (k + 1) * whole : t + w.pieces[i].time.base();
      taken += w.pieces[i].from.base() * w.pieces[i].time.base();
      if (!(t > before) || (k + 1 == periods && i + 1 == w.pieces.size())) continue;
      path.above({t, taken});
      path.below({t, taken + room});
    }
  return power_between(path.end_at({t, taken + room / 2}), whole, 2 * whole);
}

namespace {

/// Levels at which a ramp from elsewhere enters each piece; `fall` is what it loses a second. Goes round twice,
/// because the wave repeats.
std::vector<double> entering(const std::vector<wave_piece>& pieces, double fall) {
  std::vector<double> out(pieces.size());
  double level = 0;
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      out[i] = level;
      level = std::max(pieces[i].from.base(), fall > 0 ? level - fall * pieces[i].time.base() : 0);
    }
  return out;
}

/// A ramp that crosses a piece: its level at the end where it enters, and what it loses a second from there.
struct ramp {
  double level = 0, slope = 0;  ///< slope 0: none
  double after(double t) const { return slope > 0 ? level - slope * t : 0; }
};

/// The highest of the level of a piece, a ramp that falls from its start and one that rises to its end.
void add_ramped(power_wave& out, const wave_piece& p, const ramp& falling, const ramp& rising) {
  const double length = p.time.base(), level = p.from.base();
  const auto at = [&](double t) {
    return watts::from_base(std::max({level, falling.after(t), rising.after(length - t)}));
  };
  std::vector<double> cuts = {0, length};
  if (falling.slope > 0) cuts.push_back((falling.level - level) / falling.slope);
  if (rising.slope > 0) cuts.push_back(length - (rising.level - level) / rising.slope);
  if (falling.slope > 0 && rising.slope > 0)
    cuts.push_back((falling.level - rising.level + rising.slope * length) / (falling.slope + rising.slope));
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const double begin = std::clamp(cuts[i], 0.0, length), end = std::clamp(cuts[i + 1], 0.0, length);
    if (end > begin) out.pieces.push_back({seconds::from_base(end - begin), at(begin), at(end)});
  }
}

}  // namespace

power_wave with_ramp_limits(const power_wave& w, double rise_W_per_s, double fall_W_per_s) {
  std::vector<wave_piece> backwards(w.pieces.rbegin(), w.pieces.rend());
  const std::vector<double> before = entering(w.pieces, fall_W_per_s);
  std::vector<double> after = entering(backwards, rise_W_per_s);
  std::reverse(after.begin(), after.end());
  power_wave out;
  for (std::size_t i = 0; i < w.pieces.size(); ++i)
    add_ramped(out, w.pieces[i], {before[i], fall_W_per_s}, {after[i], rise_W_per_s});
  return out;
}

power_wave with_floor(const power_wave& w, watts least) {
  power_wave out;
  for (const wave_piece& p : w.pieces) {
    const watts low = std::min(p.from, p.to), high = std::max(p.from, p.to);
    if (low >= least || high <= least || low == high) {
      out.pieces.push_back({p.time, std::max(p.from, least), std::max(p.to, least)});
      continue;
    }
    const seconds above = p.time * ((high - least) / (high - low));
    const wave_piece flat{p.time - above, least, least};
    const wave_piece ramp{above, std::max(p.from, least), std::max(p.to, least)};
    for (const wave_piece& part : {p.from < p.to ? flat : ramp, p.from < p.to ? ramp : flat})
      out.pieces.push_back(part);
  }
  return out;
}

watts oscillation(const power_wave& w, double low_hz, double high_hz) {
  using namespace std::complex_literals;
  const double whole = w.period().base();
  if (!(whole > 0)) return {};
  double squares = 0;
  for (auto k = std::max(1.0, std::ceil(low_hz * whole)); k <= high_hz * whole; ++k) {
    const std::complex<double> z = 2i * std::numbers::pi * k / whole, inverse = 1.0 / z;
    std::complex<double> sum = 0, turned = 1, end = 1;  // by the pieces before; by the last of them
    double length = 0;                                  // that turns by `end`
    for (const wave_piece& p : w.pieces) {
      const double d = p.time.base(), rise = d > 0 ? (p.to - p.from).base() / d : 0;
      if (d != length) end = std::exp(-z * d), length = d;
      std::complex<double> piece = p.from.base() * (1.0 - end) * inverse;
      if (rise != 0) piece += rise * (1.0 - (1.0 + z * d) * end) * inverse * inverse;
      sum += turned * piece;
      turned *= end;
    }
    squares += 2 * std::norm(sum / whole);
  }
  return watts::from_base(std::sqrt(squares));
}

watts deviation(const power_wave& w) {
  const double whole = w.period().base(), mean = w.mean().base();
  if (!(whole > 0)) return {};
  double squares = 0;
  for (const wave_piece& p : w.pieces) {
    const double a = p.from.base() - mean, b = p.to.base() - mean;
    squares += p.time.base() * (a * a + a * b + b * b) / 3;
  }
  return watts::from_base(std::sqrt(squares / whole));
}

namespace {

/// The wave as corners in time, over one period and `beyond` seconds more.
std::vector<point> corners(const power_wave& w, double beyond) {
  std::vector<point> out;
  const double whole = w.period().base();
  double t = 0;
  while (t < whole + beyond) {
    for (const wave_piece& p : w.pieces) {
      out.push_back({t, p.from.base()});
      t += p.time.base();
      out.push_back({t, p.to.base()});
      if (t >= whole + beyond) break;
    }
  }
  return out;
}

}  // namespace

watts largest_change_within(const power_wave& w, seconds window) {
  const double whole = w.period().base(), wide = window.base();
  if (!(whole > 0)) return {};
  if (wide >= whole) return w.swing();
  const std::vector<point> all = corners(w, wide);
  const auto level_at = [&](std::size_t corner, double t) {  // on the line that ends at `corner`
    const point &a = all[corner - 1], &b = all[corner];
    return b.t > a.t ? a.y + (b.y - a.y) * (t - a.t) / (b.t - a.t) : b.y;
  };
  // Extremes lie at corners, or where the other end of the window meets a corner.
  double most = 0;
  std::deque<std::size_t> highest, lowest;  // of the corners in the window, by falling and rising power
  std::size_t first = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double from = all[i].t - wide;
    while (all[first].t < from) ++first;
    while (!highest.empty() && highest.front() < first) highest.pop_front();
    while (!lowest.empty() && lowest.front() < first) lowest.pop_front();
    while (!highest.empty() && all[highest.back()].y <= all[i].y) highest.pop_back();
    while (!lowest.empty() && all[lowest.back()].y >= all[i].y) lowest.pop_back();
    highest.push_back(i);
    lowest.push_back(i);
    most = std::max({most, all[highest.front()].y - all[i].y, all[i].y - all[lowest.front()].y});
    if (first > 0) most = std::max(most, std::abs(all[i].y - level_at(first, from)));
  }
  // The same with the corner first and the end of the window on a line.
  for (std::size_t i = 0, last = 1; i < all.size(); ++i) {
    while (last < all.size() && all[last].t < all[i].t + wide) ++last;
    if (last == all.size()) break;
    if (last > i) most = std::max(most, std::abs(all[i].y - level_at(last, all[i].t + wide)));
  }
  return watts::from_base(most);
}

stop_effect effect_of_stop(watts before, watts after, joules storage, double fall_W_per_s) {
  stop_effect out;
  out.drop = std::max(watts{}, before - after);
  if (!(out.drop > watts{})) return out;
  out.ridden = storage / out.drop;
  if (!(fall_W_per_s > 0)) return out;
  out.ramp = seconds::from_base(out.drop.base() / fall_W_per_s);
  const joules above = out.drop * out.ramp * 0.5;
  out.stored = std::min(storage, above);
  out.burnt = above - out.stored;
  return out;
}

}  // namespace nvlsim
