// What jobs that share a cluster got of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/operation_metrics.hpp"
#include "nvlsim/operation/cluster_run.hpp"

namespace nvlsim {

/// One seed of a cluster.
struct cluster_seed {
  queue_outcome queue;
  std::vector<operation_outcome> members;
  std::vector<double> waits;            ///< by member, s from submission to the first start; negative: never
  std::vector<std::int64_t> evictions;  ///< by member: by jobs of a higher tier
  operation_outcome cluster;
};

/// A cluster that was played for several seeds.
struct cluster_study {
  cluster_setup setup;
  std::vector<double> tokens_per_step;  ///< by member; 0 of services
  std::vector<cluster_seed> runs;       ///< at least one
  std::optional<dollar_rate> price;     ///< of a GPU
};

/// Of the jobs that train; goodput is of all. Nothing if none trains.
std::optional<training_tally> tally_of(const cluster_study& s);
/// Share of all GPU-time on trays that their seller took back, mean over the seeds.
double reclaimed_share(const cluster_study& s);
/// Share of their time in which replicas of services serve; nothing without services, NaN if none ever starts.
std::optional<double> availability_of(const cluster_study& s);
/// Where each GPU-hour went, what each job got, what failed, and bands.
void add_cluster_sections(result& r, const cluster_study& s);
/// The values of metrics over the seeds, for pictures.
std::vector<time_curve> spread_over_seeds(const cluster_study& s);
/// The same of one job.
std::vector<time_curve> spread_over_seeds(const operation_study& s);
/// Who held which trays; the longest stays, in order of their starts.
cluster_picture picture_of(const job_list& jobs, const queue_cluster& c, const queue_schedule& played);
/// The same of one job, from what its racks did with the first seed, repairs included: `counted`.
cluster_picture picture_of(const operation_study& s, const std::string& job);

}  // namespace nvlsim
