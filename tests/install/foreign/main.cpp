// Uses what a foreign program would: a shipped scenario with an override, and a formula without one.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "nvlsim/model/model.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/units/version.hpp"

int main(int argc, char** argv) try {
  const std::filesystem::path data = DATA;
  const nvlsim::scenario s =
      nvlsim::load_scenario(data / "scenarios/training" / argv[argc - 1],
                            {{"/platform/fabric/nic_bandwidth", "400 Gb/s"}}, nvlsim::folders_under(data));
  const nvlsim::run_record r = nvlsim::run_scenario(s);
  std::printf("%s\n%s", nvlsim::version, nvlsim::to_json(*r.outcome.metrics.find("step_time_s")).c_str());
  std::printf("%lld\n", static_cast<long long>(nvlsim::parameters(s.model)));
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
