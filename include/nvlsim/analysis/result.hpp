// The result of a simulation. Sections are JSON values in a fixed order; keys carry the units.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/analysis/link_use.hpp"
#include "nvlsim/config/value.hpp"
#include "nvlsim/plan/plan.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/serving/serving.hpp"

namespace nvlsim {

enum class run_status { ok, saturated, infeasible, error };
std::string_view name(run_status s);

/// `nvlsim.result/1`. Everything but `simulation` is byte-identical from run to run.
struct result {
  std::string name;
  run_status status = run_status::ok;
  std::vector<std::string> reasons;  ///< why it is not ok
  value inputs = value::object{};    ///< resolved inputs, origin of each value, digest
  value metrics = value::object{};   ///< name -> number, null (unknown) or distribution object
  value breakdown = value::object{};
  value memory = value::object{};
  value energy = value::object{};
  value cost = value::object{};
  std::vector<std::string> notes;
  value bands = value::object{};       ///< metric -> [low, high] at 90 %
  value simulation = value::object{};  ///< wall time, peak memory, activities: not reproducible
};

/// A quantity over time, for pictures.
struct time_curve {
  std::string name;                               ///< "racks, as they ask"
  std::vector<std::pair<double, double>> points;  ///< seconds, value; straight lines between
};

/// Who held which trays of a cluster, for pictures.
struct cluster_picture {
  /// A job's stay on neighbouring trays of a rack.
  struct block {
    std::int32_t rack = 0, tray = 0, trays = 0, job = 0;
    double begin_s = 0, end_s = 0;
  };
  std::int64_t racks = 0, trays_per_rack = 0;
  double end_s = 0;
  std::vector<std::string> jobs;  ///< names
  std::vector<block> blocks;      ///< the longest; in order of their starts
  std::int64_t left_out = 0;      ///< shorter ones; of a lone job later ones
  bool counted = false;           ///< of a lone job: blocks say how many trays of a rack, not which
};

/// What something did from when to when, for traces and reports. Stretches of a lane follow each other.
struct state_track {
  struct stretch {
    double begin_s = 0, end_s = 0;
    std::string what;
    std::size_t lane = 0;
  };
  std::string name;
  std::vector<stretch> stretches;
  std::string lane = "state";             ///< what a lane is; several are numbered from 0
  std::vector<time_curve> counters = {};  ///< quantities of it over the same time
};

/// A result and the data needed for traces and explanations.
struct run_record {
  result outcome;
  plan planned;
  timeline times;
  std::vector<link_use> links;                        ///< of a run whose traffic shares ports
  std::vector<trace_counter> counters;                ///< of an inference run
  std::vector<std::vector<iteration_batch>> batches;  ///< of its iterations: by class and operation
  std::string left_out;                               ///< what the timeline of a long served load lacks
  std::vector<request_record> requests;  ///< of a served load, where asked for; one worker of each class
  front_end_costs front_end;             ///< of those
  kv_cache_use cache;                    ///< of an inference run
  double tokens_per_step = 1;            ///< of a decode, with drafts
  std::optional<std::pair<double, double>> counted;  ///< of an inference run: when requests end that count
  std::optional<std::pair<double, double>> counted_arrivals;  ///< when they come
  std::vector<time_curve> power;            ///< of a step at its site, in watts, if the scenario describes one
  std::optional<cluster_picture> stays;     ///< of an operation's jobs
  std::vector<state_track> racks;           ///< of an operation of one job, with the first seed
  std::vector<state_track> services;        ///< of a fleet: replicas, load and queue, with the first seed
  std::vector<time_curve> over_seeds;       ///< of an operation: value of a metric, share of seeds below it
  std::vector<std::string> constants_read;  ///< sorted pointers; filled for explained runs
};

}  // namespace nvlsim
