#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units_text.hpp"
#include "output/lists.hpp"
#include "output/picture.hpp"
#include "output/plan_lines.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t front_rows = 12;

std::string limits_text(const service_objective& o) {
  std::string out;
  const auto add = [&](const char* name, std::optional<double> limit, latency of) {
    if (!limit) return;
    std::string at;
    for (const percentile_limit& p : o.percentiles)
      if (p.of == of)
        at += fmt::format("{}{} at p{:.6g}", at.empty() ? "" : " and ",
                          format_quantity(seconds::from_base(p.limit_s)), 100 * p.share);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name,
                       at.empty() ? format_quantity(seconds::from_base(*limit)) : at);
  };
  add("ttft", o.ttft_s, latency::ttft);
  add("tpot", o.tpot_s, latency::tpot);
  add("e2e", o.e2e_s, latency::e2e);
  if (o.means) return out + ", of the mean";
  return o.percentiles.empty() ? out + fmt::format(", each for {:.4g} % of the requests", 100 * o.share) : out;
}

std::string metric_text(const planned_server& s, const std::string& name) {
  const value* v = s.outcome.metrics.at_pointer(fmt::format("/{}", name));
  const std::string key = name.substr(0, name.find('/'));
  if (!v) return "-";
  return output::scaled(key, *v);
}

/// Rows of the table: heading, and the text of a deployment.
struct server_row {
  const char* name;
  std::string (*text)(const planned_server&);
};

std::string with_band(const planned_server& s, const std::string& metric) {
  const value* band = s.outcome.bands.find(metric);
  std::string out = metric_text(s, metric);
  if (band && band->items() && band->items()->size() == 2)
    out += fmt::format(" ({} .. {})", output::scaled(metric, (*band->items())[0]),
                       output::scaled(metric, (*band->items())[1]));
  return out;
}

std::string limits_of(const worker_limits& l) {
  return fmt::format("batch {}, tokens {}", l.max_batch_size, l.max_num_tokens);
}

const server_row server_rows[] = {
    {"copies, each with",
     [](const planned_server& s) { return s.copies > 1 ? fmt::format("{}", s.copies) : "-"; }},
    {"prefill workers",
     [](const planned_server& s) { return s.pooled ? layout_text(s.prefill) : std::string("-"); }},
    {"decode workers", [](const planned_server& s) { return layout_text(s.workers); }},
    {"prefill limits", [](const planned_server& s) { return s.pooled ? limits_of(s.prefill_limits) : "-"; }},
    {"decode limits", [](const planned_server& s) { return limits_of(s.limits); }},
    {"GPUs", [](const planned_server& s) { return fmt::format("{}", s.gpus); }},
    {"requests/s held", [](const planned_server& s) { return fmt::format("{:.4g}", s.requests_per_s); }},
    {"users in flight", [](const planned_server& s) { return fmt::format("{:.0f}", s.users); }},
    {"output tok/s/GPU", [](const planned_server& s) { return metric_text(s, "output_tokens_per_s_per_gpu"); }},
    {"output tok/s/user", [](const planned_server& s) { return metric_text(s, "output_tokens_per_s_per_user"); }},
    {"ttft p50", [](const planned_server& s) { return metric_text(s, "ttft_s/p50"); }},
    {"ttft p99", [](const planned_server& s) { return metric_text(s, "ttft_s/p99"); }},
    {"tpot p50", [](const planned_server& s) { return metric_text(s, "tpot_s/p50"); }},
    {"tpot p99", [](const planned_server& s) { return metric_text(s, "tpot_s/p99"); }},
    {"tok/s/user, 90 % band",
     [](const planned_server& s) {
       const std::string all = with_band(s, "output_tokens_per_s_per_user");
       const std::size_t at = all.find('(');
       return at == std::string::npos ? std::string("-") : all.substr(at + 1, all.size() - at - 2);
     }},
    {"USD/M output tokens", [](const planned_server& s) { return metric_text(s, "cost_per_million_tokens_usd"); }},
    {"energy/M output tokens",
     [](const planned_server& s) { return metric_text(s, "energy_per_million_tokens_J"); }},
    {"power a GPU", [](const planned_server& s) { return metric_text(s, "power_W_per_gpu"); }},
    {"memory peak", [](const planned_server& s) { return metric_text(s, "memory_peak_bytes"); }},
    {"KV cache used", [](const planned_server& s) { return metric_text(s, "kv_cache_used_fraction"); }},
};

std::string table_of(const serving_plan& p) {
  std::vector<std::vector<std::string>> rows = {{""}};
  std::vector<const planned_server*> shown;
  if (p.aggregated) shown.push_back(&*p.aggregated), rows[0].emplace_back("aggregated");
  if (p.pooled) shown.push_back(&*p.pooled), rows[0].emplace_back("disaggregated");
  for (const server_row& r : server_rows) {
    std::vector<std::string> row = {r.name};
    for (const planned_server* s : shown) row.push_back(r.text(*s));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& c) { return c != "-"; }))
      rows.push_back(row);
  }
  return output::grid(rows, 2);
}

std::string demand_text(const serving_plan& p) {
  if (p.users_asked > 0) return fmt::format("{:.10g} users", p.users_asked);
  return fmt::format("{:.10g} requests/s", p.requests_per_s_asked);
}

std::string other_text(const other_server& s) {
  std::string out = fmt::format("{} on {} GPUs, {:.4g} requests/s", s.layout, s.gpus, s.requests_per_s);
  return s.users > 0 ? out + fmt::format(", {:.4g} users in flight", s.users) : out;
}

/// Why there is no deployment to show, and what is known beside it.
std::string no_answer(const serving_plan& p) {
  std::string out;
  if (p.max_held) {
    out = p.interrupted ? "interrupted" : "not found";
    out += fmt::format(": no deployment that was run holds {}; the most is {}", demand_text(p),
                       other_text(*p.max_held));
  } else if (p.interrupted) {
    out = "interrupted before a deployment was run";
  } else if (p.has_demand() && p.by_rates) {
    out = fmt::format("not found: no deployment that was tried could be run and holds {}", demand_text(p));
  } else {
    return "no deployment holds any load within the limits";
  }
  if (p.by_rates) out += fmt::format("; from the rates of workers alone: {}", other_text(*p.by_rates));
  return out;
}

std::string verdict(const serving_plan& p) {
  const planned_server* b = p.best();
  if (!b) return lines_of(no_answer(p), 0);
  std::string out = fmt::format("answer: {} on {} GPUs holds {:.4g} requests/s, {:.0f} users in flight",
                                layout_text(*b), b->gpus, b->requests_per_s, b->users);
  const planned_server* other =
      b->pooled ? (p.aggregated ? &*p.aggregated : nullptr) : (p.pooled ? &*p.pooled : nullptr);
  const char* kinds[] = {"aggregated", "disaggregated"};
  if (other && p.for_demand) out += fmt::format("; {} needs {} GPUs", kinds[other->pooled], other->gpus);
  else if (other)
    out += fmt::format("; {} holds {:.1f} % less", kinds[other->pooled],
                       100 * (1 - other->requests_per_s / b->requests_per_s));
  if (!p.has_demand() || p.enough()) return lines_of(out, 0);
  const double held = p.users_asked > 0 ? b->users : b->requests_per_s;
  std::string missing = fmt::format("not enough: {:.4g} of {}", held, demand_text(p));
  if (const auto needed = p.gpus_needed())
    missing += fmt::format("; about {} GPUs would hold them, at the same load a GPU", *needed);
  return lines_of(out, 0) + lines_of(missing, 0);
}

std::string front_text(const serving_plan& p) {
  std::vector<picture_point> points;
  for (const bool efficient : {false, true})
    for (const serving_point& x : p.points)
      if (x.efficient == efficient)
        points.push_back({x.per_user, x.per_gpu, efficient ? (x.pooled ? 'D' : 'A') : (x.pooled ? 'd' : 'a')});
  for (const planned_server* s : {p.aggregated ? &*p.aggregated : nullptr, p.pooled ? &*p.pooled : nullptr}) {
    if (!s) continue;
    double x = 0, y = 0;
    const value* user = s->outcome.metrics.find("output_tokens_per_s_per_user");
    const value* gpu = s->outcome.metrics.find("output_tokens_per_s_per_gpu");
    if (user && gpu && output::as_double(*user, x) && output::as_double(*gpu, y)) points.push_back({x, y, '*'});
  }
  const std::string picture = picture_of(points, {"output tokens/s/user", "output tokens/s/GPU", true, false});
  if (picture.empty()) return {};
  std::string out = fmt::format("throughput against speed\n{}", picture);
  out += lines_of(
      "A, D: front of aggregated and disaggregated deployments; a, d: others; *: the two above. Points are "
      "combined from workers that were run alone, without chance in arrivals.",
      2);
  std::vector<std::vector<std::string>> rows = {{"front", "tok/s/user", "tok/s/GPU", "ttft"}};
  std::vector<const serving_point*> front;
  for (const serving_point& x : p.points)
    if (x.efficient) front.push_back(&x);
  const double step = std::max(1.0, static_cast<double>(front.size()) / static_cast<double>(front_rows));
  for (double at = 0; at < static_cast<double>(front.size()); at += step) {
    const serving_point& x = *front[static_cast<std::size_t>(at)];
    rows.push_back({x.layout, fmt::format("{:.4g}", x.per_user), fmt::format("{:.4g}", x.per_gpu),
                    x.ttft_s > 0 ? format_quantity(seconds::from_base(x.ttft_s)) : "-"});
  }
  return out + output::grid(rows, 2);
}

std::string some_of(const std::vector<std::string>& shapes) {
  constexpr std::size_t most = 6;
  std::string out;
  for (std::size_t i = 0; i < std::min(most, shapes.size()); ++i) out += (i > 0 ? ", " : "") + shapes[i];
  return shapes.size() > most ? out + fmt::format(" and {} others", shapes.size() - most) : out;
}

std::string losers_text(const serving_plan& p) {
  std::string out;
  if (!p.lost.empty()) {
    out += "why not another\n";
    for (const lost_server& l : p.lost) out += lines_of(fmt::format("{}: {}", l.layout, l.why), 2);
  }
  if (!p.refused.empty()) {
    out += "cannot serve (shapes of aggregated workers)\n";
    for (const auto& [why, shapes] : p.refused) out += lines_of(fmt::format("{}: {}", some_of(shapes), why), 2);
  }
  return out;
}

value server_value(const planned_server& s) {
  const auto ranks = [](const rank_counts& r, const worker_limits& l) {
    return value{value::object{{"workers", r.replicas},
                               {"tp", r.tp},
                               {"pp", r.pp},
                               {"ep", r.ep},
                               {"attention_dp", r.attention_dp},
                               {"max_batch_size", l.max_batch_size},
                               {"max_num_tokens", l.max_num_tokens}}};
  };
  value out{value::object{{"kind", s.pooled ? "disaggregated" : "aggregated"}, {"gpus", s.gpus}}};
  out.set("copies", s.copies);
  out.set("decode", ranks(s.workers, s.limits));
  if (s.pooled) out.set("prefill", ranks(s.prefill, s.prefill_limits));
  out.set("requests_per_s", s.requests_per_s);
  out.set("users", s.users);
  out.set("limit", s.limit.empty() ? value{} : value{s.limit});
  out.set("metrics", s.outcome.metrics);
  out.set("bands", s.outcome.bands);
  out.set("notes", output::list_of(s.outcome.notes));
  out.set("scenario", s.text);
  return out;
}

value other_value(const std::optional<other_server>& s) {
  if (!s) return {};
  return value::object{{"layout", s->layout},
                       {"gpus", s->gpus},
                       {"requests_per_s", s->requests_per_s},
                       {"users", s->users > 0 ? value{s->users} : value{}}};
}

value demand_value(const serving_plan& p) {
  if (!p.has_demand()) return {};
  const auto needed = p.gpus_needed();
  return value::object{{"users", p.users_asked > 0 ? value{p.users_asked} : value{}},
                       {"requests_per_s", p.requests_per_s_asked > 0 ? value{p.requests_per_s_asked} : value{}},
                       {"met", p.enough()},
                       {"gpus_needed", needed ? value{*needed} : value{}},
                       {"max_held", other_value(p.max_held)},
                       {"by_rates", other_value(p.by_rates)}};
}

value plan_value(const told_serving_plan& t) {
  const serving_plan& p = t.plan;
  value out{value::object{{"platform", p.platform}, {"model", p.model}, {"stack", p.stack}, {"gpus", p.gpus}}};
  out.set("gpus_found", p.for_demand);
  out.set("demand", demand_value(p));
  out.set("interrupted", p.interrupted);
  out.set("assumed", output::list_of(t.assumed));
  const planned_server* b = p.best();
  out.set("best", b ? value{b->pooled ? "disaggregated" : "aggregated"} : value{});
  out.set("aggregated", p.aggregated ? server_value(*p.aggregated) : value{});
  out.set("disaggregated", p.pooled ? server_value(*p.pooled) : value{});
  value points{value::array{}}, lost{value::array{}}, refused{value::array{}}, launch{value::array{}};
  for (const serving_point& x : p.points)
    points.items()->push_back(value::object{{"kind", x.pooled ? "disaggregated" : "aggregated"},
                                            {"layout", x.layout},
                                            {"output_tokens_per_s_per_user", x.per_user},
                                            {"output_tokens_per_s_per_gpu", x.per_gpu},
                                            {"ttft_mean_s", x.ttft_s > 0 ? value{x.ttft_s} : value{}},
                                            {"efficient", x.efficient}});
  for (const lost_server& l : p.lost)
    lost.items()->push_back(
        value::object{{"layout", l.layout}, {"requests_per_s", l.requests_per_s}, {"why", l.why}});
  for (const auto& [why, shapes] : p.refused)
    refused.items()->push_back(value::object{{"reason", why},
                                             {"count", static_cast<std::int64_t>(shapes.size())},
                                             {"shapes", output::list_of(shapes)}});
  for (const launch_commands& c : t.launch)
    launch.items()->push_back(value::object{{"engine", c.engine}, {"lines", output::list_of(c.lines)}});
  out.set("front", std::move(points));
  out.set("lost", std::move(lost));
  out.set("refused", std::move(refused));
  out.set("launch", std::move(launch));
  out.set("simulation", value::object{{"runs", p.runs}, {"wall_s", p.wall_s}});
  return out;
}

std::string one_text(const told_serving_plan& t) {
  const serving_plan& p = t.plan;
  std::string out = fmt::format("{} on {}, {}\n", p.model, p.platform, p.stack);
  out += lines_of(fmt::format("limits: {}", limits_text(p.objective)), 2);
  if (!t.assumed.empty()) out += lines_of(fmt::format("assumed: {}", joined(t.assumed)), 2);
  if (p.interrupted) out += "  interrupted: the best so far\n";
  out += fmt::format("\n{}", verdict(p));
  if (p.best()) out += fmt::format("\n{}", table_of(p));
  for (const planned_server* s : {p.aggregated ? &*p.aggregated : nullptr, p.pooled ? &*p.pooled : nullptr})
    if (s && !s->limit.empty()) out += lines_of(fmt::format("{}: {}", layout_text(*s), s->limit), 2);
  if (p.best() && p.best()->copies > 1)
    out += lines_of(
        "Copies are equal deployments side by side, each with a router of its own and an equal share of the "
        "requests. Limits, latencies, the scenario and launch commands are of one.",
        2);
  if (const std::string front = front_text(p); !front.empty()) out += fmt::format("\n{}", front);
  if (const std::string losers = losers_text(p); !losers.empty()) out += fmt::format("\n{}", losers);
  if (!p.notes.empty()) {
    out += "\nnot tried\n";
    for (const std::string& n : p.notes) out += lines_of(fmt::format("- {}", n), 2);
  }
  for (const launch_commands& c : t.launch) {
    out += fmt::format("\nlaunch with {}\n", c.engine);
    for (const std::string& l : c.lines) out += shell_lines(l, 2);
  }
  if (!t.run_command.empty()) out += "\nrun it\n" + shell_lines(t.run_command, 2);
  return out + fmt::format("\n{} runs\n", p.runs);
}

/// GPUs of each platform, where there are several.
std::string platforms_text(const std::vector<told_serving_plan>& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"platform", "GPUs", "requests/s", "users", "req/s/GPU", "USD/M tokens", "deployment"}};
  for (const told_serving_plan& t : plans) {
    const planned_server* b = t.plan.best();
    if (!b) rows.push_back({t.plan.platform, "-", "-", "-", "-", "-", "none within the limits"});
    else
      rows.push_back({t.plan.platform, fmt::format("{}", b->gpus), fmt::format("{:.4g}", b->requests_per_s),
                      fmt::format("{:.0f}", b->users),
                      fmt::format("{:.3g}", b->requests_per_s / static_cast<double>(b->gpus)),
                      metric_text(*b, "cost_per_million_tokens_usd"), b->pooled ? "disaggregated" : "aggregated"});
  }
  return fmt::format("platforms\n{}{}\n", output::grid(rows, 2), chosen_line(plans));
}

}  // namespace

std::string serving_plans_text(const std::vector<told_serving_plan>& plans) {
  return answers_text(plans, platforms_text, one_text);
}

value serving_plans_value(const std::vector<told_serving_plan>& plans) {
  return answers_value("serving", plans, plan_value);
}

}  // namespace nvlsim
