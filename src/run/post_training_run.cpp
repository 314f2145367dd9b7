#include "run/post_training_run.hpp"

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/analysis/post_training_metrics.hpp"
#include "nvlsim/post_training/post_training.hpp"
#include "nvlsim/run/run.hpp"

namespace nvlsim {

void run_post_training(run_record& out, const scenario&, const post_training_case& c) {
  post_training_metrics m;
  for (const scenario* part : {c.rollout.get(), c.training.get()}) {
    const run_record run = run_scenario(*part, {.explained = false, .simulate = false});
    for (const std::string& reason : run.outcome.reasons)
      out.outcome.reasons.push_back(part->name + ": " + reason);
    m.step_time = m.step_time + run.times.makespan;
  }
  if (out.outcome.reasons.empty()) set_metrics(out.outcome.metrics, m);
}

}  // namespace nvlsim
