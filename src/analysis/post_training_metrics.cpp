#include "nvlsim/analysis/post_training_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/sections.hpp"

namespace nvlsim {
namespace {

using measured = post_training_metrics;

double gpus(const measured& p) { return static_cast<double>(p.gpus); }

constexpr measured_metric<measured> post_training_rows[] = {
    {{.name = "step_time_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Time of one step, from its start to the end of the last GPU.",
      .search = search_use::objective,
      .telling = 1,
      .has_curve = true},
     [](const measured& p) -> metric_value { return p.step_time.base(); }},
    {{.name = "generation_wait_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the step in which the trainer waits for samples: all of generation and rewards where "
                 "pools take turns."},
     [](const measured& p) -> metric_value { return p.wait.base(); }},
    {{.name = "logprobs_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the step for log-probabilities of the old policy and the reference, and values."},
     [](const measured& p) -> metric_value { return p.logprobs.base(); }},
    {{.name = "update_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the step for updates of weights."},
     [](const measured& p) -> metric_value { return p.update.base(); }},
    {{.name = "remainder_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "The rest of the step: transfer of weights, changes between rollout and training, host work."},
     [](const measured& p) -> metric_value { return (p.transfer + p.change + p.driver).base(); }},
    {{.name = "weight_transfer_s",
      .unit = metric_unit::second,
      .direction = better::smaller,
      .meaning = "Part of the remainder: new weights on their way to the rollout engines."},
     [](const measured& p) -> metric_value { return p.transfer.base(); }},
    {{.name = "tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of trained samples, prompts and responses, per second."},
     [](const measured& p) -> metric_value { return p.tokens / p.step_time.base(); }},
    {{.name = "tokens_per_s_per_gpu",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens of trained samples, prompts and responses, per second and GPU.",
      .telling = 5,
      .has_curve = true},
     [](const measured& p) -> metric_value { return p.tokens / p.step_time.base() / gpus(p); }},
    {{.name = "samples_per_s",
      .unit = metric_unit::requests_per_s,
      .direction = better::larger,
      .meaning = "Trained samples per second."},
     [](const measured& p) -> metric_value { return p.samples / p.step_time.base(); }},
    {{.name = "generated_tokens_per_s",
      .unit = metric_unit::tokens_per_s,
      .direction = better::larger,
      .meaning = "Tokens that the rollout pool generates per second, with those that are dropped."},
     [](const measured& p) -> metric_value { return p.generated_tokens / p.step_time.base(); }},
    {{.name = "rollout_idle_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the step in which a rollout engine runs no iteration, mean over engines."},
     [](const measured& p) -> metric_value { return 1 - p.rollout_busy; }},
    {{.name = "training_idle_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of the step in which the trainer waits for samples."},
     [](const measured& p) -> metric_value { return 1 - p.training_busy; }},
    {{.name = "mean_staleness",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "Updates between the start of a sample and its own update, mean over trained samples."},
     [](const measured& p) -> metric_value { return p.mean_staleness; }},
    {{.name = "longest_staleness",
      .unit = metric_unit::count,
      .direction = better::smaller,
      .meaning = "The most updates between the start of a sample and its own update."},
     [](const measured& p) -> metric_value { return p.longest_staleness; }},
    {{.name = "dropped_token_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning =
          "Share of generated tokens that are not trained: tails that are cut, prompts that teach nothing."},
     [](const measured& p) -> metric_value { return p.dropped_fraction; }},
    {{.name = "tail_time_fraction",
      .unit = metric_unit::fraction,
      .direction = better::smaller,
      .meaning = "Share of a batch's generation after 90 % of its samples have ended."},
     [](const measured& p) -> metric_value { return p.tail_fraction; }},
    {{.name = "response_tokens_mean",
      .unit = metric_unit::count,
      .meaning = "Tokens of a response, mean over trained samples."},
     [](const measured& p) -> metric_value { return p.response_tokens / std::max(1.0, p.samples); }},
    {{.name = "response_tokens_p99", .unit = metric_unit::count, .meaning = "The same, 99th percentile."},
     [](const measured& p) -> metric_value { return p.length_p99; }},
    {{.name = "rollout_memory_peak_bytes",
      .unit = metric_unit::byte,
      .direction = better::smaller,
      .meaning = "Memory of a rollout GPU while it generates."},
     [](const measured& p) -> metric_value { return p.rollout_memory.base(); }},
    {{.name = "memory_peak_bytes",
      .unit = metric_unit::byte,
      .direction = better::smaller,
      .meaning = "Memory of the fullest GPU.",
      .search = search_use::weighed,
      .telling = 12},
     [](const measured& p) -> metric_value { return std::max(p.rollout_memory, p.training_memory).base(); }},
    {{.name = "energy_per_step_J",
      .unit = metric_unit::joule,
      .direction = better::smaller,
      .meaning = "Energy of all racks in use during a step, supply losses included."},
     [](const measured& p) -> metric_value { return p.energy.total().base(); }},
    {{.name = "cost_per_step_usd",
      .unit = metric_unit::usd,
      .direction = better::smaller,
      .meaning = "Price of all GPUs for the time of a step.",
      .null_when = "no price is known"},
     [](const measured& p) -> metric_value { return p.cost ? metric_value(p.cost->base()) : metric_value(); }},
    {{.name = "gpus",
      .unit = metric_unit::count,
      .direction = better::neither,
      .meaning = "GPUs of the loop.",
      .parts = metric_parts::pools},
     [](const measured& p) -> metric_value { return p.gpus; }},
};

}  // namespace

std::span<const measured_metric<post_training_metrics>> post_training_table() { return post_training_rows; }
bool applies(const metric& m, const post_training_metrics&) { return m.needs == metric_needs::nothing; }

post_training_metrics measure_post_training(const platform& p, const post_training_run& run) {
  post_training_metrics out;
  const loop_record& r = run.record;
  const double n = static_cast<double>(r.steps.size());
  const auto mean = [&](auto of) {
    double sum = 0;
    for (const step_record& s : r.steps) sum += of(s);
    return sum / n;
  };
  const auto time = [&](double step_record::*part) {
    return seconds::from_base(mean([part](const step_record& s) { return s.*part; }));
  };
  out.step_time = seconds::from_base(r.measured_s / n);
  out.wait = time(&step_record::wait_s);
  out.logprobs = time(&step_record::logprobs_s);
  out.update = time(&step_record::update_s);
  out.transfer = time(&step_record::transfer_s);
  out.change = time(&step_record::change_s);
  out.driver = time(&step_record::driver_s);
  out.gpus = run.gpus();
  out.rollout_gpus = run.rollout_gpus;
  out.training_gpus = run.training_gpus;
  out.tokens = mean([](const step_record& s) { return s.tokens; });
  out.response_tokens = mean([](const step_record& s) { return s.response_tokens; });
  out.samples = mean([](const step_record& s) { return static_cast<double>(s.samples); });
  out.generated_tokens = r.generated_tokens / n;
  out.rollout_busy = std::min(1.0, r.rollout_busy_s / (r.measured_s * static_cast<double>(run.workers)));
  out.training_busy = r.trainer_busy_s / r.measured_s;
  out.mean_staleness = mean([](const step_record& s) { return s.staleness; });
  out.longest_staleness = r.stale_samples.empty() ? 0 : static_cast<double>(r.stale_samples.size() - 1);
  const double all = static_cast<double>(r.all_steps) / n;  // with those before the measured ones
  const double generated = std::max(1.0, r.generated_tokens * all);
  out.dropped_fraction = std::min(1.0, r.dropped_tokens / generated);
  out.recomputed_fraction = r.recomputed_tokens / generated;
  out.nine_tenths = time(&step_record::nine_tenths_s);
  out.all_ended = time(&step_record::all_s);
  out.tail_fraction = mean([](const step_record& s) { return s.all_s > 0 ? 1 - s.nine_tenths_s / s.all_s : 0; });
  out.length_p50 = mean([](const step_record& s) { return s.length_p50; });
  out.length_p99 = mean([](const step_record& s) { return s.length_p99; });
  out.length_max = mean([](const step_record& s) { return s.length_max; });
  out.rollout_memory = run.rollout_memory.peak;
  out.training_memory = run.training_memory.peak;
  // GPUs that neither generate nor compute draw idle power: they wait, copy or change between phases.
  const auto idle = [&](std::int64_t gpus, double busy) {
    return p.gpu.idle_power * (static_cast<double>(gpus) * std::max(0.0, 1 - busy)) * out.step_time;
  };
  const double trains = run.training_computes.base() / r.measured_s;
  joules used = (run.rollout_energy + run.training_energy) / n;
  if (run.colocated) used += idle(out.gpus, out.rollout_busy + trains);
  else used += idle(out.rollout_gpus, out.rollout_busy) + idle(out.training_gpus, trains);
  out.energy = energy_of_job(p, used, out.gpus, out.step_time);
  if (p.price.per_gpu) out.cost = *p.price.per_gpu * (static_cast<double>(out.gpus) * out.step_time);
  return out;
}

namespace {

/// Workers that a trace shows.
constexpr std::size_t workers_shown = 64;

value phases_of(const post_training_metrics& m) {
  return value::object{{"generation_wait_s", m.wait.base()},   {"logprobs_s", m.logprobs.base()},
                       {"update_s", m.update.base()},          {"weight_transfer_s", m.transfer.base()},
                       {"change_of_phase_s", m.change.base()}, {"driver_s", m.driver.base()}};
}

value steps_of(const loop_record& r) {
  value out{value::array{}};
  for (const step_record& s : r.steps)
    out.items()->push_back(value::object{{"step_time_s", s.step_s()},
                                         {"generation_wait_s", s.wait_s},
                                         {"logprobs_s", s.logprobs_s},
                                         {"update_s", s.update_s},
                                         {"remainder_s", s.remainder_s()},
                                         {"tokens", s.tokens},
                                         {"mean_staleness", s.staleness}});
  return out;
}

value staleness_of(const loop_record& r) {
  value out{value::array{}};
  double all = 0;
  for (const std::int64_t n : r.stale_samples) all += static_cast<double>(n);
  for (const std::int64_t n : r.stale_samples)
    out.items()->emplace_back(static_cast<double>(n) / std::max(1.0, all));
  return out;
}

value breakdown_of(const post_training_workload& w, const post_training_metrics& m, const post_training_run& run) {
  value out{value::object{}};
  out.set("phases", phases_of(m));
  out.set("steps", steps_of(run.record));
  out.set("staleness_shares", staleness_of(run.record));
  value pools{value::object{}};
  pools.set("rollout_gpus", m.rollout_gpus);
  pools.set("training_gpus", m.training_gpus);
  pools.set("colocated", run.colocated);
  pools.set("rollout_engines", run.workers);
  out.set("pools", std::move(pools));
  out.set("response_tokens", value::object{{"p50", m.length_p50},
                                           {"p99", m.length_p99},
                                           {"max", m.length_max},
                                           {"cut_share", share_cut(w.loop.response)}});
  out.set("generation", value::object{{"nine_tenths_s", m.nine_tenths.base()}, {"all_s", m.all_ended.base()}});
  out.set("updates", value::object{{"per_step", run.updates},
                                   {"critic_share", run.critic_share},
                                   {"copy_share", run.copy_share},
                                   {"micro_batches", run.micro_batches},
                                   {"tokens_per_micro_batch", run.tokens_per_micro_batch},
                                   {"fill", run.fill}});
  out.set("weight_transfer", value::object{{"wire_s", run.transfer.wire.base()},
                                           {"tensors_s", run.transfer.tensors.base()},
                                           {"requantise_s", run.transfer.requantise.base()},
                                           {"fixed_s", run.transfer.fixed.base()}});
  out.set("preemptions", run.record.preempted);
  out.set("dropped_prompts", run.record.dropped_prompts);
  return out;
}

/// The loop as a plan that has been run: a class for the trainer and one for each engine.
void add_picture(run_record& out, const post_training_run& run) {
  const std::size_t workers = static_cast<std::size_t>(run.workers);
  const std::size_t shown = std::min(workers, workers_shown);
  const std::int64_t each = run.rollout_gpus / std::max<std::int64_t>(1, run.workers);
  plan& p = out.planned;
  p.classes.push_back({"trainer", run.training_gpus, {{stream_kind::compute, {}}}});
  for (std::size_t w = 0; w < shown; ++w)
    p.classes.push_back({fmt::format("rollout engine {}", w), each, {{stream_kind::compute, {}}}});
  out.times.spans.resize(p.classes.size());
  for (auto& s : out.times.spans) s.resize(1);
  std::map<std::string, std::int32_t> templates;
  std::vector<loop_span> spans = run.record.spans;
  std::stable_sort(spans.begin(), spans.end(),
                   [](const loop_span& a, const loop_span& b) { return a.begin_s < b.begin_s; });
  for (const loop_span& s : spans) {
    const bool trains = s.actor >= workers;
    if (!trains && s.actor >= shown) continue;
    const std::size_t at = trains ? 0 : s.actor + 1;
    const auto [known, fresh] = templates.try_emplace(s.name, 0);
    if (fresh) {
      operation_template t;
      t.name = s.name;
      t.parts.push_back(
          {trains ? part_kind::gemm : part_kind::decode, s.name, seconds::from_base(s.end_s - s.begin_s), 1, {}});
      known->second = p.add_template(std::move(t));
    }
    p.append(p.classes[at].streams[0], known->second, {});
    out.times.spans[at][0].push_back({s.begin_s, s.end_s});
    out.times.makespan = std::max(out.times.makespan, seconds::from_base(s.end_s));
  }
  out.times.activities = run.record.decisions;
}

void add_notes(result& r, const post_training_workload& w, const post_training_metrics& m,
               const post_training_run& run) {
  const auto percent = [](double x) { return 100 * std::max(0.0, x); };
  // Pools that both wait, wait for each other.
  constexpr double waits = 0.1;
  const char* slower = 1 - m.rollout_busy > waits && 1 - m.training_busy > waits ? "each waits for the other"
                       : m.rollout_busy > m.training_busy                        ? "rollouts are the bottleneck"
                                                                                 : "training is the bottleneck";
  if (run.colocated) r.notes.push_back(fmt::format("rollouts and training take turns on {} GPUs", m.gpus));
  else
    r.notes.push_back(fmt::format(
        "{} GPUs generate, idle {:.0f} % of the step; {} GPUs train, waiting {:.0f} % of it: {}", m.rollout_gpus,
        percent(1 - m.rollout_busy), m.training_gpus, percent(1 - m.training_busy), slower));
  if (m.tail_fraction > 0.25)
    r.notes.push_back(fmt::format("the last 10 % of a batch's samples take {:.0f} % of its generation",
                                  percent(m.tail_fraction)));
  if (run.record.preempted > 0)
    r.notes.push_back(fmt::format("{} samples lost their cache for lack of memory and were computed again",
                                  run.record.preempted));
  if (run.fill < 0.8)
    r.notes.push_back(
        fmt::format("{:.0f} % of the tokens of micro-batches are filled; packing {}, {} sequences "
                    "of an update",
                    percent(run.fill), packing_names[static_cast<std::size_t>(w.packing)], w.mini_batch));
  if (w.algorithm == post_training_algorithm::dapo && w.loop.kept_share >= 1)
    r.notes.push_back("dapo drops no prompts, because kept_share, the share of prompts that teach anything, is 1");
  if (w.algorithm == post_training_algorithm::ppo && !w.models.critic)
    r.notes.push_back("assumed: the critic has the policy's shape and layout");
  if (w.algorithm == post_training_algorithm::distillation && !w.models.teacher)
    r.notes.push_back("assumed: the teacher has the policy's shape and layout");
  if (w.reward.on_trainer && !w.models.reward)
    r.notes.push_back("assumed: the reward model has the policy's shape and layout");
}

}  // namespace

namespace {

double breakdown_at(const result& r, const char* pointer) {
  const value* v = r.breakdown.at_pointer(pointer);
  if (!v) return 0;
  if (const std::int64_t* n = v->integer()) return static_cast<double>(*n);
  return v->number() ? *v->number() : 0;
}

/// The oldest batch that is trained, from its first start on. Other work may hide some of its generation.
void explain_wait(explanation& out, const result& r) {
  const double body = breakdown_at(r, "/generation/nine_tenths_s"), all = breakdown_at(r, "/generation/all_s");
  const double rest = *out.amount - all;
  std::vector<cause> parts = {{"until 90 % of a batch's samples have ended", body, {}, {}},
                              {"its last 10 %", all - body, {}, {}}};
  out.taken_apart = out.metric;
  if (rest >= 0) {
    parts.push_back({"rewards and other samples", rest, "between the last end and the first update", {}});
    out.trees.push_back({"by part", {out.metric, *out.amount, {}, std::move(parts)}});
    return;
  }
  out.trees.push_back({"by part", {"generation of a batch", all, {}, std::move(parts)}});
  out.notes.push_back(
      fmt::format("{:.4g} s of the generation of a batch are hidden behind log-probabilities, updates "
                  "and transfers of earlier batches",
                  -rest));
}

/// Updates, their micro-batches, and whose they are.
void explain_updates(explanation& out, const result& r) {
  const double updates = breakdown_at(r, "/updates/per_step");
  const double each = std::max(1.0, breakdown_at(r, "/updates/micro_batches"));
  const double critic = breakdown_at(r, "/updates/critic_share") * *out.amount;
  const double copies = breakdown_at(r, "/updates/copy_share") * *out.amount;
  if (updates > 0)
    out.factors = {{"updates_per_step", updates, 1},
                   {"micro_batches_per_update", each, 1},
                   {"time_per_micro_batch_s", *out.amount / updates / each, 1}};
  out.taken_apart = out.metric;
  cause whole{out.metric, *out.amount, {}, {{"policy", *out.amount - critic - copies, {}, {}}}};
  if (critic > 0) whole.parts.push_back({"critic", critic, {}, {}});
  if (copies > 0) whole.parts.push_back({"states of the critic, to the GPU and back", copies, {}, {}});
  out.trees.push_back({"by model", std::move(whole)});
}

}  // namespace

void explain_loop(explanation& out, const result& r) {
  const value* phases = r.breakdown.find("phases");
  if (out.metric == "step_time_s" && phases && phases->members()) {
    cause whole{out.metric, 0, {}, {}};
    for (const auto& [name, time] : *phases->members()) {
      whole.amount += *time.number();
      whole.parts.push_back({name, *time.number(), {}, {}});
    }
    out.taken_apart = out.metric;
    out.trees.push_back({"by phase", std::move(whole)});
  }
  if (out.metric == "generation_wait_s") explain_wait(out, r);
  if (out.metric == "update_s") explain_updates(out, r);
  out.notes.emplace_back(
      "breakdown of the result has the phases of each step, pools, lengths, staleness and the transfer of "
      "weights; "
      "rollout and training are explained from scenarios of their own");
}

void add_post_training_sections(run_record& out, const platform& p, const post_training_workload& w,
                                const post_training_run& run) {
  result& r = out.outcome;
  if (!run.rollout_memory.items.empty()) {
    r.memory.set("rollout", memory_section(run.rollout_memory));
    r.memory.set("training", memory_section(run.training_memory));
    r.memory.set("moved_to_cpu_bytes", run.moved_to_cpu.base());
    if (run.visitors > bytes{}) r.memory.set("visiting_weights_bytes", run.visitors.base());
  }
  if (!run.reasons.empty()) return;
  const post_training_metrics m = measure_post_training(p, run);
  set_metrics(r.metrics, m);
  r.breakdown = breakdown_of(w, m, run);
  r.energy.set("gpus_J", m.energy.gpus.base());
  r.energy.set("cpus_J", m.energy.cpus.base());
  r.energy.set("trays_and_switches_J", m.energy.trays_and_switches.base());
  r.energy.set("supply_losses_J", m.energy.supply_losses.base());
  if (const double e = w.costs.error_90; e > 0) {
    const auto band = [&](const char* name, double x) {
      const double low = x / (1 + e), high = x * (1 + e);
      r.bands.set(name, value::array{value{low}, value{high}});
    };
    band("step_time_s", m.step_time.base());
    band("tokens_per_s_per_gpu", m.tokens / m.step_time.base() / static_cast<double>(m.gpus));
    if (m.cost) band("cost_per_step_usd", m.cost->base());
  }
  add_notes(r, w, m, run);
  add_picture(out, run);
}

}  // namespace nvlsim
