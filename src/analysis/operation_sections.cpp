#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/operation/estimates.hpp"
#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

constexpr std::string_view after_end = gpu_use_names[static_cast<std::size_t>(gpu_use::after_end)];

double spent(const operation_outcome& o, gpu_use u) { return o.gpu_seconds[static_cast<std::size_t>(u)]; }

double cluster_gpu_seconds(const operation_study& s) {
  return static_cast<double>(s.setup.cluster.gpus()) * s.setup.duration.base();
}

double mean_of(const operation_study& s, const std::function<double(const operation_outcome&)>& f) {
  double sum = 0;
  for (const operation_outcome& o : s.runs) sum += f(o);
  return sum / static_cast<double>(s.runs.size());
}

/// GPU-time of the cluster until the job's end, without what its seller took back.
double paid(const operation_study& s, const operation_outcome& o) {
  return static_cast<double>(s.setup.cluster.gpus()) * o.wall - spent(o, gpu_use::reclaimed);
}

value where_time_went(const operation_study& s) {
  value out{value::array{}};
  for (std::size_t u = 0; u < gpu_use_names.size(); ++u) {
    const double mean = mean_of(s, [&](const operation_outcome& o) { return o.gpu_seconds[u]; });
    if (!(mean > 0)) continue;
    value one{value::object{{"name", gpu_use_names[u]}}};
    one.set("gpu_hours", mean / 3600);
    one.set("share", mean / cluster_gpu_seconds(s));
    out.items()->push_back(std::move(one));
  }
  return out;
}

value by_component(const operation_study& s) {
  value out{value::array{}};
  for (std::size_t c = 0; c < s.setup.failures.components.size(); ++c) {
    const component& k = s.setup.failures.components[c];
    const auto mean = [&](auto member) {
      return mean_of(s, [&](const operation_outcome& o) { return static_cast<double>(o.tolls[c].*member); });
    };
    const double failures = mean(&component_toll::failures), stops = mean(&component_toll::stops),
                 lost = mean(&component_toll::lost_gpu_seconds);
    value one{value::object{{"name", k.name}}};
    one.set("lost_gpu_hours", lost / 3600);
    one.set("lost_share", lost / cluster_gpu_seconds(s));
    one.set("failures", failures);
    one.set("interruptions", stops);
    one.set("mtbf_s", k.mtbf.base());
    if (k.effect == failure_effect::slows) one.set("speed", k.speed.read());
    out.items()->push_back(std::move(one));
  }
  return out;
}

value saves(const operation_study& s, const std::vector<save_times>& tiers) {
  value places{value::array{}};
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    value one{value::object{{"name", save_place_names[static_cast<std::size_t>(s.setup.save.tiers[i].to)]}}};
    one.set("stall_s", tiers[i].stall.base());
    one.set("drain_s", tiers[i].drain.base());
    one.set("load_s", tiers[i].load.base());
    one.set("every", tiers[i].every);
    places.items()->push_back(std::move(one));
  }
  value out{value::object{{"state_bytes", s.setup.save.state.base()}}};
  out.set("saves", mean_of(s, [](const operation_outcome& o) { return static_cast<double>(o.saves); }));
  out.set("places", std::move(places));
  return out;
}

value estimates(const operation_study& s, const training_tally& t, const std::vector<save_times>& tiers) {
  const restart_costs c = mean_costs(s.setup, tiers), now = costs_at(s.setup, tiers, t.interval);
  const seconds best = best_interval(s.setup, tiers), longer = std::max(best, seconds::from_base(1e-3));
  const bool stops = std::isfinite(c.mttf.base());
  const auto if_stops = [stops](double x) { return stops ? value{x} : value{}; };
  value out{value::object{{"mttf_s", if_stops(c.mttf.base())}}};
  out.set("restart_s", c.restart.base());
  out.set("ettr_daly_exact", if_stops(daly_useful_share(now, t.interval)));
  out.set("ettr_first_order", if_stops(first_order_useful_share(now, t.interval)));
  out.set("best_interval_s", best.base());
  out.set("young_interval_s", if_stops(young_interval(c).base()));
  value by_tier{value::array{}};
  const std::vector<tier_use> uses = best_tiers(s.setup, tiers, s.setup.save.interval);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    value one{value::object{{"name", save_place_names[static_cast<std::size_t>(s.setup.save.tiers[i].to)]}}};
    one.set("failures_per_day", uses[i].failures_a_day);
    one.set("young_interval_s", uses[i].interval ? value{uses[i].interval->base()} : value{});
    one.set("best_every", uses[i].every);
    by_tier.items()->push_back(std::move(one));
  }
  out.set("tiers", std::move(by_tier));
  out.set("ettr_at_best_interval", if_stops(daly_useful_share(costs_at(s.setup, tiers, longer), longer)));
  return out;
}

double share_in(const value& v, const char* member) {
  const value* x = v.find(member);
  return x && x->number() ? *x->number() : 0;
}

/// A list of the breakdown as parts of a whole, without what comes after the job's end.
cause_tree tree_of(const value& list, const char* member, std::string title, std::string whole) {
  cause_tree out{std::move(title), {std::move(whole), 0, {}, {}}};
  for (const value& x : *list.items()) {
    const double amount = share_in(x, member);
    const std::string& name = *x.find("name")->string();
    if (!(amount > 0) || name == after_end) continue;
    out.whole.amount += amount;
    out.whole.parts.push_back({name, amount, {}, {}});
  }
  std::stable_sort(out.whole.parts.begin(), out.whole.parts.end(),
                   [](const cause& a, const cause& b) { return a.amount > b.amount; });
  return out;
}

/// The 5th and the 95th of a hundred seeds, by nearest rank; nothing of a few seeds.
constexpr std::size_t fewest_for_bands = 10;

void set_band(result& r, const operation_study& s, const char* name,
              const std::function<double(const operation_outcome&)>& f) {
  if (s.runs.size() < fewest_for_bands) return;
  std::vector<double> values;
  for (const operation_outcome& o : s.runs) values.push_back(f(o));
  r.bands.set(name, value{value::array{value{share_below(values, 0.05)}, value{share_below(values, 0.95)}}});
}

}  // namespace

training_tally tally_of(const operation_study& s) {
  const auto share = [&](gpu_use u) {
    return mean_of(s, [&](const operation_outcome& o) { return spent(o, u) / paid(s, o); });
  };
  training_tally t;
  t.ettr = mean_of(s, [](const operation_outcome& o) { return o.useful_share(); });
  t.goodput = share(gpu_use::useful);
  t.stops = mean_of(s, [](const operation_outcome& o) { return static_cast<double>(o.stops); });
  t.failures = mean_of(s, [](const operation_outcome& o) { return static_cast<double>(o.failures); });
  t.stopped_time = mean_of(s, [](const operation_outcome& o) { return o.wall - o.progress; });
  t.repair = share(gpu_use::repair);
  t.spare = share(gpu_use::spare);
  t.redone = share(gpu_use::redone);
  t.copies = share(gpu_use::copies);
  t.reclaimed = mean_of(s, [&](const operation_outcome& o) {
    return spent(o, gpu_use::reclaimed) / (static_cast<double>(s.setup.cluster.gpus()) * o.wall);
  });
  t.wall = mean_of(s, [](const operation_outcome& o) { return o.wall; });
  t.job_time = t.wall;
  t.step_time = s.setup.step_time;
  t.tokens =
      mean_of(s, [](const operation_outcome& o) { return o.progress; }) / t.step_time.base() * s.tokens_per_step;
  const std::vector<save_times> tiers = tiers_of(s.setup);
  t.interval = save_interval(s.setup, tiers);
  t.stall = mean_stall(tiers);
  const bool all = std::all_of(s.runs.begin(), s.runs.end(), [](const auto& o) { return o.finished.has_value(); });
  if (s.setup.work && all) t.to_train = seconds::from_base(t.wall);
  if (s.price)
    t.cost = *s.price * seconds::from_base(mean_of(s, [&](const operation_outcome& o) { return paid(s, o); }));
  t.gpus = s.setup.asked.slots * s.setup.cluster.gpus_per_tray;
  return t;
}

void explain_operation(explanation& out, const result& r) {
  const value *time = r.breakdown.find("gpu_time"), *components = r.breakdown.find("components");
  if (!time) time = r.breakdown.find("queue_gpu_time");
  if (!time) return;
  out.taken_apart = "gpu_hours";
  const auto& uses = *time->items();
  const bool ends =
      std::any_of(uses.begin(), uses.end(), [](const value& x) { return *x.find("name")->string() == after_end; });
  out.trees.push_back(tree_of(*time, "gpu_hours", "by use",
                              ends ? "GPU-hours of the cluster until the job's end" : "GPU-hours of the cluster"));
  if (components)
    out.trees.push_back(tree_of(*components, "lost_gpu_hours", "by component", "GPU-hours that the job lost"));
  const value* e = r.breakdown.find("estimates");
  if (e && e->find("mttf_s")->number())
    out.notes.push_back(fmt::format(
        "closed forms: useful share {:.4f} by Daly's exact form, {:.4f} to first order; saves are best "
        "{:.0f} s apart by Daly",
        share_in(*e, "ettr_daly_exact"), share_in(*e, "ettr_first_order"), share_in(*e, "best_interval_s")));
}

void add_operation_sections(result& r, const operation_study& s, const training_tally& t) {
  const std::vector<save_times> tiers = tiers_of(s.setup);
  r.breakdown.set("gpu_time", where_time_went(s));
  r.breakdown.set("components", by_component(s));
  r.breakdown.set("checkpoint", saves(s, tiers));
  r.breakdown.set("estimates", estimates(s, t, tiers));
  set_band(r, s, "ettr_fraction", [](const auto& o) { return o.useful_share(); });
  set_band(r, s, "goodput_fraction", [&](const auto& o) { return spent(o, gpu_use::useful) / paid(s, o); });
  set_band(r, s, "tokens_per_s",
           [&](const auto& o) { return o.useful_share() / t.step_time.base() * s.tokens_per_step; });
  set_band(r, s, "interruptions", [](const auto& o) { return static_cast<double>(o.stops); });
  if (t.to_train) set_band(r, s, "time_to_train_s", [](const auto& o) { return o.wall; });
  if (t.cost) {
    const double per_wall = t.cost->base() / t.wall;
    if (t.to_train) set_band(r, s, "cost_usd", [&](const auto& o) { return per_wall * o.wall; });
    set_band(r, s, "cost_per_million_tokens_usd", [&](const auto& o) {
      return per_wall / (o.useful_share() / t.step_time.base() * s.tokens_per_step) * 1e6;
    });
  }
}

}  // namespace nvlsim
