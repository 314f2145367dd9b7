// How many GPUs train a model in a number of days, with which layout, and how a step scales. [docs/planning.md]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/result.hpp"
#include "nvlsim/analysis/search_result.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

/// A training step on GPUs. `outcome` is what `run` gives for `text`.
struct planned_training {
  std::int64_t gpus = 0, racks = 0, gpus_per_rack = 0;
  std::int64_t global_batch_size = 0;
  std::string layout;  ///< "tp 2 pp 8 vp 4 dp 32"
  double step_time_s = 0, tokens_per_s = 0, mfu = 0, bubble = 0, exposed_s = 0;
  std::optional<double> days;     ///< with a token budget, of productive time and what failures cost
  std::optional<double> goodput;  ///< productive share of the time, if it is not what the question gives
  value text;
  result outcome;
};

struct lost_training {
  std::string layout, why;
};

struct training_question {
  plan_base base;              ///< its layout is not used; `token_budget` is that of the question
  std::int64_t gpus = 0;       ///< 0: as many as `days` need
  double days = 0;             ///< 0: as long as it takes
  double goodput = 1;          ///< productive share of the time; failures and restarts take the rest
  std::string failures;        ///< an operation profile with which the run is played instead; "": none
  bool flexible_batch = true;  ///< the batch may move to the nearest that divides
};

/// A layout that needs the least memory of a GPU, where none fits.
struct closest_training {
  std::int64_t gpus = 0;
  std::string layout;
  double needed_bytes = 0, usable_bytes = 0;  ///< of each GPU
};

struct training_plan {
  std::string model, platform, stack;
  double tokens = 0, days = 0, goodput = 1;
  std::string failures;
  std::optional<planned_training> best;     ///< that qualifies
  std::optional<planned_training> nearest;  ///< the fastest, where none qualifies
  std::optional<closest_training> closest;  ///< where no layout of any number of GPUs runs, for memory
  std::vector<planned_training> sizes;      ///< all numbers of GPUs that were tried, fewest first
  std::vector<lost_training> lost;
  std::vector<pruned_layouts> pruned;
  std::int64_t evaluated = 0, candidates = 0;
  bool interrupted = false;
  double wall_s = 0;
};

training_plan plan_training_run(const training_question& q, const plan_watch& watch = {});

/// Lines of a shell: overrides of Megatron-Bridge's configuration that set this layout.
std::vector<std::string> megatron_bridge_arguments(const scenario& s);

struct scaling_question {
  plan_base base;
  std::vector<std::string> platforms;
  std::vector<std::int64_t> gpus;
  bool weak = false;  ///< the batch grows with the GPUs; strong: it stays
};

struct scaling_point {
  std::string platform;
  std::int64_t gpus = 0;
  std::optional<planned_training> best;
  double efficiency = 0;  ///< tokens/s/GPU over those of the platform's first size
  std::string why;        ///< what grew most since then, or why nothing runs
};

struct scaling_plan {
  std::string scenario;
  bool weak = false;
  std::vector<scaling_point> points;  ///< by platform, then size
  bool interrupted = false;
  double wall_s = 0;
  std::int64_t evaluated = 0;
};

scaling_plan plan_scaling(const scaling_question& q, const plan_watch& watch = {});

/// "72..9216" (each twice the one before), "72,144,576", or a mixture. Throws input_error.
std::vector<std::int64_t> sizes_of(const std::string& text);

}  // namespace nvlsim
