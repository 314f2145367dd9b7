#include "run/facility_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/training/training.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

/// Standard deviations that a normal sum exceeds a thousandth of the time.
constexpr double one_in_a_thousand = 3.09;

value stop_value(std::int64_t racks, const stop_effect& e) {
  value out{value::object{{"racks", racks}}};
  out.set("drop_W", e.drop.base());
  out.set("storage_rides_s", e.ridden.base());
  out.set("ramp_s", e.ramp.base());
  out.set("burnt_J", e.burnt.base());
  return out;
}

/// The rack of highest power and the whole job, each stopping at its mean power.
value stops_of(const scenario& s, const site_power& w) {
  const platform& p = s.platform;
  const power_smoothing& smoothing = s.facility->smoothing;
  const auto effect = [&](watts before, watts after, double racks) {
    const joules storage = smoothing.storage_per_gpu.read() * (racks * p.gpus_per_rack());
    return effect_of_stop(before, after, storage, smoothing.fall_per_s.base() * racks);
  };
  const auto racks = static_cast<double>(w.busy_racks);
  const auto idle = w.idle_rack * static_cast<double>(p.racks);
  value out{value::object{}};
  out.set("a_rack", stop_value(1, effect(w.rack_load.mean(), w.idle_rack, 1)));
  out.set("the_job", stop_value(w.busy_racks, effect(w.load.mean(), idle, racks)));
  return out;
}

/// Racks that the budgets hold by what is reserved for each.
value room_of(const scenario& s, const site_power& w) {
  const facility_spec& f = *s.facility;
  const watts budget = f.budget.site->read() / f.pue();
  value out{value::object{}};
  if (const auto& provisioned = s.platform.rack.provisioned_power)
    out.set("racks_by_provisioned_power", racks_within(budget, provisioned->read()));
  out.set("racks_by_peak", racks_within(budget, w.rack_draw.peak()));
  out.set("independent_racks",
          independent_racks_within(budget, w.rack_draw.mean(), deviation(w.rack_draw), one_in_a_thousand));
  return out;
}

}  // namespace

value power_value(const scenario& s, const step_power& power) {
  const site_power& w = power.waves;
  value out{value::object{}};
  out.set("rack_load_peak_W", w.rack_load.peak().base());
  out.set("rack_load_mean_W", w.rack_load.mean().base());
  out.set("rack_load_floor_W", w.rack_load.floor().base());
  out.set("rack_draw_peak_W", w.rack_draw.peak().base());
  out.set("rack_draw_floor_W", w.rack_draw.floor().base());
  out.set("idle_rack_W", w.idle_rack.base());
  out.set("site_load_peak_W", w.load.peak().base());
  out.set("site_mean_W", w.meter.mean().base());
  out.set("site_floor_W", w.meter.floor().base());
  out.set("busy_racks", w.busy_racks);
  if (s.facility->budget.site) out.set("site_budget_holds", room_of(s, w));
  out.set("stops", stops_of(s, w));
  return out;
}

namespace {

value cooling_value(const rack_cooling& c, const step_power* power) {
  value out{value::object{}};
  out.set("coolable_W", coolable_power(c).base());
  if (!power) return out;
  const watts mean = power->waves.rack_draw.mean();
  out.set("warming_K", warming_K(c, mean));
  out.set("return_C", c.supply_C + warming_K(c, mean));
  return out;
}

value money_value(const payment& m, double gpus) {
  constexpr std::array names = {"on demand", "reserved", "spot", "owned"};
  value out{value::object{{"way", names[static_cast<std::size_t>(m.way)]}}};
  const dollar_rate hourly = m.owned ? fixed_cost_per_gpu(*m.owned) : m.gpu_price->read() * (1 - m.discount);
  out.set("gpu_usd_per_h", hourly.base() * 3600);
  if (m.spot && !m.plays_evictions) out.set("useful_despite_evictions_fraction", useful_share(*m.spot, gpus));
  out.set("goodput_fraction", m.goodput.read());
  return out;
}

double gpus_of(const scenario& s) {
  if (const auto* t = std::get_if<training_workload>(&s.workload)) return static_cast<double>(t->par.gpus());
  if (const auto* i = std::get_if<inference_workload>(&s.workload)) return i->gpus();
  return 0;
}

/// Says where racks and site stand against their limits.
void add_limit_notes(result& r, const scenario& s, const limited_scenario& limits, const step_power* power) {
  const facility_spec& f = *s.facility;
  if (limits.capped)
    r.notes.push_back(fmt::format("GPUs are capped at {}: {} leaves {} for a rack",
                                  format_quantity(*limits.capped->platform.gpu.power_cap), limits.limit.from,
                                  format_quantity(*limits.limit.power)));
  if (f.capping != capping_policy::rack)
    r.notes.push_back(
        fmt::format("capping \"{}\" is for jobs that share a cluster; this one is capped by its racks",
                    capping_policy_names[static_cast<std::size_t>(f.capping)]));
  if (!power) return;
  const watts peak = power->waves.rack_draw.peak();
  if (limits.limit.power && peak > *limits.limit.power)
    r.notes.push_back(
        fmt::format("a rack peaks at {}; {} leaves {} for a rack{}", format_quantity(peak), limits.limit.from,
                    format_quantity(*limits.limit.power),
                    f.when_over == over_limit::report ? "; \"when_over\": \"cap\" caps its GPUs" : ""));
}

/// Corners of a wave that a picture can show.
time_curve curve_of(const char* name, const power_wave& w) {
  constexpr std::size_t shown = 400;
  time_curve out{name, {}};
  double t = 0;
  for (const wave_piece& p : condensed(w, shown).pieces) {
    out.points.emplace_back(t, p.from.base());
    t += p.time.base();
    out.points.emplace_back(t, p.to.base());
  }
  return out;
}

}  // namespace

std::vector<time_curve> curves_of_site(const site_power& w) {
  return {curve_of("all racks, as they ask", w.load), curve_of("all racks, smoothed", w.draw),
          curve_of("the meter", w.meter)};
}

namespace {

/// Caps that are tried, as shares of the highest: the same for all budgets, so that a higher one is never slower.
constexpr std::int64_t caps_tried = 1024;

/// What the rack that draws most draws at its peak in a step with this cap, after smoothing.
watts peak_under(const scenario& s, const training_workload& w, watts cap) {
  const constants_unrecorded trial;
  platform p = s.platform;
  p.gpu.power_cap = constant<watts>(cap);
  const plan planned = plan_training(p, s.stack, s.model, w, s.simulation.fold);
  const auto stages = waves_of_stages(planned, evaluate(planned), p.gpu.idle_power, w.par.pp);
  return power_of_site(p, *s.facility, stages, kinds_of_racks(w.par, w.place)).rack_draw.peak();
}

/// The highest cap with which a step keeps the limit of a rack; at least `safe`, which keeps it with all GPUs at
/// their caps.
watts highest_cap(const scenario& s, const training_workload& w, watts limit, watts safe) {
  const watts most = s.platform.gpu.cap(), allowed = limit * (1 + 1e-9);
  if (peak_under(s, w, most) <= allowed) return most;
  const auto cap = [most](std::int64_t k) { return most * (static_cast<double>(k) / caps_tried); };
  // The same middles for all budgets: whatever the peaks are, a higher budget then finds no lower cap.
  std::int64_t low = 0, high = caps_tried;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (cap(middle) <= safe || peak_under(s, w, cap(middle)) <= allowed ? low : high) = middle;
  }
  return std::max(safe, cap(low));
}

/// A training step that can be planned.
const training_workload* step_to_plan(const scenario& s) {
  const auto* w = std::get_if<training_workload>(&s.workload);
  const bool can =
      w && training_problems(s.platform, s.model, *w).empty() && format_problems(s.platform, s.stack, *w).empty();
  return can ? w : nullptr;
}

}  // namespace

limited_scenario limited_by_facility(const scenario& s) {
  limited_scenario out;
  const facility_spec& f = *s.facility;
  out.limit = limit_of_rack(f.budget, f.cooling, std::max(1, s.platform.racks), f.pue());
  if (!out.limit.power || f.when_over == over_limit::report) return out;
  watts share = gpu_share_of(s.platform, *out.limit.power);
  if (share >= s.platform.gpu.cap()) return out;
  if (share <= s.platform.gpu.idle_power.read()) {
    out.impossible = fmt::format(
        "{} leaves {} for a rack and, after CPUs, trays and switches, {} for each GPU; that does not exceed "
        "the GPU's idle power ({})",
        out.limit.from, format_quantity(*out.limit.power), format_quantity(std::max(watts{}, share)),
        format_quantity(s.platform.gpu.idle_power));
    return out;
  }
  if (const training_workload* w = step_to_plan(s)) share = highest_cap(s, *w, *out.limit.power, share);
  if (share >= s.platform.gpu.cap()) return out;
  out.capped = s;
  out.capped->platform.gpu.power_cap = constant<watts>(share);
  return out;
}

step_power power_of_step(const scenario& s, const training_workload& w, const run_record& ran,
                         std::optional<seconds> uncapped) {
  step_power out;
  const auto stages = waves_of_stages(ran.planned, ran.times, s.platform.gpu.idle_power, w.par.pp);
  out.waves = power_of_site(s.platform, *s.facility, stages, kinds_of_racks(w.par, w.place));
  out.figures = figures_of(s.platform, *s.facility, out.waves);
  if (uncapped) out.figures.slowdown = ran.times.makespan / *uncapped - 1;
  return out;
}

watts drawn_while_training(const result& step) {
  const auto number = [&step](const char* name) {
    const value* v = step.metrics.find(name);
    return v ? v->number() : nullptr;
  };
  const double* const smoothing = number("burnt_energy_fraction");  // only with a facility that smooths
  const double burnt = smoothing ? *smoothing : 0;
  return watts::from_base(*number("energy_per_step_J") * (1 + burnt) / *number("step_time_s") /
                          static_cast<double>(*step.metrics.find("gpus")->integer()));
}

watts drawn_at(const platform& p, watts gpu) {
  const double in_rack = p.gpus_per_rack();
  return rack_draw(p, gpu * in_rack) / in_rack;
}

std::optional<double> cap_slowdown(const result& step) {
  const value* v = step.metrics.find("power_cap_slowdown_fraction");
  return v && v->number() ? std::optional(*v->number()) : std::nullopt;
}

void note_evictions(result& out, const payment& p) {
  if (p.way == purchase::spot && !p.spot->returns_after)
    out.notes.push_back(
        fmt::format("assumed: spot GPUs that were taken are there again after {:.0f} min on average; give "
                    "/facility/money/returns_after",
                    usual_return.base() / 60));
}

namespace {

/// Evictions are those of a component of the scenario, not of its spot market.
bool has_own_evictions(const scenario& s) {
  const auto* o = std::get_if<operation_case>(&s.workload);
  if (!o || !o->cluster->training) return false;
  const std::vector<component>& all = o->cluster->training->failures.components;
  return std::any_of(all.begin(), all.end(), [](const component& c) { return c.notice.has_value(); });
}

}  // namespace

// GPUs outside work are idle: those of a stopped job, spare ones and those in repair.
site_figures site_of_shares(result& out, const scenario& s, const cluster_time& t) {
  const platform& p = s.platform;
  facility_spec f = *s.facility;
  const double gpus = static_cast<double>(p.gpus());
  double idle = 1 - t.reclaimed;
  watts mean;
  for (const drawn_share& w : t.busy_power) mean += w.each * w.share, idle -= w.share;
  mean += drawn_at(p, p.gpu.idle_power) * std::max(0.0, idle);
  const joules racks = mean * gpus * t.wall;
  value section = out.energy.find("facility") ? *out.energy.find("facility") : value{value::object{}};
  section.set("mean_rack_W", (racks / t.wall).base() / p.racks);
  if (const auto& carbon = f.overheads.carbon)
    section.set("carbon_g_per_kWh", carbon->mean_over(f.overheads.start_h, t.wall));
  out.energy.set("facility", std::move(section));
  if (f.money) {
    f.money->goodput = t.goodput;
    f.money->plays_evictions = true;
    out.cost.set("facility", money_value(*f.money, gpus));
    if (!has_own_evictions(s)) note_evictions(out, *f.money);
    f.money->goodput = 1.0;  // the tokens have it
  }
  return figures_of(f, {racks, gpus * (1 - t.reclaimed), t.wall}, {});
}

site_figures site_of_months(result& out, const scenario& s, const training_tally& job, const result& step) {
  value section = step.energy.find("facility") ? *step.energy.find("facility") : value{value::object{}};
  if (job.stops > 0) section.set("between_stops_s", job.wall / job.stops);
  out.energy.set("facility", std::move(section));
  return site_of_shares(
      out, s,
      {{{drawn_while_training(step), (job.goodput + job.redone + job.copies) * (1 - job.reclaimed)}},
       seconds::from_base(job.wall),
       job.goodput,
       job.reclaimed});
}

void add_facility(run_record& out, const scenario& s, const limited_scenario& limits, const step_power* power) {
  const facility_spec& f = *s.facility;
  value all{value::object{}};
  if (limits.limit.power) {
    all.set("rack_limit_W", limits.limit.power->base());
    all.set("rack_limit_from", limits.limit.from);
  }
  if (limits.capped) all.set("gpu_cap_W", limits.capped->platform.gpu.power_cap->base());
  if (power) all.set("power", power_value(s, *power));
  if (f.cooling) all.set("cooling", cooling_value(*f.cooling, power));
  if (f.overheads.carbon) {
    all.set("carbon_g_per_kWh", f.overheads.carbon->mean_over(f.overheads.start_h, out.times.makespan));
    if (!f.region.empty()) all.set("carbon_region", f.region);
  }
  if (f.money) out.outcome.cost.set("facility", money_value(*f.money, gpus_of(s)));
  out.outcome.energy.set("facility", std::move(all));
  if (power) out.power = curves_of_site(power->waves);
  add_limit_notes(out.outcome, s, limits, power);
}

}  // namespace nvlsim
