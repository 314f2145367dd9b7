#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/units/units_text.hpp"
#include "output/lists.hpp"
#include "output/picture.hpp"
#include "output/plan_lines.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t shown_reasons = 4, shown_lost = 5;

std::string metric_of(const planned_training& t, const char* name) {
  const value* v = t.outcome.metrics.find(name);
  return v ? output::scaled(name, *v) : std::string("-");
}

std::string days_of(const planned_training& t) {
  return t.days ? fmt::format("{:.1f}", *t.days) : std::string("-");
}

std::string cost_of(const planned_training& t) {
  return t.cost_usd ? output::scaled("cost_to_train_usd", value{*t.cost_usd}) : std::string("-");
}

std::string place_of(const planned_training& t) {
  return fmt::format("{} GPUs: {} rack{}, {} GPUs of each", t.gpus, t.racks, t.racks == 1 ? "" : "s",
                     std::min(t.gpus_per_rack, t.gpus));
}

std::string band_of(const planned_training& t) {
  const value* band = t.outcome.bands.find("step_time_s");
  if (!band || !band->items() || band->items()->size() != 2) return "-";
  return fmt::format("{} .. {}", output::scaled("step_time_s", (*band->items())[0]),
                     output::scaled("step_time_s", (*band->items())[1]));
}

std::string facts_of(const planned_training& t) {
  std::vector<std::vector<std::string>> rows = {
      {"GPUs", fmt::format("{}", t.gpus)},
      {"racks", fmt::format("{} with {} GPUs used of each", t.racks, std::min(t.gpus_per_rack, t.gpus))},
      {"global batch", fmt::format("{} sequences", t.global_batch_size)},
      {"step", metric_of(t, "step_time_s")},
      {"step, 90 % band", band_of(t)},
      {"tokens/s", fmt::format("{:.4g} M", t.tokens_per_s / 1e6)},
      {"mfu", metric_of(t, "mfu")},
      {"pipeline bubble", metric_of(t, "bubble_fraction")},
      {"exposed communication", metric_of(t, "exposed_communication_s")},
      {"memory peak", metric_of(t, "memory_peak_bytes")},
      {"power a GPU", metric_of(t, "power_W_per_gpu")},
      {"productive time", t.goodput ? fmt::format("{:.4g} %", 100 * *t.goodput) : std::string("-")},
      {"days", days_of(t)},
      {"steps", metric_of(t, "steps_to_train")},
      {t.goodput ? "energy of the steps kept" : "energy of the run", metric_of(t, "energy_to_train_J")},
      {"cost of the run", cost_of(t)},
  };
  std::erase_if(rows, [](const auto& r) { return r[1] == "-"; });
  std::size_t label = 0;
  for (const auto& r : rows) label = std::max(label, r[0].size());
  const std::vector<std::string> layout = output::wrapped(t.layout, output::table_columns - label - 4);
  for (std::size_t i = 0; i < layout.size(); ++i)
    rows.insert(rows.begin() + 2 + static_cast<std::ptrdiff_t>(i), {i == 0 ? "layout" : "", layout[i]});
  return output::grid(rows, 2);
}

std::string verdict(const training_plan& p) {
  if (p.best) {
    std::string out = fmt::format("answer: {}, {}", place_of(*p.best), p.best->layout);
    if (p.best->days) out += fmt::format("; {:.1f} days", *p.best->days);
    return lines_of(out, 0);
  }
  if (!p.nearest && p.closest) {
    const closest_training& c = *p.closest;
    return lines_of(
        fmt::format(
            "no layout fits at any GPU count that was tried; the closest, on {} GPU{} ({}), needs {}; {} are "
            "usable",
            c.gpus, c.gpus == 1 ? "" : "s", c.layout, output::scaled("memory_peak_bytes", value{c.needed_bytes}),
            output::scaled("memory_peak_bytes", value{c.usable_bytes})),
        0);
  }
  if (!p.nearest) return "no layout runs at any GPU count that was tried\n";
  return lines_of(fmt::format("nothing takes {:g} days or less; the fastest found takes {}: {}, {}", p.days,
                              days_of(*p.nearest), place_of(*p.nearest), p.nearest->layout),
                  0);
}

std::string sizes_text(const training_plan& p) {
  if (p.sizes.size() < 2) return {};
  std::vector<std::vector<std::string>> rows = {{"GPUs", "racks", "days", "step", "mfu", "cost USD", "layout"}};
  std::vector<picture_point> points;
  for (const planned_training& t : p.sizes) {
    const std::string cost = cost_of(t);
    rows.push_back({fmt::format("{}", t.gpus), fmt::format("{}", t.racks), days_of(t), metric_of(t, "step_time_s"),
                    metric_of(t, "mfu"), cost, output::one_line(t.layout, 28)});
    if (t.days)
      points.push_back({static_cast<double>(t.gpus), *t.days, p.best && p.best->gpus == t.gpus ? '*' : 'o'});
  }
  std::string out = fmt::format("numbers of GPUs tried\n{}", output::grid(rows, 2));
  return out + picture_of(points, {"GPUs", "days", false, false, 76, 13});
}

std::string left_out_text(const training_plan& p) {
  std::string out;
  if (!p.lost.empty()) out += "why not another layout\n";
  for (std::size_t i = 0; i < std::min(shown_lost, p.lost.size()); ++i)
    out += lines_of(fmt::format("{}: {}", p.lost[i].layout, p.lost[i].why), 2);
  if (!p.pruned.empty()) out += "layouts that do not run\n";
  for (std::size_t i = 0; i < std::min(shown_reasons, p.pruned.size()); ++i)
    out += lines_of(fmt::format("{}: {}", p.pruned[i].count, reason_of(p.pruned[i])), 2);
  return out;
}

std::string one_text(const told_training_plan& t) {
  const training_plan& p = t.plan;
  std::string out = fmt::format("{} on {}, {}\n", p.model, p.platform, p.stack);
  if (p.tokens > 0) {
    std::string asked = fmt::format("{:.4g} tokens", p.tokens);
    if (p.days > 0) asked += fmt::format(" in {:g} days", p.days);
    if (!p.failures.empty()) asked += fmt::format("; with the failures of {}", p.failures);
    else if (p.goodput < 1) asked += fmt::format("; {:.4g} % of the time is productive", 100 * p.goodput);
    out += lines_of(asked, 2);
  }
  if (!t.assumed.empty()) out += lines_of(fmt::format("assumed: {}", joined(t.assumed)), 2);
  if (p.interrupted) out += "  interrupted: the best so far\n";
  out += fmt::format("\n{}", verdict(p));
  if (p.best) out += fmt::format("\n{}", facts_of(*p.best));
  else if (p.nearest) out += fmt::format("\n{}", facts_of(*p.nearest));
  if (const std::string sizes = sizes_text(p); !sizes.empty()) out += fmt::format("\n{}", sizes);
  if (const std::string left = left_out_text(p); !left.empty()) out += fmt::format("\n{}", left);
  if (!t.launch.empty()) out += "\nMegatron-Bridge\n";
  for (const std::string& l : t.launch) out += shell_lines(l, 2);
  if (!t.run_command.empty()) out += "\nrun it\n" + shell_lines(t.run_command, 2);
  return out + fmt::format("\n{} of {} layouts evaluated\n", p.evaluated, p.candidates);
}

value training_value(const planned_training& t) {
  return value::object{{"gpus", t.gpus},
                       {"racks", t.racks},
                       {"gpus_per_rack", std::min(t.gpus_per_rack, t.gpus)},
                       {"global_batch_size", t.global_batch_size},
                       {"layout", t.layout},
                       {"days", t.days ? value{*t.days} : value{}},
                       {"goodput_fraction", t.goodput ? value{*t.goodput} : value{}},
                       {"cost_usd", t.cost_usd ? value{*t.cost_usd} : value{}},
                       {"metrics", t.outcome.metrics},
                       {"bands", t.outcome.bands},
                       {"notes", output::list_of(t.outcome.notes)},
                       {"scenario", t.text}};
}

value plan_value(const told_training_plan& t) {
  const training_plan& p = t.plan;
  value out{value::object{{"platform", p.platform}, {"model", p.model}, {"stack", p.stack}}};
  out.set("tokens", p.tokens > 0 ? value{p.tokens} : value{});
  out.set("days_asked", p.days > 0 ? value{p.days} : value{});
  out.set("goodput_fraction", p.failures.empty() ? value{p.goodput} : value{});
  out.set("failures", p.failures.empty() ? value{} : value{p.failures});
  out.set("interrupted", p.interrupted);
  out.set("assumed", output::list_of(t.assumed));
  out.set("best", p.best ? training_value(*p.best) : value{});
  out.set("nearest", p.nearest ? training_value(*p.nearest) : value{});
  value closest;
  if (p.closest)
    closest = value::object{{"gpus", p.closest->gpus},
                            {"layout", p.closest->layout},
                            {"needed_bytes", p.closest->needed_bytes},
                            {"usable_bytes", p.closest->usable_bytes}};
  out.set("closest", std::move(closest));
  value sizes{value::array{}}, lost{value::array{}}, pruned{value::array{}};
  for (const planned_training& s : p.sizes)
    sizes.items()->push_back(value::object{{"gpus", s.gpus},
                                           {"racks", s.racks},
                                           {"layout", s.layout},
                                           {"step_time_s", s.step_time_s},
                                           {"days", s.days ? value{*s.days} : value{}}});
  for (const lost_training& l : p.lost)
    lost.items()->push_back(value::object{{"layout", l.layout}, {"why", l.why}});
  for (const pruned_layouts& l : p.pruned)
    pruned.items()->push_back(value::object{{"reason", l.reason}, {"count", l.count}, {"example", l.example}});
  out.set("sizes", std::move(sizes));
  out.set("lost", std::move(lost));
  out.set("pruned", std::move(pruned));
  out.set("launch", output::list_of(t.launch));
  out.set("simulation",
          value::object{{"evaluated", p.evaluated}, {"candidates", p.candidates}, {"wall_s", p.wall_s}});
  return out;
}

std::string platforms_text(const std::vector<told_training_plan>& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"platform", "GPUs", "racks", "days", "mfu", "cost USD", "energy"}};
  for (const told_training_plan& t : plans) {
    if (!t.plan.best) rows.push_back({t.plan.platform, "-", "-", "-", "-", "-", "-"});
    else
      rows.push_back({t.plan.platform, fmt::format("{}", t.plan.best->gpus), fmt::format("{}", t.plan.best->racks),
                      days_of(*t.plan.best), metric_of(*t.plan.best, "mfu"), cost_of(*t.plan.best),
                      metric_of(*t.plan.best, "energy_to_train_J")});
  }
  return fmt::format("platforms\n{}{}\n", output::grid(rows, 2), chosen_line(plans));
}

}  // namespace

std::string training_plans_text(const std::vector<told_training_plan>& plans) {
  return answers_text(plans, platforms_text, one_text);
}

value training_plans_value(const std::vector<told_training_plan>& plans) {
  return answers_value("training", plans, plan_value);
}

std::string scaling_text(const scaling_plan& p) {
  std::string out =
      fmt::format("{}: {} scaling, the best layout at each size\n", p.scenario, p.weak ? "weak" : "strong");
  if (p.interrupted) out += "  interrupted: the sizes so far\n";
  std::vector<picture_point> points;
  std::string platform;
  std::vector<std::vector<std::string>> rows;
  char mark = 'a';
  std::string legend;
  const auto flush = [&] {
    if (rows.size() > 1) out += fmt::format("\n{}\n{}", platform, output::grid(rows, 2));
  };
  for (const scaling_point& x : p.points) {
    if (x.platform != platform || rows.empty()) {
      flush();
      if (!platform.empty()) ++mark;
      platform = x.platform;
      legend += fmt::format("{}{}: {}", legend.empty() ? "" : ", ", mark, platform);
      rows = {{"GPUs", "of a rack", "step", "tokens/s/GPU", "efficiency", "mfu", "layout"}};
    }
    if (!x.best) {
      rows.push_back({fmt::format("{}", x.gpus), "-", "-", "-", "-", "-", "none runs"});
      continue;
    }
    rows.push_back({fmt::format("{}", x.gpus), fmt::format("{}", std::min(x.best->gpus_per_rack, x.gpus)),
                    metric_of(*x.best, "step_time_s"),
                    fmt::format("{:.4g}", x.best->tokens_per_s / static_cast<double>(x.gpus)),
                    fmt::format("{:.1f} %", 100 * x.efficiency), metric_of(*x.best, "mfu"),
                    output::one_line(x.best->layout, 26)});
    points.push_back({static_cast<double>(x.gpus), 100 * x.efficiency, mark});
  }
  flush();
  std::string why;
  for (const scaling_point& x : p.points)
    if (!x.why.empty()) why += lines_of(fmt::format("{}, {} GPUs: {}", x.platform, x.gpus, x.why), 2);
  if (!why.empty()) out += fmt::format("\nwhere it bends\n{}", why);
  const std::string picture = picture_of(points, {"GPUs", "efficiency, %", true, false, 76, 14});
  if (!picture.empty()) out += fmt::format("\n{}{}", picture, lines_of(legend, 2));
  return out + fmt::format("\n{} layouts evaluated\n", p.evaluated);
}

value scaling_value(const scaling_plan& p) {
  value points{value::array{}};
  for (const scaling_point& x : p.points)
    points.items()->push_back(value::object{{"platform", x.platform},
                                            {"gpus", x.gpus},
                                            {"efficiency_fraction", x.best ? value{x.efficiency} : value{}},
                                            {"why", x.why},
                                            {"best", x.best ? training_value(*x.best) : value{}}});
  return value::object{{"schema", plan_schema},
                       {"question", "scaling"},
                       {"scenario", p.scenario},
                       {"weak", p.weak},
                       {"interrupted", p.interrupted},
                       {"points", std::move(points)},
                       {"simulation", value::object{{"evaluated", p.evaluated}, {"wall_s", p.wall_s}}}};
}

std::string next_dollar_text(const next_dollar_plan& p) {
  const bool costs =
      std::any_of(p.knobs.begin(), p.knobs.end(), [](const hardware_knob& k) { return k.cost_usd.has_value(); });
  std::string out = fmt::format("{}: {} {} with the hardware as it is\n", p.scenario, p.metric,
                                output::scaled(p.metric.substr(0, p.metric.find('.')), p.value));
  out += lines_of(
      fmt::format("Each part is made {:g} % better alone; latencies are divided by {:g}. The layout stays.",
                  100 * p.step, 1 + p.step),
      2);
  if (p.interrupted) out += "  interrupted: the parts so far\n";
  double most = 0;
  for (const hardware_knob& k : p.knobs) most = std::max(most, k.gain.value_or(0));
  std::vector<std::vector<std::string>> rows = {{"part", "from", "to", "gain"}};
  if (costs) rows[0].insert(rows[0].end(), {"USD/GPU", "gain/kUSD"});
  rows[0].emplace_back("");
  for (const hardware_knob& k : p.knobs) {
    rows.push_back({k.name, k.from.empty() ? "-" : short_quantity(k.from),
                    k.to.empty() ? "-" : short_quantity(k.to),
                    k.gain ? fmt::format("{:+.2f} %", 100 * *k.gain) : "-"});
    if (costs) {
      rows.back().push_back(k.cost_usd ? fmt::format("{:g}", *k.cost_usd) : "-");
      rows.back().push_back(
          k.cost_usd && k.gain && *k.cost_usd > 0 ? fmt::format("{:+.3g} %", 1e5 * *k.gain / *k.cost_usd) : "-");
    }
    constexpr double bar = 20;
    const double share = k.gain && most > 0 ? std::max(0.0, *k.gain / most) : 0;
    rows.back().push_back(output::padded_right(std::string(static_cast<std::size_t>(bar * share + 0.5), '#'), 20));
  }
  out += fmt::format("\n{}", output::grid(rows, 2));
  std::string why;
  for (const hardware_knob& k : p.knobs)
    if (!k.why.empty()) why += lines_of(fmt::format("{}: {}", k.name, k.why), 2);
  return why.empty() ? out : out + fmt::format("\nno gain\n{}", why);
}

value next_dollar_value(const next_dollar_plan& p) {
  value knobs{value::array{}};
  for (const hardware_knob& k : p.knobs)
    knobs.items()->push_back(value::object{{"name", k.name},
                                           {"pointers", output::list_of(k.pointers)},
                                           {"from", k.from},
                                           {"to", k.to},
                                           {"gain_fraction", k.gain ? value{*k.gain} : value{}},
                                           {"cost_usd", k.cost_usd ? value{*k.cost_usd} : value{}},
                                           {"why", k.why}});
  return value::object{{"schema", plan_schema},     {"question", "next-dollar"},
                       {"scenario", p.scenario},    {"metric", p.metric},
                       {"value", p.value},          {"smaller_is_better", p.smaller_is_better},
                       {"step_fraction", p.step},   {"interrupted", p.interrupted},
                       {"knobs", std::move(knobs)}, {"simulation", value::object{{"wall_s", p.wall_s}}}};
}

}  // namespace nvlsim
