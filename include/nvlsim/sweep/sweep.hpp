// Many runs of one scenario with other values: planned, run in shards, resumed, merged, handed to a scheduler.
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

/// What a point sets: JSON pointers into the scenario, as of `--set`, and values.
using point_settings = std::vector<std::pair<std::string, value>>;

/// A sweep file as it was understood. [docs/sweeps.md]
struct sweep {
  std::string name;
  std::string scenario;                ///< shipped name or path from the working folder
  std::vector<point_settings> points;  ///< in order
};
inline constexpr std::int64_t most_points = 1'000'000;

/// Reads a sweep file and expands its axes. Throws input_error with every problem, or io_error.
sweep load_sweep(const std::filesystem::path& file);

/// A point of a plan. Points with equal inputs have equal ids, and are run once.
struct sweep_point {
  std::int64_t index = 0;
  std::string id;  ///< digest of the resolved inputs; of the settings when these are wrong
  point_settings set;
};

/// Why points cannot run or failed, "infeasible: ..." or "error: ...", the first reason of each, and how many
/// points give it.
using sweep_reasons = std::map<std::string, std::int64_t>;

/// A sweep folder: `plan.json`, `points.jsonl`, and `results/` with a file of records a shard.
struct sweep_plan {
  std::string name, scenario;
  std::vector<sweep_point> points;
  sweep_reasons reasons = {};  ///< of points whose inputs are wrong; known when the plan is written
};
/// Finds the file of a scenario by shipped name or path.
using scenario_finder = std::function<std::filesystem::path(const std::string&)>;
using sweep_report = std::function<void(std::int64_t done, std::int64_t all)>;

/// Numbers the points of a sweep and writes the folder; results in it stay, and count where inputs are the same.
sweep_plan write_sweep_plan(const sweep& s, const std::filesystem::path& folder, const scenario_finder& find,
                            const data_folders& data, const sweep_report& report = {});
/// Throws io_error or input_error when the folder holds no plan.
sweep_plan read_sweep_plan(const std::filesystem::path& folder);

struct sweep_run_options {
  int jobs = 1;  ///< points at a time, each in a process of its own
  std::int64_t shard = 0, shards = 1;
  double timeout_s = 0;       ///< of a point; 0 is none
  bool retry_errors = false;  ///< run points again that ended in an error
  sweep_report report;
  std::function<bool()> stop;  ///< asked between points
};
struct sweep_run_counts {
  std::int64_t points = 0;           ///< of this shard, equal ones counted once
  std::int64_t before = 0, run = 0;  ///< finished by earlier runs, and by this one
  std::int64_t failed = 0;           ///< of those run: errors and crashes
  sweep_reasons reasons;             ///< of this shard's points, those of earlier runs too
};
/// Runs what is not finished of a shard, and appends a record for each point as it ends, whatever its end: "ok",
/// "saturated", "infeasible" or "error" with reasons. Killed at any moment it loses no record. Throws io_error
/// when another process runs the shard.
sweep_run_counts run_sweep(const std::filesystem::path& folder, const sweep_run_options& o,
                           const scenario_finder& find, const data_folders& data);

struct sweep_merge {
  std::int64_t points = 0, ok = 0, saturated = 0, infeasible = 0, error = 0, missing = 0;
  sweep_reasons reasons;
  std::filesystem::path json_lines, csv;
};
/// Gathers records in the order of points into `results.jsonl` and `results.csv` of the folder.
sweep_merge merge_sweep(const std::filesystem::path& folder);

struct submit_options {
  std::filesystem::path program;  ///< nvlsim
  std::int64_t shards = 1;
  int jobs = 1;
  std::int64_t at_once = 0;        ///< shards that may run together; 0 is all
  std::vector<std::string> extra;  ///< options for sbatch
  std::string image, claim,
      mount = "/work";  ///< Kubernetes: container image, volume claim with the folder, its place
  bool dry_run = false;
};
/// Writes `slurm/array.sh` and `slurm/merge.sh`, and submits them unless it is a dry run. Returns what was said.
std::string submit_to_slurm(const std::filesystem::path& folder, const submit_options& o);
/// Writes `kubernetes.json`, an Indexed Job whose last shard merges. Returns what to do with it.
std::string write_kubernetes_job(const std::filesystem::path& folder, const submit_options& o);

}  // namespace nvlsim
