// Plans as text for a terminal of 80 columns, and as JSON (`nvlsim.plan/1`).
#pragma once

#include <string>
#include <vector>

#include "nvlsim/analysis/plan_answers.hpp"

namespace nvlsim {

inline constexpr const char* plan_schema = "nvlsim.plan/1";

/// What the program took for granted, as it is shown: "weights nvfp4 (--weights)".
using plan_assumptions = std::vector<std::string>;

/// A plan with what is printed beside it.
struct told_serving_plan {
  serving_plan plan;
  plan_assumptions assumed;
  std::vector<launch_commands> launch;  ///< of the best deployment
  std::string run_command;              ///< that runs the written scenario; empty if none was written
  std::string chosen_for;               ///< why this is the best of all platforms; empty: it is not
};

std::string serving_plans_text(const std::vector<told_serving_plan>& plans);
value serving_plans_value(const std::vector<told_serving_plan>& plans);

/// A plan of a training run on one platform, with what is printed beside it.
struct told_training_plan {
  training_plan plan;
  plan_assumptions assumed;
  std::vector<std::string> launch;  ///< of the best layout
  std::string run_command;
  std::string chosen_for;  ///< as above
};
std::string training_plans_text(const std::vector<told_training_plan>& plans);
value training_plans_value(const std::vector<told_training_plan>& plans);

/// A plan of a post-training loop on one platform, with what is printed beside it.
struct told_post_training_plan {
  post_training_plan plan;
  plan_assumptions assumed;
  std::string run_command;
  std::string chosen_for;  ///< as above
};
std::string post_training_plans_text(const std::vector<told_post_training_plan>& plans);
value post_training_plans_value(const std::vector<told_post_training_plan>& plans);

std::string scaling_text(const scaling_plan& p);
value scaling_value(const scaling_plan& p);

std::string next_dollar_text(const next_dollar_plan& p);
value next_dollar_value(const next_dollar_plan& p);

}  // namespace nvlsim
