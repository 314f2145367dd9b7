#include "scenario/operation_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenario/operation_profile.hpp"

namespace nvlsim {
namespace {

using config::reader;

constexpr config::range<double> speed{1e-6, 1.0};
constexpr config::range<std::int64_t> few{1, 1'000'000};
constexpr config::range<double> shape{0.1, 20.0};
/// Whose gaps between failures have the shape: those of all components of a kind, or of each.
const std::array<std::string, 2> shape_holders = {"all", "each"};

template <class Enum, std::size_t N>
Enum read_one_of(reader& r, const char* key, const std::array<std::string, N>& names, Enum usual) {
  return static_cast<Enum>(r.one_of_or(key, names, static_cast<std::size_t>(usual)));
}

void read_slowdown(reader& r, component& c) {
  std::optional<reader> d = r.find_child("degraded");
  if (c.effect != failure_effect::slows) {
    r.belongs("speed", "effect slows");
    r.belongs("degraded", "effect slows");
    return;
  }
  if (d.has_value() == r.has("speed")) r.fail("", "give either \"speed\" or \"degraded\"");
  if (!d) {
    c.speed = r.number_or("speed", 1, speed);
    return;
  }
  c.degraded = part_health{d->number_or("speed", 1, speed), d->number_or("nvlink_share", 1, speed),
                           d->number_or("nic_share", 1, speed)};
  if (!d->has("speed") && !d->has("nvlink_share") && !d->has("nic_share"))
    d->fail("", "has no effect; give speed, nvlink_share or nic_share");
  d->done();
}

component read_component(reader& r, const std::string& name) {
  static const std::array<std::string, 2> spreads = {"exponential", "fixed"};
  component c;
  c.name = name;
  c.of = read_one_of(r, "of", cluster_part_names, cluster_part::gpu);
  c.each = r.integer_or("each", 1, few);
  c.mtbf = r.quantity<seconds>("mtbf", config::positive);
  c.shape = r.number_or("shape", 1, shape);
  c.ages = r.one_of_or("shape_of", shape_holders, 0) == 1;
  c.takes_down = read_one_of(r, "takes_down", cluster_part_names, c.of);
  if (c.of != cluster_part::process && c.takes_down == cluster_part::process && r.has("takes_down"))
    r.fail("takes_down", "hardware takes down at least a tray");
  if (c.of == cluster_part::process && c.takes_down != cluster_part::process)
    r.fail("takes_down", "must be process, like \"of\"");
  if (c.of == cluster_part::process && c.ages)
    r.fail("shape_of", "a process does not age; give a hardware part in \"of\"");
  c.tolerated = r.integer_or("tolerated", 0, {0, 1'000'000});
  c.effect = read_one_of(r, "effect", failure_effect_names, failure_effect::stops);
  if (c.tolerated.peek() > 0 && c.effect != failure_effect::stops)
    r.fail("tolerated", "applies to effect \"stops\" only");
  if (c.tolerated.peek() >= c.each.peek() && c.tolerated.peek() > 0)
    r.fail("tolerated", fmt::format("must be less than \"each\", {}", c.each.peek()));
  read_slowdown(r, c);
  if (const auto t = r.find_quantity<seconds>("repair")) c.repair = *t;
  else if (c.takes_down != cluster_part::process) r.fail("repair", "is missing");
  if (c.takes_down == cluster_part::process && c.repair.peek() > seconds{})
    r.fail("repair", "has no effect on a process: its machines stay");
  c.repair_is_fixed = r.one_of_or("repair_spread", spreads, 0) == 1;
  c.watched = r.find_number("watched", config::fraction);
  c.detection = r.find_quantity<seconds>("detection");
  c.notice = r.find_quantity<seconds>("notice");
  if (c.notice && (c.effect != failure_effect::stops || c.tolerated.peek() > 0 || c.of == cluster_part::process))
    r.fail("notice", "applies to hardware with effect \"stops\" and nothing tolerated");
  if (c.effect == failure_effect::corrupts && !c.detection)
    r.fail("detection", "is missing; give the mean time until wrong numbers are noticed");
  r.done();
  return c;
}

/// A share of the rack, or shares by part.
void read_together(reader& r, failure_model& m) {
  const value* given = r.raw("together");
  if (!given || !given->members() || given->find("value")) {
    m.together = r.number_or("together", 0, config::fraction);
    return;
  }
  reader shares = r.child("together");
  m.together = shares.number_or("rack", 0, config::fraction);
  m.together_leaf = shares.number_or("leaf", 0, config::fraction);
  m.together_row = shares.number_or("row", 0, config::fraction);
  if (m.together.peek() + m.together_leaf.peek() + m.together_row.peek() > 1)
    shares.fail("", "the shares of rack, leaf and row must not exceed 1 together");
  shares.done();
}

failure_model read_failures(reader& workload) {
  reader r = workload.child("failures");
  failure_model m;
  m.stops_per_1000_gpu_days = r.find_number("stops_per_1000_gpu_days", config::positive);
  m.clock = read_one_of(r, "clock", failure_clock_names, failure_clock::wall);
  read_together(r, m);
  if (std::optional<reader> l = r.find_child("lemons")) {
    m.lemons = {l->number("share", config::fraction), l->number("failures", config::fraction),
                l->integer_or("removed_after", 0, {0, 1'000'000})};
    l->done();
  }
  if (std::optional<reader> e = r.find_child("early")) {
    m.early_factor = e->number("factor", {1, 1000});
    m.early_period = e->quantity<seconds>("period", config::positive);
    e->done();
  }
  if (const value* given = r.raw("components"); given && given->members()) {
    for (auto& [name, c] : r.children("components")) m.components.push_back(read_component(c, name));
  } else {
    r.fail("components", "expected an object of component kinds");
  }
  const auto stops = [](const component& c) {
    return c.effect == failure_effect::stops && c.tolerated.peek() == 0;
  };
  if (std::none_of(m.components.begin(), m.components.end(), stops))
    r.fail("components", "at least one kind must stop jobs (effect stops, tolerated 0)");
  r.done();
  return m;
}

/// In place of a number: chosen for the job's failures.
const std::string best_word = "best";

save_tier read_tier(reader& r, save_place to) {
  save_tier t;
  t.to = to;
  t.write = r.quantity<bandwidth>("write", config::positive);
  t.read = r.quantity<bandwidth>("read", config::positive);
  t.store_write = r.find_quantity<bandwidth>("store_write", config::positive);
  t.store_read = r.find_quantity<bandwidth>("store_read", config::positive);
  const value* every = r.raw("every");
  t.best_every = every && every->string() && *every->string() == best_word;
  if (!t.best_every) t.every = r.integer_or("every", 1, few);
  t.asynchronous = r.boolean_or("asynchronous", true);
  r.done();
  return t;
}

void read_saves(reader& workload, training_operation& out) {
  reader r = workload.child("checkpoint");
  out.bytes_per_parameter = r.number("bytes_per_parameter", config::positive);
  out.weights_per_parameter = r.number("weights_per_parameter", {0, out.bytes_per_parameter.peek()});
  out.save.readers = read_one_of(r, "readers", copy_readers_names, copy_readers::one);
  out.save.plan_per_gpu = r.quantity<seconds>("plan_per_gpu");
  out.save.pause = r.quantity<seconds>("pause");
  if (const auto b = r.find_quantity<bandwidth>("to_host_per_gpu", config::positive)) out.save.to_host = *b;
  if (const auto i = r.find_quantity<seconds>("interval", config::positive)) out.save.interval = *i;
  reader tiers = r.child("tiers");
  for (std::size_t i = 0; i < save_place_names.size(); ++i)
    if (std::optional<reader> t = tiers.find_child(save_place_names[i]))
      out.save.tiers.push_back(read_tier(*t, static_cast<save_place>(i)));
  if (r.has("tiers") && !tiers.has("store"))
    tiers.fail("store", "is missing; only a store survives every failure");
  if (!out.save.tiers.empty() && out.save.tiers.front().best_every)
    tiers.fail(save_place_names[static_cast<std::size_t>(out.save.tiers.front().to)],
               "\"every\" as \"best\" has no effect for the first tier, which takes every save");
  tiers.done();
  for (std::size_t i = 1; i < out.save.tiers.size(); ++i)
    if (out.save.tiers[i].best_every != out.save.tiers.back().best_every)
      r.fail("tiers", "give \"every\" as \"best\" for all tiers but the first, or for none");
    else if (!out.save.tiers[i].best_every &&
             out.save.tiers[i].every.peek() % out.save.tiers[i - 1].every.peek() != 0)
      r.fail("tiers", "each \"every\" must be a multiple of the previous tier's");
  r.done();
}

recovery_policy read_recovery(reader& workload, std::optional<std::int64_t>& replicas) {
  static const std::array<std::string, 2> slow = {"evict", "keep"};
  reader r = workload.child("recovery");
  recovery_policy p;
  p.mode = read_one_of(r, "mode", recovery_mode_names, recovery_mode::restart);
  p.again = read_one_of(r, "again", second_failure_names, second_failure::restart);
  p.watched = r.number("watched", config::fraction);
  const auto time = [&](const char* key) { return r.quantity<seconds>(key); };
  p.health = time("health");
  p.watchdog = time("watchdog");
  p.decide = time("decide");
  p.spare_ready = time("spare_ready");
  p.init = time("init");
  p.init_per_gpu = time("init_per_gpu");
  p.first_step = time("first_step");
  p.replica_stall = time("replica_stall");
  p.find_slow = time("find_slow");
  p.evict_slow = r.one_of_or("slow_parts", slow, 0) == 0;
  if (const auto n = r.find_integer("replicas", few)) replicas = *n;
  p.min_replicas = r.integer_or("min_replicas", 1, few);
  if (replicas && p.min_replicas > *replicas)
    r.fail("min_replicas", fmt::format("exceeds the job's {} replicas", *replicas));
  p.shards.copies = r.integer_or("copies", 2, few);
  p.shards.computed = read_one_of(r, "computed", shards_computed_names, shards_computed::held);
  p.shards.rejoin = r.boolean_or("rejoin", true);
  p.batch = read_one_of(r, "batch", short_batch_names, short_batch::shrinks);
  if (p.batch == short_batch::kept && (p.mode == recovery_mode::restart || p.mode == recovery_mode::redundant))
    r.fail("batch", "\"kept\" has no effect with mode " + recovery_mode_names[static_cast<std::size_t>(p.mode)] +
                        "; it needs elastic or replica");
  r.done();
  return p;
}

value text_of(seconds t) { return fmt::format("{} s", t.base()); }

value text_of(const component& c) {
  value out{value::object{}};
  out.set("of", cluster_part_names[static_cast<std::size_t>(c.of)]);
  out.set("each", c.each.peek());
  out.set("mtbf", text_of(c.mtbf.peek()));
  out.set("shape", c.shape.peek());
  if (c.ages) out.set("shape_of", shape_holders[1]);
  out.set("takes_down", cluster_part_names[static_cast<std::size_t>(c.takes_down)]);
  out.set("tolerated", c.tolerated.peek());
  out.set("effect", failure_effect_names[static_cast<std::size_t>(c.effect)]);
  if (c.effect == failure_effect::slows && !c.degraded) out.set("speed", c.speed.peek());
  if (c.degraded)
    out.set("degraded", value::object{{"speed", c.degraded->speed.peek()},
                                      {"nvlink_share", c.degraded->nvlink.peek()},
                                      {"nic_share", c.degraded->nic.peek()}});
  out.set("repair", text_of(c.repair.peek()));
  out.set("repair_spread", c.repair_is_fixed ? "fixed" : "exponential");
  if (c.watched) out.set("watched", c.watched->peek());
  if (c.detection) out.set("detection", text_of(c.detection->peek()));
  if (c.notice) out.set("notice", text_of(c.notice->peek()));
  return out;
}

value failures_text(const failure_model& m) {
  value out{value::object{}};
  if (m.stops_per_1000_gpu_days) out.set("stops_per_1000_gpu_days", m.stops_per_1000_gpu_days->peek());
  out.set("clock", failure_clock_names[static_cast<std::size_t>(m.clock)]);
  if (m.together_leaf.peek() + m.together_row.peek() > 0)
    out.set("together",
            value::object{
                {"rack", m.together.peek()}, {"leaf", m.together_leaf.peek()}, {"row", m.together_row.peek()}});
  else out.set("together", m.together.peek());
  out.set("lemons", value::object{{"share", m.lemons.share.peek()},
                                  {"failures", m.lemons.failures.peek()},
                                  {"removed_after", m.lemons.removed_after.peek()}});
  out.set("early", value::object{{"factor", m.early_factor.peek()}, {"period", text_of(m.early_period.peek())}});
  value components{value::object{}};
  for (const component& c : m.components) components.set(c.name, text_of(c));
  out.set("components", std::move(components));
  return out;
}

value saves_text(const training_operation& t) {
  const auto rate = [](bandwidth b) { return value{fmt::format("{} B/s", b.base())}; };
  value out{value::object{{"bytes_per_parameter", t.bytes_per_parameter.peek()}}};
  out.set("weights_per_parameter", t.weights_per_parameter.peek());
  out.set("readers", copy_readers_names[static_cast<std::size_t>(t.save.readers)]);
  out.set("plan_per_gpu", text_of(t.save.plan_per_gpu.peek()));
  out.set("pause", text_of(t.save.pause.peek()));
  if (t.save.to_host.peek() > bandwidth{}) out.set("to_host_per_gpu", rate(t.save.to_host.peek()));
  if (t.save.interval) out.set("interval", text_of(*t.save.interval));
  value tiers{value::object{}};
  for (const save_tier& x : t.save.tiers) {
    value one{value::object{}};
    one.set("write", rate(x.write.peek()));
    one.set("read", rate(x.read.peek()));
    if (x.store_write) one.set("store_write", rate(x.store_write->peek()));
    if (x.store_read) one.set("store_read", rate(x.store_read->peek()));
    if (x.best_every) one.set("every", best_word);
    else one.set("every", x.every.peek());
    one.set("asynchronous", x.asynchronous);
    tiers.set(save_place_names[static_cast<std::size_t>(x.to)], std::move(one));
  }
  out.set("tiers", std::move(tiers));
  return out;
}

value recovery_text(const recovery_policy& p, const std::optional<std::int64_t>& replicas) {
  value out{value::object{}};
  out.set("mode", recovery_mode_names[static_cast<std::size_t>(p.mode)]);
  out.set("again", second_failure_names[static_cast<std::size_t>(p.again)]);
  out.set("watched", p.watched.peek());
  const std::pair<const char*, seconds> times[] = {{"health", p.health.peek()},
                                                   {"watchdog", p.watchdog.peek()},
                                                   {"decide", p.decide.peek()},
                                                   {"spare_ready", p.spare_ready.peek()},
                                                   {"init", p.init.peek()},
                                                   {"init_per_gpu", p.init_per_gpu.peek()},
                                                   {"first_step", p.first_step.peek()},
                                                   {"replica_stall", p.replica_stall.peek()},
                                                   {"find_slow", p.find_slow.peek()}};
  for (const auto& [key, time] : times) out.set(key, text_of(time));
  out.set("slow_parts", p.evict_slow ? "evict" : "keep");
  if (replicas) out.set("replicas", *replicas);
  out.set("min_replicas", p.min_replicas);
  if (p.batch != short_batch::shrinks) out.set("batch", short_batch_names[static_cast<std::size_t>(p.batch)]);
  if (p.shards != shard_copies{}) {
    out.set("copies", p.shards.copies);
    out.set("computed", shards_computed_names[static_cast<std::size_t>(p.shards.computed)]);
    out.set("rejoin", p.shards.rejoin);
  }
  return out;
}

}  // namespace

training_operation read_training_operation(config::reader& w) {
  training_operation out;
  w.string_or("profile", usual_profile);
  out.racks_per_row = w.integer("racks_per_row", few);
  out.step_spread = w.number_or("step_spread", 0, config::fraction);
  out.failures = read_failures(w);
  read_saves(w, out);
  out.recovery = read_recovery(w, out.replicas);
  if (std::optional<reader> m = w.find_child("maintenance")) {
    out.maintenance = {m->quantity<seconds>("every", config::positive), m->quantity<seconds>("lasts")};
    m->done();
  }
  return out;
}

value write_training_operation(const training_operation& t) {
  value out{value::object{{"racks_per_row", t.racks_per_row}}};
  if (t.step_spread.peek() > 0) out.set("step_spread", t.step_spread.peek());
  out.set("failures", failures_text(t.failures));
  out.set("checkpoint", saves_text(t));
  out.set("recovery", recovery_text(t.recovery, t.replicas));
  if (t.maintenance.every > seconds{})
    out.set("maintenance",
            value::object{{"every", text_of(t.maintenance.every)}, {"lasts", text_of(t.maintenance.lasts)}});
  return out;
}

}  // namespace nvlsim
