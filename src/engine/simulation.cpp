#include "nvlsim/simulation.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/actors.hpp"
#include "engine/executor.hpp"
#include "engine/session.hpp"
#include "network/simgrid_zone.hpp"
#include "network/topology.hpp"
#include "nvlsim/diagnostics.hpp"
#include "workload/event_board.hpp"

namespace nvlsim {
namespace {

// Each actor's stack is two memory mappings of the 65,530 that Linux allows by default.
constexpr std::size_t most_actors = 20'000;

void refuse_too_many_actors(const plan& p) {
  const std::size_t needed = busy_streams(p).size();
  if (needed <= most_actors) return;
  problem too_many;
  too_many.what =
      fmt::format("the simulation needs {} actors, and {} are the most; fold equal ranks", needed, most_actors);
  throw input_error({too_many});
}

}  // namespace

timeline simulate(const plan& p, const platform& hardware, const simulation_options& options) {
  check_plan(p);
  refuse_too_many_actors(p);
  engine::session session;
  const auto how = engine::make_executor(options.network, session);
  // A class is represented by one GPU, so its index serves as the GPU's.
  std::vector<std::int64_t> gpus(p.classes.size());
  std::iota(gpus.begin(), gpus.end(), 0);
  const network::zones zones = network::build(session.engine(), network::describe(hardware, gpus));
  return engine::run_actors(p, session, *how, zones.nvlink);
}

}  // namespace nvlsim
