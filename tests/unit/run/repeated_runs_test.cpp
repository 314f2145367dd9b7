// What docs/library.md says of several runs in one process.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "nvlsim/output/output.hpp"
#include "nvlsim/run/run.hpp"
#include "support/shipped.hpp"

namespace nvlsim {
namespace {

using test::shipped_scenario;

/// The result without what is not reproducible.
std::string text_of(const scenario& s, bool simulate) {
  result r = run_scenario(s, {.explained = false, .simulate = simulate}).outcome;
  r.simulation = value{value::object{}};
  return to_json(to_value(r));
}

double step_time(const scenario& s) { return *run_scenario(s).outcome.metrics.find("step_time_s")->number(); }

TEST_CASE("Runs of one process give equal results whatever ran before") {
  const scenario flow = shipped_scenario("training/llama3.1-405b-gb300-rack", {{"/simulation/fidelity", "flow"}});
  const std::vector<scenario> closed = {shipped_scenario("training/llama3.1-405b-gb300-rack"),
                                        shipped_scenario("inference/llama2-70b-offline-gb300-rack"),
                                        shipped_scenario("collectives/all-reduce-gb300-rack")};
  const double first_flow = step_time(flow);
  std::vector<std::string> first;
  for (const scenario& s : closed) first.push_back(text_of(s, true));
  for (int again = 0; again < 3; ++again) {
    for (std::size_t i = closed.size(); i-- > 0;) CHECK(text_of(closed[i], true) == first[i]);
    CHECK(step_time(flow) == Approx(first_flow).epsilon(1e-9));  // SimGrid's clock goes on, and rounds
  }
}

TEST_CASE("Runs without the simulation engine may share a process on several threads") {
  const std::vector<scenario> all = {shipped_scenario("training/llama3.1-405b-gb300-rack"),
                                     shipped_scenario("inference/llama2-70b-offline-gb300-rack")};
  std::vector<std::string> texts(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < texts.size(); ++i)
    threads.emplace_back([&, i] { texts[i] = text_of(all[i % all.size()], false); });
  for (std::thread& t : threads) t.join();
  for (std::size_t i = all.size(); i < texts.size(); ++i) CHECK(texts[i] == texts[i % all.size()]);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(texts[i] == text_of(all[i], true));
}

}  // namespace
}  // namespace nvlsim
