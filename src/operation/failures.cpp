#include "nvlsim/operation/failures.hpp"

#include <algorithm>
#include <cmath>

namespace nvlsim {
namespace {

double parts_of(cluster_part p, const cluster_shape& s, std::int64_t job_gpus) {
  switch (p) {
    case cluster_part::process:
      return static_cast<double>(job_gpus);
    case cluster_part::gpu:
      return static_cast<double>(s.gpus());
    case cluster_part::tray:
      return static_cast<double>(s.trays());
    case cluster_part::rack:
      return static_cast<double>(s.racks);
    case cluster_part::leaf:
      return static_cast<double>(s.leaf_groups() * s.rails);
    case cluster_part::row:
      return static_cast<double>(s.rows());
    case cluster_part::site:
      break;
  }
  return 1;
}

}  // namespace

double count_of(const component& c, const cluster_shape& s, std::int64_t job_gpus) {
  return parts_of(c.of, s, job_gpus) * static_cast<double>(c.each.read());
}

double failures_per_day(const component& c, const cluster_shape& s, std::int64_t job_gpus) {
  return count_of(c, s, job_gpus) * 86400 / c.mtbf.base();
}

double stops_per_1000_gpu_days(const std::vector<component>& components, const cluster_shape& s) {
  double out = 0;
  for (const component& c : components)
    if (c.effect == failure_effect::stops && c.tolerated.peek() == 0 && !c.notice)
      out += failures_per_day(c, s, s.gpus());
  return out * 1000 / static_cast<double>(s.gpus());
}

failure_model scaled(failure_model m, const cluster_shape& s) {
  if (!m.stops_per_1000_gpu_days) return m;
  const double now = stops_per_1000_gpu_days(m.components, s), wanted = *m.stops_per_1000_gpu_days;
  for (component& c : m.components)
    if (!c.notice) c.mtbf.derive([&, mean = c.mtbf] { return mean.read() * (now / wanted); });
  m.stops_per_1000_gpu_days.reset();
  return m;
}

double early_rate(const failure_model& m, seconds t) {
  if (!(m.early_period.read() > seconds{})) return 1;
  return 1 + (m.early_factor - 1) * std::exp(-(t / m.early_period.read()));
}

tray_range trays_of(cluster_part p, std::int64_t tray, const cluster_shape& s) {
  std::int64_t of_part = 1;
  if (p == cluster_part::rack) of_part = s.trays_per_rack;
  if (p == cluster_part::leaf) of_part = s.trays_of_leaf();
  if (p == cluster_part::row) of_part = s.trays_per_rack * s.racks_per_row;
  if (p == cluster_part::site) return {0, s.trays()};
  const std::int64_t first = tray / of_part * of_part;
  return {first, std::min(of_part, s.trays() - first)};
}

cluster_part part_lost(cluster_part p, const cluster_shape& s) {
  return p == cluster_part::leaf && s.trays_per_rack % s.trays_of_leaf() == 0 ? cluster_part::rack : p;
}

}  // namespace nvlsim
