// The engine against SimGrid used by hand for the same work.
#include <benchmark/benchmark.h>

#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/sleepers.hpp"
#include "nvlsim/simulator/simulation.hpp"
#include "nvlsim/training/training.hpp"
#include "simulator/session.hpp"
#include "simulator/simgrid_zone.hpp"
#include "support/ports.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

constexpr double nic = test::nic_rate, flow_bytes = 1e6;
constexpr int flows_each = 50;

/// Every class sends so many messages to the next one, and all do at once.
void flow_engine(benchmark::State& state) {
  plan p;
  const auto ports = static_cast<int>(state.range(0));
  operation_template t{"send", {{part_kind::pp, "send", seconds::from_base(flow_bytes / nic), 1}}, {}, {}, {}};
  t.network = {network_demand{
      {{}, {bytes::from_base(flow_bytes), bytes::from_base(flow_bytes)}}, {}, t.parts.front().duration}};
  const std::int32_t template_index = p.add_template(std::move(t));
  for (int c = 0; c < ports; ++c) {
    p.classes.push_back({"rank " + std::to_string(c), 1, {{stream_kind::pipeline, {}}}});
    for (int i = 0; i < flows_each; ++i)
      p.append(p.classes.back().streams[0], template_index, {}, no_event, {-1, (c + 1) % ports});
  }
  const platform hardware = test::bare_ports();
  for (auto _ : state) benchmark::DoNotOptimize(simulate(p, hardware, {fidelity::flow}));
  state.SetItemsProcessed(state.iterations() * ports * flows_each);
}
BENCHMARK(flow_engine)->Arg(72)->Arg(576)->Arg(4608)->Unit(benchmark::kMillisecond);

/// The same messages as plain mailbox traffic between pairs of actors.
void flow_raw_simgrid(benchmark::State& state) {
  namespace sg4 = simulator::compat::sg4;
  const auto ports = static_cast<std::size_t>(state.range(0));
  std::vector<std::int64_t> gpus(ports);
  std::iota(gpus.begin(), gpus.end(), 0);
  const platform hardware = test::bare_ports();
  for (auto _ : state) {
    simulator::session session;
    const network::zones z = network::build(session.simgrid(), network::describe(hardware, gpus));
    static char payload = 0;
    for (std::size_t c = 0; c < ports; ++c) {
      sg4::Mailbox* const out = sg4::Mailbox::by_name(z.fabric[(c + 1) % ports]->get_name());
      sg4::Mailbox* const in = sg4::Mailbox::by_name(z.fabric[c]->get_name());
      simulator::compat::add_actor(z.fabric[c], "sender", [out] {
        for (int i = 0; i < flows_each; ++i) out->put(&payload, static_cast<std::uint64_t>(flow_bytes));
      });
      simulator::compat::add_actor(z.fabric[c], "receiver", [in] {
        for (int i = 0; i < flows_each; ++i) in->get<char>();
      });
    }
    session.simgrid().run();
    benchmark::DoNotOptimize(sg4::Engine::get_clock());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ports) * flows_each);
}
BENCHMARK(flow_raw_simgrid)->Arg(72)->Arg(576)->Arg(4608)->Unit(benchmark::kMillisecond);

/// Actors that only sleep, each by its own steps: what SimGrid takes for as many as a step without folding has
/// (three streams a rank), and how that grows. Linear would be as many nanoseconds a sleep at any number.
void sleepers_raw_simgrid(benchmark::State& state) {
  namespace sg4 = simulator::compat::sg4;
  constexpr int sleeps_each = 400, streams = 3;
  const std::vector<std::int64_t> gpus = {0};
  const platform hardware = test::bare_ports();
  for (auto _ : state) {
    simulator::session session;
    const network::zones z = network::build(session.simgrid(), network::describe(hardware, gpus));
    for (std::int64_t a = 0; a < streams * state.range(0); ++a)
      simulator::compat::add_actor(z.fabric[0], "sleeper", sleeper(a, sleeps_each));
    session.simgrid().run();
    benchmark::DoNotOptimize(sg4::Engine::get_clock());
  }
  state.SetItemsProcessed(state.iterations() * streams * state.range(0) * sleeps_each);
}
BENCHMARK(sleepers_raw_simgrid)->Arg(1152)->Arg(4608)->Unit(benchmark::kSecond)->Iterations(1);

/// A step of 8,192 GPUs through the engine.
void step_engine(benchmark::State& state) {
  const scenario s = test::shipped_scenario("training/llama3.1-405b-gb300-8192");
  const plan p = plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(p, s.platform));
}
BENCHMARK(step_engine)->Unit(benchmark::kMillisecond);

/// Its longest path without one.
void step_longest_path(benchmark::State& state) {
  const scenario s = test::shipped_scenario("training/llama3.1-405b-gb300-8192");
  const plan p = plan_training(s.platform, s.stack, s.model, std::get<training_workload>(s.workload));
  for (auto _ : state) benchmark::DoNotOptimize(evaluate(p));
}
BENCHMARK(step_longest_path)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nvlsim
