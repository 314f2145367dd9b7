// A platform of which networks see the ports of its GPUs alone.
#pragma once

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

}  // namespace nvlsim::test
