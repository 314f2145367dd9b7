#include "nvlsim/analysis/cluster_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

double used(const operation_outcome& o, gpu_use u) { return o.gpu_seconds[static_cast<std::size_t>(u)]; }

std::int64_t gpus_of(const cluster_member& m) { return m.life.asked.slots * m.life.cluster.gpus_per_tray; }

double all_gpu_seconds(const cluster_study& s) {
  return static_cast<double>(s.setup.shape.gpus()) * s.setup.queue.duration.base();
}

double mean_over_runs(const cluster_study& s, const std::function<double(const cluster_seed&)>& f) {
  double sum = 0;
  for (const cluster_seed& r : s.runs) sum += f(r);
  return sum / static_cast<double>(s.runs.size());
}

/// Sum of a number over the members that serve, or over those that train.
double sum_of(const cluster_study& s, const cluster_seed& r, bool services,
              const std::function<double(std::size_t, const operation_outcome&)>& f) {
  double sum = 0;
  for (std::size_t m = 0; m < r.members.size(); ++m)
    if (s.setup.members[m].service == services) sum += f(m, r.members[m]);
  return sum;
}

/// Useful time of training jobs or services over their wall time, by GPUs.
double useful_share(const cluster_study& s, const cluster_seed& r, bool services) {
  const auto weighed = [&](double operation_outcome::*what) {
    return sum_of(s, r, services, [&](std::size_t m, const operation_outcome& o) {
      return o.*what * static_cast<double>(gpus_of(s.setup.members[m]));
    });
  };
  const double wall = weighed(&operation_outcome::wall);
  return wall > 0 ? weighed(&operation_outcome::progress) / wall : 0;
}

bool any(const cluster_study& s, bool services) {
  return std::any_of(s.setup.members.begin(), s.setup.members.end(),
                     [&](const cluster_member& m) { return m.service == services; });
}

/// Whether a service had all its trays at some time. Before that there is nothing to be available.
bool any_began(const cluster_study& s, const cluster_seed& r) {
  return sum_of(s, r, true, [](std::size_t, const operation_outcome& o) { return o.wall > 0 ? 1.0 : 0.0; }) > 0;
}

/// Says which services never start, and what they wait for.
void note_those_that_never_start(result& r, const cluster_study& s) {
  for (std::size_t m = 0; m < s.setup.members.size(); ++m) {
    const cluster_member& job = s.setup.members[m];
    const bool starts =
        std::any_of(s.runs.begin(), s.runs.end(), [m](const cluster_seed& x) { return x.members[m].wall > 0; });
    if (!job.service || starts) continue;
    r.notes.push_back(fmt::format(
        "{} never starts, so that it has no availability: it never gets its {} GPUs on a cluster of {}", job.name,
        gpus_of(job), s.setup.shape.gpus()));
  }
}

double of_all(const cluster_seed& r, gpu_use u) {
  double sum = 0;
  for (const operation_outcome& o : r.members) sum += used(o, u);
  return sum;
}

/// What is paid for: all GPU-time but that of trays which their seller took back.
double paid(const cluster_study& s, const cluster_seed& r) {
  return all_gpu_seconds(s) - used(r.cluster, gpu_use::reclaimed);
}

double goodput(const cluster_study& s, const cluster_seed& r) {
  return (of_all(r, gpu_use::useful) + r.queue.time.useful) / paid(s, r);
}

double tokens(const cluster_study& s, const cluster_seed& r) {
  return sum_of(s, r, false, [&](std::size_t m, const operation_outcome& o) {
    return o.progress / s.setup.members[m].life.step_time.base() * s.tokens_per_step[m];
  });
}

double stops(const cluster_study& s, const cluster_seed& r) {
  return sum_of(s, r, false, [](std::size_t, const operation_outcome& o) { return static_cast<double>(o.stops); });
}

value time_of_cluster(const cluster_study& s) {
  value out{value::array{}};
  const auto add = [&](std::string_view name, const std::function<double(const cluster_seed&)>& f) {
    const double mean = mean_over_runs(s, f);
    if (!(mean > 0)) return;
    out.items()->push_back(
        value::object{{"name", name}, {"gpu_hours", mean / 3600}, {"share", mean / all_gpu_seconds(s)}});
  };
  const auto useful = [&](bool services) {
    return [&s, services](const cluster_seed& r) {
      return sum_of(s, r, services,
                    [](std::size_t, const operation_outcome& o) { return used(o, gpu_use::useful); });
    };
  };
  add("training", useful(false));
  add("serving", useful(true));
  add("batch", [](const cluster_seed& r) { return r.queue.time.useful; });
  add("redone", [](const cluster_seed& r) { return of_all(r, gpu_use::redone) + r.queue.time.redone; });
  for (std::size_t u = static_cast<std::size_t>(gpu_use::slow); u < gpu_use_names.size(); ++u) {
    const auto use = static_cast<gpu_use>(u);
    if (use == gpu_use::repair) {
      add("repair", [](const cluster_seed& r) {
        return of_all(r, gpu_use::repair) + r.queue.time.down - used(r.cluster, gpu_use::reclaimed);
      });
    } else if (use == gpu_use::reclaimed) {
      add("reclaimed", [](const cluster_seed& r) { return used(r.cluster, gpu_use::reclaimed); });
    } else {
      add(gpu_use_names[u], [use](const cluster_seed& r) { return of_all(r, use); });
    }
  }
  add("not_asked_for", [](const cluster_seed& r) { return r.queue.time.surplus; });
  add("idle", [](const cluster_seed& r) { return r.queue.time.idle; });
  return out;
}

value of_job(const cluster_study& s, std::size_t m) {
  const cluster_member& job = s.setup.members[m];
  const auto mean = [&](const std::function<double(const operation_outcome&)>& f) {
    return mean_over_runs(s, [&](const cluster_seed& r) { return f(r.members[m]); });
  };
  std::vector<double> waits, turnarounds;
  for (const cluster_seed& r : s.runs) {
    if (r.waits[m] >= 0) waits.push_back(r.waits[m]);
    if (r.members[m].finished) turnarounds.push_back(*r.members[m].finished - job.start.base());
  }
  const auto mean_or_null = [](const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v) sum += x;
    return v.empty() ? value{} : value{sum / static_cast<double>(v.size())};
  };
  const double hours = static_cast<double>(gpus_of(job)) / 3600;
  value out{value::object{{"name", job.name}, {"kind", job.service ? "serving" : "training"}}};
  if (!job.queue.empty()) out.set("queue", job.queue);
  out.set("gpus", gpus_of(job));
  out.set("queue_time_s", mean_or_null(waits));
  out.set("useful_share", mean([](const auto& o) { return o.useful_share(); }));
  out.set("interruptions", mean([](const auto& o) { return static_cast<double>(o.stops); }));
  out.set("evictions",
          mean_over_runs(s, [&](const cluster_seed& r) { return static_cast<double>(r.evictions[m]); }));
  out.set("useful_gpu_hours", mean([](const auto& o) { return used(o, gpu_use::useful); }) / 3600);
  out.set("redone_gpu_hours", mean([](const auto& o) { return used(o, gpu_use::redone); }) / 3600);
  out.set("away_gpu_hours", mean([&](const auto& o) {  // from the first start to the end, without trays
            double held = 0;
            for (const double x : o.gpu_seconds) held += x;
            const double away = o.wall * hours - held / 3600;
            return away > 1e-9 * o.wall * hours ? away : 0;
          }));
  if (job.service) return out;
  out.set("tokens_per_s", mean([&](const auto& o) {
            return o.wall > 0 ? o.progress / o.wall / job.life.step_time.base() * s.tokens_per_step[m] : 0;
          }));
  if (!job.life.work) return out;
  out.set("finished_share", static_cast<double>(turnarounds.size()) / static_cast<double>(s.runs.size()));
  out.set("time_to_train_s", mean_or_null(turnarounds));
  const value turnaround = mean_or_null(turnarounds);
  out.set("slowdown", turnaround.number() ? value{*turnaround.number() / job.life.work->base()} : value{});
  return out;
}

value components_of(const cluster_study& s) {
  value out{value::array{}};
  for (std::size_t c = 0; c < s.setup.failures.components.size(); ++c) {
    const component& k = s.setup.failures.components[c];
    const auto of_members = [&](auto member) {
      return mean_over_runs(s, [&](const cluster_seed& r) {
        double sum = 0;
        for (const operation_outcome& o : r.members) sum += static_cast<double>(o.tolls[c].*member);
        return sum;
      });
    };
    const double lost = of_members(&component_toll::lost_gpu_seconds);
    value one{value::object{{"name", k.name}, {"lost_gpu_hours", lost / 3600}}};
    one.set("lost_share", lost / all_gpu_seconds(s));
    one.set("failures", mean_over_runs(s, [&](const cluster_seed& r) {
              return static_cast<double>(r.cluster.tolls[c].failures);
            }));
    one.set("interruptions", of_members(&component_toll::stops));
    one.set("mtbf_s", k.mtbf.base());
    out.items()->push_back(std::move(one));
  }
  return out;
}

using seed_number = std::pair<const char*, std::function<double(const cluster_seed&)>>;

/// The metrics whose values over the seeds are shown.
std::vector<seed_number> shown(const cluster_study& s) {
  std::vector<seed_number> out;
  if (any(s, false)) {
    out.emplace_back("ettr_fraction", [&](const cluster_seed& r) { return useful_share(s, r, false); });
    out.emplace_back("goodput_fraction", [&](const cluster_seed& r) { return goodput(s, r); });
    out.emplace_back("interruptions", [&](const cluster_seed& r) { return stops(s, r); });
  }
  const bool all_begin =
      std::all_of(s.runs.begin(), s.runs.end(), [&s](const cluster_seed& r) { return any_began(s, r); });
  if (any(s, true) && all_begin)
    out.emplace_back("serving_availability_fraction",
                     [&](const cluster_seed& r) { return useful_share(s, r, true); });
  return out;
}

template <class Seeds, class Number>
time_curve cumulative(const char* name, const Seeds& seeds, const Number& f) {
  std::vector<double> values;
  for (const auto& r : seeds) values.push_back(f(r));
  std::sort(values.begin(), values.end());
  time_curve out{name, {}};
  for (std::size_t i = 0; i < values.size(); ++i)
    out.points.emplace_back(values[i], static_cast<double>(i + 1) / static_cast<double>(values.size()));
  return out;
}

/// Fewer seeds make no band.
constexpr std::size_t seeds_for_bands = 10;
/// More blocks than this no screen shows.
constexpr std::size_t max_blocks = 12'000;

}  // namespace

std::optional<training_tally> tally_of(const cluster_study& s) {
  if (!any(s, false)) return std::nullopt;
  const auto mean = [&](const std::function<double(const cluster_seed&)>& f) { return mean_over_runs(s, f); };
  const double all = mean([&](const cluster_seed& r) { return paid(s, r); });
  training_tally t;
  t.ettr = mean([&](const cluster_seed& r) { return useful_share(s, r, false); });
  t.goodput = mean([&](const cluster_seed& r) { return goodput(s, r); });
  t.stops = mean([&](const cluster_seed& r) { return stops(s, r); });
  t.failures = mean([](const cluster_seed& r) { return static_cast<double>(r.cluster.failures); });
  t.job_time = mean([&](const cluster_seed& r) {
    return sum_of(s, r, false, [](std::size_t, const operation_outcome& o) { return o.wall; });
  });
  t.stopped_time =
      t.job_time - mean([&](const cluster_seed& r) {
        return sum_of(s, r, false, [](std::size_t, const operation_outcome& o) { return o.progress; });
      });
  t.reclaimed = reclaimed_share(s);
  t.repair = mean([](const cluster_seed& r) {
               return of_all(r, gpu_use::repair) + r.queue.time.down - used(r.cluster, gpu_use::reclaimed);
             }) /
             all;
  t.spare = mean([](const cluster_seed& r) { return r.queue.time.idle; }) / all;
  t.redone = mean([](const cluster_seed& r) { return of_all(r, gpu_use::redone) + r.queue.time.redone; }) / all;
  t.copies = mean([](const cluster_seed& r) { return of_all(r, gpu_use::copies); }) / all;
  t.wall = s.setup.queue.duration.base();
  t.tokens = mean([&](const cluster_seed& r) { return tokens(s, r); });
  if (s.price) t.cost = *s.price * seconds::from_base(all);
  for (const cluster_member& m : s.setup.members) t.gpus += m.service ? 0 : gpus_of(m);
  return t;
}

double reclaimed_share(const cluster_study& s) {
  return mean_over_runs(s, [](const cluster_seed& r) { return used(r.cluster, gpu_use::reclaimed); }) /
         all_gpu_seconds(s);
}

// NaN where no service ever starts: `operation_metrics` has no room for "none" beside "no services".
std::optional<double> availability_of(const cluster_study& s) {
  if (!any(s, true)) return std::nullopt;
  double sum = 0;
  std::size_t began = 0;
  for (const cluster_seed& r : s.runs) {
    if (!any_began(s, r)) continue;
    sum += useful_share(s, r, true);
    ++began;
  }
  return began > 0 ? sum / static_cast<double>(began) : std::numeric_limits<double>::quiet_NaN();
}

void add_cluster_sections(result& r, const cluster_study& s) {
  r.breakdown.set("gpu_time", time_of_cluster(s));
  value jobs{value::array{}};
  for (std::size_t m = 0; m < s.setup.members.size(); ++m) jobs.items()->push_back(of_job(s, m));
  r.breakdown.set("jobs", std::move(jobs));
  r.breakdown.set("components", components_of(s));
  note_those_that_never_start(r, s);
  if (s.runs.size() < seeds_for_bands) return;
  for (const auto& [name, f] : shown(s)) {
    std::vector<double> values;
    for (const cluster_seed& x : s.runs) values.push_back(f(x));
    r.bands.set(name, value::array{share_below(values, 0.05), share_below(values, 0.95)});
  }
}

std::vector<time_curve> spread_over_seeds(const cluster_study& s) {
  std::vector<time_curve> out;
  if (s.runs.size() < seeds_for_bands) return out;
  for (const auto& [name, f] : shown(s)) out.push_back(cumulative(name, s.runs, f));
  return out;
}

std::vector<time_curve> spread_over_seeds(const operation_study& s) {
  if (s.runs.size() < seeds_for_bands) return {};
  const auto paid = static_cast<double>(s.setup.cluster.gpus());
  return {cumulative("ettr_fraction", s.runs, [](const operation_outcome& o) { return o.useful_share(); }),
          cumulative("goodput_fraction", s.runs,
                     [&](const operation_outcome& o) { return used(o, gpu_use::useful) / (paid * o.wall); }),
          cumulative("interruptions", s.runs,
                     [](const operation_outcome& o) { return static_cast<double>(o.stops); })};
}

/// Keeps the blocks with the most tray-time, in order of their starts.
static void keep_longest(cluster_picture& out) {
  if (out.blocks.size() > max_blocks) {
    out.left_out = static_cast<std::int64_t>(out.blocks.size() - max_blocks);
    std::stable_sort(out.blocks.begin(), out.blocks.end(), [](const auto& a, const auto& b) {
      return (a.end_s - a.begin_s) * a.trays > (b.end_s - b.begin_s) * b.trays;
    });
    out.blocks.resize(max_blocks);
    std::stable_sort(out.blocks.begin(), out.blocks.end(),
                     [](const auto& a, const auto& b) { return a.begin_s < b.begin_s; });
  }
}

cluster_picture picture_of(const job_list& jobs, const queue_cluster& c, const queue_schedule& played) {
  cluster_picture out;
  out.racks = c.racks;
  out.trays_per_rack = c.nodes_per_rack;
  out.end_s = played.elapsed_s;
  for (const batch_job& j : jobs.jobs) out.jobs.push_back(j.name);
  const int per = c.nodes_per_rack;
  const auto moves = moves_by_attempt(played);
  for (std::size_t at = 0; at < played.attempts.size(); ++at)
    for (const node_stay& x : stays_of(played.attempts[at], moves[at])) {
      if (!(x.end_s > x.begin_s)) continue;
      const int n = x.node;
      cluster_picture::block* last = out.blocks.empty() ? nullptr : &out.blocks.back();
      const bool follows = last && last->job == x.job && last->begin_s == x.begin_s && last->end_s == x.end_s &&
                           n % per > 0 && last->rack == n / per && last->tray + last->trays == n % per;
      if (follows) ++last->trays;
      else out.blocks.push_back({n / per, n % per, 1, x.job, x.begin_s, x.end_s});
    }
  keep_longest(out);
  return out;
}

cluster_picture picture_of(const operation_study& s, const std::string& job) {
  const operation_outcome& first = s.runs.front();
  const cluster_shape& shape = s.setup.cluster;
  cluster_picture out;
  out.racks = shape.racks;
  out.trays_per_rack = shape.trays_per_rack;
  out.end_s = first.wall;
  out.jobs = {job, job + ", on a rack where it did not start"};
  const auto repairs = static_cast<std::int32_t>(out.jobs.size());
  for (const component& c : s.setup.failures.components) out.jobs.push_back("in repair: " + c.name);
  const auto add = [&](const rack_stretch& x, std::int32_t from, std::int32_t trays, std::int32_t who) {
    if (trays > 0) out.blocks.push_back({x.rack, from, trays, who, x.begin, x.end});
  };
  for (const rack_stretch& x : first.racks.over) {
    add(x, 0, x.held, x.use == rack_use::lent ? 1 : 0);
    add(x, x.held, x.broken, repairs + x.component);
  }
  keep_longest(out);
  out.left_out += first.racks.left_out;
  out.counted = true;
  return out;
}

}  // namespace nvlsim
