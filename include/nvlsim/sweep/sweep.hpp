// Sweeps: many runs of one scenario with different values. Plans them, runs them in shards, resumes, merges, and
// submits them to a scheduler.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/scenario/scenario.hpp"

namespace nvlsim {

/// The settings of a point: JSON pointers into the scenario, as for `--set`, and values.
using point_settings = std::vector<std::pair<std::string, value>>;

/// A parsed sweep file. [docs/sweeps.md]
struct sweep {
  std::string name;
  std::string scenario;                ///< shipped name or path from the working folder
  std::vector<point_settings> points;  ///< in file order
};
inline constexpr std::int64_t max_points = 1'000'000;

/// Reads a sweep file and expands its axes. Throws input_error with every problem, or io_error.
sweep load_sweep(const std::filesystem::path& file);

/// A point of a plan. Points with equal inputs have equal ids and run once.
struct sweep_point {
  std::int64_t index = 0;
  std::string id;  ///< digest of the resolved inputs, or of the settings if they are invalid
  point_settings set;
};

/// Reasons for points without metrics ("infeasible: ...", "error: ..."; the first reason of each point) and how
/// many points have each.
using sweep_reasons = std::map<std::string, std::int64_t>;

/// The plan in a sweep folder. The folder holds `plan.json`, `points.jsonl`, and `results/` with one record file
/// per shard.
struct sweep_plan {
  std::string name, scenario;
  std::vector<sweep_point> points;
  sweep_reasons reasons = {};  ///< of points with invalid inputs; set when the plan is written
};
/// Finds a scenario file by shipped name or path.
using scenario_finder = std::function<std::filesystem::path(const std::string&)>;
using sweep_report = std::function<void(std::int64_t done, std::int64_t all)>;

/// Numbers the points of a sweep and writes the folder. Keeps existing results; they stay valid for points with
/// the same inputs.
sweep_plan write_sweep_plan(const sweep& s, const std::filesystem::path& folder, const scenario_finder& find,
                            const data_folders& data, const sweep_report& report = {});
/// Throws io_error or input_error if the folder holds no plan.
sweep_plan read_sweep_plan(const std::filesystem::path& folder);

struct sweep_run_options {
  int jobs = 1;  ///< concurrent points, each in its own process
  std::int64_t shard = 0, shards = 1;
  double timeout_s = 0;       ///< per point; 0: no limit
  bool retry_errors = false;  ///< rerun points that ended in an error
  sweep_report report;
  std::function<bool()> stop;  ///< polled between points
};
struct sweep_run_counts {
  std::int64_t points = 0;           ///< in this shard; equal points count once
  std::int64_t before = 0, run = 0;  ///< finished by earlier runs and by this one
  std::int64_t failed = 0;           ///< errors and crashes among `run`
  sweep_reasons reasons;             ///< over this shard's points, earlier runs included
};
/// Runs the unfinished points of a shard. Appends a record when a point ends: "ok", "saturated", "infeasible" or
/// "error" with reasons. No written record is lost if the process is killed. Throws io_error if another process
/// runs the shard.
sweep_run_counts run_sweep(const std::filesystem::path& folder, const sweep_run_options& o,
                           const scenario_finder& find, const data_folders& data);

struct sweep_merge {
  std::int64_t points = 0, ok = 0, saturated = 0, infeasible = 0, error = 0, missing = 0;
  sweep_reasons reasons;
  std::filesystem::path json_lines, csv;
};
/// Writes all records in point order to `results.jsonl` and `results.csv` in the folder.
sweep_merge merge_sweep(const std::filesystem::path& folder);

struct submit_options {
  std::filesystem::path program;  ///< the nvlsim executable
  std::int64_t shards = 1;
  int jobs = 1;
  std::int64_t at_once = 0;        ///< maximum number of concurrent shards; 0: all
  std::vector<std::string> extra;  ///< options for sbatch
  std::string image, claim,
      mount = "/work";  ///< Kubernetes: container image, volume claim that holds the folder, mount path
  bool dry_run = false;
};
/// Writes `slurm/array.sh` and `slurm/merge.sh` and submits them unless `dry_run`. Returns a message for the user.
std::string submit_to_slurm(const std::filesystem::path& folder, const submit_options& o);
/// Writes `kubernetes.json`, an Indexed Job whose last shard merges. Returns a message that says how to start it.
std::string write_kubernetes_job(const std::filesystem::path& folder, const submit_options& o);

}  // namespace nvlsim
