#include "run/cluster_power.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "nvlsim/facility/shared_wave.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/units/random.hpp"
#include "nvlsim/units/units_text.hpp"
#include "run/facility_run.hpp"
#include "run/operation_setup.hpp"

namespace nvlsim {
namespace {

/// Caps at which jobs are priced, as shares of the highest.
constexpr std::array cap_shares = {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
/// Services follow a curve of fewer points: each is a run of the server.
constexpr std::array service_cap_shares = {0.4, 0.7, 1.0};
/// Steps of the longest period that a window has, and its pieces.
constexpr double periods_in_window = 16;
constexpr std::size_t window_pieces = 16384;
/// Racks with several jobs of which the one with the highest peak is looked for.
constexpr std::size_t max_shared_racks = 32;

bool trains_here(const cluster_job& j) { return std::holds_alternative<training_workload>(j.alone->workload); }

double gpus_of_job(const cluster_job& j) {
  if (trains_here(j)) return static_cast<double>(training_of(j).par.gpus());
  return std::get<inference_workload>(j.alone->workload).gpus() * static_cast<double>(j.replicas);
}

/// The time that a job needs for the same work under a cap, and what a GPU draws.
struct capped_price {
  double time = 0;
  watts peak, mean;
};

/// Appends to `why` what keeps a job from a price.
void explain(std::vector<std::string>& why, const cluster_job& j, const result& r) {
  for (const std::string& reason : r.reasons) why.push_back(j.name + ": " + reason);
}

std::optional<capped_price> price_under(const cluster_job& j, const std::optional<watts>& cap,
                                        std::vector<std::string>& why) {
  const cluster_job under = under_cap(j, cap);
  const platform& p = j.alone->platform;
  if (trains_here(j)) {
    const step_price step = price_step(under, {});
    if (step.outcome.status != run_status::ok) {
      explain(why, j, step.outcome);
      return std::nullopt;
    }
    const site_power& w = *step.waves;
    const double idle = w.idle_rack.base() * p.racks, each = w.idle_rack.base() / p.gpus_per_rack();
    return capped_price{step.time.base(), watts::from_base((w.draw.peak().base() - idle) / gpus_of_job(j) + each),
                        drawn_while_training(step.outcome)};
  }
  const result r = run_scenario(*under.alone, {.explained = false, .simulate = false}).outcome;
  if (r.status == run_status::infeasible || r.status == run_status::error) {
    explain(why, j, r);
    return std::nullopt;
  }
  const value* power = r.metrics.find("power_W_per_gpu");
  const value* time = r.metrics.find("tpot_s");
  if (time) time = time->find("mean");
  if (!time || !time->number()) why.push_back(j.name + ": has no time per output token to price caps with");
  if (!power || !power->number()) why.push_back(j.name + ": has no power to price caps with");
  if (!time || !time->number() || !power || !power->number()) return std::nullopt;
  const watts drawn = drawn_at(p, watts::from_base(*power->number()));
  return capped_price{*time->number(), drawn, drawn};
}

/// The most that a GPU of a rack draws under a cap, with its share of CPUs, trays and switches at their maximum.
watts drawn_under(const platform& p, watts cap) {
  const watts low = p.gpu.idle_power.read(), high = p.gpu.cap();  // the rack's power is linear in that of its GPUs
  const double gpus = p.gpus_per_rack();
  const watts a = watts::from_base(1e4), b = watts::from_base(1e6);
  const double slope = (gpu_share_of(p, b) - gpu_share_of(p, a)) / (b - a);
  return (a + (std::clamp(cap, low, high) - gpu_share_of(p, a)) / slope) / gpus;
}

int tier_of(const operation_case& c, const cluster_job& j) {
  if (c.cluster->queue)
    for (const queue_rules& q : c.cluster->queue->policy.queues)
      if (q.name == j.queue) return q.tier;
  return 0;
}

/// What idle GPUs of the cluster draw, one by one.
watts idle_gpu(const platform& p) { return drawn_at(p, p.gpu.idle_power); }

/// A job that asks for power, and what its GPUs draw on average under no limits but those of racks.
struct priced_asker {
  power_asker asks;
  watts mean;
};

/// `highest` is the cap that the limits of racks leave, or the GPU's own.
std::optional<priced_asker> asker_of(const operation_case& c, const cluster_job& j, watts highest,
                                     std::vector<std::string>& why) {
  const platform& p = j.alone->platform;
  const auto free = price_under(j, {}, why);
  if (!free) return std::nullopt;
  priced_asker out{{gpus_of_job(j), tier_of(c, j), {}}, free->mean};
  const bool limited = highest < p.gpu.cap();
  const auto top = limited ? price_under(j, highest, why) : free;
  if (!top) return std::nullopt;
  out.mean = top->mean;
  const auto add = [&](watts cap, const capped_price& at) {
    out.asks.points.push_back(
        {cap, std::min(free->peak, drawn_under(p, cap)), std::min(1.0, free->time / at.time)});
  };
  const auto below = [&](double share) {
    const watts cap = p.gpu.cap() * share;
    if (cap <= p.gpu.idle_power.read() || cap >= highest) return true;
    const auto at = price_under(j, cap, why);
    if (at) add(cap, *at);
    return at.has_value();
  };
  if (trains_here(j)) {
    for (const double share : cap_shares)
      if (!below(share)) return std::nullopt;
  } else {
    for (const double share : service_cap_shares)
      if (!below(share)) return std::nullopt;
  }
  add(highest, *top);
  if (!limited) out.asks.points.back().drawn = free->peak;
  return out;
}

/// What a GPU may draw with its share of the rack by limits of racks, rows and cooling; nothing: any power.
std::optional<watts> rack_limit_per_gpu(const scenario& s) {
  power_budget own = s.facility->budget;
  own.site.reset();
  const rack_limit x = limit_of_rack(own, s.facility->cooling, std::max(1, s.platform.racks), s.facility->pue());
  if (!x.power) return std::nullopt;
  return *x.power / static_cast<double>(s.platform.gpus_per_rack());
}

/// A GPU in a batch job draws as the jobs that train do on average, or all it may; it idles without batch jobs.
watts batch_of(const scenario& s, const operation_case& c, const std::vector<priced_asker>& jobs) {
  const platform& p = s.platform;
  if (!c.cluster->queue || !(c.cluster->queue->jobs || c.cluster->queue->generator)) return idle_gpu(p);
  watts sum;
  double gpus = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!trains_here(c.jobs[i])) continue;
    sum += jobs[i].mean * jobs[i].asks.gpus;
    gpus += jobs[i].asks.gpus;
  }
  const watts each = gpus > 0 ? sum / gpus : drawn_at(p, p.gpu.cap());
  const auto limit = rack_limit_per_gpu(s);
  return limit ? std::min(each, *limit) : each;
}

/// Wave of a GPU of a job above idle: as it asks, or smoothed.
shifted_wave above_idle(const job_power& j, watts floor, bool smoothed, double gpus) {
  const site_power& w = *j.waves;
  const auto empty = static_cast<double>(std::max<std::int64_t>(0, j.racks - w.busy_racks));
  const watts of_empty = smoothed ? std::max(w.idle_rack, floor) : w.idle_rack;
  const watts beside = w.idle_rack * static_cast<double>(w.busy_racks) + of_empty * empty;
  return {scaled(smoothed ? w.draw : w.load, 1 / gpus, beside * (-1 / gpus)), 1, {}};
}

}  // namespace

cluster_job under_cap(const cluster_job& j, const std::optional<watts>& cap) {
  auto one = std::make_shared<scenario>(*j.alone);
  if (one->facility) {
    auto site = std::make_shared<facility_spec>(*one->facility);
    site->when_over = over_limit::report;
    site->budget = {};
    site->cooling.reset();
    one->facility = std::move(site);
  }
  if (cap) one->platform.gpu.power_cap = constant<watts>(*cap);
  cluster_job out = j;
  out.alone = std::move(one);
  return out;
}

bool follows_caps(const facility_spec& f) {
  return f.when_over == over_limit::cap && f.capping != capping_policy::rack;
}

std::optional<cluster_caps> caps_of(const scenario& s, const operation_case& c, result& about) {
  const facility_spec& f = *s.facility;
  const platform& p = s.platform;
  const rack_limit limit = limit_of_rack(f.budget, f.cooling, std::max(1, p.racks), f.pue());
  if (!limit.power) return std::nullopt;
  std::vector<std::string> why;
  const auto refuse = [&]() -> std::optional<cluster_caps> {
    for (const std::string& x : why)
      if (follows_caps(f)) about.reasons.push_back(x);
      else about.notes.push_back("no table of capping policies: " + x);
    return std::nullopt;
  };
  const auto each = rack_limit_per_gpu(s);
  watts highest = p.gpu.cap();
  if (each) highest = std::min(highest, gpu_share_of(p, *each * static_cast<double>(p.gpus_per_rack())));
  if (highest <= p.gpu.idle_power.read()) {
    why.push_back(
        "no caps of GPUs keep the limits of racks: what is left for a GPU after CPUs, trays and "
        "switches does not exceed its idle power");
    return refuse();
  }
  std::vector<priced_asker> priced;
  std::vector<power_asker> jobs;
  double gpus = 0;
  for (const cluster_job& j : c.jobs) {
    const auto one = asker_of(c, j, highest, why);
    if (!one) return refuse();
    gpus += one->asks.gpus;
    priced.push_back(*one);
    jobs.push_back(one->asks);
  }
  cluster_caps out;
  out.batch = batch_of(s, c, priced);
  const double others = std::max(0.0, static_cast<double>(p.gpus()) - gpus);
  const watts site = f.budget.site ? f.budget.site->read() / f.pue() : *limit.power * static_cast<double>(p.racks);
  const watts idle = idle_gpu(p);
  const shared_budget b{site - out.batch * others, *limit.power / static_cast<double>(p.gpus_per_rack()), idle};
  for (const capping_policy policy : {capping_policy::rack, capping_policy::uniform, capping_policy::priority})
    out.by_policy.push_back(share_power(policy, jobs, b));
  // Batch jobs come last, and would take the GPUs of jobs that do not run, too.
  out.by_policy.push_back(share_power(capping_policy::admission, jobs, {site - idle * others, b.each, idle}));
  const power_shares& admitted = out.by_policy.back();
  double free = others;
  for (std::size_t i = 0; i < jobs.size(); ++i) free += admitted.jobs[i].runs ? 0 : jobs[i].gpus;
  out.batch_admitted = admitted.drawn + idle * others + (out.batch - idle) * free <= site;
  // Where not even one job is admitted, the run says so.
  if (follows_caps(f) && f.capping != capping_policy::admission && !out.of(f.capping).fits)
    about.reasons.push_back(fmt::format(
        "the site's budget leaves {} for all racks; at the lowest caps that \"capping\": \"{}\" gives, jobs draw "
        "{} and GPUs outside them {}",
        format_quantity(site), capping_policy_names[static_cast<std::size_t>(f.capping)],
        format_quantity(out.of(f.capping).drawn), format_quantity(out.batch * others)));
  return out;
}

value caps_value(const operation_case& c, const cluster_caps& caps) {
  value out{value::array{}};
  for (std::size_t k = 0; k < caps.by_policy.size(); ++k) {
    const power_shares& x = caps.by_policy[k];
    value jobs{value::array{}};
    for (std::size_t i = 0; i < x.jobs.size(); ++i) {
      value one{value::object{{"name", c.jobs[i].name}, {"runs", x.jobs[i].runs}}};
      one.set("gpu_cap_W", x.jobs[i].runs ? value{x.jobs[i].cap.base()} : value{});
      one.set("drawn_W_per_gpu", x.jobs[i].drawn.base());
      one.set("speed", x.jobs[i].speed);
      jobs.items()->push_back(std::move(one));
    }
    value policy{value::object{{"policy", capping_policy_names[k]}, {"keeps_budget", x.fits}}};
    policy.set("drawn_W", x.drawn.base());
    policy.set("speed", x.speed);
    policy.set("jobs", std::move(jobs));
    out.items()->push_back(std::move(policy));
  }
  return out;
}

cluster_moment busiest_moment(const cluster_setup& c, const cluster_outcome& o,
                              const std::vector<job_power>& jobs) {
  // Stretches of work of each member, and when they begin and end.
  std::multimap<double, std::pair<double, std::size_t>> changes;
  for (std::size_t m = 0; m < o.members.size(); ++m) {
    const auto gpus = static_cast<double>(c.members[m].life.asked.slots * c.shape.gpus_per_tray);
    for (const operation_span& x : o.members[m].spans) {
      if (x.use != gpu_use::useful) continue;
      changes.emplace(x.begin, std::pair{(jobs[m].mean * gpus).base(), m});
      changes.emplace(x.end, std::pair{-(jobs[m].mean * gpus).base(), m});
    }
  }
  cluster_moment out;
  double drawn = 0, most = 0;
  std::set<std::size_t> now;
  for (auto x = changes.begin(); x != changes.end(); ++x) {
    drawn += x->second.first;
    if (x->second.first > 0) now.insert(x->second.second);
    else now.erase(x->second.second);
    const auto next = std::next(x);
    const bool lasts = next != changes.end() && next->first > x->first;
    if (!lasts || drawn <= most * (1 + 1e-12)) continue;
    most = drawn;
    out.at_s = (x->first + next->first) / 2;
    out.members.assign(now.begin(), now.end());
  }
  std::map<int, std::size_t> place;  // by job
  for (std::size_t i = 0; i < out.members.size(); ++i) place[o.job_of[out.members[i]]] = i;
  out.trays.assign(out.members.size(), std::vector<std::int64_t>(static_cast<std::size_t>(c.shape.racks)));
  const auto moves = moves_by_attempt(o.schedule);
  for (std::size_t a = 0; a < o.schedule.attempts.size(); ++a) {
    const auto found = place.find(o.schedule.attempts[a].job);
    if (found == place.end()) continue;
    for (const node_stay& x : stays_of(o.schedule.attempts[a], moves[a]))
      if (x.begin_s <= out.at_s && out.at_s < x.end_s)
        ++out.trays[found->second][static_cast<std::size_t>(x.node / c.shape.trays_per_rack)];
  }
  return out;
}

shared_power power_of_cluster(const scenario& s, const cluster_moment& when, const std::vector<job_power>& jobs,
                              const cluster_setup& c, watts batch) {
  const platform& p = s.platform;
  const facility_spec& f = *s.facility;
  const double in_tray = static_cast<double>(c.shape.gpus_per_tray),
               in_rack = static_cast<double>(p.gpus_per_rack());
  const watts idle = idle_gpu(p);
  shared_power out;
  out.waves.idle_rack = idle * in_rack;
  std::mt19937_64 random(s.simulation.seed);
  std::vector<std::array<shifted_wave, 2>> each(when.members.size());  // of a GPU above idle: asked, smoothed
  std::vector<double> gpus(when.members.size());
  seconds longest;
  double free = static_cast<double>(p.gpus());
  watts steady = idle * free, peaks;
  for (std::size_t i = 0; i < when.members.size(); ++i) {
    const std::size_t m = when.members[i];
    gpus[i] = static_cast<double>(c.members[m].life.asked.slots) * in_tray;
    free -= gpus[i];
    if (!jobs[m].waves) {
      steady += (jobs[m].mean - idle) * gpus[i];
      continue;
    }
    const site_power& w = *jobs[m].waves;
    for (const bool smoothed : {false, true})
      each[i][smoothed ? 1 : 0] = above_idle(jobs[m], f.smoothing.rack_floor.read(), smoothed, gpus[i]);
    longest = std::max(longest, w.load.period());
    const seconds shift = w.load.period() * uniform(random);
    for (shifted_wave& x : each[i]) x.shift = shift;
    peaks += (each[i][0].wave.peak()) * gpus[i];
  }
  steady += (batch - idle) * std::max(0.0, free);
  if (!(longest > seconds{})) longest = seconds::from_base(1);
  const seconds window = longest * periods_in_window;
  const auto sum = [&](std::size_t which, watts base, const auto& factor) {
    std::vector<shifted_wave> parts;
    for (std::size_t i = 0; i < each.size(); ++i) {
      parts.push_back(each[i][which]);
      parts.back().factor = factor(i);
    }
    return superposed(parts, base, window, window_pieces);
  };
  const auto of_all = [&](std::size_t i) { return gpus[i]; };
  out.waves.load = sum(0, steady, of_all);
  out.in_step = steady + peaks;
  // Racks of one job are as in its own run; those of several have the mean of its stages.
  std::set<std::vector<std::int64_t>> mixed;
  for (std::size_t r = 0; r < static_cast<std::size_t>(c.shape.racks); ++r) {
    std::vector<std::int64_t> here;
    std::int64_t held = 0, most = 0;
    for (const auto& trays : when.trays) {
      here.push_back(trays[r]);
      held += trays[r];
      most = std::max(most, trays[r]);
    }
    out.waves.busy_racks += held > 0;
    if (held > most && mixed.size() < max_shared_racks) mixed.insert(here);
  }
  const auto empty = static_cast<double>(c.shape.racks - out.waves.busy_racks);
  const watts burnt = std::max(watts{}, f.smoothing.rack_floor.read() - out.waves.idle_rack) * empty;
  out.waves.draw = sum(1, steady + burnt, of_all);
  out.waves.meter = scaled(out.waves.draw, 1, out.waves.draw.mean() * (f.pue() - 1));
  const auto consider = [&out](const power_wave& load, const power_wave& draw) {
    if (!out.waves.rack_load.pieces.empty() && load.peak() <= out.waves.rack_load.peak()) return;
    out.waves.rack_load = load;
    out.waves.rack_draw = draw;
  };
  for (const std::size_t m : when.members)
    if (jobs[m].waves) consider(jobs[m].waves->rack_load, jobs[m].waves->rack_draw);
  for (const std::vector<std::int64_t>& here : mixed) {
    watts base = idle * in_rack;
    for (std::size_t i = 0; i < here.size(); ++i)
      if (!jobs[when.members[i]].waves)
        base += (jobs[when.members[i]].mean - idle) * (static_cast<double>(here[i]) * in_tray);
    const auto in_it = [&](std::size_t i) { return static_cast<double>(here[i]) * in_tray; };
    consider(sum(0, base, in_it), sum(1, base, in_it));
  }
  if (out.waves.rack_load.pieces.empty()) {
    out.waves.rack_load.pieces = {{window, out.waves.idle_rack, out.waves.idle_rack}};
    out.waves.rack_draw = out.waves.rack_load;
  }
  out.figures = figures_of(p, f, out.waves);
  return out;
}

}  // namespace nvlsim
