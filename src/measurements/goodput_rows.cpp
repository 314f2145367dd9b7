// Reads rows of goodput.csv: published shares of useful time, and what failures of long runs cost.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "nvlsim/measurements/tables.hpp"
#include "nvlsim/operation/estimates.hpp"
#include "nvlsim/operation/operation_run.hpp"

namespace nvlsim {
namespace {

constexpr int runs = 40;
constexpr int runs_of_copies = 4;  // each has thousands of failures
constexpr std::int64_t max_case_replicas = 10'000;
constexpr double usual_days = 60;
constexpr std::int64_t usual_trays = 72;  // failures are of the whole job, so its number of parts does not matter

constant<seconds> secs(double s) { return nvlsim::seconds::from_base(s); }

/// Replicas that hold each other's shards of the batch. A restart of the whole job starts communicators; who fails
/// meanwhile is left out.
void share_shards_as(const csv_row& row, operation_setup& s) {
  const std::int64_t copies = *row.integer("copies");
  const double step = need(row, "step_s"), shard = need(row, "shard_s"), steps = need(row, "steps");
  if (!(step > 0) || shard < 0 || !(steps > 0) || !(row.number("shard_spread").value_or(0) >= 0))
    throw cell_error("step_s, shard_s, shard_spread and steps: at least 0, and more");
  if (copies < 1 || copies > s.replicas)
    throw cell_error(fmt::format("copies is {}, replicas {}", copies, s.replicas));
  shard_copies& x = s.recovery.shards;
  x.copies = copies;
  x.rejoin = false;
  if (row["computed"] == shards_computed_names[1]) x.computed = shards_computed::needed;
  else if (row["computed"] != shards_computed_names[0])
    throw cell_error(fmt::format("computed: \"{}\" is neither held nor needed", row["computed"]));
  s.recovery.mode = recovery_mode::redundant;
  s.recovery.init = s.recovery.decide;
  s.recovery.decide = secs(0);
  s.step_time = nvlsim::seconds::from_base(step);
  s.further_shard = shard / step;
  s.spread = row.number("shard_spread").value_or(0) * s.further_shard;
  s.work = s.step_time * steps;
}

/// A job whose program fails; saves and restarts take the times of the row.
operation_setup setup_of(const csv_row& row) {
  operation_setup s;
  const std::int64_t replicas = row.integer("replicas").value_or(1);
  const bool copied = row.integer("copies").has_value();
  if (replicas < 1 || replicas > (copied ? max_case_replicas : usual_trays))
    throw cell_error(fmt::format("replicas is {}", replicas));
  const std::int64_t trays = copied ? replicas : usual_trays;
  s.cluster = {1, trays, 1, 1};
  s.asked = {trays, trays};
  s.step_time = nvlsim::seconds::from_base(1);
  s.duration = nvlsim::seconds::from_base(row.number("days").value_or(usual_days) * 86400);
  const double gpus = need(row, "gpus");
  double mttf = row.number("mttf_s").value_or(0);
  if (!(mttf > 0))
    mttf = job_mttf(gpus / need(row, "gpus_per_node"), need(row, "failures_per_1000_node_days") / 1000).base();
  if (constexpr double most = 1e5; s.duration.base() / mttf > most)
    throw cell_error(fmt::format("{:.3g} failures in {:.3g} days are more than the {:.0f} that can be simulated",
                                 s.duration.base() / mttf, s.duration.base() / 86400, most));
  component program;
  program.name = "job";
  program.of = program.takes_down = cluster_part::process;
  program.mtbf = secs(mttf * static_cast<double>(trays));
  program.shape = row.number("weibull_shape").value_or(1);
  if (!(program.shape >= 0.1 && program.shape <= 20)) throw cell_error("weibull_shape is not in 0.1 to 20");
  s.failures.components = {program};
  save_tier store;
  store.write = store.read = bandwidth::from_base(1e30);
  s.save.state = bytes::from_base(1);
  s.save.to_host = bandwidth::from_base(1e30);
  s.save.pause = secs(row.number("save_s").value_or(0));
  if (const auto interval = row.number("interval_s")) s.save.interval = nvlsim::seconds::from_base(*interval);
  s.save.tiers = {store};
  s.recovery.decide = secs(row.number("restart_s").value_or(0));
  if (row["second_failure"] == second_failure_names[1]) s.recovery.again = second_failure::queue;
  if (!row.integer("replicas")) return s;
  s.replicas = replicas;
  s.recovery.mode = recovery_mode::replica;
  s.recovery.replica_stall = secs(need(row, "replica_stall_s"));
  if (copied) share_shards_as(row, s);
  else s.recovery.decide = secs(need(row, "rejoin_s"));
  return s;
}

/// The mean of a figure over the seeds.
template <class Figure>
double play(const operation_setup& s, Figure figure) {
  const int seeds = s.recovery.mode == recovery_mode::redundant ? runs_of_copies : runs;
  double out = 0;
  for (int seed = 1; seed <= seeds; ++seed)
    out += figure(run_by_queue(s, static_cast<std::uint64_t>(seed))) / seeds;
  return out;
}

/// Share of the wall time in which the job computes, useful or not.
double up_fraction(const operation_outcome& o) {
  double up = 0, all = 0;
  for (std::size_t u = 0; u < gpu_use_names.size(); ++u) {
    const auto use = static_cast<gpu_use>(u);
    if (use == gpu_use::after_end || use == gpu_use::repair || use == gpu_use::spare) continue;
    all += o.gpu_seconds[u];
    if (use <= gpu_use::copies || use == gpu_use::stalled || use == gpu_use::left_out) up += o.gpu_seconds[u];
  }
  return up / all;
}

restart_costs costs_of(const operation_setup& s) { return mean_costs(s, tiers_of(s)); }

seconds interval_of(const operation_setup& s) { return save_interval(s, tiers_of(s)); }

/// Time that a stop costs to first order: the restart, and half the interval again.
seconds lost_by_stop(const operation_setup& s) { return costs_of(s).restart + interval_of(s) / 2; }

double node_hours(const csv_row& row, nvlsim::seconds time) {
  return need(row, "gpus") / need(row, "gpus_per_node") * time.base() / 3600;
}

/// What a column "metric" may name.
struct goodput_metric {
  std::string_view name;
  double (*value)(const csv_row&, const operation_setup&);
};
constexpr std::array<goodput_metric, 10> metrics = {{
    {"ettr",
     [](const csv_row&, const operation_setup& s) {
       return play(s, [](const operation_outcome& o) { return o.useful_share(); });
     }},
    {"time_over_ideal",
     [](const csv_row&, const operation_setup& s) {
       return play(s, [](const operation_outcome& o) { return 1 / o.useful_share(); });
     }},
    {"up_fraction", [](const csv_row&, const operation_setup& s) { return play(s, up_fraction); }},
    {"ettr_first_order",
     [](const csv_row&, const operation_setup& s) {
       return first_order_useful_share(costs_of(s), interval_of(s));
     }},
    {"mttf_h", [](const csv_row&, const operation_setup& s) { return costs_of(s).mttf.base() / 3600; }},
    {"saving_share", [](const csv_row&, const operation_setup& s) { return costs_of(s).save / interval_of(s); }},
    {"redo_h", [](const csv_row&, const operation_setup& s) { return interval_of(s).base() / 2 / 3600; }},
    {"usd_per_stop",
     [](const csv_row& row, const operation_setup& s) {
       return node_hours(row, lost_by_stop(s)) * need(row, "node_usd_per_h");
     }},
    {"usd_of_stops",
     [](const csv_row& row, const operation_setup& s) {
       const double stops = s.duration / costs_of(s).mttf;
       return stops * node_hours(row, lost_by_stop(s)) * need(row, "node_usd_per_h");
     }},
    {"hours_of_stops",
     [](const csv_row&, const operation_setup& s) {
       return s.duration / costs_of(s).mttf * lost_by_stop(s).base() / 3600;
     }},
}};

void compare_goodput(const csv_row& row, validation_record& r) {
  const auto m =
      std::find_if(metrics.begin(), metrics.end(), [&](const auto& x) { return x.name == row["metric"]; });
  if (m == metrics.end()) throw cell_error(fmt::format("metric: \"{}\" is unknown", row["metric"]));
  const operation_setup s = setup_of(row);
  r.simulated = m->value(row, s);
  if (row["bound"].empty()) return;
  r.notes += fmt::format("{}the published value is the {}; {}", r.notes.empty() ? "" : "; ", row["bound"],
                         (row["bound"] == "least") == (*r.simulated >= *r.published) ? "kept" : "not kept");
}

}  // namespace

std::vector<validation_record> validate_goodput(const csv_table& t, const data_folders&, const progress& report) {
  return validate_rows(t, report, [&](const csv_row& row, validation_record& r) {
    r.id = row["case"];
    r.kind = row["bound"].empty() ? "goodput" : "goodput bound";
    r.metric = row["metric"].empty() ? "goodput" : row["metric"];
    r.notes = row["notes"];
    if (row["metric"].empty() || row["suspect"].starts_with("exclude:")) {
      r.status = record_status::excluded;
      r.reason = row.blank("suspect") ? "prose: this table has no columns \"metric\" and \"value\" with numbers; "
                                        "tests/measurements/goodput.csv has"
                                      : row["suspect"];
      return;
    }
    r.published = published_value(row, "value");
    compare_goodput(row, r);
  });
}

}  // namespace nvlsim
