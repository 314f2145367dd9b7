// What a cluster did over days to months.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nvlsim/analysis/explanation.hpp"
#include "nvlsim/analysis/queue_metrics.hpp"
#include "nvlsim/analysis/result.hpp"
#include "nvlsim/facility/site_figures.hpp"
#include "nvlsim/operation/operation_run.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

/// Jobs that trained through failures: means over the seeds, sums over jobs.
struct training_tally {
  double ettr = 0;          ///< useful time over wall time, by GPUs
  double goodput = 0;       ///< useful GPU-time over that of all GPUs of the cluster
  double stops = 0;         ///< failures that stopped a job
  double failures = 0;      ///< of all components
  double stopped_time = 0;  ///< wall time that was not useful, seconds
  double repair = 0, spare = 0, redone = 0,
         copies = 0;        ///< shares of the GPU-time of the cluster that is paid for
  double reclaimed = 0;     ///< share of all GPU-time on trays that the seller took back: it is not paid for
  double wall = 0;          ///< of the run, seconds
  double job_time = 0;      ///< wall time of the jobs, seconds
  double tokens = 0;        ///< of useful steps
  seconds step_time;        ///< of a lone job, and what follows
  seconds interval, stall;  ///< of saves
  std::optional<seconds> to_train;  ///< of jobs with a token budget that all seeds met
  std::optional<dollars> cost;      ///< of all GPUs of the cluster until the job's end
  std::int64_t gpus = 0;            ///< of the job
};

/// A serving fleet, mean over seeds.
struct fleet_figures {
  double requests = 0;
  double availability = 1, attained = 1, retried_share = 0;
  double gpus = 0;  ///< that are paid for: ready and starting
  double use = 0;   ///< share of the platform's GPUs in ready replicas
  joules energy;    ///< of ready and starting replicas, at the supplies
  std::optional<double> carbon_g;
  std::optional<dollars> bill;
};

struct operation_metrics {
  seconds duration;
  std::int64_t gpus = 0;  ///< of the platform
  std::optional<training_tally> training;
  bool lone = false;                   ///< one job, which has the cluster
  std::optional<double> availability;  ///< of services that share the cluster with other jobs
  std::optional<fleet_figures> fleet;
  std::optional<site_figures> site;    ///< of all GPUs of the cluster until the job or the run ends
  std::optional<double> cap_slowdown;  ///< of the step of a job that trains, by the facility's limits; the largest
  std::optional<queue_study> queue;
};

/// A job that was played for several seeds.
struct operation_study {
  operation_setup setup;
  std::vector<operation_outcome> runs;  ///< by seed
  double tokens_per_step = 0;
  std::optional<dollar_rate> price;  ///< of a GPU
};
training_tally tally_of(const operation_study& s);
/// Adds breakdown, cost and bands. The breakdown says where each GPU-hour went, what each kind of component did,
/// and what the closed forms estimate.
void add_operation_sections(result& r, const operation_study& s, const training_tally& t);
/// Takes the GPU-time of a job's months apart: what it went to, and which components cost it.
void explain_operation(explanation& out, const result& r);

}  // namespace nvlsim
