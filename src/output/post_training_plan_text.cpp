#include <fmt/format.h>

#include <algorithm>

#include "nvlsim/output/number.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "nvlsim/output/text.hpp"
#include "output/lists.hpp"
#include "output/plan_lines.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t shown_refusals = 4, shown_splits = 12;

std::string metric_of(const planned_loop& l, const char* name) {
  const value* v = l.outcome.metrics.find(name);
  return v ? output::scaled(name, *v) : std::string("-");
}

std::string place_of(const planned_loop& l) {
  if (!l.split) return fmt::format("{} GPUs generate and train in turn", l.rollout_gpus);
  return fmt::format("{} GPUs generate, {} train, staleness {:g}", l.rollout_gpus, l.train_gpus, l.staleness);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string facts_of(const planned_loop& l) {
  std::vector<std::vector<std::string>> rows = {
      {"layout", l.layout},
      {"step", metric_of(l, "step_time_s")},
      {"waits for generation", metric_of(l, "generation_wait_s")},
      {"log-probabilities", metric_of(l, "logprobs_s")},
      {"update", metric_of(l, "update_s")},
      {"remainder", metric_of(l, "remainder_s")},
      {"tokens/s", metric_of(l, "tokens_per_s")},
      {"tokens/s a GPU", metric_of(l, "tokens_per_s_per_gpu")},
      {"rollout pool idle", percent(l.rollout_idle)},
      {"trainer idle", percent(l.training_idle)},
      {"mean staleness", metric_of(l, "mean_staleness")},
      {"memory peak", metric_of(l, "memory_peak_bytes")},
      {"energy a step", metric_of(l, "energy_per_step_J")},
      {"cost a step", metric_of(l, "cost_per_step_usd")},
  };
  std::erase_if(rows, [](const auto& r) { return r[1] == "-"; });
  return output::grid(rows, 2);
}

std::vector<std::string> row_of(const std::string& first, const planned_loop& l, double of) {
  return {first,
          l.split ? fmt::format("{}", l.train_gpus) : std::string("in turn"),
          fmt::format("{:g}", l.staleness),
          metric_of(l, "step_time_s"),
          fmt::format("{:+.1f} %", 100 * (of / l.step_time_s - 1)),
          percent(l.rollout_idle),
          percent(l.training_idle)};
}

std::string others_text(const post_training_plan& p) {
  std::vector<std::vector<std::string>> rows = {
      {"generate", "train", "stale", "step", "speed", "idle", "trainer idle"}};
  for (std::size_t i = 0; i < std::min(shown_splits, p.others.size()); ++i)
    rows.push_back(row_of(fmt::format("{} GPUs", p.others[i].rollout_gpus), p.others[i], p.best->step_time_s));
  return fmt::format("splits, each with its best layouts\n{}", output::grid(rows, 2));
}

std::string added_text(const post_training_plan& p) {
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("{} more to", p.more), "train", "stale", "step", "speed", "idle", "trainer idle"}};
  std::string refused;
  for (const added_gpus& a : p.added) {
    if (a.loop) rows.push_back(row_of(a.where, *a.loop, p.best->step_time_s));
    else refused += lines_of(fmt::format("{}: {}", a.where, a.why), 2);
  }
  std::string out = fmt::format("effect of {} more GPUs\n", p.more);
  return out + (rows.size() > 1 ? output::grid(rows, 2) : std::string()) + refused;
}

std::string one_text(const told_post_training_plan& t) {
  const post_training_plan& p = t.plan;
  std::string out = fmt::format("{} on {} GPUs of {}\n", p.model, p.gpus, p.platform);
  out += lines_of(fmt::format("{}: {} generates, {} trains", p.framework, p.rollout_stack, p.training_stack), 2);
  if (!t.assumed.empty()) out += lines_of(fmt::format("assumed: {}", joined(t.assumed)), 2);
  if (p.interrupted) out += "  interrupted: the best so far\n";
  if (p.best) {
    out += fmt::format("\n{}\n{}\n{}", lines_of("answer: " + place_of(*p.best), 0), facts_of(*p.best),
                       others_text(p));
  } else {
    out += "\nnone of the splits and layouts tried runs\n";
    for (std::size_t i = 0; i < std::min(shown_refusals, p.pruned.size()); ++i)
      out += lines_of(fmt::format("{}: {}", p.pruned[i].count, reason_of(p.pruned[i])), 2);
  }
  if (!p.added.empty()) out += fmt::format("\n{}", added_text(p));
  if (p.best)
    out += fmt::format("\n{}", lines_of("Ranked by the time of a step; of those within 1 %, the least stale. "
                                        "Staler samples and smaller mini-batches may "
                                        "need more steps, which is not modelled.",
                                        0));
  if (!t.run_command.empty()) out += "\nrun it\n" + shell_lines(t.run_command, 2);
  return out + fmt::format("\n{} of {} layouts evaluated\n", p.evaluated, p.candidates);
}

value loop_value(const planned_loop& l) {
  return value::object{{"pools", l.split ? "split" : "colocated"},
                       {"rollout_gpus", l.rollout_gpus},
                       {"training_gpus", l.train_gpus},
                       {"staleness", l.staleness},
                       {"layout", l.layout},
                       {"metrics", l.outcome.metrics},
                       {"bands", l.outcome.bands},
                       {"notes", output::list_of(l.outcome.notes)},
                       {"scenario", l.text}};
}

value plan_value(const told_post_training_plan& t) {
  const post_training_plan& p = t.plan;
  value others{value::array{}}, added{value::array{}}, pruned{value::array{}};
  for (const planned_loop& l : p.others)
    others.items()->push_back(value::object{{"pools", l.split ? "split" : "colocated"},
                                            {"rollout_gpus", l.rollout_gpus},
                                            {"training_gpus", l.train_gpus},
                                            {"staleness", l.staleness},
                                            {"layout", l.layout},
                                            {"step_time_s", l.step_time_s},
                                            {"rollout_idle_fraction", l.rollout_idle},
                                            {"training_idle_fraction", l.training_idle}});
  for (const added_gpus& a : p.added)
    added.items()->push_back(
        value::object{{"where", a.where}, {"why", a.why}, {"loop", a.loop ? loop_value(*a.loop) : value{}}});
  for (const pruned_layouts& l : p.pruned)
    pruned.items()->push_back(value::object{{"reason", l.reason}, {"count", l.count}, {"example", l.example}});
  return value::object{
      {"platform", p.platform},
      {"model", p.model},
      {"framework", p.framework},
      {"rollout_stack", p.rollout_stack},
      {"training_stack", p.training_stack},
      {"gpus", p.gpus},
      {"more_gpus", p.more},
      {"interrupted", p.interrupted},
      {"assumed", output::list_of(t.assumed)},
      {"best", p.best ? loop_value(*p.best) : value{}},
      {"others", std::move(others)},
      {"added", std::move(added)},
      {"pruned", std::move(pruned)},
      {"simulation",
       value::object{{"evaluated", p.evaluated}, {"candidates", p.candidates}, {"wall_s", p.wall_s}}}};
}

std::string platforms_text(const std::vector<told_post_training_plan>& plans) {
  std::vector<std::vector<std::string>> rows = {
      {"platform", "rollout GPUs", "training", "step", "tokens/s a GPU", "energy a step", "cost a step"}};
  for (const told_post_training_plan& t : plans) {
    if (!t.plan.best) {
      rows.push_back({t.plan.platform, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const planned_loop& l = *t.plan.best;
    rows.push_back({t.plan.platform, fmt::format("{}", l.rollout_gpus),
                    l.split ? fmt::format("{}", l.train_gpus) : std::string("in turn"),
                    metric_of(l, "step_time_s"), metric_of(l, "tokens_per_s_per_gpu"),
                    metric_of(l, "energy_per_step_J"), metric_of(l, "cost_per_step_usd")});
  }
  return fmt::format("platforms\n{}{}\n", output::grid(rows, 2), chosen_line(plans));
}

}  // namespace

std::string post_training_plans_text(const std::vector<told_post_training_plan>& plans) {
  return answers_text(plans, platforms_text, one_text);
}

value post_training_plans_value(const std::vector<told_post_training_plan>& plans) {
  return answers_value("post-training", plans, plan_value);
}

}  // namespace nvlsim
