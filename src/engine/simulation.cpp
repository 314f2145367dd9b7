#include "nvlsim/engine/simulation.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/actors.hpp"
#include "engine/executor.hpp"
#include "engine/flow_executor.hpp"
#include "engine/session.hpp"
#include "engine/simgrid_zone.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/network/topology.hpp"
#include "nvlsim/plan/event_board.hpp"

namespace nvlsim {
namespace {

// The stack of an actor takes two memory mappings, and Linux allows 65,530 by default.
constexpr std::size_t max_actors = 20'000;

void refuse_too_many_actors(std::size_t needed) {
  if (needed <= max_actors) return;
  problem too_many;
  too_many.what = fmt::format("the simulation needs {} actors, but at most {} are possible; fold equal ranks",
                              needed, max_actors);
  throw input_error({too_many});
}

/// One GPU represents a class, so the class index is used as its GPU number. Ports outside the plan come after
/// them.
network::zones build_ports(engine::session& s, const platform& hardware, std::size_t ports, bool shared) {
  std::vector<std::int64_t> gpus(ports);
  std::iota(gpus.begin(), gpus.end(), 0);
  network::topology t = network::describe(hardware, gpus);
  if (shared) t.nvlink.latency = t.fabric.latency = {};  // operations include their own latency
  return network::build(s.engine(), t);
}

}  // namespace

timeline simulate(const plan& p, const platform& hardware, const simulation_options& options) {
  check_plan(p);
  const bool shared = options.network != fidelity::closed;
  const engine::receiving_ports used = shared ? engine::receiving_ports_of(p) : engine::receiving_ports{};
  refuse_too_many_actors(busy_streams(p).size() + used.count());
  engine::session session;
  const network::zones zones =
      build_ports(session, hardware, p.classes.size() * (used.any_outside ? 2 : 1), shared);
  const auto how =
      shared ? engine::make_flow_executor(session, zones, used) : engine::make_closed_executor(session);
  return engine::run_actors(p, session, *how, zones.nvlink);
}

}  // namespace nvlsim
