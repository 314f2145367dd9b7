// The shipped collective profile, and machines reduced to what collectives see of them.
#pragma once

#include <filesystem>
#include <string>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/stack/load.hpp"
#include "support/root.hpp"

namespace nvlsim::test {

inline const collective_profile& shipped() {
  static const collective_profile profile = [] {
    diagnostics problems;
    config::document doc =
        config::load_named(root / "platforms/stacks/collectives", {"stack", "nccl-2.29", {}}, problems);
    stack s = read_stack(doc, "nccl-2.29", problems);
    problems.throw_if_any();
    return s.collectives;
  }();
  return profile;
}

inline platform machine(int nvlink_generation, const std::string& fabric, bandwidth nic, bool sharp = false) {
  platform p;
  p.gpu.nvlink_generation = nvlink_generation;
  const auto domain = shipped().measured_on.find("nvlink" + std::to_string(nvlink_generation));
  const bool known = domain != shipped().measured_on.end() && domain->second.nvlink;
  p.gpu.nvlink = known ? domain->second.nvlink->read() : nvlink_generation == 6 ? 1800.0_GBps : 900.0_GBps;
  p.fabric.name = fabric;
  p.fabric.nic_bandwidth = nic;
  p.fabric.sharp = sharp;
  const auto measured = shipped().measured_on.find(fabric);
  const measured_hardware& m =
      measured == shipped().measured_on.end() ? shipped().measured_on.at("default") : measured->second;
  p.fabric.latency = *m.latency;
  p.fabric.leaf.latency = m.switch_latency.value_or(seconds{});
  return p;
}

inline seconds time(const platform& p, collective c, double size, communicator g,
                    const collective_options& o = {}) {
  return collective_time(shipped(), p, {c, bytes::from_base(size), g, o}).time;
}

/// Collects what breaks a rule, and how often.
struct violations {
  std::size_t cases = 0, broken = 0;
  std::string first;
  void expect(bool holds, const auto& describe) {
    ++cases;
    if (!holds && broken++ < 10) first += describe() + "\n";
  }
};

}  // namespace nvlsim::test
