#include "nvlsim/simulator/simulation.hpp"

#include <vector>

#include "nvlsim/plan/event_board.hpp"
#include "simulator/actors.hpp"
#include "simulator/executor.hpp"
#include "simulator/flow_executor.hpp"
#include "simulator/ports.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"

namespace nvlsim {

timeline simulate(const plan& p, const platform& hardware, const simulation_options& options) {
  check_plan(p);
  const bool shared = options.network != fidelity::closed;
  const std::vector<shared_uplink> uplinks = !shared ? std::vector<shared_uplink>{}
                                             : p.uplinks.empty()
                                                 ? simulator::uplink_shares(hardware, p.classes.size())
                                                 : p.uplinks;
  const simulator::receiving_ports used =
      shared ? simulator::receiving_ports_of(p, simulator::levels_of(uplinks)) : simulator::receiving_ports{};
  simulator::session session;
  session.expect_actors(busy_streams(p).size() + used.count());
  const std::size_t ports = p.classes.size() * (used.any_outside ? 2 : 1);
  const network::zones zones = simulator::build_ports(session, hardware, ports, shared, uplinks);
  const auto how = shared ? simulator::make_flow_executor(session, zones, used, uplinks)
                          : simulator::make_closed_executor(session);
  return simulator::run_actors(p, session, *how, zones.nvlink);
}

}  // namespace nvlsim
