// Several jobs on one platform, and the traffic of others beside them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvlsim/layout/layout.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct scenario;

/// A job: a workload as in a scenario of its own, and where and when it runs.
struct cluster_job {
  std::string name;
  seconds start;
  std::shared_ptr<const scenario> alone;  ///< the same job as a scenario of its own
  /// Physical racks, in the order in which its placement fills them. Empty: its placement lists GPUs.
  std::vector<std::int64_t> racks;
  std::int64_t first_gpu = 0;  ///< in each rack
  std::int64_t repeat = 1;     ///< times that its step or its collective runs, one after the other
  std::string queue;           ///< of an operation's job: whose rules it has; "": none
  std::int64_t replicas = 1;   ///< of an operation's service
};

/// How traffic of others is spread. `incast`: `senders` flows into each GPU. `permutation`: each GPU sends to
/// another and receives from one. `all_to_all`: each GPU exchanges with all others. `storage`: each GPU writes to
/// storage beyond its leaf, or reads from it.
enum class traffic_pattern { incast, permutation, all_to_all, storage };
inline const std::array<std::string, 4> traffic_pattern_names = {"incast", "permutation", "all_to_all", "storage"};

struct background_traffic {
  std::string name;
  traffic_pattern pattern = traffic_pattern::permutation;
  std::vector<degradation::range> gpus;  ///< whose NICs it uses
  bandwidth rate;                        ///< of a GPU; of a sender for incast. The most that it asks for.
  std::optional<bytes> size;             ///< of all GPUs together; absent: until the last job ends
  std::int64_t senders = 1;              ///< incast
  bool reads = false;                    ///< storage
  seconds start;
};

/// A workload of jobs that share the fabric. GPUs in no job and no background traffic are idle.
struct shared_workload {
  std::vector<cluster_job> jobs;
  std::vector<background_traffic> background;
};

}  // namespace nvlsim
