// Scenarios: platform, stack, model, workload and simulation options, read from files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nvlsim/config/value.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/model/model.hpp"
#include "nvlsim/network/fidelity.hpp"
#include "nvlsim/plan/collective_workload.hpp"
#include "nvlsim/platform/platform.hpp"
#include "nvlsim/scenario/jobs.hpp"
#include "nvlsim/serving/inference.hpp"
#include "nvlsim/stack/stack.hpp"
#include "nvlsim/training/training.hpp"

namespace nvlsim {

struct kept_files;  // nvlsim/scenario/scenario_digest.hpp

/// Folders with the shipped platforms, stacks and models.
struct data_folders {
  std::filesystem::path platforms, stacks, models;
  std::shared_ptr<kept_files> kept = {};  ///< what has been read from them; none: files are read every time
};
/// `root`/platforms, `root`/platforms/stacks and `root`/scenarios/models.
data_folders folders_under(const std::filesystem::path& root);

struct scenario_options {
  fidelity network = fidelity::closed;
  bool fold = true;  ///< simulate one member of each symmetry class
  std::uint64_t seed = 1;
};

/// A physical constant as read, with its provenance.
struct input_constant {
  std::string pointer;  ///< as for `--set`: "/platform/gpu/hbm_bandwidth"
  std::string text;     ///< the value as written: "8 TB/s"
  std::string kind;     ///< "measured", "vendor", "derived" or "assumed"
  std::string source;
  std::string from;  ///< where it was given: "platform gb300-nvl72", "stack nccl-2.29", "--set"
};

struct scenario_source;

struct fleet_case;              // nvlsim/scenario/fleet_case.hpp
struct facility_spec;           // nvlsim/facility/facility.hpp
struct operation_workload;      // nvlsim/operation/operation.hpp
struct post_training_workload;  // nvlsim/post_training/post_training.hpp

/// Jobs on a cluster over days to months.
struct operation_case {
  std::shared_ptr<const operation_workload> cluster;  ///< never null
  std::vector<cluster_job> jobs;
  std::shared_ptr<const fleet_case> fleet;  ///< null if no replicas come and go
};

/// A loop of rollouts and updates. Both are scenarios of their own on the same platform.
struct post_training_case {
  std::shared_ptr<const post_training_workload> loop;  ///< never null
  std::shared_ptr<const scenario> rollout, training;   ///< never null
  std::vector<input_constant> costs;                   ///< of the framework
};

/// A program may change any member. The inputs of its result then say so (`told`).
struct scenario {
  std::string name;
  std::string file;           ///< path, for messages
  nvlsim::platform platform;  ///< nameless, like the stack, if a collective on an ideal network gives none
  nvlsim::stack stack;        ///< not used by jobs, operation and post-training, whose parts have their own
  nvlsim::model model;        ///< the same, and not used by collectives
  std::variant<training_workload, inference_workload, collective_workload, shared_workload, operation_case,
               post_training_case>
      workload;
  scenario_options simulation;
  std::shared_ptr<const facility_spec> facility;  ///< null if the scenario does not describe its site
  std::string stack_at = "/stack";                ///< pointer below which the constants of the stack are
  value inputs;                                   ///< for results: resolved inputs, origins of values, digest
  std::shared_ptr<const scenario_source> source;  ///< what was read; null if the scenario was not read from a file
};

/// The constants of the platform and the stack in the order of their files, then those of the scenario's parts.
/// Empty if the scenario was not read from a file.
std::vector<input_constant> constants_of(const scenario& s);
/// The first of these with this pointer, if there is one.
std::optional<input_constant> constant_at(const scenario& s, std::string_view pointer);

/// Returns the scenario with `inputs` and `source` that match its typed values. A value that differs from what
/// was read has the origin "program". Absent if no value differs, or if nothing was read.
std::optional<scenario> told(const scenario& s);

/// `--set POINTER=TEXT`. Pointers address the scenario. Below `/platform`, `/stack` and `/model` they also address
/// the files named there ("/platform/gpu/hbm_bandwidth"), and below those of a part the part's
/// ("/workload/rollout/stack/inference/step_host").
struct override_option {
  std::string pointer, text;
};

/// Reads a scenario file and the files it names. Throws input_error with all problems of all files, or io_error.
scenario load_scenario(const std::filesystem::path& file, const std::vector<override_option>& overrides,
                       const data_folders& data);

}  // namespace nvlsim
