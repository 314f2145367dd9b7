// How many GPUs train a model in a number of days, with which layout, and how a step scales. [docs/planning.md]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/analysis/plan_answers.hpp"
#include "nvlsim/planner/plan_question.hpp"

namespace nvlsim {

struct training_question {
  plan_base base;              ///< its layout is not used; `token_budget` is that of the question
  std::int64_t gpus = 0;       ///< 0: as many as `days` need
  double days = 0;             ///< 0: as long as it takes
  double goodput = 1;          ///< productive share of the time; failures and restarts take the rest
  std::string failures;        ///< an operation profile with which the run is played instead; "": none
  bool flexible_batch = true;  ///< the batch may move to the nearest that divides
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

scaling_plan plan_scaling(const scaling_question& q, const plan_watch& watch = {});

/// "72..9216" (each twice the one before), "72,144,576", or a mixture. Throws input_error.
std::vector<std::int64_t> sizes_of(const std::string& text);

}  // namespace nvlsim
