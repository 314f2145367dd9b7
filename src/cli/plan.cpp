// nvlsim plan
#include "nvlsim/config/document.hpp"
#include "nvlsim/config/read_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/progress_line.hpp"
#include "cli/support.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/plan_text.hpp"
#include "nvlsim/output/text.hpp"
#include "nvlsim/planner/draft.hpp"
#include "nvlsim/planner/launch_commands.hpp"
#include "nvlsim/planner/next_dollar.hpp"
#include "nvlsim/planner/post_training_plan.hpp"
#include "nvlsim/planner/run_draft.hpp"
#include "nvlsim/planner/serving_plan.hpp"
#include "nvlsim/planner/trace_load.hpp"
#include "nvlsim/planner/training_plan.hpp"

namespace nvlsim::cli {
namespace {

/// Shows the stages of a plan one after the other.
class stage_lines {
 public:
  void operator()(std::string_view stage, std::int64_t done, std::int64_t all) {
    if (stage != stage_) {
      line_.reset();
      stage_ = stage;
      detail(fmt::format("plan: {}", stage));
      line_ = std::make_unique<progress_line>("plan", stage_);
    }
    (*line_)(done, all);
  }

 private:
  std::string stage_;
  std::unique_ptr<progress_line> line_;
};

std::int64_t gpus_of(const std::string& text) {
  if (text.empty()) return 0;
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > 10'000'000)
    throw input_error(
        {{"--gpus", "", fmt::format("\"{}\" is not a number of GPUs from 1 to 10000000", text), {}}});
  return n;
}

bool is_model(const std::string& name, const data_folders& data) {
  const std::vector<std::string> models = config::names_in(data.models);
  return std::find(models.begin(), models.end(), name) != models.end();
}

/// The text of a scenario file, or nothing if the name is that of a model.
std::optional<value> scenario_text(const std::string& name, const data_folders& data) {
  std::error_code ec;
  if (!std::filesystem::exists(name, ec) && is_model(name, data)) return std::nullopt;
  if (std::filesystem::is_directory(name, ec)) return std::nullopt;
  std::filesystem::path file;
  try {
    file = scenario_file(name);
  } catch (const input_error&) {
    std::vector<std::string> names = config::names_in(data.models);
    for (const auto& f : shipped_scenarios()) names.push_back(f.stem().string());
    throw input_error({{"", "", fmt::format("no model, no file and no shipped scenario is called \"{}\"", name),
                        nearest(name, names)}});
  }
  diagnostics problems;
  const config::document doc = config::load(file, {"scenario", file.string()}, problems);
  problems.throw_if_any();
  if (doc.root.find("model_type")) return std::nullopt;
  return doc.root;
}

plan_watch watch_by(stage_lines& lines) {
  plan_watch out;
  out.report = std::ref(lines);
  out.stop = interrupted;
  return out;
}

void add_sets(plan_base& base, const std::vector<std::string>& sets, diagnostics& problems) {
  apply_to(base, parse_sets(sets), problems);
}

serving_draft draft_of(const plan_arguments& a, const std::string& platform) {
  serving_draft d;
  d.model = a.subject;
  d.platform = platform;
  d.stack = a.stack;
  d.weights = a.weights;
  d.kv_cache = a.kv_cache;
  d.input = a.input;
  d.output = a.output_tokens;
  d.ttft = a.ttft;
  d.tpot = a.tpot;
  d.e2e = a.e2e;
  d.share = a.share;
  d.means = a.means;
  d.price = a.price;
  return d;
}

bool is_traced(const value& text) {
  const value* kind = text.at_pointer("/workload/load/kind");
  return kind && kind->string() && *kind->string() == "trace";
}

/// A scenario of serving with what the options say over it.
value written_over(const value& text, const plan_arguments& a, const std::string& platform) {
  std::vector<std::pair<std::string, value>> more;
  if (!platform.empty()) more.emplace_back("/platform/use", platform);
  if (!a.stack.empty()) more.emplace_back("/stack", a.stack);
  if (!a.weights.empty()) more.emplace_back("/workload/engine/weights", a.weights);
  if (!a.kv_cache.empty()) more.emplace_back("/workload/engine/kv_cache", a.kv_cache);
  const value* kind = text.at_pointer("/workload/load/kind");
  const value* file = text.at_pointer("/workload/load/file");
  if (is_traced(text) && file && file->string() && a.trace.empty()) {
    const std::filesystem::path folder = scenario_file(a.subject).parent_path();
    more.emplace_back("/workload/load/file", std::filesystem::absolute(folder / *file->string()).string());
  } else if (a.trace.empty() && kind && kind->string() && *kind->string() != "open_loop") {
    value load{value::object{{"kind", "open_loop"}, {"requests", 2000}, {"requests_per_s", 1}}};
    for (const char* k : {"input", "output"})
      if (const value* v = text.at_pointer(fmt::format("/workload/load/{}", k))) load.set(k, *v);
    diagnostics problems;
    const auto needs = [&](const char* member, double given, const char* option) {
      if (!load.find(member) && !(given > 0))
        problems.add(
            "scenario", "/workload/load",
            fmt::format("a load of kind {} does not give a mean {}; set {}", *kind->string(), member, option));
    };
    needs("input", a.input, "--input");
    needs("output", a.output_tokens, "--output-tokens");
    problems.throw_if_any();
    more.emplace_back("/workload/load", std::move(load));
  }
  if (!a.ttft.empty()) more.emplace_back("/workload/slo/ttft", a.ttft);
  if (!a.tpot.empty()) more.emplace_back("/workload/slo/tpot", a.tpot);
  if (!a.e2e.empty()) more.emplace_back("/workload/slo/e2e", a.e2e);
  if (a.means)
    more.emplace_back("/workload/slo/statistic", "mean"), more.emplace_back("/workload/slo/share", value{});
  if (a.share) more.emplace_back("/workload/slo/share", *a.share);
  return with_members(text, more);
}

/// What a plan starts from: the scenario with the arguments written over it, or the draft that they make; then
/// the overrides. `written` gives the first, `drafted` the second, with its problems.
plan_base base_from(const plan_arguments& a, const std::optional<value>& scenario,
                    const std::function<value(const value&)>& written,
                    const std::function<value(const data_folders&, diagnostics&)>& drafted,
                    const std::vector<override_option>& sets) {
  plan_base out;
  out.data = folders_under(data_root());
  diagnostics problems;
  if (scenario) {
    out = base_of_file(*scenario, scenario_file(a.subject).string(), out.data);
    out.text = written(out.text);
    if (!a.price.empty()) apply_to(out, {{"/platform/price/per_gpu", a.price}}, problems);
  } else {
    out.text = drafted(out.data, problems);
    problems.throw_if_any();
  }
  apply_to(out, sets, problems);
  problems.throw_if_any();
  return out;
}

/// Leaves out of what is assumed that arrivals are a Poisson process, if they are another.
void arrivals_of(const value& text, plan_assumptions& assumed) {
  const value* process = text.at_pointer("/workload/load/arrivals");
  if (!process || !process->string() || *process->string() == "poisson") return;
  const auto it = std::find_if(assumed.begin(), assumed.end(),
                               [](const std::string& x) { return x.starts_with("requests arrive as"); });
  if (it == assumed.end()) return;
  if (it->ends_with("lengths")) *it = "all requests have the given lengths";
  else assumed.erase(it);
}

plan_base serving_base(const plan_arguments& a, const std::optional<value>& scenario, const std::string& platform,
                       plan_assumptions& assumed) {
  const std::vector<override_option> sets = parse_sets(a.sets);
  const bool traced = !a.trace.empty() || (scenario && is_traced(*scenario));
  const trace_sets split = traced ? split_sets(sets) : trace_sets{sets, {}};
  const auto written = [&](const value& s) { return written_over(s, a, platform); };
  const auto drafted = [&](const data_folders& data, diagnostics& problems) {
    serving_draft d = draft_of(a, platform);
    if (!a.trace.empty()) d.input = std::max(d.input, 1.0), d.output = std::max(d.output, 1.0);
    return draft_serving(d, data, assumed, problems);
  };
  const std::vector<override_option> nothing;
  plan_base out = base_from(a, scenario, written, drafted, a.trace.empty() ? split.of_trace : nothing);
  if (!a.trace.empty()) out = with_trace(out, a.trace, split.of_trace);
  plan_assumptions of_trace;
  out = with_lengths_of_trace(std::move(out), of_trace);
  if (!of_trace.empty()) {
    std::erase_if(assumed, [](const std::string& x) { return x.starts_with("requests arrive as"); });
    of_trace.emplace_back("requests arrive as a Poisson process");
  }
  assumed.insert(assumed.end(), of_trace.begin(), of_trace.end());
  const bool own = scenario || !a.trace.empty();
  for (const auto& [pointer, mean] :
       {std::pair{"/workload/load/input", a.input}, {"/workload/load/output", a.output_tokens}})
    if (own && mean > 0) out.text = with_members(out.text, {{pointer, value::object{{"mean", mean}}}});
  if (!split.of_load.empty()) {
    diagnostics problems;
    apply_to(out, split.of_load, problems);
    problems.throw_if_any();
  }
  arrivals_of(out.text, assumed);
  return out;
}

std::string run_command_of(const std::string& file, const plan_base& base) {
  std::string out = "nvlsim run " + output::shell_word(file);
  for (const override_option& o : base.overrides) out += " --set " + output::shell_word(o.pointer + "=" + o.text);
  return out;
}

std::vector<launch_commands> launch_lines(const planned_server& best, const plan_base& base,
                                          const std::string& wanted) {
  plan_base chosen = base;
  chosen.text = best.text;
  const scenario s = read_base(chosen);
  const std::string own = engine_of(s);
  std::vector<launch_commands> out;
  for (const char* engine : launched_engines)
    if (wanted == "all" || engine == (wanted.empty() ? own : wanted)) out.push_back(launch_of(s, engine, own));
  if (best.copies > 1)
    for (launch_commands& c : out)
      c.lines.insert(c.lines.begin(), fmt::format("# for each of {} copies", best.copies));
  return out;
}

/// An answer that qualifies, and what it is compared by on other platforms.
struct qualified {
  value text;                      ///< the scenario
  std::optional<double> cost_usd;  ///< of the same work on all platforms
  double gpus = 0;                 ///< 0: not compared
  double rate = 0;                 ///< more is better
};

/// Which is best, and why: by cost where all are priced, else by GPUs, else by rate.
std::pair<std::size_t, std::string> best_answer(const std::vector<std::optional<qualified>>& all) {
  const bool priced =
      std::all_of(all.begin(), all.end(), [](const auto& q) { return !q || q->cost_usd.has_value(); });
  const auto order = [&](const qualified& q) { return std::tuple(priced ? *q.cost_usd : 0, q.gpus, -q.rate); };
  std::size_t best = all.size();
  bool fewer = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    if (best < all.size() && all[i]->gpus != all[best]->gpus) fewer = true;
    if (best == all.size() || order(*all[i]) < order(*all[best])) best = i;
  }
  return {best, priced ? "least cost" : fewer ? "fewest GPUs" : "highest rate"};
}

std::optional<double> metric_in(const result& r, const char* name) {
  const value* v = r.metrics.find(name);
  return v && v->number() ? std::optional(*v->number()) : std::nullopt;
}

/// Answers a question about a model on each platform, or about a scenario, and prints the answers. `ask` fills in
/// an answer and its base, and returns the best deployment if it qualifies; the best of all platforms goes to the
/// output file. `purpose` is what a platform is needed for: "train".
template <class Told, class Ask, class Json, class Text>
exit_code answer_on_platforms(const plan_arguments& a, const char* purpose, Ask ask, Json json, Text text) {
  const std::optional<value> scenario = scenario_text(a.subject, folders_under(data_root()));
  std::vector<std::string> platforms = a.platforms;
  if (platforms.empty() && !scenario)
    throw input_error({{"--platform",
                        "",
                        fmt::format("a model needs a platform to {} on (nvlsim platform list)", purpose),
                        {}}});
  if (platforms.empty()) platforms.emplace_back();
  std::vector<Told> plans;
  std::vector<std::optional<qualified>> found;
  std::vector<plan_base> bases;
  catch_termination();
  for (const std::string& platform : platforms) {
    if (interrupted()) break;
    Told t;
    plan_base base;
    found.push_back(ask(scenario, platform, t, base));
    plans.push_back(std::move(t));
    bases.push_back(std::move(base));
  }
  const auto [best, why] = best_answer(found);
  if (best < found.size()) {
    plans[best].chosen_for = why;
    if (!a.output.empty()) {
      write_file(a.output, scenario_file_text(found[best]->text));
      plans[best].run_command = run_command_of(a.output, bases[best]);
    }
  }
  print(a.format == "json" ? to_json(json(plans)) : text(plans));
  if (interrupted()) return exit_code::interrupted;
  return best < found.size() ? exit_code::ok : exit_code::infeasible;
}

std::string assumed_cache(const plan_base& base) {
  const scenario s = read_base(base);
  const auto* w = std::get_if<inference_workload>(&s.workload);
  return fmt::format("KV cache {} (--kv-cache)", w ? name(w->kv_cache) : "of the engine");
}

exit_code plan_serving_command(const plan_arguments& a) {
  const auto ask = [&](const std::optional<value>& scenario, const std::string& platform, told_serving_plan& t,
                       plan_base& base) -> std::optional<qualified> {
    serving_question q;
    q.base = base = serving_base(a, scenario, platform, t.assumed);
    if (!base.text.at_pointer("/workload/engine/kv_cache")) t.assumed.push_back(assumed_cache(base));
    q.gpus = gpus_of(a.gpus);
    q.users = a.users;
    q.requests_per_s = a.requests_per_s;
    {
      stage_lines lines;
      t.plan = plan_serving(q, watch_by(lines));
    }
    const planned_server* best = t.plan.best();
    if (!best) return std::nullopt;
    t.launch = launch_lines(*best, base, a.format == "json" ? "all" : a.launch);
    if (!t.plan.enough()) return std::nullopt;
    const bool sized = t.plan.for_demand;
    std::optional<double> cost = metric_in(best->outcome, "cost_per_million_tokens_usd");
    if (cost && sized) *cost *= best->requests_per_s;  // proportional to that of all GPUs for a time
    return qualified{best->text, cost, sized ? static_cast<double>(best->gpus) : 0, best->requests_per_s};
  };
  return answer_on_platforms<told_serving_plan>(a, "serve", ask, serving_plans_value, serving_plans_text);
}

training_draft training_draft_of(const plan_arguments& a, const std::string& platform) {
  training_draft d;
  d.model = a.subject;
  d.platform = platform;
  d.stack = a.stack;
  d.precision = a.precision;
  d.seq_length = a.seq_length;
  d.global_batch_size = a.global_batch_size;
  d.tokens = a.tokens;
  d.price = a.price;
  return d;
}

plan_base training_base(const plan_arguments& a, const std::optional<value>& scenario, const std::string& platform,
                        plan_assumptions& assumed) {
  const auto written = [&](const value& s) {
    std::vector<std::pair<std::string, value>> more;
    if (!platform.empty()) more.emplace_back("/platform/use", platform);
    if (!a.stack.empty()) more.emplace_back("/stack", a.stack);
    if (!a.precision.empty()) more.emplace_back("/workload/precision", a.precision);
    if (a.seq_length > 0) more.emplace_back("/workload/seq_length", a.seq_length);
    if (a.global_batch_size > 0) more.emplace_back("/workload/global_batch_size", a.global_batch_size);
    if (a.tokens > 0) more.emplace_back("/workload/token_budget", a.tokens);
    return with_members(s, more);
  };
  return base_from(
      a, scenario, written,
      [&](const data_folders& data, diagnostics& problems) {
        return draft_training(training_draft_of(a, platform), data, assumed, problems);
      },
      parse_sets(a.sets));
}

bool batch_set(const plan_arguments& a) {
  return a.global_batch_size > 0 || std::any_of(a.sets.begin(), a.sets.end(), [](const std::string& s) {
           return s.starts_with("/workload/global_batch_size=");
         });
}

exit_code plan_training_command(const plan_arguments& a) {
  const auto ask = [&](const std::optional<value>& scenario, const std::string& platform, told_training_plan& t,
                       plan_base& base) -> std::optional<qualified> {
    training_question q;
    q.base = base = training_base(a, scenario, platform, t.assumed);
    q.gpus = gpus_of(a.gpus);
    q.days = a.days;
    q.goodput = a.goodput;
    q.failures = a.failures;
    q.flexible_batch = !scenario && !batch_set(a);
    {
      stage_lines lines;
      t.plan = plan_training_run(q, watch_by(lines));
    }
    if (!t.plan.best) return std::nullopt;
    t.launch = megatron_bridge_arguments(read_base({t.plan.best->text, base.overrides, base.data}));
    const planned_training& best = *t.plan.best;
    return qualified{best.text, best.cost_usd, static_cast<double>(best.gpus), best.tokens_per_s};
  };
  return answer_on_platforms<told_training_plan>(a, "train", ask, training_plans_value, training_plans_text);
}

plan_base post_training_base(const plan_arguments& a, const std::optional<value>& scenario,
                             const std::string& platform, plan_assumptions& assumed) {
  const auto written = [&](const value& s) {
    std::vector<std::pair<std::string, value>> more;
    if (!platform.empty()) more.emplace_back("/platform/use", platform);
    if (a.prompts > 0) more.emplace_back("/workload/prompts", a.prompts);
    if (a.samples > 0) more.emplace_back("/workload/samples_per_prompt", a.samples);
    if (a.input > 0)
      more.emplace_back("/workload/prompt_length", static_cast<std::int64_t>(std::llround(a.input)));
    if (a.output_tokens > 0) more.emplace_back("/workload/response/mean", a.output_tokens);
    if (a.max_response > 0)
      more.emplace_back("/workload/response/max", static_cast<std::int64_t>(std::llround(a.max_response)));
    return with_members(s, more);
  };
  return base_from(
      a, scenario, written,
      [&](const data_folders& data, diagnostics& problems) {
        return draft_post_training(
            {a.subject, platform, a.price, a.prompts, a.samples, a.input, a.output_tokens, a.max_response}, data,
            assumed, problems);
      },
      parse_sets(a.sets));
}

exit_code plan_post_training_command(const plan_arguments& a) {
  const auto ask = [&](const std::optional<value>& scenario, const std::string& platform,
                       told_post_training_plan& t, plan_base& base) -> std::optional<qualified> {
    post_training_question q;
    q.base = base = post_training_base(a, scenario, platform, t.assumed);
    q.gpus = gpus_of(a.gpus);
    q.more = a.more;
    q.stale = a.staleness;
    {
      stage_lines lines;
      t.plan = plan_post_training(q, watch_by(lines));
    }
    if (!t.plan.best) return std::nullopt;
    return qualified{t.plan.best->text, metric_in(t.plan.best->outcome, "cost_per_step_usd"), 0,
                     1 / t.plan.best->step_time_s};
  };
  return answer_on_platforms<told_post_training_plan>(a, "run", ask, post_training_plans_value,
                                                      post_training_plans_text);
}

/// The base of a question about a scenario.
plan_base scenario_base(const plan_arguments& a, const char* question) {
  const std::optional<value> scenario = scenario_text(a.subject, folders_under(data_root()));
  if (!scenario)
    throw input_error(
        {{"",
          "",
          fmt::format("\"{}\" is a model; plan {} needs a scenario (nvlsim scenario list)", a.subject, question),
          {}}});
  plan_base out = base_of_file(*scenario, scenario_file(a.subject).string(), folders_under(data_root()));
  diagnostics problems;
  if (!a.price.empty()) apply_to(out, {{"/platform/price/per_gpu", a.price}}, problems);
  add_sets(out, a.sets, problems);
  problems.throw_if_any();
  return out;
}

exit_code plan_scaling_command(const plan_arguments& a) {
  scaling_question q;
  q.base = scenario_base(a, "scaling");
  q.platforms = a.platforms;
  q.gpus = sizes_of(a.gpus);
  q.weak = a.weak;
  catch_termination();
  scaling_plan p;
  {
    stage_lines lines;
    p = plan_scaling(q, watch_by(lines));
  }
  print(a.format == "json" ? to_json(scaling_value(p)) : scaling_text(p));
  if (interrupted()) return exit_code::interrupted;
  const bool any =
      std::any_of(p.points.begin(), p.points.end(), [](const scaling_point& x) { return x.best.has_value(); });
  return any ? exit_code::ok : exit_code::infeasible;
}

std::map<std::string, double> costs_of(const std::vector<std::string>& texts) {
  std::map<std::string, double> out;
  diagnostics problems;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    double usd = 0;
    const char* begin = text.data() + (equals == std::string::npos ? text.size() : equals + 1);
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), usd);
    if (error != std::errc() || end != text.data() + text.size() || !(usd > 0) || usd > 1e9)
      problems.add("--cost", "",
                   fmt::format("\"{}\" is not of the form PART=USD, such as nic_bandwidth=400", text));
    else out[text.substr(0, equals)] = usd;
  }
  problems.throw_if_any();
  return out;
}

exit_code plan_next_dollar_command(const plan_arguments& a) {
  next_dollar_question q;
  q.base = scenario_base(a, "next-dollar");
  if (a.platforms.size() > 1) throw input_error({{"--platform", "", "next-dollar takes one platform", {}}});
  if (!a.platforms.empty()) q.base.text = with_members(q.base.text, {{"/platform/use", a.platforms.front()}});
  q.step = a.step;
  q.metric = a.objective;
  q.costs = costs_of(a.costs);
  catch_termination();
  next_dollar_plan p;
  {
    stage_lines lines;
    p = plan_next_dollar(q, watch_by(lines));
  }
  print(a.format == "json" ? to_json(next_dollar_value(p)) : next_dollar_text(p));
  return interrupted() ? exit_code::interrupted : exit_code::ok;
}

}  // namespace

exit_code execute(const plan_arguments& a) {
  switch (a.kind) {
    case plan_kind::serving:
      return plan_serving_command(a);
    case plan_kind::training:
      return plan_training_command(a);
    case plan_kind::post_training:
      return plan_post_training_command(a);
    case plan_kind::scaling:
      return plan_scaling_command(a);
    case plan_kind::next_dollar:
      return plan_next_dollar_command(a);
  }
  return exit_code::internal;
}

exit_code execute(const new_arguments& a) {
  plan_base base;
  base.data = folders_under(data_root());
  std::vector<std::string> assumed;
  diagnostics problems;
  base.text = draft_run(a.draft, base.data, assumed, problems);
  problems.throw_if_any();
  add_sets(base, a.sets, problems);
  for (const override_option& o : base.overrides)
    problems.add("--set", o.pointer,
                 "a scenario file cannot hold values of stacks and models; use this --set with nvlsim run");
  problems.throw_if_any();
  static_cast<void>(read_base(base));  // reports what is wrong before it is written
  for (const std::string& what : assumed) note(fmt::format("nvlsim: assumed: {}", what));
  const std::string text = scenario_file_text(base.text);
  if (a.output.empty()) print(text);
  else write_file(a.output, text);
  return exit_code::ok;
}

}  // namespace nvlsim::cli
