#include "nvlsim/network/topology.hpp"

namespace nvlsim::network {
namespace {

star even_star(const char* name, const char* host_prefix, seconds latency, bandwidth capacity,
               std::span<const std::int64_t> gpus) {
  star out{.name = name, .host_prefix = host_prefix, .latency = latency, .ports = {}, .aggregates = {}};
  out.ports.reserve(gpus.size());
  for (std::int64_t g : gpus) out.ports.push_back({g, capacity, capacity});
  return out;
}

}  // namespace

topology describe(const platform& p, std::span<const std::int64_t> gpus, seconds nvlink_latency) {
  return {even_star("nvl", "g", nvlink_latency, p.gpu.nvlink, gpus),
          even_star("ib", "n", p.fabric.latency, p.fabric.nic_bandwidth, gpus)};
}

}  // namespace nvlsim::network
