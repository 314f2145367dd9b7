#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/fleet/fleet.hpp"

namespace nvlsim {
namespace {

replica_point between(const replica_point& a, const replica_point& b, double share) {
  const auto mix = [share](double x, double y) { return x + (y - x) * share; };
  return {mix(a.requests_per_s, b.requests_per_s), mix(a.attained, b.attained), mix(a.ttft_s, b.ttft_s),
          mix(a.e2e_s, b.e2e_s), mix(a.power_W, b.power_W)};
}

/// More machines or racks that are taken back than these take minutes to play.
constexpr double max_evictions = 1e6;

/// How often a seller would take something back, if all is in use all the time.
double expected_evictions(const fleet_spec& f) {
  if (!(f.evictions.after_s > 0)) return 0;
  const std::int64_t each = f.evictions.takes_rack ? 1 : (f.gpus_per_rack + f.machine_gpus - 1) / f.machine_gpus;
  return static_cast<double>(f.racks * each) * f.duration_s / f.evictions.after_s;
}

}  // namespace

replica_point replica_curve::at(double requests_per_s) const {
  const auto next = std::lower_bound(points.begin(), points.end(), requests_per_s,
                                     [](const replica_point& p, double load) { return p.requests_per_s < load; });
  if (next == points.begin()) return points.front();
  if (next == points.end()) return points.back();
  const replica_point& before = *(next - 1);
  return between(before, *next,
                 (requests_per_s - before.requests_per_s) / (next->requests_per_s - before.requests_per_s));
}

double replica_curve::sustained(double share) const {
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].attained >= share) continue;
    if (i == 0) return points.front().requests_per_s;
    const replica_point &good = points[i - 1], &bad = points[i];
    const double part = (good.attained - share) / (good.attained - bad.attained);
    return good.requests_per_s + part * (bad.requests_per_s - good.requests_per_s);
  }
  return capacity();
}

double load_profile::at(double time_s) const {
  const auto count = static_cast<double>(requests_per_s.size());
  const double place = std::fmod(time_s / step_s, count), whole = std::floor(place);
  const auto i = static_cast<std::size_t>(whole);
  const double a = requests_per_s[i], b = requests_per_s[(i + 1) % requests_per_s.size()];
  return a + (b - a) * (place - whole);
}

double load_profile::peak() const { return *std::max_element(requests_per_s.begin(), requests_per_s.end()); }

std::vector<std::string> fleet_problems(const fleet_spec& f) {
  std::vector<std::string> out;
  std::int64_t least = 0;
  for (const fleet_service& s : f.services) {
    if (s.gpus > f.gpus_per_rack)
      out.push_back(fmt::format("a replica of {} needs {} GPUs in one rack; a rack has {}", s.name, s.gpus,
                                f.gpus_per_rack));
    else if (!(s.curve.capacity() > 0)) out.push_back(fmt::format("a replica of {} serves no requests", s.name));
    least += s.scaler.min_replicas * s.gpus;
  }
  if (const std::int64_t all = f.racks * f.gpus_per_rack; least > all)
    out.push_back(fmt::format("the services need at least {} GPUs; the racks have {}", least, all));
  if (const double all = expected_evictions(f); all > max_evictions)
    out.push_back(fmt::format(
        "{:.2g} evictions of spot {} are too many to simulate (at most {:.0e}); give a longer eviction_after or a "
        "shorter duration",
        all, f.evictions.takes_rack ? "racks" : "machines", max_evictions));
  return out;
}

}  // namespace nvlsim
