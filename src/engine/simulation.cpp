#include "nvlsim/engine/simulation.hpp"

#include "engine/actors.hpp"
#include "engine/executor.hpp"
#include "engine/flow_executor.hpp"
#include "engine/ports.hpp"
#include "engine/session.hpp"
#include "engine/simgrid_zone.hpp"
#include "nvlsim/plan/event_board.hpp"

namespace nvlsim {

timeline simulate(const plan& p, const platform& hardware, const simulation_options& options) {
  check_plan(p);
  const bool shared = options.network != fidelity::closed;
  const engine::receiving_ports used = shared ? engine::receiving_ports_of(p) : engine::receiving_ports{};
  engine::refuse_too_many_actors(busy_streams(p).size() + used.count());
  engine::session session;
  const network::zones zones =
      engine::build_ports(session, hardware, p.classes.size() * (used.any_outside ? 2 : 1), shared);
  const auto how =
      shared ? engine::make_flow_executor(session, zones, used) : engine::make_closed_executor(session);
  return engine::run_actors(p, session, *how, zones.nvlink);
}

}  // namespace nvlsim
