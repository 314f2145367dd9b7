// Clusters and jobs for tests of operation.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim::test {

inline constexpr double hour = 3600, day = 86400;

inline constexpr recovery_mode all_modes[] = {recovery_mode::restart, recovery_mode::elastic,
                                              recovery_mode::replica, recovery_mode::redundant};

inline constant<seconds> secs(double s) { return seconds::from_base(s); }

/// A component of every GPU that stops the job.
inline component stopper(std::string name, cluster_part takes_down, double mtbf_s, double repair_s) {
  component c;
  c.name = std::move(name);
  c.takes_down = takes_down;
  if (takes_down == cluster_part::process) c.of = cluster_part::process;
  c.mtbf = secs(mtbf_s);
  c.repair = secs(repair_s);
  return c;
}

/// `racks` racks of 18 trays of 4 GPUs; a job on `per_rack` trays of `job_racks` racks. Saves take no time, and
/// restarts none either.
inline operation_setup plain_setup(std::int64_t racks, std::int64_t job_racks, std::int64_t per_rack) {
  operation_setup s;
  s.cluster = {racks, 18, 4, 8};
  s.asked = {job_racks * per_rack, per_rack};
  s.step_time = seconds::from_base(10);
  s.duration = seconds::from_base(60 * day);
  s.save.state = bytes::from_base(1);
  s.save.to_host = bandwidth::from_base(1e30);
  s.save.interval = seconds::from_base(hour);
  save_tier store;
  store.write = store.read = bandwidth::from_base(1e30);
  s.save.tiers = {store};
  return s;
}

/// A job whose failures are those of its program, one in `mttf` seconds; saving and restarting take fixed times.
inline operation_setup renewal(double mttf_s, double interval_s, double save_s, double restart_s) {
  operation_setup s = plain_setup(1, 1, 18);
  s.failures.components = {stopper("program", cluster_part::process, mttf_s * 72, 0)};
  s.save.interval = seconds::from_base(interval_s);
  s.save.pause = secs(save_s);
  s.recovery.decide = secs(restart_s);
  return s;
}

/// A job with everything that can happen to it.
inline operation_setup eventful(recovery_mode mode) {
  operation_setup s = plain_setup(10, 8, 16);
  component rack = stopper("switch", cluster_part::rack, 200 * day, 3 * hour);
  rack.of = cluster_part::rack;
  component slow = stopper("slow", cluster_part::tray, 3000 * day, hour);
  slow.effect = failure_effect::slows;
  slow.speed = 0.9;
  component wrong = stopper("wrong", cluster_part::tray, 20000 * day, 2 * hour);
  wrong.effect = failure_effect::corrupts;
  wrong.detection = secs(6 * hour);
  component shelf = stopper("shelf", cluster_part::rack, 20 * day, 8 * hour);
  shelf.of = cluster_part::rack;
  shelf.each = 8;
  shelf.tolerated = 1;
  component leaf = stopper("leaf", cluster_part::leaf, 300 * day, 2 * hour);
  leaf.of = cluster_part::leaf;
  component spot = stopper("spot", cluster_part::tray, 1500 * day, 3 * hour);
  spot.of = cluster_part::tray;
  spot.notice = secs(120);
  s.cluster.trays_per_leaf = 30;
  s.cluster.rails = 2;
  s.failures.components = {stopper("gpu", cluster_part::tray, 500 * day, 4 * hour),
                           stopper("program", cluster_part::process, 4000 * day, 0),
                           rack,
                           slow,
                           wrong,
                           shelf,
                           leaf,
                           spot};
  s.failures.lemons = {0.05, 0.3, 5};
  s.failures.together = 0.05;
  s.failures.together_leaf = 0.02;
  s.failures.together_row = 0.02;
  s.failures.early_factor = 3;
  s.failures.early_period = secs(5 * day);
  s.replicas = 16;
  s.maintenance = {seconds::from_base(20 * day), seconds::from_base(4 * hour)};
  s.save.pause = secs(2);
  s.recovery.mode = mode;
  s.recovery.watched = 0.7;
  s.recovery.health = secs(30);
  s.recovery.watchdog = secs(600);
  s.recovery.decide = secs(60);
  s.recovery.spare_ready = secs(100);
  s.recovery.init = secs(5);
  s.recovery.init_per_gpu = secs(0.0028);
  s.recovery.first_step = secs(30);
  s.recovery.replica_stall = secs(60);
  s.recovery.find_slow = secs(300);
  return s;
}

/// A job on a cluster whose only trouble are parts that slow it: one per GPU in `mtbf`, repaired in a day.
inline operation_setup slowed(const operation_setup& base, cluster_part part, double mtbf_s, bool evict) {
  operation_setup s = base;
  component slow = stopper("slow", part, mtbf_s, day);
  slow.effect = failure_effect::slows;
  slow.repair_is_fixed = true;
  slow.speed = 0.5;
  s.failures.components = {slow};
  s.save.pause = secs(1);
  s.recovery.evict_slow = evict;
  s.recovery.find_slow = secs(300);
  s.recovery.decide = secs(60);
  s.recovery.init = secs(60);
  return s;
}
/// Parts of hardware that may be out, each in the next.
inline constexpr cluster_part parts_down[] = {cluster_part::tray, cluster_part::rack, cluster_part::row,
                                              cluster_part::site};

/// Mean and standard error of the mean of the useful share over seeds.
struct share_of_seeds {
  double mean = 0, error = 0;
};
inline share_of_seeds useful_share(const operation_setup& s, int seeds) {
  double sum = 0, squares = 0;
  for (int i = 1; i <= seeds; ++i) {
    const double x = run_by_queue(s, static_cast<std::uint64_t>(i)).useful_share();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / seeds, variance = std::max(0.0, squares / seeds - mean * mean);
  return {mean, std::sqrt(variance / (seeds - 1))};
}

inline double total(const operation_outcome& o) {
  double out = 0;
  for (const double x : o.gpu_seconds) out += x;
  return out;
}

inline double spent(const operation_outcome& o, gpu_use u) { return o.gpu_seconds[static_cast<std::size_t>(u)]; }

}  // namespace nvlsim::test
