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
constexpr double usual_days = 60;
constexpr std::int64_t trays = 72;  // failures are of the whole job, so its number of parts does not matter

constant<seconds> secs(double s) { return nvlsim::seconds::from_base(s); }

/// A job whose program fails; saves and restarts take the times of the row.
operation_setup setup_of(const csv_row& row) {
  operation_setup s;
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
  if (const auto replicas = row.integer("replicas")) {
    if (*replicas < 1 || *replicas > trays) throw cell_error(fmt::format("replicas is {}", *replicas));
    s.replicas = *replicas;
    s.recovery.mode = recovery_mode::replica;
    s.recovery.replica_stall = secs(need(row, "replica_stall_s"));
    s.recovery.decide = secs(need(row, "rejoin_s"));
  }
  return s;
}

/// Useful share of the wall time, mean over the seeds.
double play(const operation_setup& s) {
  double out = 0;
  for (int seed = 1; seed <= runs; ++seed)
    out += run_by_queue(s, static_cast<std::uint64_t>(seed)).useful_share() / runs;
  return out;
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
constexpr std::array<goodput_metric, 8> metrics = {{
    {"ettr", [](const csv_row&, const operation_setup& s) { return play(s); }},
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
