#include "scenario/post_training_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "nvlsim/config/fields.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "nvlsim/units/units_text.hpp"
#include "scenario/name_reader.hpp"
#include "scenario/source.hpp"

namespace nvlsim {
namespace {

constexpr const char* loop_schema = "nvlsim.loop/1";

template <class F, class T>
void list_costs(F f, T& c) {
  // Beyond these a step of a loop would outlast what its clock can tell apart.
  constexpr config::range<double> factor{1e-3, 1e3}, pause{0, 1e5}, rate{1e6, 1e300};
  f("rollout_factor", c.rollout_factor, factor);
  f("update_factor", c.update_factor, factor);
  f("logprobs_factor", c.logprobs_factor, factor);
  f("sample_host", c.sample_host, pause);
  f("step_host", c.step_host, pause);
  f("change_host", c.change_host, pause);
  f("host_copy_rate", c.host_copy_rate, rate);
  f("reference_copies", c.reference_copies, config::range<double>{0, 10});
  f("broadcast_rate", c.broadcast_rate, rate);
  f("broadcast_growth", c.broadcast_growth, config::fraction);
  f("rdma_rate", c.rdma_rate, rate);
  f("rdma_fixed", c.rdma_fixed, pause);
  f("port_share", c.port_share, config::range<double>{1e-3, 1});
  f("transfer_fixed", c.transfer_fixed, pause);
  f("per_tensor", c.per_tensor, pause);
  f("per_tensor_shared", c.per_tensor_shared, pause);
  f("requantise_rate", c.requantise_rate, rate);
  f("error_90", c.error_90, config::fraction);
}

/// Reads the document of a framework; adds its problems.
loop_profile read_profile(config::document& file, const std::string& name, diagnostics& problems) {
  loop_profile out;
  config::reader f(file, problems);
  if (const std::string schema = f.string("schema"); schema != loop_schema && !schema.empty())
    f.fail("schema", std::string("expected \"") + loop_schema + "\", found \"" + schema + "\"");
  f.ignore("sources");
  out.name = name;
  out.description = f.string("description");
  f.require_sources("/workload");
  config::reader c = f.child("costs");
  list_costs(config::field_reader(c), out);
  c.done();
  f.done();
  return out;
}

}  // namespace

loop_profile load_loop_profile(const std::string& name, const data_folders& data) {
  diagnostics problems;
  config::document file =
      config::load_named(data.platforms / "loops", {"framework", name, {name, "", {}, {}}}, problems);
  problems.throw_if_any();
  loop_profile out = read_profile(file, name, problems);
  problems.throw_if_any();
  return out;
}

namespace {

/// Returns the framework's constants.
std::vector<input_constant> read_framework(config::reader& r, const config::document& doc,
                                           const data_folders& data, post_training_workload& w,
                                           diagnostics& problems) {
  std::vector<input_constant> constants;
  const std::string name = read_name(r, "framework");
  const value* costs = r.raw("costs");
  if (name.empty()) return constants;
  const problem asked{doc.origin_of("/workload/framework").where, "/workload/framework", {}, {}};
  diagnostics own;
  config::document file = config::load_named(data.platforms / "loops", {"framework", name, asked}, own);
  if (costs && !costs->members()) r.fail("costs", "expected an object of costs of the framework");
  else if (own.empty() && costs)
    config::merge(file, value{value::object{{"costs", *costs}}}, {"scenario", doc.self.where, true}, "/workload");
  if (own.empty()) {
    w.costs = read_profile(file, name, own);
    w.framework = file.resolved();
    list_constants(file, "/workload", constants);
  }
  for (problem& p : own.sorted()) {
    config::relocate(p, file);
    problems.add(std::move(p));
  }
  return constants;
}

value write_costs(const loop_profile& c) {
  value out{value::object{}};
  list_costs(config::field_writer(out), c);
  return out;
}

}  // namespace

namespace {

constexpr config::range<std::int64_t> counts{1, 1 << 20};
constexpr config::range<std::int64_t> token_counts{1, 1 << 26};
const std::array<std::string, 2> pools = {"colocated", "split"};

void read_responses(config::reader r, response_lengths& l) {
  l.max = r.integer("max", token_counts);
  l.mean = r.number("mean", {1, 1 << 26});
  l.tail = r.number_or("tail", l.tail, {1, 1000});
  l.together = r.number_or("together", l.together, config::fraction);
  const double max = static_cast<double>(l.max);
  if (l.mean > max || (l.tail > 1 && l.mean > 0.999 * max))
    r.fail("mean", fmt::format("the mean after the cut, {:g}, must be below max {}", l.mean, l.max));
  r.done();
}

void read_tools(config::reader r, tool_settings& t) {
  t.turns = r.integer("turns", {1, 10'000});
  if (const auto wait = r.find_quantity<seconds>("wait")) t.mean_s = wait->base();
  t.tokens = r.integer_or("tokens", 0, {0, 1 << 26});
  r.done();
}

/// Members that only a split pool has.
void read_synchrony(config::reader& w, loop_settings& l) {
  if (l.colocated) {
    for (const char* member : {"staleness", "on_update", "streaming"}) w.belongs(member, "split pools");
  } else {
    l.staleness = w.number_or("staleness", 0, {0, 1000});
    l.update = static_cast<on_update>(w.one_of_or("on_update", on_update_names, 0));
    l.streaming = w.boolean_or("streaming", false);
  }
  l.admission = static_cast<admission_policy>(w.one_of_or("admission", admission_names, 0));
  l.oversample = w.number_or("oversample", 0, {0, 100});
  l.tail = static_cast<tail_policy>(w.one_of_or("tail", tail_names, 0));
  if (w.has("tail") && l.oversample == 0) w.fail("tail", "has no effect without oversample");
  if (l.oversample > 0 && l.staleness > 0)
    w.fail("oversample",
           "cannot be combined with staleness: when a batch is full, the prompts of the next are already running; "
           "raise staleness to start more prompts early");
  if (l.admission == admission_policy::batch && l.staleness != std::floor(l.staleness))
    w.fail("staleness", "must be a whole number with admission batch");
  l.kept_share = w.number_or("kept_share", 1, {0.01, 1});
  if (l.admission == admission_policy::batch) {
    l.round_prompts = w.integer_or("round_prompts", l.prompts, counts);
    if (l.round_prompts < l.prompts && l.kept_share >= 1)
      w.fail("round_prompts", fmt::format("must be at least the {} prompts of a step", l.prompts));
  } else {
    w.belongs("round_prompts", "admission batch");
  }
}

void read_memory(config::reader& w, post_training_workload& p) {
  if (p.loop.colocated) {
    p.sleep = static_cast<sleep_level>(w.one_of_or("sleep", sleep_names, 2));
    p.offload_training = w.boolean_or("offload_training", true);
  } else {
    for (const char* member : {"sleep", "offload_training"}) w.belongs(member, "colocated pools");
  }
  const std::size_t usual = p.loop.colocated ? 0 : 2;
  p.transfer = static_cast<transfer_path>(w.one_of_or("transfer", transfer_path_names, usual));
  if (!p.loop.colocated && p.transfer == transfer_path::ipc)
    w.fail("transfer", "ipc needs a trainer and an engine on the same GPU; split pools have none");
}

void read_updates(config::reader& w, post_training_workload& p) {
  using enum post_training_algorithm;
  const std::int64_t samples = p.loop.prompts * p.loop.samples;
  p.mini_batch = w.integer_or("mini_batch_size", samples, {1, std::max<std::int64_t>(1, samples)});
  if (p.loop.samples > 0 && p.mini_batch % p.loop.samples != 0 && p.mini_batch < samples)
    w.fail("mini_batch_size", fmt::format("must be a multiple of samples_per_prompt {}", p.loop.samples));
  p.loop.mini_batch_prompts = std::max<std::int64_t>(1, p.mini_batch / std::max<std::int64_t>(1, p.loop.samples));
  if (p.loop.streaming && p.loop.prompts % p.loop.mini_batch_prompts != 0)
    w.fail("mini_batch_size", "streaming: must divide the samples of a step");
  p.epochs = w.integer_or("epochs", 1, {1, 1000});
  const bool sampling = p.algorithm == rejection_sampling;
  if (sampling) p.loop.trained_samples = w.integer_or("trained_samples", 1, {1, p.loop.samples});
  else w.belongs("trained_samples", "algorithm rejection_sampling");
  p.policy_logprobs = w.boolean_or("policy_logprobs", !sampling && p.algorithm != distillation);
  p.reference_logprobs = w.boolean_or("reference_logprobs", !sampling && p.algorithm != dapo);
  p.packing = static_cast<packing_kind>(w.one_of_or("packing", packing_names, 0));
}

/// `load` reads a model by the name of a member.
using model_loader = std::function<std::shared_ptr<const model>(config::reader& r, const char* member)>;

void read_reward(config::reader r, post_training_workload& p, const model_loader& load) {
  reward_settings& out = p.reward;
  out.kind = static_cast<reward_kind>(r.one_of_or("kind", reward_kind_names, 0));
  const bool timed = r.has("time");
  if (const auto t = r.find_quantity<seconds>("time")) out.time = *t;
  if (!timed && out.kind == reward_kind::sandbox) r.fail("time", "a sandbox needs the time of a response");
  if (timed) out.slots = r.integer_or("slots", 0, {1, 1 << 20});
  else r.belongs("slots", "rewards with a time");
  out.on_trainer = out.kind == reward_kind::model && !timed;
  if (out.on_trainer) p.models.reward = load(r, "model");
  else r.belongs("model", "kind model without a time, which the trainer's GPUs compute");
  r.done();
}

/// Models beside the policy, and where their states are.
void read_models(config::reader& w, post_training_workload& p, const model_loader& load) {
  using enum post_training_algorithm;
  if (p.algorithm == ppo) {
    p.models.critic = load(w, "critic");
    p.offload_critic = w.boolean_or("offload_critic", false);
  } else {
    for (const char* member : {"critic", "offload_critic"}) w.belongs(member, "algorithm ppo");
  }
  if (p.algorithm == distillation) p.models.teacher = load(w, "teacher");
  else w.belongs("teacher", "algorithm distillation");
  if (auto reward = w.find_child("reward")) read_reward(std::move(*reward), p, load);
}

post_training_workload read_loop(config::reader& w, const config::document& doc, const model_loader& load) {
  post_training_workload p;
  p.algorithm = static_cast<post_training_algorithm>(w.one_of_or("algorithm", algorithm_names, 0));
  p.loop.prompts = w.integer({"prompts", {"num_prompts_per_step"}}, counts);
  p.loop.samples = w.integer_or({"samples_per_prompt", {"num_generations_per_prompt"}}, 1, {1, 100'000});
  p.loop.prompt_tokens = w.integer_or("prompt_length", 128, token_counts);
  read_responses(w.child("response"), p.loop.response);
  if (auto tools = w.find_child("tools")) read_tools(std::move(*tools), p.loop.tools);
  p.loop.colocated = w.one_of_or("pools", pools, 0) == 0;
  read_synchrony(w, p.loop);
  read_updates(w, p);
  read_memory(w, p);
  read_models(w, p, load);
  p.loop.steps = w.integer_or("steps", 4, {1, 10'000});
  const auto usual = static_cast<std::int64_t>(p.loop.staleness) + (p.loop.colocated ? 0 : 3);
  p.loop.warmup = w.integer_or("warmup", usual, {0, 10'000});
  if (const value* seed = doc.root.at_pointer("/simulation/seed"); seed && seed->integer())
    p.loop.seed = static_cast<std::uint64_t>(*seed->integer());
  if (std::string problem = samples_problem(p.loop); !problem.empty()) w.fail("prompts", std::move(problem));
  return p;
}

/// Members of a part's workload that follow from the loop.
value rollout_load(const loop_settings& l) {
  return value::object{
      {"kind", "offline"},
      {"requests", l.prompts * l.samples},
      {"input", value::object{{"mean", l.prompt_tokens}}},
      {"output", value::object{{"mean", std::max<std::int64_t>(1, std::llround(l.response.mean))}}}};
}
std::int64_t integer_in(const value& v, const char* key) {
  const value* x = v.find(key);
  return x && x->integer() ? std::max<std::int64_t>(1, *x->integer()) : 1;
}

/// Reports a problem of a part's workload where it is written.
void report_at(const config::document& doc, const std::string& pointer, std::string what, diagnostics& problems) {
  problems.add(doc.origin_of(pointer).where, pointer, std::move(what));
}

/// The scenario with what the loop says of its parts.
config::document completed(const config::document& doc, const loop_settings& l, diagnostics& problems) {
  config::document out = doc;
  value* w = out.root.find("workload");
  const auto part = [&](const char* name) -> value* {
    value* p = w->find(name);
    value* inner = p && p->members() ? p->find("workload") : nullptr;
    return inner && inner->members() ? inner : nullptr;
  };
  if (value* inner = part("rollout")) {
    if (inner->find("load"))
      report_at(doc, "/workload/rollout/workload/load", "the loop provides the load of rollouts; leave it out",
                problems);
    inner->set("kind", "inference");
    inner->set("load", rollout_load(l));
  }
  if (value* inner = part("training")) {
    for (const char* batch : {"global_batch_size", "gbs"})
      if (inner->find(batch))
        report_at(doc, std::string("/workload/training/workload/") + batch,
                  "follows from mini_batch_size of the loop; leave it out", problems);
    inner->set("kind", "training");
    if (!inner->find("seq_length") && !inner->find("sequence_length"))
      inner->set("seq_length", l.prompt_tokens + l.response.max + (l.tools.turns - 1) * l.tools.tokens);
    const char* micro = inner->find("mbs") ? "mbs" : "micro_batch_size";
    const char* dp = inner->find("dp") ? "dp" : "data_parallel_size";
    if (!inner->find("gbs"))
      inner->set("global_batch_size",
                 integer_in(*inner, dp) * integer_in(*inner, micro) * integer_in(*inner, "pp"));
  }
  return out;
}

}  // namespace

post_training_case read_post_training(config::reader& r, const config::document& doc, const data_folders& data,
                                      const scenario_reader& read_alone, diagnostics& problems) {
  config::reader w = r.child("workload");
  w.ignore("kind");
  const model_loader load = [&](config::reader& of, const char* member) -> std::shared_ptr<const model> {
    const auto name = of.find_string(member);
    if (!name) return nullptr;
    const std::string pointer = of.pointer() + "/" + member;
    const problem at{doc.origin_of(pointer).where, pointer, {}, {}};
    return std::make_shared<const model>(load_model(*name, data, {}, at, problems).content);
  };
  post_training_workload loop = read_loop(w, doc, load);
  post_training_case out;
  out.costs = read_framework(w, doc, data, loop, problems);
  config::reader rollout = w.child("rollout"), training = w.child("training");
  const config::document whole = completed(doc, loop.loop, problems);
  const auto part = [&](config::reader& nested, const char* name) {
    auto read = read_nested(nested, whole, {name, {}}, read_alone, problems);
    nested.done();
    return read;
  };
  out.rollout = part(rollout, "rollout");
  out.training = part(training, "training");
  if (out.rollout)
    if (const auto* i = std::get_if<inference_workload>(&out.rollout->workload); i && i->pooled())
      report_at(doc, "/workload/rollout/workload/layout",
                "rollout engines cannot have separate prefill and decode pools", problems);
  if (out.rollout && out.training) {
    const model &generates = out.rollout->model, &learns = out.training->model;
    if (generates.name != learns.name && parameters(generates) != parameters(learns))
      report_at(doc, "/workload/rollout/model",
                fmt::format("{} generates, but the trainer updates {}: samples must be of the policy",
                            generates.name, learns.name),
                problems);
  }
  if (out.training) {
    const auto* t = std::get_if<training_workload>(&out.training->workload);
    const auto longest = loop.loop.prompt_tokens + loop.loop.response.max;
    if (t && loop.packing != packing_kind::unpadded && t->seq_length < longest)
      report_at(
          doc, "/workload/training/workload/seq_length",
          fmt::format("a window of {} tokens is shorter than the longest sequence, {}", t->seq_length, longest),
          problems);
  }
  w.done();
  out.loop = std::make_shared<const post_training_workload>(std::move(loop));
  return out;
}

namespace {

/// A part as the scenario says it, without what follows from the loop.
value written_part(const scenario& s, std::string_view of_loop) {
  value out = write_workload(s);
  std::erase_if(*out.members(),
                [](const value::member& m) { return m.first == "platform" || m.first == "simulation"; });
  std::erase_if(*out.find("workload")->members(), [&](const value::member& m) { return m.first == of_loop; });
  out.set("stack", s.stack.name);
  return out;
}

}  // namespace

value write_post_training(const post_training_case& c) {
  const post_training_workload& p = *c.loop;
  const loop_settings& l = p.loop;
  const auto named = [](auto x, std::span<const std::string> names) {
    return value{names[static_cast<std::size_t>(x)]};
  };
  value out{value::object{{"kind", "post_training"},
                          {"algorithm", named(p.algorithm, algorithm_names)},
                          {"framework", p.costs.name},
                          {"prompts", l.prompts},
                          {"samples_per_prompt", l.samples},
                          {"prompt_length", l.prompt_tokens},
                          {"response", value::object{{"mean", l.response.mean},
                                                     {"max", l.response.max},
                                                     {"tail", l.response.tail},
                                                     {"together", l.response.together}}},
                          {"pools", pools[l.colocated ? 0 : 1]},
                          {"mini_batch_size", p.mini_batch},
                          {"epochs", p.epochs},
                          {"policy_logprobs", p.policy_logprobs},
                          {"reference_logprobs", p.reference_logprobs},
                          {"packing", named(p.packing, packing_names)},
                          {"transfer", named(p.transfer, transfer_path_names)},
                          {"admission", named(l.admission, admission_names)},
                          {"oversample", l.oversample},
                          {"kept_share", l.kept_share},
                          {"steps", l.steps},
                          {"warmup", l.warmup}}};
  if (l.tools.turns > 1)
    out.set("tools", value::object{{"turns", l.tools.turns},
                                   {"wait", exact_quantity(l.tools.mean_s, seconds::dim_type::value)},
                                   {"tokens", l.tools.tokens}});
  if (l.oversample > 0) out.set("tail", named(l.tail, tail_names));
  if (l.admission == admission_policy::batch) out.set("round_prompts", l.round_prompts);
  if (p.algorithm == post_training_algorithm::rejection_sampling) out.set("trained_samples", l.trained_samples);
  value reward{value::object{{"kind", named(p.reward.kind, reward_kind_names)}}};
  if (!p.reward.on_trainer) reward.set("time", exact_quantity(p.reward.time.base(), seconds::dim_type::value));
  if (p.reward.slots > 0) reward.set("slots", p.reward.slots);
  if (p.models.reward) reward.set("model", p.models.reward->name);
  out.set("reward", std::move(reward));
  if (p.models.critic) out.set("critic", p.models.critic->name);
  if (p.models.teacher) out.set("teacher", p.models.teacher->name);
  if (p.algorithm == post_training_algorithm::ppo) out.set("offload_critic", p.offload_critic);
  if (l.colocated) {
    out.set("sleep", named(p.sleep, sleep_names));
    out.set("offload_training", p.offload_training);
  } else {
    out.set("staleness", l.staleness);
    out.set("on_update", named(l.update, on_update_names));
    out.set("streaming", l.streaming);
  }
  out.set("costs", write_costs(p.costs));
  if (c.rollout) out.set("rollout", written_part(*c.rollout, "load"));
  if (c.training) out.set("training", written_part(*c.training, "global_batch_size"));
  return out;
}

}  // namespace nvlsim
