// The up-links that the classes of several jobs share.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/plan/plan.hpp"
#include "nvlsim/platform/platform.hpp"

namespace nvlsim {

/// The GPUs that a class stands for, and the job that it belongs to.
struct class_place {
  std::int32_t job = 0;
  std::vector<std::int64_t> gpus;
};

/// The largest share of a leaf's NICs that a job has.
double busiest_leaf(const platform& p, const std::vector<std::int64_t>& gpus);

/// Up-links by class. A class stands where most of its GPUs are: under the leaf whose classes and their numbers of
/// GPUs occur most often among its leaves. There, the GPUs of a job share the up-links evenly, and classes of
/// different jobs share them with each other, each GPU like every other: a class is listed as often
/// as it has GPUs there, in lowest terms, and the GPU that represents it takes its rate that often. Up-links that
/// limit nothing are left out. Linear in the GPUs. [docs/network-fidelities.md#jobs]
std::vector<shared_uplink> uplinks_of(const platform& p, const std::vector<class_place>& classes);

}  // namespace nvlsim
