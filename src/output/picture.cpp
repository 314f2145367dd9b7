#include "output/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/output/text.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t label_columns = 8;

/// Values of an axis at its two ends, and its ticks.
struct picture_axis {
  bool log = false;
  double from = 0, to = 1;
  std::vector<double> ticks;

  double place(double v) const {
    return log ? std::log(v / from) / std::log(to / from) : (v - from) / (to - from);
  }
};

double round_step(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= rough) return m * power;
  return 10 * power;
}

picture_axis axis_of(double least, double most, bool log, double ticks) {
  picture_axis a;
  a.log = log;
  if (log) {
    a.from = least / 1.1;
    a.to = most * 1.1;
    for (double power = std::pow(10, std::floor(std::log10(a.from))); power <= a.to; power *= 10)
      for (const double m : {1.0, 2.0, 5.0})
        if (m * power >= a.from && m * power <= a.to) a.ticks.push_back(m * power);
    return a;
  }
  const double step = round_step(std::max(most, 1e-9) / ticks);
  a.to = step * std::ceil(most / step * (1 - 1e-12));
  for (int i = 0; i * step <= a.to * (1 + 1e-9); ++i) a.ticks.push_back(i * step);
  return a;
}

std::string tick_text(double v) {
  if (v >= 1e6) return fmt::format("{:.6g}M", v / 1e6);
  if (v >= 1e4) return fmt::format("{:.6g}k", v / 1e3);
  return fmt::format("{:.6g}", v);
}

std::size_t cell(double place, std::size_t cells) {
  const double at = std::clamp(place, 0.0, 1.0) * static_cast<double>(cells - 1);
  return static_cast<std::size_t>(std::lround(at));
}

}  // namespace

std::string picture_of(const std::vector<picture_point>& all, const picture_frame& f) {
  std::vector<picture_point> points;
  for (const picture_point& p : all)
    if (std::isfinite(p.x) && std::isfinite(p.y) && (!f.x_log || p.x > 0) && (!f.y_log || p.y > 0))
      points.push_back(p);
  if (points.empty()) return {};
  const auto [x0, x1] =
      std::minmax_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  const auto [y0, y1] =
      std::minmax_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.y < b.y; });
  const picture_axis x = axis_of(x0->x, x1->x, f.x_log, 6), y = axis_of(y0->y, y1->y, f.y_log, 4);
  const std::size_t columns = f.columns - label_columns - 1, rows = f.rows - 3;
  std::vector<std::string> area(rows, std::string(columns, ' '));
  for (const picture_point& p : points)
    area[rows - 1 - cell(y.place(p.y), rows)][cell(x.place(p.x), columns)] = p.mark;
  std::vector<std::string> labels(rows);
  for (const double t : y.ticks) labels[rows - 1 - cell(y.place(t), rows)] = tick_text(t);
  std::string out = fmt::format("  {}\n", f.y_name);
  for (std::size_t i = 0; i < rows; ++i) {
    std::string line = output::padded_left(labels[i], label_columns) + (labels[i].empty() ? '|' : '+') + area[i];
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  std::string rule(columns, '-'), below(label_columns + 1 + columns, ' ');
  std::size_t free = 0;
  for (const double t : x.ticks) {
    const std::size_t at = cell(x.place(t), columns);
    const std::string text = tick_text(t);
    rule[at] = '+';
    const std::size_t start =
        std::min(label_columns + 1 + at - std::min(at, text.size() / 2), below.size() - text.size());
    if (start < free) continue;
    below.replace(start, text.size(), text);
    free = start + text.size() + 1;
  }
  below.erase(below.find_last_not_of(' ') + 1);
  out += std::string(label_columns, ' ') + '+' + rule + "\n" + below + "\n";
  return out + output::padded_left(f.x_name, label_columns + 1 + columns) + "\n";
}

}  // namespace nvlsim
