#include "run/post_training_run.hpp"

#include "nvlsim/analysis/post_training_metrics.hpp"
#include "nvlsim/post_training/phases.hpp"
#include "nvlsim/simulator/post_training_actors.hpp"

namespace nvlsim {

void run_post_training(run_record& out, const scenario& s, const post_training_case& c, bool simulate) {
  const auto* rollout = std::get_if<inference_workload>(&c.rollout->workload);
  const auto* training = std::get_if<training_workload>(&c.training->workload);
  loop_player player = play_by_queue;
  if (simulate)
    player = [&s](const loop_settings& l, const loop_prices& p) { return play_by_actors(l, p, s.platform); };
  const post_training_run run = run_loop(
      {s.platform, c.rollout->stack, c.rollout->model, *rollout, c.training->stack, c.training->model, *training},
      *c.loop, player);
  out.outcome.reasons = run.reasons;
  out.outcome.notes = run.notes;
  add_post_training_sections(out, s.platform, *c.loop, run);
}

}  // namespace nvlsim
