// A platform of which networks see the ports of its GPUs alone.
#pragma once

#include <catch2/catch.hpp>

#include "nvlsim/collectives/collectives.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim::test {

/// Bytes a second of a GPU's ports, each way.
inline constexpr double nvlink_rate = 900e9, nic_rate = 100e9;

inline platform bare_ports(seconds fabric_latency = {}, double nvlink = nvlink_rate, double nic = nic_rate) {
  platform p;
  p.gpu.nvlink = bandwidth::from_base(nvlink);
  p.fabric.nic_bandwidth = bandwidth::from_base(nic);
  p.fabric.latency = fabric_latency;
  return p;
}

inline port_bytes both(double b) { return {bytes::from_base(b), bytes::from_base(b)}; }

/// The margin is for the clock, which goes on from one engine of a process to the next.
inline Approx exactly(double v) { return Approx(v).epsilon(1e-9).margin(1e-15); }

}  // namespace nvlsim::test
