#include "scenario/queue_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "nvlsim/config/read_file.hpp"
#include "scenario/name_reader.hpp"

namespace nvlsim {
namespace {

using config::reader;

const std::array<std::string, 3> backfill_names = {"none", "easy", "conservative"};
const std::array<std::string, 6> placement_names = {"tree", "block", "kueue_required", "kueue_preferred",
                                                    "pack", "spread"};
const std::array<std::string, 3> outcome_names = {"completed", "failed", "cancelled"};
constexpr config::range<double> weight{0, 1e12};
constexpr config::range<std::int64_t> many{0, 10'000'000};

void take(reader& r, const char* key, seconds& into, config::range<double> allowed = config::non_negative) {
  if (const auto q = r.find_quantity<seconds>(key, allowed)) into = *q;
}

/// Three numbers by outcome; 0 for those that are not given.
void read_outcomes(reader& r, const char* key, std::array<double, 3>& into) {
  std::optional<reader> o = r.find_child(key);
  if (!o) return;
  double sum = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const auto x = o->find_number(outcome_names[i], config::fraction);
    sum += into[i] = x ? x->peek() : 0;
  }
  if (!(sum > 0)) o->fail("", "gives no share; give completed, failed or cancelled");
  o->done();
}

std::vector<size_share> read_sizes(reader& r) {
  std::vector<size_share> out;
  double with_time = 0;
  for (reader& s : r.elements("sizes")) {
    size_share one;
    one.gpus = static_cast<std::int32_t>(s.integer("gpus", {1, 10'000'000}));
    one.jobs = s.number("jobs", config::fraction);
    if (const auto t = s.find_number("gpu_time", config::fraction)) one.gpu_time = *t, ++with_time;
    s.done();
    out.push_back(one);
  }
  double jobs = 0;
  for (const size_share& s : out) jobs += s.jobs;
  if (!(jobs > 0)) r.fail("sizes", "at least one size needs a share of jobs");
  if (with_time > 0 && with_time < static_cast<double>(out.size()))
    r.fail("sizes", "give gpu_time in all sizes or in none");
  return out;
}

job_generator read_generator(reader& r) {
  job_generator g;
  const bool known = r.has("profile");
  if (known) g = *find_job_profile(job_profiles()[r.one_of("profile", job_profiles())]);
  if (!known || r.has("jobs")) g.jobs = r.integer("jobs", {1, many.high});
  if (!known || r.has("jobs_per_day")) g.jobs_per_day = r.number("jobs_per_day", config::positive);
  if (!known || r.has("mean_run")) g.mean_run = r.quantity<seconds>("mean_run", config::positive);
  if (!known || r.has("median_run")) g.median_run = r.quantity<seconds>("median_run", config::positive);
  if (!known || r.has("max_run")) g.max_run = r.quantity<seconds>("max_run", config::positive);
  if (!known || r.has("sizes")) g.sizes = read_sizes(r);
  read_outcomes(r, "outcomes", g.outcomes);
  read_outcomes(r, "outcome_gpu_time", g.outcome_time);
  if (r.has("outcomes") && !r.has("outcome_gpu_time")) g.outcome_time = g.outcomes;
  for (std::size_t o = 0; o < g.outcomes.size(); ++o)
    if ((g.outcomes[o] > 0) != (g.outcome_time[o] > 0))
      r.fail("outcome_gpu_time",
             fmt::format("\"{}\" needs a share of jobs and a share of GPU time", outcome_names[o]));
  g.daily_swing = r.number_or("daily_swing", g.daily_swing, config::fraction);
  g.users = r.integer_or("users", g.users, {1, 1'000'000});
  g.limit_over_run = r.number_or("limit_over_run", g.limit_over_run, {0, 1'000});
  return g;
}

void read_jobs(reader& queue, const config::document& doc, cluster_queue& out, diagnostics& problems) {
  reader r = queue.child("jobs");
  if (r.has("file") && r.has("profile")) r.fail("", "give either a \"file\" or a \"profile\"");
  if (!r.has("file")) {
    r.belongs("format", "jobs of a \"file\"");
    out.generator = read_generator(r);
    r.done();
    if (const std::string why = problems.empty() ? why_no_jobs(*out.generator) : std::string(); !why.empty())
      r.fail("", why);
    return;
  }
  out.file = read_name(r, "file");
  if (r.has("format")) out.file_options.format = job_formats()[r.one_of("format", job_formats())];
  if (const auto x = r.find_number("limit_over_run", {1, 1'000})) out.file_options.limit_over_run = *x;
  r.done();
  if (out.file.empty()) return;
  const std::string pointer = "/workload/queue/jobs/file";
  const config::origin& by = doc.origin_of(pointer);
  const std::filesystem::path folder = by.overrides ? "" : std::filesystem::path(doc.self.where).parent_path();
  const std::string path = (folder / out.file).string();
  try {
    out.jobs = std::make_shared<const job_list>(read_jobs_text(read_file(path), path, out.file_options, problems));
  } catch (const io_error& e) {
    problems.add({by.where, pointer, e.what(), {}, true});
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) problems.add(p);
  }
}

void read_priority(reader& policy, priority_policy& p) {
  std::optional<reader> r = policy.find_child("priority");
  if (!r) return;
  p.age = r->number_or("age", 0, weight);
  p.fair_share = r->number_or("fair_share", 0, weight);
  p.size = r->number_or("size", 0, weight);
  p.queue = r->number_or("queue", 0, weight);
  if (!p.by_factors()) r->fail("", "has no effect; give a weight of age, fair_share, size or queue");
  take(*r, "max_age", p.max_age);
  take(*r, "half_life", p.half_life, config::positive);
  take(*r, "period", p.period, config::positive);
  r->done();
}

queue_rules read_rules(reader& r, const std::string& name) {
  queue_rules q;
  q.name = name;
  q.tier = static_cast<int>(r.integer_or("tier", 0, {0, 1'000}));
  q.priority = r.number_or("priority", 0, config::fraction);
  q.max_gpus = r.integer_or("max_gpus", 0, many);
  take(r, "max_run", q.max_run, config::positive);
  q.preemptible = r.boolean_or("preemptible", false);
  r.done();
  return q;
}

scheduling_policy read_policy(reader& queue) {
  scheduling_policy p;
  reader r = queue.child_or_empty("policy");
  p.backfill = static_cast<backfill_kind>(
      r.one_of_or("backfill", backfill_names, static_cast<std::size_t>(backfill_kind::conservative)));
  take(r, "interval", p.interval);
  take(r, "backfill_interval", p.backfill_interval);
  take(r, "backfill_resolution", p.backfill_resolution);
  take(r, "clock_offset", p.clock_offset);
  p.depth = static_cast<int>(r.integer_or("depth", p.depth, {1, 1'000'000}));
  read_priority(r, p.priority);
  if (r.has("queues"))
    for (auto& [name, q] : r.children("queues")) p.queues.push_back(read_rules(q, name));
  p.preempt = r.boolean_or("preempt", false);
  if (!p.preempt) r.belongs("preempt_after", "\"preempt\": true");
  take(r, "preempt_after", p.preempt_after);
  p.requeue = r.boolean_or("requeue", true);
  take(r, "checkpoint_interval", p.checkpoint_interval, config::positive);
  if (p.preempt) {
    bool some = false;
    for (const queue_rules& q : p.queues) some |= q.preemptible;
    if (!some) r.fail("preempt", "has no effect: no queue is preemptible");
  }
  r.done();
  return p;
}

placement_policy read_rules_of_placement(reader& queue, const platform& hardware) {
  placement_policy p;
  reader r = queue.child_or_empty("placement");
  p.kind = static_cast<placement_kind>(r.one_of_or("policy", placement_names, 0));
  p.whole_nodes = r.boolean_or("whole_nodes", false);
  if (p.kind != placement_kind::block) r.belongs("segments", "policy block");
  if (r.has("segments"))
    for (reader& s : r.elements("segments")) {
      segment_rule one;
      one.from_gpus = s.integer_or("from_gpus", 0, many);
      one.nodes = static_cast<int>(s.integer("nodes", {1, hardware.rack.vms}));
      if (!p.segments.empty() && p.segments.back().from_gpus >= one.from_gpus)
        s.fail("from_gpus", "must exceed that of the previous rule");
      s.done();
      p.segments.push_back(one);
    }
  r.done();
  return p;
}

/// A failure costs a look at the whole queue: more than these take minutes to play.
constexpr double max_failures = 1e6;

failure_rates read_rates(reader& queue, const queue_place& of) {
  failure_rates f;
  std::optional<reader> r = queue.find_child("failures");
  if (!r) return f;
  const auto pair = [&](const char* mtbf, const char* repair, seconds& between, seconds& out) {
    if (r->has(mtbf) != r->has(repair)) r->fail("", fmt::format("give both {} and {}", mtbf, repair));
    take(*r, mtbf, between, config::positive);
    take(*r, repair, out);
  };
  pair("node_mtbf", "node_repair", f.node_mtbf, f.node_repair);
  pair("rack_mtbf", "rack_repair", f.rack_mtbf, f.rack_repair);
  if (!r->has("node_mtbf") && !r->has("rack_mtbf")) r->fail("", "has no effect; give node_mtbf or rack_mtbf");
  const auto racks = static_cast<double>(of.hardware.racks), vms = static_cast<double>(of.hardware.rack.vms);
  const auto refuse_many = [&](const char* member, seconds mtbf, double things) {
    if (!(mtbf > seconds{})) return;
    if (const double all = of.played_s / mtbf.base() * things; all > max_failures)
      r->fail(member,
              fmt::format("{:.2g} failures are too many to simulate; the maximum over all seeds is a million. "
                          "Give a longer time between failures, fewer seeds or a shorter duration",
                          all));
  };
  refuse_many("node_mtbf", f.node_mtbf, racks * vms);
  refuse_many("rack_mtbf", f.rack_mtbf, racks);
  r->done();
  return f;
}

}  // namespace

cluster_queue read_queue(config::reader& r, const queue_place& of, diagnostics& problems) {
  const platform& p = of.hardware;
  cluster_queue q;
  q.beside_jobs = of.beside_jobs;
  if (r.has("jobs") || !of.beside_jobs) read_jobs(r, of.doc, q, problems);
  if (of.beside_jobs) {  // one cluster, which breaks and is maintained for all
    r.belongs("failures", "a queue without \"jobs\" beside it; give /workload/failures");
    r.belongs("maintenance", "a queue without \"jobs\" beside it; give /workload/maintenance");
  }
  q.policy = read_policy(r);
  q.placement = read_rules_of_placement(r, p);
  q.failures = read_rates(r, of);
  if (r.has("maintenance"))
    for (reader& w : r.elements("maintenance")) {
      maintenance_window one;
      one.start = w.quantity<seconds>("start");
      one.length = w.quantity<seconds>("length", config::positive);
      one.first_rack = static_cast<int>(w.integer_or("first_rack", 0, {0, std::max(0, p.racks - 1)}));
      one.racks = static_cast<int>(w.integer_or("racks", p.racks - one.first_rack, {1, p.racks - one.first_rack}));
      w.done();
      q.maintenance.push_back(one);
    }
  r.done();
  return q;
}

namespace {

value write_generator(const job_generator& g) {
  value sizes{value::array{}};
  for (const size_share& s : g.sizes) {
    value one{value::object{{"gpus", s.gpus}, {"jobs", s.jobs}}};
    if (s.gpu_time > 0) one.set("gpu_time", s.gpu_time);
    sizes.items()->push_back(std::move(one));
  }
  value outcomes{value::object{}}, outcome_time{value::object{}};
  for (std::size_t o = 0; o < outcome_names.size(); ++o) {
    outcomes.set(outcome_names[o], g.outcomes[o]);
    outcome_time.set(outcome_names[o], g.outcome_time[o]);
  }
  value out{value::object{{"jobs", g.jobs},
                          {"jobs_per_day", g.jobs_per_day},
                          {"mean_run", g.mean_run.base()},
                          {"median_run", g.median_run.base()},
                          {"max_run", g.max_run.base()}}};
  if (!g.profile.empty()) out.set("profile", g.profile);
  out.set("sizes", std::move(sizes));
  out.set("outcomes", std::move(outcomes));
  out.set("outcome_gpu_time", std::move(outcome_time));
  out.set("daily_swing", g.daily_swing);
  out.set("users", g.users);
  out.set("limit_over_run", g.limit_over_run);
  return out;
}

value write_policy(const scheduling_policy& p) {
  value queues{value::object{}};
  for (const queue_rules& q : p.queues)
    queues.set(q.name, value::object{{"tier", q.tier},
                                     {"priority", q.priority},
                                     {"max_gpus", q.max_gpus},
                                     {"max_run", q.max_run.base()},
                                     {"preemptible", q.preemptible}});
  value out{value::object{{"backfill", backfill_names[static_cast<std::size_t>(p.backfill)]},
                          {"interval", p.interval.base()},
                          {"backfill_interval", p.backfill_interval.base()},
                          {"backfill_resolution", p.backfill_resolution.base()},
                          {"clock_offset", p.clock_offset.base()},
                          {"depth", p.depth}}};
  const priority_policy& w = p.priority;
  out.set("priority", value::object{{"age", w.age},
                                    {"fair_share", w.fair_share},
                                    {"size", w.size},
                                    {"queue", w.queue},
                                    {"max_age", w.max_age.base()},
                                    {"half_life", w.half_life.base()},
                                    {"period", w.period.base()}});
  out.set("queues", std::move(queues));
  out.set("preempt", p.preempt);
  out.set("preempt_after", p.preempt_after.base());
  out.set("requeue", p.requeue);
  out.set("checkpoint_interval", p.checkpoint_interval.base());
  return out;
}

}  // namespace

value write_queue(const cluster_queue& q) {
  value jobs{value::object{}};
  if (q.generator) {
    jobs = write_generator(*q.generator);
  } else {
    jobs.set("file", q.file);
    if (!q.file_options.format.empty()) jobs.set("format", q.file_options.format);
    if (q.file_options.limit_over_run) jobs.set("limit_over_run", *q.file_options.limit_over_run);
  }
  value segments{value::array{}}, windows{value::array{}};
  for (const segment_rule& s : q.placement.segments)
    segments.items()->push_back(value::object{{"from_gpus", s.from_gpus}, {"nodes", s.nodes}});
  for (const maintenance_window& w : q.maintenance)
    windows.items()->push_back(value::object{
        {"start", w.start.base()}, {"length", w.length.base()}, {"first_rack", w.first_rack}, {"racks", w.racks}});
  value placement{value::object{{"policy", placement_names[static_cast<std::size_t>(q.placement.kind)]},
                                {"whole_nodes", q.placement.whole_nodes}}};
  placement.set("segments", std::move(segments));
  value out{value::object{}};
  if (q.generator || q.jobs) out.set("jobs", std::move(jobs));
  out.set("policy", write_policy(q.policy));
  out.set("placement", std::move(placement));
  if (q.beside_jobs) return out;
  out.set("failures", value::object{{"node_mtbf", q.failures.node_mtbf.base()},
                                    {"node_repair", q.failures.node_repair.base()},
                                    {"rack_mtbf", q.failures.rack_mtbf.base()},
                                    {"rack_repair", q.failures.rack_repair.base()}});
  out.set("maintenance", std::move(windows));
  return out;
}

}  // namespace nvlsim
