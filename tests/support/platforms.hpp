// A small made-up platform as text, and ways to read it.
#pragma once

#include <string>
#include <vector>

#include "nvlsim/platform/load.hpp"

namespace nvlsim::test {

/// Two servers of two GPUs in a domain; every number round, so that sums can be done by eye.
inline std::string toy_text() {
  return R"({
  "schema": "nvlsim.platform/1",
  "description": "toy",
  "sources": {"page": "the vendor's page"},
  "gpu": {
    "kind": "vendor", "source": "page",
    "name": "toy", "architecture": "toybox",
    "peaks": {
      "bf16": {"dense": "1 PFLOPS", "sparse": "2 PFLOPS"},
      "fp8": {"dense": "2 PFLOPS", "energy": "0.3 pJ/FLOP"}
    },
    "hbm_nominal": "100 GB", "hbm_usable": "100 GB", "hbm_bandwidth": "4 TB/s", "hbm_stream": "3 TB/s",
    "l2": "50 MB", "sm_count": 100, "exponentials": "4 Texp/s", "tdp": "1 kW", "idle_power": "100 W",
    "hbm_energy": "100 pJ/B", "nvlink": "500 GB/s", "nvlink_generation": 5, "nvlink_links": 10, "c2c": "100 GB/s"
  },
  "cpu": {
    "kind": "assumed", "source": "a round number",
    "name": "toy-cpu", "cores": 64, "memory": "500 GB", "memory_stream": "400 GB/s", "max_power": "300 W",
    "idle_power": "50 W"
  },
  "vm": {
    "kind": "vendor", "source": "page",
    "size": "toy_v1", "gpus": 2, "cpus": 1, "vcpus": 64, "memory": "400 GiB", "nvme": "8 TB", "nvme_read": "20 GB/s",
    "nvme_write": "10 GB/s", "front_end": "100 Gb/s"
  },
  "rack": {
    "kind": "assumed", "source": "a round number",
    "vms": 2, "nvlink_switch_trays": 1, "nvlink_planes": 2, "power_per_vm_other": "200 W",
    "power_per_switch_tray": "600 W", "power_supply_efficiency": 0.5
  },
  "fabric": {
    "kind": "vendor", "source": "page",
    "name": "toy-net", "nic_bandwidth": "400 Gb/s", "nic_efficiency": 0.9, "latency": "2 us",
    "leaf": {"name": "toy-switch", "ports": 8, "port_bandwidth": "400 Gb/s", "latency": "0.2 us"}
  },
  "price": {"per_gpu": {"value": "3 USD/h", "kind": "vendor", "source": "page"}, "note": "list"}
})";
}

/// `toy_text()` with one passage replaced; the passage must be there.
inline std::string toy_with(const std::string& from, const std::string& to) {
  std::string text = toy_text();
  return text.replace(text.find(from), from.size(), to);
}

struct reading {
  config::document doc;
  platform p;
  std::vector<std::string> problems;
};

inline reading read(const std::string& text) {
  reading out;
  diagnostics problems;
  out.doc = config::parse(text, {"platform toy", "toy.json"}, problems);
  out.p = read_platform(out.doc, "toy", problems);
  for (const problem& x : problems.sorted()) out.problems.push_back(x.text());
  return out;
}

/// A shipped platform, read from the source tree.
inline reading read_shipped(const std::string& name) {
  reading out;
  diagnostics problems;
  out.doc = config::load_named(NVLSIM_SOURCE_DIR "/platforms", {"platform", name, {}}, problems);
  out.p = read_platform(out.doc, name, problems);
  for (const problem& x : problems.sorted()) out.problems.push_back(x.text());
  return out;
}

}  // namespace nvlsim::test
